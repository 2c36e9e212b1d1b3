"""A station that joins a network that has learned: its error from the first hour on."""

import numpy as np

from domkl.algorithms.least_squares import DOMKRLS
from domkl.data.forecast import Prepared
from domkl.experiments.compare import suited_to
from domkl.experiments.figures import Figure, Line, Panel
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
from studies.nodes import newcomer_task, node_errors, rmse
from studies.stations import AIR, DAY, air

#: days since the first hour of the stream: the first of December, of January and of February
WHEN = "on the first of December, of January or of February"
JOINS, QUICK_JOINS = (91, 122, 153), (30,)
STAY, QUICK_STAY = 28 * DAY, 10 * DAY
HORIZONS = (1, 24)
#: hours since the station joined, up to which its errors are told
SPANS = (DAY, 7 * DAY, STAY)
NAMES = {"joined": "domkrls", "alone": "domkrls-alone", "last": "last-value"}
CLAIM = (
    "In its first week a station that joins errs less than it would alone, and less than the last"
    " value, 1 and 24 hours ahead."
)


def newcomer(session: Session, data: Prepared) -> Task:
    """The task of one horizon."""
    joins, stay = (QUICK_JOINS, QUICK_STAY) if session.is_quick else (JOINS, STAY)
    first = data.facts["first_tick"]
    rounds = tuple(day * DAY - first for day in joins)
    return newcomer_task(session, data, suited_to(data, DOMKRLS()), rounds, stay)


def runs(session: Session) -> Runs:
    """By horizon: every station joins once at each time; and the last value."""
    found: Runs = {}
    for h in HORIZONS if session.available([AIR]) else ():
        data = air(session)[h]
        found[h, "joined"] = newcomer(session, data)
        found[h, "last"] = node_errors(session, data, "last-value", at_most=1)
    return found


def section(session: Session) -> Section:
    """Errors since the station joined."""
    made = Section("newcomer", "A station that joins in winter")
    if not session.available([AIR]):
        made.claims = [unchecked("newcomer", CLAIM, OURS, [AIR])]
        return made
    found = {h: _gaps(session, air(session)[h]) for h in HORIZONS}
    n_joins = found[1]["joined"].shape[0]
    made.text = [
        "Eleven stations have learned since the first of September; the twelfth joins them"
        f" {'30 days later' if session.is_quick else WHEN}. Each of the twelve takes its turn:"
        f" {n_joins * len(air(session)[1].stations)} newcomers. Before it joins, the station has no"
        " neighbors and no samples; only its sensor has run for a day, for the lags. Alone, the"
        " same learner starts in the same hour. Forecasts a day ahead cannot be checked, by"
        " anybody, before a day has passed.",
    ]
    made.figures = [_figure(found)]
    made.tables = [_table(found)]
    made.claims = [_claim(found)]
    return made


def _gaps(session: Session, data: Prepared) -> Results:
    """Gaps (J, K, n) since the join: joined, alone, and of the last value."""
    task = newcomer(session, data)
    last = session[node_errors(session, data, "last-value", at_most=1)]["gaps"][0]
    joins, n_rounds = task.arguments["joins"], task.arguments["n_rounds"]
    own = np.stack([last[join : join + n_rounds].T for join in joins])
    return {**session[task], "last": own}


def _running(gaps: Floats) -> Floats:
    """RMSE over all hours since the join, of all newcomers, by hour."""
    squares = np.square(gaps).reshape(-1, gaps.shape[-1])
    n = np.count_nonzero(~np.isnan(squares), axis=0).cumsum()
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.sqrt(np.nansum(squares, axis=0).cumsum() / n))


def _figure(found: dict[int, Results]) -> Figure:
    panels = []
    for h, each in found.items():
        lines = []
        for key, name in NAMES.items():
            curve = _running(each[key])
            hours = np.unique(np.geomspace(1, len(curve), 60).round().astype(int))
            none: list[float | None] = [None] * len(hours)
            lines.append(Line(name, hours.tolist(), curve[hours - 1].tolist(), none, none))
        title = f"{h} h ahead"
        panels.append(
            Panel(title, "hours since it joined", "RMSE so far, µg/m³", lines, y_log=False)
        )
    caption = (
        "RMSE of a newcomer over all hours since it joined: in the network, alone from the same"
        " hour on, and of the last value; all stations and times."
    )
    return Figure("newcomer", caption, panels, n_columns=2, panel_size=(5.2, 3.6))


def _table(found: dict[int, Results]) -> ReportTable:
    rows: list[list[Value]] = []
    for h, each in found.items():
        for span in SPANS:
            if span > each["joined"].shape[-1]:
                continue
            ours, alone, last = (each[key][..., :span] for key in NAMES)
            wins = int(np.sum(rmse(ours, -1) < rmse(alone, -1)))
            days = "day" if span == DAY else f"{span // DAY} days"
            name = f"{h} h ahead, first {days}"
            totals = [float(rmse(gaps)) for gaps in (ours, alone, last)]
            rows.append([name, *totals, f"{wins} of {ours.shape[0] * ours.shape[1]}"])
    columns = ["", "in the network", "alone", "last value", "better in the network"]
    note = "The last column counts newcomers that err less in the network than alone."
    return ReportTable("RMSE of newcomers, µg/m³", columns, rows, [note])


def _claim(found: dict[int, Results]) -> Claim:
    parts, is_true = [], True
    for h, each in found.items():
        week = {key: float(rmse(each[key][..., : 7 * DAY])) for key in NAMES}
        is_true = is_true and week["joined"] < min(week["alone"], week["last"])
        parts.append(
            f"{h} h: {week['joined']:.1f} in the network, {week['alone']:.1f} alone,"
            f" {week['last']:.1f} of the last value"
        )
    evidence = f"RMSE over the first week. {'; '.join(parts)}."
    return Claim("newcomer", CLAIM, OURS, evidence, verdict(is_true))
