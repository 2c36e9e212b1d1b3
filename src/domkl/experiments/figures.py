"""Figures: what they show, and how they are drawn, from the dataclasses or from their JSON form."""

import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from domkl.algorithms.registry import ALGORITHMS

#: Okabe and Ito's palette for names that have no color of their own, with a marker each
CYCLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8A8A")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
OWN = {
    "linear-rls pooled": ("#E69F00", "-"),
    "river forest": ("#7A5195", "--"),
    "as it should be": ("#8A8A8A", "--"),
    "domkl, probability 0.5": ("#0072B2", "-"),
    "domkl, probability 5/K": ("#56B4E9", "--"),
}
TEXT = 10.5
PANEL_SIZE = (4.1, 3.1)  # inches
FEW = 8  # a line of at most this many points gets markers and a tick at each point
DIGITS = 5  # significant digits of numbers in JSON


@dataclass
class Line:
    """A curve with its band."""

    name: str
    x: list[float]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


@dataclass
class Panel:
    """A plot: a pair of axes with lines."""

    title: str
    x_label: str
    y_label: str
    lines: list[Line]
    x_log: bool = True
    y_log: bool = True


@dataclass
class Map:
    """A panel with places, the edges between them, and a value at each."""

    title: str
    value_label: str
    names: list[str]
    x: list[float]  # kilometres east
    y: list[float]  # and north
    values: list[float]
    edges: list[list[int]]
    lines: list[Line] = field(default_factory=list)  # none; other panels have some


@dataclass
class Figure:
    """Panels side by side."""

    id: str
    caption: str
    panels: Sequence[Panel | Map]
    n_columns: int = 3
    panel_size: tuple[float, float] | None = None  # inches


def points(name: str, x: Sequence[float], found: Iterable[Any]) -> Line:
    """A line with one point per (mean, low, high)."""
    mean, low, high = np.stack(list(found), axis=1).tolist()
    return Line(name, [float(value) for value in x], mean, low, high)


def plain(value: Any) -> Any:
    """Turn numbers and arrays into what JSON can hold."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


def draw(
    figure: Figure | dict[str, Any],
    kind: str,
    *,
    title: str = "",
    panel_size: tuple[float, float] | None = None,
    legend: Literal["outside lower center", "outside right center"] = "outside lower center",
) -> bytes:
    """Draw a figure, or its JSON form, as "svg" or "png"."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown: dict[str, Any] = plain(asdict(figure)) if isinstance(figure, Figure) else figure
    style: Any = {
        "font.size": TEXT,
        "axes.titlesize": TEXT + 1.5,
        "svg.hashsalt": shown["id"],  # so that the same picture gives the same file
        "svg.fonttype": "path",
    }
    panel_size = panel_size or shown.get("panel_size") or PANEL_SIZE
    with plt.rc_context(style):
        n_panels = len(shown["panels"])
        n_columns = min(shown["n_columns"], n_panels)
        n_rows = math.ceil(n_panels / n_columns)
        size = (panel_size[0] * n_columns, panel_size[1] * n_rows + 0.5)
        picture, grid = plt.subplots(
            n_rows, n_columns, figsize=size, layout="constrained", squeeze=False
        )
        styles = _styles(shown)
        for axis, panel in zip(grid.flat, shown["panels"], strict=False):
            if "edges" in panel:
                _map(axis, panel, _most(shown), is_last=panel is shown["panels"][-1])
            else:
                _panel(axis, panel, styles)
        for axis in list(grid.flat)[n_panels:]:
            axis.set_visible(False)
        handles = _handles(grid)
        columns = math.ceil(len(handles) / max(math.ceil(len(handles) / (2 * n_columns)), 1))
        if handles:
            picture.legend(
                handles.values(), handles.keys(), loc=legend, frameon=False,
                ncols=columns if legend == "outside lower center" else 1,
            )  # fmt: skip
        if title:
            picture.suptitle(title, fontsize=TEXT + 0.5, parse_math=False)
        out = io.BytesIO()
        metadata = {"Date": None} if kind == "svg" else None
        picture.savefig(out, format=kind, dpi=160, metadata=metadata)
        plt.close(picture)
    return out.getvalue()


def _handles(grid: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for axis in grid.flat:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    return found


def _styles(figure: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    """Color, dash and marker of each name, the same in all panels."""
    names = list(dict.fromkeys(line["name"] for p in figure["panels"] for line in p["lines"]))
    found = {}
    for place, name in enumerate(names):
        color, dash = CYCLE[place % len(CYCLE)], "-"
        if name in ALGORITHMS:
            color, dash = ALGORITHMS[name].color or color, ALGORITHMS[name].dash
        color, dash = OWN.get(name, (color, dash))
        found[name] = (color, dash, MARKERS[place % len(MARKERS)])
    return found


def _panel(axis: Any, panel: dict[str, Any], styles: dict[str, tuple[str, str, str]]) -> None:
    is_seen = False
    for line in panel["lines"]:
        is_seen = _line(axis, line, panel["y_log"], *styles[line["name"]]) or is_seen
    axis.set_title(panel["title"])
    axis.set(xlabel=panel["x_label"], ylabel=panel["y_label"])
    if panel["x_log"]:
        ends = [x for line in panel["lines"] for x in line["x"]]
        if not is_seen and ends:  # a logarithmic axis needs limits
            axis.set_xlim(min(ends), max(*ends, 2 * min(ends)))
        axis.set_xscale("log")
        _name_ticks(axis, panel)
    if panel["y_log"] and is_seen:
        axis.set_yscale("log")
        _limit(axis)
    axis.grid(True, which="major", color="0.9", linewidth=0.8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.text(0.03, 0.03, _unseen(panel), transform=axis.transAxes, fontsize=TEXT - 2, color="0.35")


def _most(figure: dict[str, Any]) -> float:
    """The largest value on any map of a figure, so that a color means the same on all."""
    maps = [panel for panel in figure["panels"] if "edges" in panel]
    return max(abs(value) for panel in maps for value in panel["values"]) or 1.0


def _map(axis: Any, panel: dict[str, Any], most: float, *, is_last: bool) -> None:
    """Draw places with their edges, colored by their values, red below 0 and blue above.

    Names stand in a column on each side, so that near places do not hide each other's.
    """
    x, y, values = (np.array(panel[key], dtype=float) for key in ("x", "y", "values"))
    for a, b in panel["edges"]:
        axis.plot(x[[a, b]], y[[a, b]], color="0.75", linewidth=1.2, zorder=1)
    limits = {"vmin": -most, "vmax": most}
    dots = axis.scatter(x, y, c=values, cmap="RdBu", s=90, edgecolors="0.25", zorder=3, **limits)
    width, height = np.ptp(x), np.ptp(y)
    by_place = np.argsort(x)
    for side, chosen in ((-1, by_place[: len(x) // 2]), (1, by_place[len(x) // 2 :])):
        column = (x.min() if side < 0 else x.max()) + 0.12 * side * width
        chosen = chosen[np.argsort(y[chosen])]
        for k, level in zip(chosen, _spread(y[chosen], 0.08 * height), strict=True):
            axis.annotate(
                f"{panel['names'][k]} {values[k]:+.1f}", (x[k], y[k]), (column, level),
                ha="left" if side > 0 else "right", va="center", fontsize=TEXT - 2, zorder=2,
                arrowprops={"arrowstyle": "-", "color": "0.55", "linewidth": 0.6, "shrinkB": 4},
            )  # fmt: skip
    axis.set_xlim(x.min() - 0.95 * width, x.max() + 0.95 * width)
    axis.set_ylim(y.min() - 0.08 * height, y.max() + 0.08 * height)
    axis.set(title=panel["title"], xlabel="km east", ylabel="km north", aspect="equal")
    axis.spines[["top", "right"]].set_visible(False)
    if is_last:
        axis.figure.colorbar(
            dots, ax=axis.figure.axes, orientation="horizontal", shrink=0.4, aspect=40,
            label=panel["value_label"],
        )  # fmt: skip


def _spread(levels: Any, gap: float) -> Any:
    """Move ascending levels apart as little as needed to be a gap from each other."""
    places = np.arange(len(levels)) * gap
    return np.maximum.accumulate(levels - places) + places


def _unseen(panel: dict[str, Any]) -> str:
    """Name the lines that a logarithmic axis cannot show."""
    means = {line["name"]: set(line["mean"]) for line in panel["lines"]}
    notes = {
        "0 throughout": [name for name, values in means.items() if values <= {0}],
        "no finite value": [name for name, values in means.items() if values <= {None}],
    }
    return "\n".join(f"{note}: {', '.join(names)}" for note, names in notes.items() if names)


def _line(axis: Any, line: dict[str, Any], y_log: bool, color: str, dash: str, mark: str) -> bool:
    """Draw a curve and its band; return whether there is anything to see."""
    x, mean, low, high = (np.array(line[key], float) for key in ("x", "mean", "low", "high"))
    if y_log:
        mean = np.where(mean > 0, mean, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(low > 0, low, mean**2 / high)  # as far below the mean, as a factor
    marker = mark if len(x) <= FEW else ""
    axis.plot(
        x, mean, dash, color=color, linewidth=1.7, marker=marker, markersize=5, label=line["name"]
    )
    if np.isfinite(low).any():
        axis.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)
    return bool(np.isfinite(mean).any())


def _limit(axis: Any) -> None:
    """Fit the axis to the means that are seen; bands and diverging lines may leave it."""
    means = [line.get_ydata() for line in axis.lines]
    seen = [np.nanmax(each) for each in means if np.isfinite(each).any()]
    top = min(max(seen), 1e3 * sorted(seen)[len(seen) // 2])
    axis.set_ylim(np.nanmin(np.concatenate(means)) / 1.8, top * 1.8)


def _name_ticks(axis: Any, panel: dict[str, Any]) -> None:
    """Put a tick at each point if there are few."""
    from matplotlib.ticker import NullLocator

    places = sorted({x for line in panel["lines"] for x in line["x"]})
    if len(places) <= FEW:
        axis.set_xticks(places, [f"{x:g}" for x in places])
        axis.xaxis.set_minor_locator(NullLocator())
