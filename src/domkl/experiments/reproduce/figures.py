"""Pictures of a report, from its JSON alone."""

import io
import math
from typing import Any

import numpy as np

from domkl.experiments.report import COLORS, DASHES

#: Okabe and Ito's palette for names that have no color of their own, with a marker each
CYCLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8A8A")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
OWN = {
    "linear-rls pooled": ("#E69F00", "-"),
    "river forest": ("#7A5195", "--"),
    "domkl, probability 0.5": ("#0072B2", "-"),
    "domkl, probability 5/K": ("#56B4E9", "--"),
}
TEXT = 10.5
TINY = 1e-300
FEW = 8  # points of a line that are marked, and ticks that are named


def draw(figure: dict[str, Any], kind: str) -> bytes:
    """Draw a figure of the document as "svg" or "png"."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    style: Any = {
        "font.size": TEXT,
        "axes.titlesize": TEXT + 1.5,
        "svg.hashsalt": figure["id"],  # the same picture is the same file
        "svg.fonttype": "path",
    }
    with plt.rc_context(style):
        n_panels, n_columns = len(figure["panels"]), figure["n_columns"]
        n_rows = math.ceil(n_panels / n_columns)
        size = (4.1 * n_columns, 3.1 * n_rows + 0.5)
        picture, grid = plt.subplots(
            n_rows, n_columns, figsize=size, layout="constrained", squeeze=False
        )
        styles = _styles(figure)
        for axis, panel in zip(grid.flat, figure["panels"], strict=False):
            _panel(axis, panel, styles)
        for axis in list(grid.flat)[n_panels:]:
            axis.set_visible(False)
        handles = _handles(grid)
        columns = math.ceil(len(handles) / max(math.ceil(len(handles) / (2 * n_columns)), 1))
        picture.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=columns,
            frameon=False,
        )  # fmt: skip
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
        color, dash = COLORS.get(name) or color, DASHES.get(name, dash)
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
        axis.set_xscale("log")
        _name_ticks(axis, panel)
    if panel["y_log"] and is_seen:
        axis.set_yscale("log")
        _limit(axis, panel)
    axis.grid(True, which="major", color="0.9", linewidth=0.8)
    axis.spines[["top", "right"]].set_visible(False)
    zero = [line["name"] for line in panel["lines"] if not any(line["mean"])]
    if zero:
        note = f"0 throughout: {', '.join(zero)}"
        axis.text(0.03, 0.03, note, transform=axis.transAxes, fontsize=TEXT - 2, color="0.35")


def _line(axis: Any, line: dict[str, Any], y_log: bool, color: str, dash: str, mark: str) -> bool:
    """Draw a curve and its band; say whether there is anything to see."""
    x, mean, low, high = (
        np.array([np.nan if v is None else v for v in line[key]], dtype=float)
        for key in ("x", "mean", "low", "high")
    )
    if y_log:
        mean = np.where(mean > 0, mean, np.nan)
        low = np.where(low > 0, low, TINY)  # the band goes on below the axis
    marker = mark if len(x) <= FEW else ""
    axis.plot(
        x, mean, dash, color=color, linewidth=1.7, marker=marker, markersize=5, label=line["name"]
    )
    if np.isfinite(low).any():
        axis.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)
    return bool(np.isfinite(mean).any())


def _limit(axis: Any, panel: dict[str, Any]) -> None:
    """Show all means: bands may leave the axis, and so may what diverges."""
    means = [[v for v in line["mean"] if v] for line in panel["lines"]]
    tops = sorted(max(values) for values in means if values)
    middle, bottom = tops[len(tops) // 2], min(min(values) for values in means if values)
    axis.set_ylim(bottom / 1.8, min(tops[-1], 1e3 * middle) * 1.8)


def _name_ticks(axis: Any, panel: dict[str, Any]) -> None:
    """Where there are few points, name them."""
    from matplotlib.ticker import NullLocator

    places = sorted({x for line in panel["lines"] for x in line["x"]})
    if len(places) <= FEW:
        axis.set_xticks(places, [f"{x:g}" for x in places])
        axis.xaxis.set_minor_locator(NullLocator())
