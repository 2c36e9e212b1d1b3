"""The row maker: the clocked table of one node to inputs and labels of a learner.

One object serves all hosts. The simulator pushes a node's whole table at once, a node of a mesh
pushes tick by tick, and any cutting of the same table gives the same rows, to the bit: there is
one path of code, and what earlier ticks left behind is its state.

What is known at tick t is a node's values up to and including t, none later. Inputs, in order:

- lags of the target. Lag 1 is the value at t, the newest that is known when the prediction is made;
  lag j is the value at t - j + 1.
- inputs by name, at lag 1 or at the lags asked for; calendar inputs as two numbers on a circle.
- inputs that are known ahead (a weather forecast), at the time of the label.

Where a value is missing, the last known one holds for at most ``hold`` ticks; after that the input
is NaN, and the row is neither predicted nor learned. The label of horizon h is the target at t + h;
if it was not measured it is NaN: nothing is learned, nothing is scored. Labels are never filled.

Horizon 0 predicts the target of the same row, of which only earlier ticks are known: lag j is then
the value at t - j.
"""

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks
from domkl.data.clock import CALENDAR, HOUR, Clock, calendar
from domkl.errors import DataError, ParameterError
from domkl.typing import Floats, Ints

#: a missing input is the last known one for at most this long, or three ticks if that is longer
HOLD = 24 * HOUR
_FOREVER = np.iinfo(np.int64).max // 2


def default_hold(clock: Clock) -> int:
    """Ticks that a value holds if nobody says how long: a day, or three ticks if that is longer.

    Examples
    --------
    >>> default_hold(Clock(0, HOUR)), default_hold(Clock(0, 24 * HOUR))
    (24, 3)
    """
    return max(HOLD // clock.step, 3) if clock.is_dated else 24


def lagged(values: Floats, lag: int, n: int) -> Floats:
    """The values at a lag of the last n ticks, (n,); lag 1 is the value at the tick itself.

    Examples
    --------
    >>> lagged(np.array([1.0, 2.0, 3.0, 4.0]), lag=2, n=3).tolist()
    [1.0, 2.0, 3.0]
    """
    stop = len(values) - lag + 1
    return values[stop - n : stop]


@dataclass(frozen=True)
class RowPlan:
    """Which rows to make; checked here, and trusted after.

    Parameters
    ----------
    target : the column to predict.
    lags : of the target, such as (1, 2, 3, 24); lag 1 is the newest known value.
    inputs : columns and calendar words (hour, weekday, yearday). The target is no input without
        lag.
    input_lags : at which lags the columns among the inputs are taken; (1,) is the newest value.
    ahead : inputs that are known ahead of time; they are taken at the time of the label.
    horizons : ticks from the newest known value to the label.
    hold : ticks for which the last known value of a column stands in for a missing one.
    scales : (offset, divisor) of columns: v becomes (v - offset)/divisor; others stay as they are.
    clock : of the ticks.
    own : columns that have the name of a calendar word, and are columns all the same.
    """

    target: str
    lags: tuple[int, ...] = (1,)
    inputs: tuple[str, ...] = ()
    input_lags: tuple[int, ...] = (1,)
    ahead: tuple[str, ...] = ()
    horizons: tuple[int, ...] = (1,)
    hold: int = 24
    scales: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    clock: Clock = Clock(0, 1, is_dated=False)
    own: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("lags", "input_lags"):
            for lag in getattr(self, name):
                checks.whole(name, lag, 1)
            _different(name, getattr(self, name))
        for horizon in self.horizons:
            checks.whole("horizon", horizon, 0)
        _different("horizon", self.horizons)
        if not self.horizons or (0 in self.horizons and len(self.horizons) > 1):
            raise ParameterError(f"horizon must be 0 or numbers >= 1, got {self.horizons}")
        checks.whole("hold", self.hold, 0)
        _different("inputs", (*self.inputs, *self.ahead))
        if self.target in (*self.inputs, *self.ahead):
            raise ParameterError(
                f"inputs must not have the target {self.target!r} without lag;"
                " drop it there, and give its past by lags"
            )
        dated = [name for name in (*self.inputs, *self.ahead) if self.is_calendar(name)]
        if dated and not self.clock.is_dated:
            raise ParameterError(f"input {dated[0]!r} needs the time of the rows; give --time")
        if not self.lags and not self.inputs and not self.ahead:
            raise ParameterError("lags or inputs must give at least one input, got none")

    def is_calendar(self, name: str) -> bool:
        """Whether an input is made from the time."""
        return name in CALENDAR and name not in self.own

    def check_ahead(self, names: Iterable[str]) -> None:
        """Raise DataError unless values of these may be given ahead; the calendar is known."""
        known = [name for name in self.ahead if not self.is_calendar(name)]
        for name in names:
            if name not in known:
                raise DataError(
                    f"future input must be one of {', '.join(known) or 'none'}, got"
                    f" {reprlib.repr(name)}; inputs that are known ahead are named in ahead"
                )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that `RowMaker.push` takes, in this order; the target first."""
        named = dict.fromkeys((*self.inputs, *self.ahead))
        return (self.target, *(name for name in named if not self.is_calendar(name)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of a row's inputs."""
        lags = (f"{self.target} lag {lag}" for lag in self.lags)
        ahead = (f"{name} ahead" for name in self._named(self.ahead, (1,)))
        return (*lags, *self._named(self.inputs, self.input_lags), *ahead)

    @property
    def n_ahead(self) -> int:
        """How many of a row's inputs, the last ones, are known ahead."""
        return len(self._named(self.ahead, (1,)))

    def _named(self, columns: Sequence[str], lags: Sequence[int]) -> list[str]:
        """The names of inputs from these columns and calendar words, at these lags."""
        made = []
        for name in columns:
            if self.is_calendar(name):
                made += [f"{name} sine", f"{name} cosine"]
            else:
                made += [name if lag == 1 else f"{name} lag {lag}" for lag in lags]
        return made

    @property
    def newest_lag(self) -> int | None:
        """The input that is the newest value of the target, in its units; None if there is none."""
        return self.lags.index(1) if 1 in self.lags else None

    @property
    def n_window(self) -> int:
        """Ticks that a row looks at."""
        shift = 1 if self.horizons == (0,) else 0
        return max((*(lag + shift for lag in self.lags), *self.input_lags, 1))

    def scaled(self, name: str, values: Floats) -> Floats:
        """Values of a column, scaled."""
        offset, divisor = self.scales.get(name, (0.0, 1.0))
        return (values - offset) / divisor


def _different(name: str, given: Sequence[int] | Sequence[str]) -> None:
    if len(set(given)) < len(given):
        raise ParameterError(f"{name} must not repeat, got {', '.join(map(str, given))}")


class Pairs(NamedTuple):
    """Samples that are complete: the inputs of h ticks ago, and the label that has come now."""

    X: Floats  # (n, d) NaN where inputs are missing
    y: Floats  # (n,) NaN where the label is missing


class Block(NamedTuple):
    """What n ticks bring."""

    X: Floats  # (n, d) inputs at each of these ticks, without those known ahead
    pairs: dict[int, Pairs]  # by horizon: what each tick completes


class RowMaker:
    """Make rows from the ticks of one node, in any number of calls.

    Parameters
    ----------
    plan : RowPlan
    state : what `state` of another maker gave, to go on from there

    Examples
    --------
    >>> plan = RowPlan("load", lags=(1, 2), horizons=(1, 2), hold=1)
    >>> block = RowMaker(plan).push(np.array([[1.0], [2.0], [np.nan], [4.0]]))
    >>> block.X.tolist()
    [[1.0, nan], [2.0, 1.0], [2.0, 2.0], [4.0, 2.0]]
    >>> block.pairs[1].X.tolist()[2:], block.pairs[1].y.tolist()[2:]
    ([[2.0, 1.0], [2.0, 2.0]], [nan, 4.0])
    >>> block.pairs[2].X.tolist()[3], block.pairs[2].y.tolist()[3]
    ([2.0, 1.0], 4.0)
    """

    def __init__(self, plan: RowPlan, state: Mapping[str, Floats] | None = None) -> None:
        self.plan = plan
        n_columns = len(plan.columns)
        self.tick = 0  # the number of the next tick
        self._last = np.full(n_columns, np.nan)  # the last known value of each column
        self._age = np.full(n_columns, _FOREVER)  # ticks since then
        self._window = np.full((plan.n_window - 1, n_columns), np.nan)
        self._pending = np.full((max(plan.horizons), len(plan.names) - plan.n_ahead), np.nan)
        if state is not None:
            self._restore(state)

    def push(self, values: ArrayLike) -> Block:
        """Take the next ticks, (n, columns of the plan), NaN where nothing is known."""
        values = np.asarray(values, dtype=np.float64)
        plan, n = self.plan, len(values)
        if values.ndim != 2 or values.shape[1] != len(plan.columns):
            raise DataError(
                f"values must have {len(plan.columns)} columns ({', '.join(plan.columns)}),"
                f" got shape {values.shape}"
            )
        held = self._held(values)
        window = np.concatenate([self._window, held])
        clock = plan.clock
        times = clock.start + (self.tick + np.arange(n)) * clock.step
        X = self._inputs(window, times)
        waiting = np.concatenate([self._pending, X])
        label = plan.scaled(plan.target, values[:, 0])
        ahead = self._columns(plan.ahead, (1,), held, times)
        first = len(self._pending)
        pairs = {
            h: Pairs(np.concatenate([waiting[first - h : first - h + n], ahead], axis=1), label)
            for h in plan.horizons
        }
        self._window, self._pending = window[n:], waiting[n:]
        self.tick += n
        return Block(X, pairs)

    def skip(self, n: int) -> None:
        """Let n ticks pass without a value, however many."""
        some = min(n, len(self._window) + len(self._pending) + self.plan.hold + 1)
        self.tick += n - some
        self._age = np.minimum(self._age + (n - some), _FOREVER)
        self.push(np.full((some, len(self.plan.columns)), np.nan))

    def row(self, X: Floats, horizon: int, future: Mapping[str, float] | None = None) -> Floats:
        """The inputs (d,) of a forecast: a row of `Block.X`, and what is known ahead.

        ``X`` is the newest row. Where ``future`` has no value of an input known ahead, its last
        known one stands in; a calendar input is known anyway.
        """
        plan, given = self.plan, dict(future or {})
        plan.check_ahead(given)
        held = np.where(self._age <= plan.hold, self._last, np.nan)
        for name, value in given.items():
            held[plan.columns.index(name)] = value
        time = np.array([plan.clock.time(self.tick - 1 + horizon)])
        return np.concatenate([X, self._columns(plan.ahead, (1,), held[None], time)[0]])

    def state(self) -> dict[str, Floats]:
        """Everything that later rows depend on, as arrays to be stored; they are not changed."""
        tick, window, pending = np.array(self.tick), self._window, self._pending
        found = {"tick": tick, "last": self._last, "age": self._age}
        return found | {"window": window, "pending": pending}

    def _restore(self, state: Mapping[str, Floats]) -> None:
        for name in ("last", "age", "window", "pending"):
            own, given = getattr(self, f"_{name}"), np.asarray(state[name])
            if given.shape != own.shape:
                raise DataError(
                    f"{name} of the state must have shape {own.shape} for this plan,"
                    f" got {given.shape}"
                )
            setattr(self, f"_{name}", given.astype(own.dtype))
        self.tick = int(state["tick"])

    def _held(self, values: Floats) -> Floats:
        """Each missing value as the last known one, while that may hold."""
        n = len(values)
        if n and not np.isnan(values).any():
            self._last, self._age = values[-1].copy(), np.zeros_like(self._age)
            return values
        rows = np.arange(n)[:, None]
        newest = np.maximum.accumulate(np.where(np.isnan(values), -1, rows), axis=0)
        is_here = newest >= 0
        last = np.where(is_here, np.take_along_axis(values, np.maximum(newest, 0), 0), self._last)
        age = np.minimum(np.where(is_here, rows - newest, self._age + rows + 1), _FOREVER)
        if n:
            self._last, self._age = last[-1].copy(), age[-1].copy()
        return np.where(age <= self.plan.hold, last, np.nan)

    def _inputs(self, window: Floats, times: Ints) -> Floats:
        """The inputs at the last ticks of a window of held values, of these times."""
        plan, shift = self.plan, 1 if self.plan.horizons == (0,) else 0
        lags = [lagged(window[:, 0], lag + shift, len(times)) for lag in plan.lags]
        made = plan.scaled(plan.target, np.array(lags).reshape(len(lags), len(times)).T)
        others = self._columns(plan.inputs, plan.input_lags, window, times)
        return np.concatenate([made, others], axis=1)

    def _columns(
        self, names: Sequence[str], lags: Sequence[int], window: Floats, times: Ints
    ) -> Floats:
        """Inputs of these names at the last ticks of a window, by lag; calendar words by time."""
        plan, made = self.plan, [np.empty((0, len(times)))]
        for name in names:
            if plan.is_calendar(name):
                made.append(calendar(name, times).T)
                continue
            column = window[:, plan.columns.index(name)]
            made += [plan.scaled(name, lagged(column, lag, len(times)))[None] for lag in lags]
        return np.concatenate(made).T
