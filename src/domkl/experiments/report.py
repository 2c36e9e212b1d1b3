"""What a comparison leaves behind: a table to read, curves to look at, data to go on with."""

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from domkl.algorithms.registry import ALGORITHMS
from domkl.experiments.compare import Outcome, Setting
from domkl.metrics.curves import with_paper_start
from domkl.metrics.intervals import Interval

COLORS = {name: entry.color for name, entry in ALGORITHMS.items()}
DASHES = {name: entry.dash for name, entry in ALGORITHMS.items()}


def as_records(outcomes: list[Outcome], setting: Setting, source: dict[str, Any]) -> list[Any]:
    """One JSON-ready record per algorithm, ``source`` in each; what is not finite becomes null."""
    return [
        {
            "data": source["data"],
            "algorithm": outcome.algorithm,
            "learners": setting.n_learners,
            "rounds": outcome.mse.shape[1],
            "trials": len(outcome.mse),
            **_interval("mse", outcome),
            **_interval("cv", outcome),
            "mse_paper_start": _finite(with_paper_start(outcome.mse)[:, -1].mean()),
            "cv_paper_start": _finite(with_paper_start(outcome.cv)[:, -1].mean()),
            "cv_mode": outcome.cv_mode,
            "seconds": round(outcome.seconds, 3),
            "diverged": outcome.n_diverged,
            "parameters": outcome.parameters,
            "bandwidths": [bandwidth for bandwidth, _ in outcome.shares],
            "connect": setting.connection,
            "frequencies": setting.n_frequencies,
            "seed": setting.seed,
            "dtype": setting.dtype,
            **source,
        }
        for outcome in outcomes
    ]


def _interval(curve: str, outcome: Outcome) -> dict[str, float | None]:
    mean, low, high = map(_finite, outcome.final(curve))
    return {curve: mean, f"{curve}_low": low, f"{curve}_high": high}


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def as_table(outcomes: list[Outcome]) -> str:
    """A text table of final MSE and CV, mean over trials with the half width of 95 %."""
    rows = [("algorithm", "MSE", "± 95 %", "CV", "± 95 %", "seconds")]
    for outcome in outcomes:
        cells = [outcome.algorithm]
        for curve in ("mse", "cv"):
            cells += mean_and_half(outcome.final(curve))
        rows.append((*cells, f"{outcome.seconds:.2f}"))  # type: ignore[arg-type]
    return text_table(rows)


def mean_and_half(found: Interval) -> list[str]:
    """A mean and half the width of its interval, in words."""
    half = (found.high - found.low) / 2
    if half < 1e-12 * abs(found.mean):  # equal trials: the rounding of their mean
        half = np.zeros(())
    return [number(found.mean), number(half)]


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Columns under the names in the first row; the first column to the left, others to the right.

    Examples
    --------
    >>> print(text_table([("name", "n"), ("a", "10")]))
    name   n
    --------
    a     10
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def number(value: Any) -> str:
    """Four digits, or a dash for what is not finite."""
    return f"{float(value):.4g}" if math.isfinite(value) else "-"


def write_json(path: Path, records: list[Any]) -> None:
    """Write the records as {"results": [...]}."""
    path.write_text(json.dumps({"results": records}, indent=2, allow_nan=False) + "\n")


def write_curves(path: Path, outcomes: list[Outcome]) -> None:
    """Write every round's mean and interval over trials as a tidy CSV."""
    columns = ["algorithm", "round", "mse", "mse_low", "mse_high", "cv", "cv_low", "cv_high"]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for outcome in outcomes:
            mse, cv = outcome.interval("mse"), outcome.interval("cv")
            for t in range(outcome.mse.shape[1]):
                values = (curve[t] for curve in (*mse, *cv))
                cells = ("" if not math.isfinite(v) else f"{v:.9g}" for v in values)
                writer.writerow([outcome.algorithm, t + 1, *cells])


def write_figure(path: Path, outcomes: list[Outcome], title: str) -> None:
    """Draw MSE(t) and CV(t), means over trials with bands of 95 %, as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for axis, curve, label in zip(axes, ("mse", "cv"), ("MSE(t)", "CV(t)"), strict=True):
        drawn = [_draw(axis, outcome, curve) for outcome in outcomes]
        axis.set(xscale="log", xlabel="round t", ylabel=label)
        axis.set_xlim(1, max(outcomes[0].mse.shape[1], 2))
        axis.grid(True, which="major", color="0.88", linewidth=0.8)
        axis.spines[["top", "right"]].set_visible(False)
        if any(drawn):
            axis.set_yscale("log")
        hidden = [o for o, shown in zip(outcomes, drawn, strict=True) if not shown]
        notes = {
            "0 throughout": [o.algorithm for o in hidden if not getattr(o, curve).any()],
            "no finite value": [o.algorithm for o in hidden if getattr(o, curve).any()],
        }
        text = "\n".join(f"{note}: {', '.join(names)}" for note, names in notes.items() if names)
        axis.text(0.02, 0.02, text, transform=axis.transAxes, fontsize=9, color="0.35")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center", frameon=False)
    figure.suptitle(title, fontsize=11, parse_math=False)
    figure.savefig(path, dpi=150, format="png")
    plt.close(figure)


def _draw(axis: Any, outcome: Outcome, curve: str) -> bool:
    """Draw one curve; say whether there is anything above 0, the edge of a logarithmic axis."""
    found = outcome.interval(curve)
    rounds = np.arange(1, len(found.mean) + 1)
    color = COLORS.get(outcome.algorithm)
    style = DASHES.get(outcome.algorithm, "-")
    mean = np.where(found.mean > 0, found.mean, np.nan)
    axis.plot(rounds, mean, style, color=color, linewidth=1.8, label=outcome.algorithm)
    if np.isfinite(found.low).any():
        low = np.where(found.low > 0, found.low, np.nan)
        axis.fill_between(rounds, low, found.high, color=color, alpha=0.18, linewidth=0)
    return bool(np.isfinite(mean).any())
