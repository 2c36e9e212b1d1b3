"""Sets of stations: every station is a learner, with its own stream of hours.

The rules of this file: a label that was not measured is NaN, and never scored or learned; in the
inputs, the last measured value holds until the next, as a station that runs could do it; before a
station's first value, inputs are NaN.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domkl import checks
from domkl.data.cache import Found, read_stations
from domkl.data.catalog import Bounds, DataSet, Station
from domkl.data.streams import labels, ranges_of, scaled
from domkl.data.tables import read_table
from domkl.errors import DataError
from domkl.typing import Floats, Ints

#: hours before the newest at which the target is an input, besides the newest itself
LAGS = (1, 2, 3, 23)
#: the first round: a day of values is there
FIRST = 24
WEATHER = ("TEMP", "PRES", "DEWP", "WSPM")
_CLOCK = ("year", "month", "day", "hour")
_KM_PER_DEGREE = 111.195  # of a great circle of the mean Earth


class Hours(NamedTuple):
    """What all stations measured, hour by hour."""

    values: Floats  # (N, K, 1 + weather), NaN where missing: the target first
    hour: Ints  # (N,) of the day
    found: list[Found]


class Rounds(NamedTuple):
    """Streams of all stations."""

    X: Floats  # (T, K, d)
    y: Floats  # (T, K), NaN where not measured
    names: tuple[str, ...]  # of the inputs
    n_outside: dict[str, int]  # values outside their declared range, by column
    n_missing: dict[str, int]  # values that were not measured, by column


def places_of(stations: tuple[Station, ...]) -> Floats:
    """Kilometres east and north of the first station, (K, 2): a map flat enough for a city.

    Examples
    --------
    >>> places_of((Station("a", 40.0, 116.0), Station("b", 40.1, 116.0))).round(1).tolist()
    [[0.0, 0.0], [0.0, 11.1]]
    """
    degrees = np.array([(each.longitude, each.latitude) for each in stations])
    width = np.cos(np.radians(degrees[:, 1].mean()))
    return np.asarray((degrees - degrees[0]) * [_KM_PER_DEGREE * width, _KM_PER_DEGREE])


def read_hours(data: DataSet, data_dir: str | Path | None = None) -> Hours:
    """Read the files of all stations, which must have the same consecutive hours."""
    found = read_stations(data, data_dir)
    columns = (data.target, *WEATHER)
    values, times = [], []
    for each in found:
        wanted = replace(each.edition, columns=(*_CLOCK, *columns), text=())
        table = read_table(each.content, wanted, each.place)
        times.append(_times(table.values[:, :4], each.place))
        values.append(table.values[:, 4:])
        if not np.array_equal(times[-1], times[0]):
            raise DataError(f"{each.place} must have the hours of {found[0].place}, got others")
    hour = (times[0] - times[0].astype("datetime64[D]")).astype(np.int64)
    return Hours(np.stack(values, axis=1), hour, found)


def _times(clock: Floats, place: str) -> NDArray[np.datetime64]:
    """Hours since the epoch; an error unless each is one after the last."""
    if np.isnan(clock).any():
        raise DataError(f"{place} must have year, month, day and hour in every row, got a gap")
    year, month, day, hour = clock.astype(np.int64).T
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    made = months.astype("datetime64[D]") + (day - 1)
    times: NDArray[np.datetime64] = made.astype("datetime64[h]") + hour
    apart = np.flatnonzero(np.diff(times).astype(np.int64) != 1)
    if apart.size:
        raise DataError(f"{place} must have one row an hour, got a jump after row {apart[0] + 1}")
    return times


def held(values: Floats) -> Floats:
    """Each value that is missing (NaN) as the last one before it, over the first axis.

    Examples
    --------
    >>> held(np.array([np.nan, 1.0, np.nan, np.nan, 2.0])).tolist()
    [nan, 1.0, 1.0, 1.0, 2.0]
    """
    rows = np.arange(len(values)).reshape(-1, *(1,) * (values.ndim - 1))
    newest = np.maximum.accumulate(np.where(np.isnan(values), 0, rows), axis=0)
    return np.take_along_axis(values, newest, axis=0)


def rounds_of(
    hours: Hours, data: DataSet, horizon: int, declared: Mapping[str, Bounds] | None
) -> Rounds:
    """Inputs and labels of every hour, scaled by declared ranges, or as they are.

    The inputs are the target now and 1, 2, 3 and 23 hours before, the weather now, and the hour on
    a circle, in [0, 1]. The label is the target ``horizon`` hours ahead.
    """
    horizon = checks.whole("horizon", horizon, 1)
    columns, values = (data.target, *WEATHER), hours.values
    n_outside: dict[str, int] = {}
    if declared is not None:
        made = scaled(values.reshape(-1, len(columns)), "declared", ranges_of(columns, declared))
        values = made.values.reshape(values.shape)
        counts = zip(columns, made.n_outside.tolist(), strict=True)
        n_outside = {name: n for name, n in counts if n}
    if len(values) < FIRST + horizon + 1:
        raise DataError(
            f"{data.name} must have more than {FIRST + horizon} hours for a horizon of {horizon},"
            f" got {len(values)}"
        )
    now = np.arange(FIRST, len(values) - horizon)
    known = held(values)
    lags = np.stack([known[now - lag, :, 0] for lag in (0, *LAGS)], axis=-1)
    turn = 2 * np.pi * hours.hour[now] / 24
    clock = (np.column_stack([np.sin(turn), np.cos(turn)]) + 1) / 2  # (T, 2)
    clocks = np.broadcast_to(clock[:, None], (*lags.shape[:2], 2))
    X = np.concatenate([lags, known[now, :, 1:], clocks], axis=-1)
    missing = np.isnan(hours.values).sum(axis=(0, 1)).tolist()
    return Rounds(
        X,
        labels(values[now + horizon, :, 0], horizon),
        (
            data.target,
            *(f"{data.target} {lag} h before" for lag in LAGS),
            *WEATHER,
            "sine of the hour",
            "cosine of the hour",
        ),
        n_outside,
        {name: n for name, n in zip(columns, missing, strict=True) if n},
    )
