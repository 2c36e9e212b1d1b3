"""The output of a comparison: a text table, a figure, curves as CSV and records as JSON."""

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from domkl.experiments.compare import Bands, Outcome
from domkl.experiments.figures import Figure, Line, Panel, draw, points
from domkl.experiments.options import Setting
from domkl.metrics.curves import with_paper_start
from domkl.metrics.intervals import Interval
from domkl.text import text_table


class Part(NamedTuple):
    """The outcomes of one horizon, and the facts of its data."""

    outcomes: list[Outcome]
    facts: dict[str, Any]

    @property
    def horizon(self) -> str:
        """How far ahead the labels are, for people."""
        time, steps = self.facts.get("horizon_time"), self.facts.get("horizon")
        return str(time or ("" if steps is None else steps))


def as_records(parts: Sequence[Part], setting: Setting) -> list[Any]:
    """One record per algorithm, ready for JSON, with the facts of its data; null if not finite."""
    return [
        {
            "data": facts["data"],
            "algorithm": outcome.algorithm,
            "horizon": facts.get("horizon"),
            "learners": setting.n_learners,
            "rounds": outcome.mse.shape[1],
            "trials": len(outcome.mse),
            **_interval("mse", outcome),
            **_scores(outcome, facts),
            **_quantiles(outcome.bands, setting),
            **_interval("cv", outcome),
            "mse_paper_start": finite(with_paper_start(outcome.mse)[:, -1].mean()),
            "cv_paper_start": finite(with_paper_start(outcome.cv)[:, -1].mean()),
            "cv_mode": outcome.cv_mode,
            "seconds": round(outcome.seconds, 3),
            "diverged": outcome.n_diverged,
            "parameters": outcome.parameters,
            "bandwidths": [bandwidth for bandwidth, _ in outcome.shares],
            "topology": setting.kind,
            "connect": setting.connection,
            "frequencies": setting.n_frequencies,
            "seed": setting.seed,
            "dtype": setting.dtype,
            **facts,
        }
        for outcomes, facts in parts
        for outcome in outcomes
    ]


def _scores(outcome: Outcome, facts: dict[str, Any]) -> dict[str, Any]:
    """Errors in the target's own units, means over trials."""
    if outcome.scores is None:
        return {}
    means = outcome.scores.means
    found: dict[str, Any] = {name: finite(means[name]) for name in ("rmse", "mae", "r2")}
    if facts.get("is_class"):
        found["wrong"] = finite(means["wrong"])
    if "nodes" in facts and facts.get("partition") is None:
        pairs = zip(facts["nodes"], means["node_rmse"].tolist(), strict=True)
        found["rmse_by_node"] = {node: finite(value) for node, value in pairs}
    return found


def _quantiles(bands: Bands | None, setting: Setting) -> dict[str, Any]:
    """Levels, mean pinball loss in the target's own units, and what central bands hold."""
    if bands is None:
        return {}
    held = {f"{share:g}": finite(value) for share, value in bands.held.items()}
    return {"quantiles": setting.quantiles, "pinball": finite(bands.pinball), "coverage": held}


def _interval(curve: str, outcome: Outcome) -> dict[str, float | None]:
    mean, low, high = map(finite, outcome.final(curve))
    return {curve: mean, f"{curve}_low": low, f"{curve}_high": high}


def finite(value: Any) -> float | None:
    """A number for JSON; None if it is not finite."""
    return float(value) if math.isfinite(value) else None


def as_table(parts: Sequence[Part]) -> str:
    """A text table of errors in the target's units, final MSE and CV; means over trials.

    MSE and CV are in scaled units, with half the width of their 95 % intervals. Where quantiles
    were asked for, there is their pinball loss, and the share of labels that each band holds.
    """
    has_horizons = len(parts) > 1
    is_class = bool(parts[0].facts.get("is_class"))
    has_cv = any(_has_cv(outcome) for part in parts for outcome in part.outcomes)
    own: tuple[str, ...] = ("wrong",) if is_class else ("RMSE", "MAE", "R²")
    own += tuple(_band_cells(parts[0].outcomes[0].bands))
    rows = [("algorithm", *(("ahead",) if has_horizons else ()), *own, "MSE", "± 95 %",
             *(("CV", "± 95 %") if has_cv else ()), "seconds")]  # fmt: skip
    for part in parts:
        for outcome in part.outcomes:
            cells = [outcome.algorithm, *([part.horizon] if has_horizons else [])]
            means = {} if outcome.scores is None else outcome.scores.means
            names = ("wrong",) if is_class else ("rmse", "mae", "r2")
            cells += [number(means.get(name, np.nan)) for name in names]
            cells += _band_cells(outcome.bands).values()
            for curve in ("mse", "cv") if has_cv else ("mse",):
                cells += mean_and_half(outcome.final(curve))
            rows.append((*cells, f"{outcome.seconds:.2f}"))
    return text_table(rows)


def _band_cells(bands: Bands | None) -> dict[str, str]:
    """Pinball loss and coverage as text, by the heads of their columns."""
    if bands is None:
        return {}
    held = {
        f"{100 * share:g} % band": f"{100 * value:.1f} %" if math.isfinite(value) else "-"
        for share, value in bands.held.items()
    }
    return {"pinball": number(bands.pinball), **held}


def _has_cv(outcome: Outcome) -> bool:
    """Whether there are others to disagree with."""
    return bool(np.any(np.nan_to_num(outcome.cv) > 0))


def mean_and_half(found: Interval) -> list[str]:
    """A mean and half the width of its interval, as text."""
    half = (found.high - found.low) / 2
    if half < 1e-12 * abs(found.mean):  # the trials are equal; this is a rounding error
        half = np.zeros(())
    return [number(found.mean), number(half)]


def number(value: Any) -> str:
    """Four digits, or a dash if not finite."""
    return f"{float(value):.4g}" if math.isfinite(value) else "-"


def write_json(path: Path, records: list[Any]) -> None:
    """Write the records as {"results": [...]}."""
    path.write_text(json.dumps({"results": records}, indent=2, allow_nan=False) + "\n")


def write_curves(path: Path, parts: Sequence[Part]) -> None:
    """Write the mean and the interval of every round as a tidy CSV file."""
    curves = [f"{curve}{end}" for curve in ("mse", "cv") for end in ("", "_low", "_high")]
    columns = ["algorithm", "horizon", "round", *curves]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for part, outcome in ((p, each) for p in parts for each in p.outcomes):
            mse, cv = outcome.interval("mse"), outcome.interval("cv")
            for t in range(outcome.mse.shape[1]):
                values = (curve[t] for curve in (*mse, *cv))
                cells = ("" if not math.isfinite(v) else f"{v:.9g}" for v in values)
                horizon = part.facts.get("horizon")
                writer.writerow(
                    [outcome.algorithm, "" if horizon is None else horizon, t + 1, *cells]
                )


def write_figure(path: Path, parts: Sequence[Part], title: str) -> None:
    """Draw MSE(t) of each horizon, and CV(t) where learners can disagree, as PNG.

    Means over trials with 95 % bands.
    """
    panels = []
    for part in parts:
        ahead = f"{part.horizon} ahead" if len(parts) > 1 else ""
        panels.append(Panel(ahead, "round t", "MSE(t)", _lines(part.outcomes, "mse")))
    if len(parts) == 1 and any(map(_has_cv, parts[0].outcomes)):
        panels.append(Panel("", "round t", "CV(t)", _lines(parts[0].outcomes, "cv")))
    figure = Figure("simulate", "", panels, n_columns=min(len(panels), 3))
    drawn = draw(figure, "png", title=title, panel_size=(5.5, 4.2), legend="outside right center")
    path.write_bytes(drawn)


def _lines(outcomes: list[Outcome], curve: str) -> list[Line]:
    rounds = range(1, outcomes[0].mse.shape[1] + 1)
    return [points(each.algorithm, rounds, np.transpose(each.interval(curve))) for each in outcomes]
