"""The output of a comparison: a text table, a figure, curves as CSV and records as JSON."""

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from domkl.experiments.compare import Outcome, Setting
from domkl.experiments.figures import draw
from domkl.experiments.reproduce.document import Figure, Line, Panel, plain
from domkl.metrics.curves import with_paper_start
from domkl.metrics.intervals import Interval


def as_records(outcomes: list[Outcome], setting: Setting, facts: dict[str, Any]) -> list[Any]:
    """One record per algorithm, ready for JSON, with the facts of its data; null if not finite."""
    return [
        {
            "data": facts["data"],
            "algorithm": outcome.algorithm,
            "learners": setting.n_learners,
            "rounds": outcome.mse.shape[1],
            "trials": len(outcome.mse),
            **_interval("mse", outcome),
            **_interval("cv", outcome),
            "mse_paper_start": finite(with_paper_start(outcome.mse)[:, -1].mean()),
            "cv_paper_start": finite(with_paper_start(outcome.cv)[:, -1].mean()),
            "cv_mode": outcome.cv_mode,
            "seconds": round(outcome.seconds, 3),
            "diverged": outcome.n_diverged,
            "parameters": outcome.parameters,
            "bandwidths": [bandwidth for bandwidth, _ in outcome.shares],
            "connect": setting.connection,
            "frequencies": setting.n_frequencies,
            "seed": setting.seed,
            "dtype": setting.dtype,
            **facts,
        }
        for outcome in outcomes
    ]


def _interval(curve: str, outcome: Outcome) -> dict[str, float | None]:
    mean, low, high = map(finite, outcome.final(curve))
    return {curve: mean, f"{curve}_low": low, f"{curve}_high": high}


def finite(value: Any) -> float | None:
    """A number for JSON; None if it is not finite."""
    return float(value) if math.isfinite(value) else None


def as_table(outcomes: list[Outcome]) -> str:
    """A text table of final MSE and CV: means over trials, and half the width of 95 % intervals."""
    rows = [("algorithm", "MSE", "± 95 %", "CV", "± 95 %", "seconds")]
    for outcome in outcomes:
        cells = [outcome.algorithm]
        for curve in ("mse", "cv"):
            cells += mean_and_half(outcome.final(curve))
        rows.append((*cells, f"{outcome.seconds:.2f}"))  # type: ignore[arg-type]
    return text_table(rows)


def mean_and_half(found: Interval) -> list[str]:
    """A mean and half the width of its interval, as text."""
    half = (found.high - found.low) / 2
    if half < 1e-12 * abs(found.mean):  # the trials are equal; this is a rounding error
        half = np.zeros(())
    return [number(found.mean), number(half)]


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Align rows below the names in the first row: the first column left, the others right.

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
    """Four digits, or a dash if not finite."""
    return f"{float(value):.4g}" if math.isfinite(value) else "-"


def write_json(path: Path, records: list[Any]) -> None:
    """Write the records as {"results": [...]}."""
    path.write_text(json.dumps({"results": records}, indent=2, allow_nan=False) + "\n")


def write_curves(path: Path, outcomes: list[Outcome]) -> None:
    """Write the mean and the interval of every round as a tidy CSV file."""
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
    """Draw MSE(t) and CV(t), means over trials with 95 % bands, as PNG."""
    panels = []
    for curve, label in (("mse", "MSE(t)"), ("cv", "CV(t)")):
        lines = []
        for outcome in outcomes:
            found = outcome.interval(curve)
            rounds = [float(t) for t in range(1, len(found.mean) + 1)]
            lines.append(Line(outcome.algorithm, rounds, *map(list, found)))
        panels.append(Panel("", "round t", label, lines))
    figure = plain(asdict(Figure("simulate", "", panels, n_columns=2)))
    drawn = draw(figure, "png", title=title, panel_size=(5.5, 4.2), legend="outside right center")
    path.write_bytes(drawn)
