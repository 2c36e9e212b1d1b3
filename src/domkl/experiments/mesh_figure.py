"""The figure of the mesh demonstration: errors and disagreement over time, and the network."""

from pathlib import Path
from typing import Any

import numpy as np

from domkl.experiments.mesh_demo import Findings

WINDOW = 5.0  # seconds
#: colors of Okabe and Ito, which color-blind readers can distinguish
KILLED, CUT, REST, EDGE = "#D55E00", "#0072B2", "#4D4D4D", "#BBBBBB"
TEXT = 10.5


def write_figure(path: Path, found: Findings) -> None:
    """Draw the figure as a PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plan = found.plan
    with plt.rc_context({"font.size": TEXT}):
        figure = plt.figure(figsize=(11, 8.2), layout="constrained")
        grid = figure.add_gridspec(3, 2, width_ratios=[3.4, 1])
        panels = [figure.add_subplot(grid[0, 0])]
        panels += [figure.add_subplot(grid[k, 0], sharex=panels[0]) for k in (1, 2)]
        _draw_errors(panels[0], panels[1], found)
        _draw_distances(panels[2], found)
        _draw_network(figure.add_subplot(grid[0, 1]), found)
        _draw_legend(figure.add_subplot(grid[1, 1]), panels[0], panels[2])
        for axis in panels:
            _shade(axis, found, is_named=axis is panels[0])
            axis.grid(True, which="major", color="0.9", linewidth=0.8)
            axis.spines[["top", "right"]].set_visible(False)
            axis.tick_params(labelbottom=axis is panels[2])
        panels[2].set_xlabel("seconds")
        panels[0].set_xlim(0, plan.seconds)
        title = f"{plan.n_learners} processes, {plan.rate:g} samples a second each, mutual TLS"
        figure.suptitle(f"{title}: DOMKRLS on traffic", fontsize=TEXT + 1)
        figure.savefig(path, dpi=150, format="png")
        plt.close(figure)


def _style(found: Findings, group: str) -> dict[str, Any]:
    colors = {found.plan.killed: KILLED, found.plan.cut: CUT}
    is_rest = group not in colors
    return {
        "color": colors.get(group, REST),
        "linewidth": 2.2 if is_rest else 1.9,
        "zorder": 2 if is_rest else 3,
    }


def _draw_errors(axis: Any, ratio: Any, found: Findings) -> None:
    """Errors, and their ratio to those of the simulation on the same samples."""
    shots = found.record.shots
    times = np.array([shot.time for shot in shots])
    ratio.axhline(1, color="0.35", linewidth=1, zorder=1)
    for group, names in found.groups.items():
        values = np.array([_floats(found.errors(names, t - WINDOW, t)) for t in times])
        is_there = np.array([any(name in shot.learned for name in names) for shot in shots])
        values[~is_there | (times < WINDOW)] = np.nan
        axis.plot(times, values[:, 0], label=group, **_style(found, group))
        ratio.plot(times, values[:, 0] / values[:, 1], **_style(found, group))
    axis.set(yscale="log", ylabel=f"squared error,\nmean of {WINDOW:g} s")
    ratio.set_ylabel("error / simulated error,\nnothing failing there")


def _floats(values: Any) -> list[float]:
    return [np.nan if value is None else value for value in values]


def _draw_distances(axis: Any, found: Findings) -> None:
    times = np.array([shot.time for shot in found.record.shots])
    rest = np.array([found.distances[name] for name in found.others])
    low, high = (_calm(bound(rest, axis=0)) for bound in (np.nanmin, np.nanmax))
    label = f"the other {len(found.others)}, all of them"
    axis.fill_between(times, low, high, color=REST, alpha=0.22, linewidth=0, label=label)
    for name in (found.plan.killed, found.plan.cut):
        axis.plot(times, _calm(found.distances[name]), **_style(found, name))
    axis.set(yscale="log", ylabel="squared distance of predictions\nfrom the others' mean")


def _calm(values: Any) -> Any:
    """The median of three consecutive values; missing values stay missing."""
    padded = np.concatenate([values[:1], values, values[-1:]])
    windows = np.lib.stride_tricks.sliding_window_view(padded, 3)
    calm = np.full(len(values), np.nan)
    is_there = ~np.isnan(values)
    calm[is_there] = np.nanmedian(windows[is_there], axis=1)
    return calm


def _shade(axis: Any, found: Findings, is_named: bool) -> None:
    moments = found.record.moments
    for begin, end, color, text in (
        ("kill", "restart", KILLED, f"{found.plan.killed}\nkilled"),
        ("cut", "heal", CUT, f"{found.plan.cut}\ncut off"),
    ):
        axis.axvspan(moments[begin], moments[end], color=color, alpha=0.10, linewidth=0, zorder=0)
        if is_named:
            middle = (moments[begin] + moments[end]) / 2
            axis.text(
                middle, 1.01, text, transform=axis.get_xaxis_transform(), color=color,
                ha="center", va="bottom", fontsize=TEXT - 1,
            )  # fmt: skip


def _draw_network(axis: Any, found: Findings) -> None:
    names = found.plan.names
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / len(names)
    place = dict(zip(names, np.column_stack([np.cos(angles), np.sin(angles)]), strict=True))
    for a, b in found.record.config.edges:
        axis.plot(*np.array([place[a], place[b]]).T, color=EDGE, linewidth=1.2, zorder=1)
    small = {"color": "white", "ha": "center", "va": "center", "fontsize": TEXT - 1.5}
    for k, name in enumerate(names, start=1):
        color = {found.plan.killed: KILLED, found.plan.cut: CUT}.get(name, REST)
        axis.scatter(*place[name], s=270, color=color, zorder=2, edgecolor="white", linewidth=1.5)
        axis.text(*place[name], str(k), **small)
    axis.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal")
    axis.axis("off")


def _draw_legend(axis: Any, *panels: Any) -> None:
    axis.axis("off")
    found = [panel.get_legend_handles_labels() for panel in panels]
    handles = [handle for some, _ in found for handle in some]
    labels = [label for _, some in found for label in some]
    axis.legend(handles, labels, loc="upper left", frameon=False, borderaxespad=0)
