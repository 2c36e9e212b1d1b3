"""Bands of forecasts: how often the label is within them."""

from statistics import NormalDist

import numpy as np

from domkl.data.forecast import Prepared
from domkl.experiments.figures import Figure, Line, Panel, points
from domkl.experiments.reproduce.document import (
    OURS,
    Claim,
    ReportTable,
    Section,
    Value,
    unchecked,
    verdict,
)
from domkl.experiments.reproduce.session import Runs, Session
from domkl.experiments.reproduce.tasks import Task
from domkl.experiments.store import Results
from domkl.typing import Floats
from studies.nodes import node_errors
from studies.stations import AIR, DAY, air

#: shares of labels that a band should hold
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
WEEK = 7 * DAY
#: what is asked of a band of 95 %
LOW, HIGH = 0.93, 0.97
CLAIM = (
    "A band of 1.96 deviations holds 95 % of the labels (we ask: 93 to 97 %) at 1, 6 and 24 hours."
)


def half_width(level: float) -> float:
    """Deviations to each side of the forecast for a band that should hold this share.

    Examples
    --------
    >>> round(half_width(0.95), 2)
    1.96
    """
    return NormalDist().inv_cdf((1 + level) / 2)


def covered(found: Results, level: float = 0.95) -> Floats:
    """Whether each label is within its band: 1 or 0, NaN where there is none; (B, T, K)."""
    gaps, deviation = found["gaps"], found["deviation"]
    is_inside = np.abs(gaps) <= half_width(level) * deviation
    return np.where(np.isnan(gaps) | np.isnan(deviation), np.nan, is_inside)


def with_bands(session: Session, data: Prepared) -> Task:
    """The task of one horizon."""
    return node_errors(session, data, "domkrls", at_most=1, has_deviation=True)


def runs(session: Session) -> Runs:
    """By horizon."""
    data = air(session) if session.available([AIR]) else {}
    return {h: with_bands(session, each) for h, each in data.items()}


def section(session: Session) -> Section:
    """Coverage by level, horizon, station and week."""
    made = Section("day-ahead", "A day ahead, with bands")
    if not session.available([AIR]):
        made.claims = [unchecked("bands", CLAIM, OURS, [AIR])]
        return made
    found = {h: session[with_bands(session, data)] for h, data in air(session).items()}
    made.text = [
        "DOMKRLS tells a deviation with each forecast, and the band is the forecast plus and minus"
        " as many deviations as a normal law wants. Nothing is fitted afterwards: each band was"
        " told before its label was known, from the first hour on. Errors of dust are no normal"
        " law: most are small, and a few days of dirt make the large ones. The page shows"
        " no label, because the data set is not passed on with domkl; the car parks below show what"
        " such bands look like.",
    ]
    made.figures = [_figure(found)]
    made.tables = [_table(session, found)]
    made.claims = [_claim(found)]
    return made


def _figure(found: dict[int, Results]) -> Figure:
    levels = [100 * level for level in LEVELS]
    exact = points("as it should be", levels, [np.full(3, level) for level in levels])
    lines, weeks = [], []
    for h, each in found.items():
        shares = [100 * float(np.nanmean(covered(each, level))) for level in LEVELS]
        lines.append(points(f"{h} h ahead", levels, [np.full(3, share) for share in shares]))
        inside = covered(each)
        by_week = [
            100 * float(np.nanmean(inside[:, start : start + WEEK]))
            for start in range(0, inside.shape[1] - WEEK + 1, WEEK)
        ]
        none: list[float | None] = [None] * len(by_week)
        numbers = [float(n) for n in range(1, len(by_week) + 1)]
        weeks.append(Line(f"{h} h ahead", numbers, list(by_week), none, none))
    linear = {"x_log": False, "y_log": False}
    panels = [
        Panel("", "share that the band should hold, %", "share that it held, %",
              [exact, *lines], **linear),
        Panel("", "week", "labels within the band of 95 %, %", weeks, **linear),
    ]  # fmt: skip
    caption = (
        "Labels of all stations within bands of 50, 80, 90, 95 and 99 %; and within those of 95 %"
        " by week."
    )
    return Figure("bands", caption, panels, n_columns=2, panel_size=(5.2, 3.6))


def _table(session: Session, found: dict[int, Results]) -> ReportTable:
    rows: list[list[Value]] = []
    for h, each in found.items():
        shares = [100 * float(np.nanmean(covered(each, level))) for level in LEVELS]
        stations = 100 * np.nanmean(covered(each), axis=(0, 1))
        told = each["deviation"][~np.isnan(each["gaps"])]
        width = 2 * half_width(0.95) * float(np.median(told))
        ends = [float(stations.min()), float(stations.max())]
        rows.append([f"{h} h", *shares, *ends, width])
    columns = ["ahead", *(f"{100 * level:g} %" for level in LEVELS)]
    columns += ["95 %: least station", "95 %: most", "median width of 95 %, µg/m³"]
    return ReportTable("Share of labels within bands, %", columns, rows)


def _claim(found: dict[int, Results]) -> Claim:
    shares = {h: float(np.nanmean(covered(each))) for h, each in found.items()}
    told = ", ".join(f"{100 * share:.1f} % at {h} h" for h, share in shares.items())
    is_true = all(LOW <= share <= HIGH for share in shares.values())
    return Claim("bands", CLAIM, OURS, f"Held: {told}.", verdict(is_true))
