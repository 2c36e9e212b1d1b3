"""The history as JSON, in the target's own units."""

import math
from typing import Any

from domkl.mesh.protocol.model import Range
from domkl.mesh.store.history import TRUST, HistoryRows, Records
from domkl.mesh.store.recorder import Recorder

EXACT = 6  # significant digits


class Units:
    """Converts scaled numbers to the target's own units, rounded for a reader."""

    def __init__(self, target: Range) -> None:
        self.low, self.width = target.low, target.high - target.low

    def value(self, scaled: float) -> float | None:
        """A label or a prediction."""
        return _number(self.low + scaled * self.width)

    def length(self, scaled: float) -> float | None:
        """A deviation."""
        return _number(scaled * self.width)

    def rms(self, total: float, n: float) -> float | None:
        """The root of a mean square."""
        return None if n == 0 else _number(math.sqrt(max(total, 0.0) / n) * self.width)


def errors_of(sums: Any, units: Units) -> dict[str, Any]:
    """Root mean squared errors of a window; None where there are no samples."""
    n, n_alone, n_bands = (int(sums[name]) for name in ("n", "n_alone", "n_bands"))
    return {
        "n": n,
        "rmse": units.rms(sums["errors"], n),
        "rmse_alone": units.rms(sums["alone"], n_alone),
        "rmse_last_value": units.rms(sums["last_value"], n),
        "coverage": _number(int(sums["n_covered"]) / n_bands) if n_bands else None,
        "deviation": units.rms(sums["spread"], n_bands),
    }


def windows_of(recorder: Recorder, target: Range) -> dict[str, Any]:
    """The errors of all windows, by horizon."""
    units = Units(target)
    return {
        str(h): {name: errors_of(sums, units) for name, sums in by_name.items()}
        for h, by_name in recorder.windows().items()
    }


def history_of(rows: HistoryRows, horizons: tuple[int, ...], target: Range) -> dict[str, Any]:
    """HistoryRows of the history, by column; steps in which the node did not run have no row."""
    records, units = rows.records, Units(target)
    columns = {
        "start": [int(k) * rows.step for k in records["index"]],
        **{name: records[name].tolist() for name in ("seconds", "queued", "n_open", "n_listed")},
        **{f"{name}_bytes": records[name].tolist() for name in ("sent", "received")},
        "disagreement": [units.rms(r["gaps"], r["n_gaps"]) for r in records],
        "weights": [[_number(w) for w in row] for row in records["weights"]],
        "trust": {
            name: [_number(v) for v in records["trust"][:, k]] for k, name in enumerate(TRUST)
        },
    }
    by_horizon = {
        str(h): _columns([errors_of(r, units) for r in records["by"][:, k]])
        for k, h in enumerate(horizons)
    }
    return {"step": rows.step, **columns, "horizons": by_horizon}


def samples_of(samples: Records, target: Range) -> list[list[Any]]:
    """Samples as [number, time, label, prediction, deviation, alone, last value]."""
    units = Units(target)
    return [
        [
            int(each["index"]),
            round(float(each["time"]), 3),
            units.value(each["y"]),
            units.value(each["y_hat"]),
            units.length(each["deviation"]),
            units.value(each["y_alone"]),
            units.value(each["y_last"]),
        ]
        for each in samples
    ]


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = ("n", "rmse", "rmse_alone", "rmse_last_value", "coverage", "deviation")
    return {name: [row[name] for row in rows] for name in names}


def _number(value: Any) -> float | None:
    """A number for JSON, to six digits; None if it is none."""
    value = float(value)
    return float(f"{value:.{EXACT}g}") if math.isfinite(value) else None
