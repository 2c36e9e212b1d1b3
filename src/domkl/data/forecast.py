"""Tables of nodes to samples of learners: which inputs, how scaled, and what is said about it.

A `NodeTable` (nodes.py) and a `Forecast`, the user's wishes, become a `Prepared` for each horizon.
Scaling is one offset and one divisor a column, the same at every node. Ranges of "minmax" and
"authors" are those of the whole table, which a running node does not know; "declared" is what a
node of a mesh can do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from domkl.data.clock import CALENDAR, duration_words
from domkl.data.nodes import NodeTable
from domkl.data.rows import RowMaker, RowPlan, default_hold
from domkl.data.streams import check_known, labels, ranges_of, scaled
from domkl.data.types import Bounds, Station
from domkl.errors import DataError, ParameterError
from domkl.text import counted
from domkl.typing import Floats

_KM_PER_DEGREE = 111.195  # of a great circle of the mean Earth


class Prepared(NamedTuple):
    """Samples ready to be dealt to learners, in the order of their file, and how they were made."""

    name: str
    X: Floats  # (N, d), scaled; of nodes (T, K, d), their own streams
    y: Floats  # (N,), scaled; of nodes (T, K), NaN where a label is missing
    is_series: bool  # whether the inputs are lags, newest first
    names: tuple[str, ...]  # of the inputs
    facts: dict[str, Any]  # how the samples were made; ready for JSON
    note: str  # the same in one line for people
    stations: tuple[str, ...] = ()  # names of the learners, where the set has a stream for each
    places: Floats | None = None  # (K, 2)  where these stand, in kilometres east and north
    #: the input that is the newest value of what is predicted, in the target's units
    newest_lag: int | None = None
    graph: str | None = None  # kind of the set's own network
    period: int | None = None  # rounds of a day or of a week, where nodes have a clock


@dataclass(frozen=True)
class Forecast:
    """What to predict, and from what.

    Parameters
    ----------
    target : the column to predict.
    lags : of the target; lag 1 is the newest known value.
    inputs : columns and calendar words; None for all columns of the table.
    input_lags : lags of the columns among the inputs.
    ahead : inputs that are known ahead of time, and are taken at the time of the label.
    horizons : ticks from the newest known value to the label.
    hold : milliseconds for which the last value replaces a missing one; a day by default.
    scale : one of `options.SCALES`.
    """

    target: str
    lags: tuple[int, ...] = (1, 2, 3, 4, 5)
    inputs: tuple[str, ...] | None = None
    input_lags: tuple[int, ...] = (1,)
    ahead: tuple[str, ...] = ()
    horizons: tuple[int, ...] = (1,)
    hold: int | None = None
    scale: str = "minmax"


class Rounds(NamedTuple):
    """Streams of all nodes for one horizon, ready for `simulate`."""

    X: Floats  # (T, K, d) NaN where inputs are missing
    y: Floats  # (T, K) NaN where the label is; it knows its delay, horizon - 1
    first: int  # the tick of round 0


def rounds_of(values: Floats, plan: RowPlan) -> dict[int, Rounds]:
    """Rounds of all nodes for each horizon, from values (T, K, columns of the plan).

    The first rounds, in which no node has all of its inputs yet, are left out. A label ``h`` ticks
    ahead is learned h - 1 rounds later than in the order of the paper: `streams.Labels` knows.
    """
    n_ticks, longest = len(values), max(plan.horizons)
    if n_ticks <= longest:
        raise DataError(f"horizon must be below the {n_ticks} ticks of the stream, got {longest}")
    blocks = [RowMaker(plan).push(values[:, k]) for k in range(values.shape[1])]
    complete = ~np.isnan(np.stack([block.X for block in blocks])).any(axis=2)  # (K, T)
    known = np.flatnonzero(complete.any(axis=0))
    if not known.size or known[0] + longest >= n_ticks:
        some = ", ".join(plan.names[:5]) + (", …" if len(plan.names) > 5 else "")
        raise DataError(
            f"some node must have all inputs ({some}) at one time and a label"
            f" {counted(longest, 'tick')} later, got none in {n_ticks} ticks; lags may be too long,"
            " or an input may be missing throughout"
        )
    first = int(known[0])
    made = {}
    for h in plan.horizons:
        pairs = [block.pairs[h] for block in blocks]
        X = np.stack([each.X[first + h :] for each in pairs], axis=1)
        y = np.stack([each.y[first + h :] for each in pairs], axis=1)
        made[h] = Rounds(X, labels(y, max(h, 1)), first)
    return made


def prepare(
    name: str,
    table: NodeTable,
    wanted: Forecast,
    ranges: Mapping[str, Bounds] | None = None,
    is_class: bool = False,
) -> dict[int, Prepared]:
    """Make the samples of every horizon.

    With ``is_class`` the target's two values become -1 and 1, whatever the scale.
    """
    plan, n_outside = plan_of(table, wanted, ranges, is_class)
    clock = plan.clock
    values = table.values[:, :, [table.columns.index(column) for column in plan.columns]]
    made = rounds_of(values, plan)
    offset, divisor = plan.scales.get(plan.target, (0.0, 1.0))
    places = None
    if table.places and not any(np.isnan(each.latitude) for each in table.places):
        places = places_of(table.places)
    found = {}
    for horizon, (X, y, first) in made.items():
        n_blind = int(np.isnan(X).any(axis=2).sum())
        facts = table.facts | {
            "scale": wanted.scale,
            "target": wanted.target,
            "target_offset": offset,
            "target_divisor": divisor,
            "lags": list(plan.lags),
            "inputs": [*plan.inputs, *plan.ahead],
            "input_names": list(plan.names),
            "hold": hold_words(plan),
            "horizon": horizon,
            "horizon_time": duration_words(horizon * clock.step) if clock.is_dated else None,
            "rows": int(y.size),
            "first_tick": first,
            "labels_missing": int(np.isnan(y).sum()),
            "inputs_missing": n_blind,
            "values_outside": n_outside,
        }
        note = f"{table.note}; {_note(plan, wanted.scale, facts)}"
        is_series = not plan.inputs and not plan.ahead
        found[horizon] = Prepared(
            name, X, y, is_series, plan.names, facts, note, table.nodes, places,
            plan.newest_lag if horizon else None, period=clock.period,
        )  # fmt: skip
    return found


def plan_of(
    table: NodeTable,
    wanted: Forecast,
    ranges: Mapping[str, Bounds] | None = None,
    is_class: bool = False,
) -> tuple[RowPlan, dict[str, int]]:
    """The plan of rows for a table, and how many values lie outside of declared ranges."""
    levels = {  # of each column of text, the columns that it has become
        name: [f"{name}={level}" for level in found]
        for name, found in table.facts.get("levels", {}).items()
        if name not in CALENDAR
    }
    inputs = wanted.inputs
    if inputs is None:
        inputs = tuple(c for c in table.columns if c not in (wanted.target, *wanted.ahead))
    inputs, ahead = (
        tuple(each for name in names for each in levels.get(name, (name,)))
        for names in (inputs, wanted.ahead)
    )
    clock = table.clock
    hold = default_hold(clock) if wanted.hold is None else max(wanted.hold // clock.step, 0)
    plan = RowPlan(
        wanted.target, wanted.lags, tuple(i for i in inputs if i not in ahead), wanted.input_lags,
        ahead, wanted.horizons, hold, {}, clock,
        own=() if clock.is_dated else tuple(name for name in CALENDAR if name in table.columns),
    )  # fmt: skip
    check_known(ranges or {}, table.columns)
    of_levels = {each for made in levels.values() for each in made}
    scales: dict[str, tuple[float, float]] = {}
    n_outside: dict[str, int] = {}
    for column in plan.columns:
        known = table.column(column)
        known = known[~np.isnan(known)]
        if column == wanted.target and is_class:
            scales[column] = two_classes(column, known)
        elif known.size and column in of_levels:
            scales[column] = (0.0, 1.0)
        elif known.size:
            declared = ranges_of(column, ranges or {}) if wanted.scale == "declared" else None
            made = scaled(known, wanted.scale, declared)
            scales[column] = (float(made.offset), float(made.divisor))
            if made.n_outside:
                n_outside[column] = int(made.n_outside)
    return replace(plan, scales=scales), n_outside


def two_classes(column: str, known: Floats) -> tuple[float, float]:
    """Offset and divisor that make the two values of a target -1 and 1."""
    values = np.unique(known)
    if len(values) != 2:
        raise ParameterError(
            f"the target {column!r} must have two values for the logistic loss, got {len(values)}"
        )
    low, high = values.tolist()
    return (low + high) / 2, (high - low) / 2


def hold_words(plan: RowPlan) -> str:
    """For how long a value holds, for people."""
    if not plan.clock.is_dated:
        return f"{plan.hold} rows"
    return duration_words(plan.hold * plan.clock.step) if plan.hold else "0 s"


def _note(plan: RowPlan, scale: str, facts: Mapping[str, Any]) -> str:
    ahead = facts["horizon_time"] or counted(facts["horizon"], "row")
    others = ", ".join(facts["inputs"]) or "none"
    parts = [
        f"predicts {plan.target} {ahead} ahead" if facts["horizon"] else f"predicts {plan.target}",
        f"lags {', '.join(map(str, plan.lags)) or 'none'}, other inputs: {others}",
        f"{facts['labels_missing']} labels missing and not scored",
        f"a missing input is the last one for at most {facts['hold']}",
    ]
    if facts["inputs_missing"]:
        parts.append(f"{facts['inputs_missing']} rows without all inputs not scored")
    offset, divisor = facts["target_offset"], facts["target_divisor"]
    how = "not scaled" if scale == "none" else f"scale {scale}: (v - {offset:g})/{divisor:g}"
    parts.append(f"{how} of {plan.target}, others likewise" if scale != "none" else how)
    n_outside = sum(facts["values_outside"].values())
    if n_outside:
        parts.append(f"{n_outside} values outside their declared range")
    return "; ".join(parts)


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
