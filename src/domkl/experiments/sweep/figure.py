"""A picture of a sweep: MSE over one of its axes, a line for each combination of the others."""

from pathlib import Path
from typing import Any

from domkl.experiments.figures import Figure, Line, Panel, draw
from domkl.experiments.report import finite
from domkl.experiments.sweep.table import Table

#: labels that never make an axis of the picture
_APART = ("trials", "seed", "rounds")


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
    names = [name for name in table.cells[0] if name not in ("mse", "cv", *_APART)]
    names = list(dict.fromkeys(name for cell in table.cells for name in cell if name in names))
    varying = {name: {cell.get(name) for cell in table.cells} for name in names}
    varying = {name: found for name, found in varying.items() if len(found - {None}) > 1}
    varying.pop("seconds", None)
    varying.pop("diverged", None)
    numbers = {
        name: len(found)
        for name, found in varying.items()
        if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in found - {None})
    }
    axis = max(numbers, key=lambda name: numbers[name]) if numbers else None
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
