"""Twelve stations that forecast their own air: what the network is worth to each, and to a rival.

This module and the four that follow it on the page (`newcomer`, `day_ahead`, `homes`, `parking`)
are the case study of real nodes: `domkl reproduce stations`.
"""

from typing import Any

import numpy as np

from domkl.data.forecast import Prepared
from domkl.experiments.compare import draw_graphs
from domkl.experiments.figures import Figure, Map
from domkl.experiments.reproduce.document import (
    OURS,
    Claim,
    ReportTable,
    Section,
    Value,
    joined,
    unchecked,
    verdict,
)
from domkl.experiments.reproduce.session import Runs, Session
from domkl.experiments.reproduce.tasks import Task
from domkl.experiments.rivals import REFIT_EVERY, rivals
from domkl.typing import Floats
from studies.nodes import (
    forecasts,
    mean_square,
    node_errors,
    node_rival,
    node_setting,
    rmse,
)

AIR = "beijing-air"
#: hours of the set: 2015-09-01 to the end of February, autumn and winter; and the start of them
ROWS, QUICK_ROWS = "21936:26304", "21936:23016"
HORIZONS = (1, 6, 24)
DAY = 24
#: these draw nothing: one trial says all
SIMPLE = ("last-value", "seasonal-naive", "linear-rls", "linear-pooled")
DRAWN = ("domkl", "domkrls-alone", "domkrls")
#: models of others: each pooled, and the forest alone as well; a quick run has the first only
RIVALS = (("lightgbm", True), ("river forest", True), ("river forest", False),
          ("river neighbors", True))  # fmt: skip
#: parts of the stream in which the network is compared with learning alone, in days
PERIODS = ((0, 1), (1, 7), (7, 30), (30, 200))


def air(session: Session) -> dict[int, Prepared]:
    """The streams of the stations, by horizon."""
    rows = QUICK_ROWS if session.is_quick else ROWS
    return forecasts(session, AIR, horizon=",".join(map(str, HORIZONS)), rows=rows)


def named_tasks(session: Session, data: Prepared, day: int = DAY) -> dict[str, Task]:
    """What is run at the nodes of a set besides the models of others, by name."""
    found: dict[str, Task] = {}
    for name in SIMPLE:
        given: dict[str, Any] = {"period": day} if name == "seasonal-naive" else {}
        found[name] = node_errors(session, data, name, at_most=1, **given)
    return found | {name: node_errors(session, data, name) for name in DRAWN}


def all_tasks(session: Session, data: Prepared) -> dict[str, Task]:
    """Everything in the table of the stations, by name."""
    found = named_tasks(session, data)
    for name, is_pooled in RIVALS[:1] if session.is_quick else RIVALS:
        if name in rivals():
            found[f"{name}{' pooled' * is_pooled}"] = node_rival(data, name, is_pooled)
    return found


def runs(session: Session) -> Runs:
    """All methods at all horizons, by horizon and name."""
    data = air(session) if session.available([AIR]) else {}
    return {(h, k): t for h, each in data.items() for k, t in all_tasks(session, each).items()}


def section(session: Session) -> Section:
    """The table of all methods, the map, and the gain by the age of the network."""
    made = Section("stations", "Twelve stations: is it worth having neighbors?")
    if not session.available([AIR]):
        made.claims = [unchecked("air-" + key, text, OURS, [AIR]) for key, text in _CLAIMS.items()]
        return made
    data = air(session)
    first = data[1]
    made.text = [
        f"PM2.5 at {len(first.stations)} stations in and around Beijing ({AIR}), 1, 6 and 24 hours"
        " ahead, from their own lags (the newest four hours, and the same hour of the day before),"
        " their own weather and the hour of the day. Every station is a learner with a cold start,"
        f" joined with its three nearest; from {first.facts['first_time']} to"
        f" {first.facts['last_time']}: autumn, then the winter in which people heat. A label h"
        " hours ahead is learned when it is known, labels that were not measured are neither"
        " learned nor scored, and ranges for scaling are declared, not taken from the data."
        " Errors are in µg/m³, over all stations and hours, the first ones included.",
        "'linear-rls' is ridge regression of the same inputs at each station by itself, and"
        " 'pooled' is one model that gets the samples of all stations, which needs somebody who"
        " collects them; it predicts all stations before it learns an hour. River's models have"
        " River's defaults, nearest neighbors behind its scaler; LightGBM, with its defaults, is"
        f" fitted to all samples so far every {REFIT_EVERY} hours. 'seasonal-naive' is the newest"
        " known label of the same hour of the day; it begins with nothing.",
    ]
    names = {name.removesuffix(" pooled") for name in all_tasks(session, first)}
    absent = [name for name in dict.fromkeys(name for name, _ in RIVALS) if name not in names]
    if absent:
        why = "not installed here, or left out of a quick run"
        made.text.append(f"Without {joined(absent)}: {why}.")
    made.tables = [_errors(session, data), _periods(session, data)]
    made.figures = [_map(session, data)]
    made.claims = [_last(session, data), _best(session, data), _network(session, data)]
    return made


_CLAIMS = {
    "last": "DOMKRLS errs less than the last value and the seasonal naive forecast at 1, 6 and 24"
    " hours.",
    "best": "DOMKRLS in the network errs less than everything else in the table at 1, 6 and 24"
    " hours.",
    "network": "Every station errs less in the network than alone at 1, 6 and 24 hours.",
}


def errors_of(session: Session, task: Task) -> tuple[float, float]:
    """RMSE and MAE over all nodes and rounds, means over trials."""
    gaps = session[task]["gaps"]
    absolute = float(np.mean([np.nanmean(np.abs(trial)) for trial in gaps]))
    return float(np.mean([rmse(trial) for trial in gaps])), absolute


def node_mse(session: Session, task: Task, part: slice = slice(None)) -> Floats:
    """Mean squared error of each node, (K,), over trials and some of the rounds."""
    return mean_square(session[task]["gaps"][:, part], (0, 1))


def gains(session: Session, data: Prepared, part: slice = slice(None)) -> Floats:
    """By how much of its RMSE alone each node errs less in the network, in percent, (K,).

    NaN for a node without a label.
    """
    network, alone = (node_errors(session, data, name) for name in ("domkrls", "domkrls-alone"))
    share = node_mse(session, network, part) / node_mse(session, alone, part)
    return 100 * (1 - np.sqrt(share))


def error_table(
    session: Session, caption: str, by_column: dict[str, dict[str, Task]], notes: list[str]
) -> ReportTable:
    """RMSE and MAE of all methods, a pair of columns for each entry."""
    columns = ["method", *(f"{name}: {what}" for name in by_column for what in ("RMSE", "MAE"))]
    rows: list[list[Value]] = []
    for method in dict.fromkeys(name for found in by_column.values() for name in found):
        cells: list[Value] = [method]
        for found in by_column.values():
            has = method in found
            cells += list(errors_of(session, found[method])) if has else ["–", "–"]
        rows.append(cells)
    return ReportTable(caption, columns, rows, notes)


def _errors(session: Session, data: dict[int, Prepared]) -> ReportTable:
    by_horizon = {f"{h} h": all_tasks(session, each) for h, each in data.items()}
    n_trials = session.setting.n_trials
    gaps = session[by_horizon["1 h"]["last-value"]]["gaps"]
    note = (
        f"{np.count_nonzero(~np.isnan(gaps))} labels at one hour. domkl, domkrls and domkrls-alone"
        f" are means over {n_trials} draws of random features."
    )
    return error_table(session, "Errors in µg/m³", by_horizon, [note])


def _periods(session: Session, data: dict[int, Prepared]) -> ReportTable:
    """The gain of the network as it gets older."""
    rows: list[list[Value]] = []
    for first, end in PERIODS:
        part = slice(first * DAY, end * DAY)
        if len(data[1].y) <= part.start:
            continue
        row: list[Value] = [f"days {first + 1} to {min(end, -(-len(data[1].y) // DAY))}"]
        for each in data.values():
            found = gains(session, each, part)
            row += [float(np.nanmedian(found)), int(np.sum(found > 0))]
        rows.append(row)
    columns = ["since the start"]
    for h in data:
        columns += [f"{h} h: median gain, %", f"{h} h: stations that gain"]
    note = "RMSE in the network below that alone, as a share of the latter; of twelve stations."
    return ReportTable("What neighbors are worth, by the age of the network", columns, rows, [note])


def _map(session: Session, data: dict[int, Prepared]) -> Figure:
    panels = []
    for h, each in data.items():
        assert each.places is not None
        (graph, *_) = draw_graphs(node_setting(session, each), each.places)
        east, north = each.places.T
        panels.append(
            Map(
                f"{h} h ahead", "gain in RMSE over alone, %", list(each.stations),
                east.tolist(), north.tolist(), gains(session, each).tolist(),
                graph.edges.tolist(),
            )
        )  # fmt: skip
    caption = (
        "The stations, who hears whom, and by how many percent the RMSE of each is smaller in the"
        " network than alone."
    )
    return Figure("stations-map", caption, panels, panel_size=(5.8, 4.2))


def _of(session: Session, data: dict[int, Prepared], name: str) -> list[float]:
    return [errors_of(session, all_tasks(session, each)[name])[0] for each in data.values()]


def _listed(values: list[float]) -> str:
    return " / ".join(f"{value:.1f}" for value in values)


def _last(session: Session, data: dict[int, Prepared]) -> Claim:
    ours = _of(session, data, "domkrls")
    simple = {name: _of(session, data, name) for name in ("last-value", "seasonal-naive")}
    theirs = "; ".join(f"{name} {_listed(values)}" for name, values in simple.items())
    is_true = all(np.less(ours, values).all() for values in simple.values())
    evidence = f"RMSE at 1 / 6 / 24 hours: domkrls {_listed(ours)}; {theirs}."
    return Claim("air-last", _CLAIMS["last"], OURS, evidence, verdict(is_true))


def _best(session: Session, data: dict[int, Prepared]) -> Claim:
    parts, is_true = [], True
    for h, each in data.items():
        found = {name: errors_of(session, t)[0] for name, t in all_tasks(session, each).items()}
        ours = found.pop("domkrls")
        best = min(found, key=found.__getitem__)
        is_true = is_true and ours < found[best]
        parts.append(f"{h} h: {ours:.2f} against {found[best]:.2f} of {best}")
    evidence = f"RMSE, and that of the best of the others. {'; '.join(parts)}."
    return Claim("air-best", _CLAIMS["best"], OURS, evidence, verdict(is_true))


def _network(session: Session, data: dict[int, Prepared]) -> Claim:
    parts, is_true = [], True
    for h, each in data.items():
        found = gains(session, each)
        losers = [name for name, gain in zip(each.stations, found, strict=True) if gain <= 0]
        is_true = is_true and not losers
        parts.append(
            f"{h} h: {found.min():+.1f} to {found.max():+.1f} %, median {np.median(found):+.1f} %"
            + (f" (no gain: {joined(losers)})" if losers else "")
        )
    evidence = f"Gain in RMSE over learning alone. {'; '.join(parts)}."
    return Claim("air-network", _CLAIMS["network"], OURS, evidence, verdict(is_true))
