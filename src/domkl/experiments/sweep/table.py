"""The results of a sweep as one tidy table, a row for each trial, and as a picture."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from domkl import checks
from domkl.errors import ParameterError
from domkl.experiments.figures import Figure, Line, Panel, draw
from domkl.experiments.report import finite, mean_and_half
from domkl.experiments.store import Results
from domkl.experiments.sweep import FORMATS
from domkl.experiments.sweep.plan import MEASURED, Point, SweepPlan, Unit
from domkl.metrics.intervals import interval
from domkl.text import text_table

#: properties of a combination that never make an axis of the picture
_APART = (*MEASURED, "trials", "seed", "rounds")


@dataclass(frozen=True)
class Table:
    """Columns of equal length, which pandas.DataFrame and polars.DataFrame accept as they are.

    A parameter that an algorithm or a graph does not have is None. ``seconds`` is the time of the
    unit divided by its trials. Everything else is the same to the bit, whatever ran the units.
    """

    columns: dict[str, list[Any]]
    cells: tuple[dict[str, Any], ...]  # labels of each combination, and means over its trials

    def __len__(self) -> int:
        return len(self.columns["trial"])

    def write(self, path: str | Path) -> None:
        """Write CSV or Parquet, according to the suffix."""
        path = Path(path)
        checks.choice("the table's suffix", path.suffix, (f".{name}" for name in FORMATS))
        write = _write_parquet if path.suffix == ".parquet" else _write_csv
        write(path, self.columns)

    def __str__(self) -> str:
        axes = _axes([name for name in self.columns if name not in MEASURED], self.cells)
        rows = [[*axes, "MSE", "± 95 %", "CV", "± 95 %"]]
        for cell in self.cells:
            numbers = [*mean_and_half(cell["mse"]), *mean_and_half(cell["cv"])]
            rows.append([*(_word(cell.get(name)) for name in axes), *numbers])
        return text_table(rows)

    def as_records(self) -> list[dict[str, Any]]:
        """A record per combination, ready for JSON: means over trials; null where not finite."""
        return [_record(cell) for cell in self.cells]


def tabulate(plan: SweepPlan, outcomes: Mapping[str, Results]) -> Table:
    """Put all results into a table, in the order of the plan."""
    names = _names(plan)
    columns: dict[str, list[Any]] = {name: [] for name in (*names, *MEASURED)}
    cells = []
    for point in plan.points:
        measured = _measured(point, outcomes)
        for name in names:
            columns[name] += [point.labels.get(name)] * len(measured["trial"])
        for name in MEASURED:
            columns[name] += measured[name]
        cells.append(point.labels | _summary(measured))
    return Table(columns, tuple(cells))


def listing(plan: SweepPlan, is_kept: Callable[[Unit], bool]) -> list[dict[str, Any]]:
    """A record per unit, ready for JSON: its labels, its trials, and whether it is finished."""
    return [
        {
            **point.labels,
            "first_trial": unit.first,
            "trials": unit.n_trials,
            "seconds": round(unit.cost / 1e6, 3),
            "is_kept": is_kept(unit),
        }
        for point in plan.points
        for unit in point.units
    ]


def as_text(plan: SweepPlan, units: list[dict[str, Any]]) -> str:
    """The units as a text table."""
    axes = _axes(_names(plan), [point.labels for point in plan.points])
    rows = [[*axes, "trials", "state"]]
    for unit in units:
        first, last = unit["first_trial"], unit["first_trial"] + unit["trials"] - 1
        state = "kept" if unit["is_kept"] else "to do"
        rows.append([*(_word(unit.get(name)) for name in axes), f"{first}-{last}", state])
    return text_table(rows)


def _axes(names: list[str], cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """The algorithm, and the other labels that differ between combinations."""
    values = {name: {cell.get(name) for cell in cells} - {None} for name in names}
    return ["algorithm", *(n for n in names if len(values[n]) > 1 and n != "algorithm")]


def _names(plan: SweepPlan) -> list[str]:
    """Every label of any combination; labels of data, graphs and algorithms stay together."""
    names: list[str] = []
    for point in plan.points:
        place = len(names)
        for name in reversed(point.labels):
            if name in names:
                place = names.index(name)
            else:
                names.insert(place, name)
    return [n for n in names if any(point.labels.get(n) is not None for point in plan.points)]


def _measured(point: Point, outcomes: Mapping[str, Results]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in MEASURED}
    for unit in point.units:
        results = outcomes[unit.key]
        columns["trial"] += range(unit.first, unit.first + unit.n_trials)
        columns["seconds"] += [float(results["seconds"]) / unit.n_trials] * unit.n_trials
        for name in ("mse", "rmse", "mae", "r2", "cv", "diverged"):
            columns[name] += results[name].tolist()
    return columns


def _summary(measured: dict[str, list[Any]]) -> dict[str, Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        means = {name: interval(measured[name]) for name in ("mse", "cv")}
    return {
        "trials": len(measured["trial"]),
        **means,
        **{name: float(np.mean(measured[name])) for name in ("rmse", "mae", "r2")},
        "diverged": sum(measured["diverged"]),
        "seconds": sum(measured["seconds"]),
    }


def _record(cell: dict[str, Any]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name, value in cell.items():
        if name in ("mse", "cv"):
            ends = dict(zip(("", "_low", "_high"), value, strict=True))
            record |= {f"{name}{end}": finite(each) for end, each in ends.items()}
        elif name in ("rmse", "mae", "r2"):
            record[name] = finite(value)
        else:
            record[name] = value
    return record


def _word(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _write_csv(path: Path, columns: dict[str, list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(map(_cell, values) for values in columns.values()), strict=True))


def _cell(value: Any) -> str:
    """All digits of a number; true and false as both pandas and polars read them."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_format(name: str) -> None:
    """Raise an error before any work if a table could not be written."""
    checks.choice("format", name, FORMATS)
    if name == "parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise ParameterError(
                "format parquet needs pyarrow: pip install 'domkl[parquet]', or choose csv"
            ) from None


def _write_parquet(path: Path, columns: dict[str, list[Any]]) -> None:
    check_format("parquet")
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), path)


def write_figure(path: Path, table: Table) -> None:
    """Draw the mean MSE of each cell with its 95 % interval, as PNG.

    The axis is the number with the most values; without one, cells stand in the order of the table.
    There is a panel for each data set.
    """
    axis, rest = axes_of(table)
    sets = list(dict.fromkeys(cell["data"] for cell in table.cells))
    panels = []
    for name in sets:
        cells = [cell for cell in table.cells if cell["data"] == name]
        lines = _lines(cells, axis, [each for each in rest if each != "data"])
        values = [x for line in lines for x in line.x]
        is_log = axis is not None and min(values) > 0 and max(values) >= 10 * min(values)
        title = str(name) if len(sets) > 1 else ""
        panels.append(Panel(title, axis or "row of the table", "MSE", lines, x_log=is_log))
    figure = Figure("sweep", "", panels, n_columns=min(len(panels), 3))
    names = {line.name for panel in panels for line in panel.lines}
    width = max(5.5, 0.2 * max(map(len, names)) + 1)  # two names of the legend side by side
    drawn = draw(figure, "png", panel_size=(width, 4.2 + 0.2 * len(names)))
    path.write_bytes(drawn)


def axes_of(table: Table) -> tuple[str | None, list[str]]:
    """The label that is the axis of the picture, and the others that vary."""
    names = [name for name in table.cells[0] if name not in _APART]
    varying = {name: {cell.get(name) for cell in table.cells} for name in names}
    varying = {name: found for name, found in varying.items() if len(found - {None}) > 1}
    numbers = {
        name: len(found)
        for name, found in varying.items()
        if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in found - {None})
    }
    axis = max(numbers, key=numbers.__getitem__) if numbers else None
    return axis, [name for name in varying if name != axis]


def _lines(cells: list[dict[str, Any]], axis: str | None, rest: list[str]) -> list[Line]:
    """A line for each combination of what varies besides the axis."""
    found: dict[str, Line] = {}
    for number, cell in enumerate(cells, start=1):
        x = number if axis is None else cell.get(axis)
        others = [f"{each} {cell[each]}" for each in rest if cell.get(each) is not None]
        others = [each.removeprefix("algorithm ") for each in others] or [str(cell["algorithm"])]
        line = found.setdefault(", ".join(others), Line(", ".join(others), [], [], [], []))
        if x is None:  # a parameter that this algorithm does not have
            continue
        line.x.append(float(x))
        for place, value in zip((line.mean, line.low, line.high), cell["mse"], strict=True):
            place.append(finite(value))
    return [line for line in found.values() if line.x]
