"""Thirty car parks, which ship with domkl: uneven streams, nights, newcomers; a day ahead."""

from typing import Any

import numpy as np

from domkl.data.forecast import Prepared
from domkl.experiments.figures import Figure, Line, Panel
from domkl.experiments.reproduce.document import OURS, Claim, Section, verdict
from domkl.experiments.reproduce.session import Runs, Session
from domkl.experiments.reproduce.tasks import Task
from domkl.typing import Floats
from studies.day_ahead import covered, half_width
from studies.nodes import forecasts, node_errors
from studies.stations import error_table, errors_of, gains, named_tasks

PARKING = "parking"
DAY = 48  # ticks of half an hour
#: ahead by a day: what was read now, an hour ago, and a week before the label
DAY_AHEAD: dict[str, Any] = {"horizon": str(DAY), "lags": "1,2,289", "inputs": "hour,weekday"}
QUICK_ROWS = "1200"
SHOWN = 8 * DAY  # ticks of the picture, at the end of the stream
MOST = 0.6  # of the last value's MSE
DAY_CLAIM = "A day ahead, too, DOMKRLS errs less in the network than alone."
CLAIM = (
    "Half an hour and two hours ahead DOMKRLS has at most 0.6 of the last value's MSE, and less"
    " than alone."
)


def columns(session: Session) -> dict[str, Prepared]:
    """The streams by how far ahead."""
    rows = QUICK_ROWS if session.is_quick else None
    near = forecasts(session, PARKING, rows=rows)
    day = forecasts(session, PARKING, rows=rows, **DAY_AHEAD)
    return {"30 min": near[1], "2 h": near[4], "a day": day[DAY]}


def with_bands(session: Session) -> Task:
    """The day-ahead forecasts that are shown."""
    data = columns(session)["a day"]
    kept = {"has_deviation": True, "has_predictions": True}
    return node_errors(session, data, "domkrls", at_most=1, **kept)


def runs(session: Session) -> Runs:
    """All methods of our own by column and name, and the forecasts of the picture."""
    found: Runs = {"bands": with_bands(session)}
    for column, data in columns(session).items():
        named = named_tasks(session, data, DAY)
        found |= {(column, name): task for name, task in named.items()}
    return found


def section(session: Session) -> Section:
    """The table of car parks, and forecasts with their bands."""
    made = Section("parking", "Thirty car parks, on any machine")
    streams = columns(session)
    made.text = [
        f"How full {len(streams['a day'].stations)} car parks in Birmingham are, every half hour by"
        f" day, from {streams['a day'].facts['first_time']} to"
        f" {streams['a day'].facts['last_time']}; this set ships with domkl. Readings come at odd"
        " times, days are missing, nights always are, and two car parks have few readings at all."
        " Nobody knows where they stand: a circle again. A day ahead, the inputs are the newest"
        " two readings, that of a week before, the hour and the weekday.",
    ]
    made.figures = [_figure(session)]
    by_column = {name: named_tasks(session, data, DAY) for name, data in streams.items()}
    coverage = 100 * float(np.nanmean(covered(session[with_bands(session)])))
    note = (
        "Shares of the capacity: 0.01 is a place in a hundred. Bands of 95 % a day ahead held"
        f" {coverage:.1f} % of the readings."
    )
    made.tables = [error_table(session, "Errors at the car parks", by_column, [note])]
    made.claims = [_claim(session, streams), _day(session, streams["a day"])]
    return made


def _figure(session: Session) -> Figure:
    """A week of the car park with the most readings, as forecast the day before."""
    found = session[with_bands(session)]
    gaps = found["gaps"][0]
    k = int(np.argmax(np.count_nonzero(~np.isnan(gaps), axis=0)))
    forecast, deviation = (found[key][0, -SHOWN:, k] for key in ("predictions", "deviation"))
    measured = forecast - gaps[-SHOWN:, k]
    forecast = np.where(np.isnan(measured), np.nan, forecast)  # by day
    half = half_width(0.95) * deviation
    days = (np.arange(len(forecast)) / DAY).tolist()
    empty: list[float | None] = [None] * len(days)
    low, high = _percent(forecast - half), _percent(forecast + half)
    lines = [
        Line("forecast of the day before, with its band of 95 %", days, _percent(forecast), low,
             high),
        Line("measured", days, _percent(measured), empty, empty),
    ]  # fmt: skip
    title = f"car park {columns(session)['a day'].stations[k]}"
    panel = Panel(title, "day", "places taken, %", lines, x_log=False, y_log=False)
    caption = (
        "The last days of the set at the car park with the most readings: what was forecast a day"
        " before, and what was measured. The band was told with the forecast."
    )
    return Figure("day-ahead", caption, [panel], n_columns=1, panel_size=(10.4, 3.6))


def _percent(values: Floats) -> list[float | None]:
    return [100 * float(value) for value in values]


def _claim(session: Session, streams: dict[str, Prepared]) -> Claim:
    parts, is_true = [], True
    for name in ("30 min", "2 h"):
        found = {
            key: errors_of(session, task)[0] ** 2
            for key, task in named_tasks(session, streams[name], DAY).items()
        }
        over_last = found["domkrls"] / found["last-value"]
        over_alone = found["domkrls"] / found["domkrls-alone"]
        is_true = is_true and over_last <= MOST and over_alone < 1
        n = int(np.sum(gains(session, streams[name]) > 0))
        n_nodes = len(streams[name].stations)
        parts.append(
            f"{name}: {over_last:.2f} of the last value's, {over_alone:.3f} of alone"
            f" ({n} of {n_nodes} car parks gain)"
        )
    evidence = f"MSE. {'; '.join(parts)}."
    return Claim("parking", CLAIM, OURS, evidence, verdict(is_true))


def _day(session: Session, data: Prepared) -> Claim:
    found = named_tasks(session, data, DAY)
    ours, alone = (errors_of(session, found[name])[0] for name in ("domkrls", "domkrls-alone"))
    n = int(np.sum(gains(session, data) > 0))
    evidence = (
        f"RMSE {ours:.3f} in the network, {alone:.3f} alone; {n} of {len(data.stations)} car parks"
        " gain. Weeks differ from car park to car park, and the circle joins them at random."
    )
    return Claim("parking-day", DAY_CLAIM, OURS, evidence, verdict(ours < alone))
