"""The one way in for samples: checked, written to the write-ahead log, and appended.

All sources use it: HTTP, standard input, files, MQTT, and the write-ahead log after a
restart. There are three kinds of meshes, by the mesh file:

- with inputs: a sample has ``x`` and ``y``, or inputs and target by their own names.
- with lags: a sample is the next value of a series.
- that forecasts: a sample has a time, and any of its values may be missing. It belongs to the
  nearest tick of the mesh's clock, and ticks ascend.
"""

import asyncio
import datetime
import math
import re
import reprlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from domkl.data.rows import RowPlan
from domkl.errors import DataError, MeshError
from domkl.mesh.config.settings import Forecasting, MeshConfig
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.store.backlog import Backlog
from domkl.mesh.store.wal import BusyError, DiskFullError, Entry
from domkl.text import from_json, parse_time
from domkl.typing import Floats

Values = Sequence[float | None] | Mapping[str, float | None]
ID = re.compile(r"[!-~]{1,200}")
MAX_BYTES = 2**20  # of a request's body, a line or a message
MAX_SAMPLES = 10_000  # of a list
#: what a sample may name besides inputs and target
FIELDS = frozenset({"x", "y", "value", "time", "id"})
#: of times, the first and the one after the last: a wrong unit or a broken clock must not become
#: the newest time, after which all others have passed
YEARS = (1000, 9000)
_FIRST, _END = (
    datetime.datetime(year, 1, 1, tzinfo=datetime.UTC).timestamp() * 1000 for year in YEARS
)


class Future(NamedTuple):
    """Inputs that are known ahead, at a time to come."""

    time: str | float
    x: dict[str, float]


class Inputs(NamedTuple):
    """Inputs to predict for, in their own units; none for the next value of a series."""

    x: Values | None
    future: list[Future]

    @classmethod
    def read(cls, said: Any) -> "Inputs":
        """Read them from JSON; DataError at the first mistake."""
        said = _object("body", said, ("x", "future"))
        ahead = said.get("future") or []
        if not isinstance(ahead, list) or len(ahead) > MAX_SAMPLES:
            raise DataError(f"future must be a list of at most {MAX_SAMPLES} items")
        return cls(_values_of(said.get("x")), [_future_of(each) for each in ahead])


def _future_of(said: Any) -> Future:
    said = _object("future", said, ("time", "x"))
    x, when = _object("x of future", said.get("x")), _time_of(said.get("time"))
    if when is None:
        raise DataError("future must have time and x")
    return Future(when, {name: _number_of(name, value, False) for name, value in x.items()})


def _object(what: str, said: Any, allowed: Collection[str] | None = None) -> dict[str, Any]:
    """A JSON object that names nothing but what is allowed."""
    if not isinstance(said, dict):
        raise DataError(f"{what} must be a JSON object, got {reprlib.repr(said)}")
    for name in said:
        if allowed is not None and name not in allowed:
            raise DataError(f"{what} has no place for {reprlib.repr(name)}")
    return said


def _values_of(x: Any) -> Values | None:
    """Inputs by their order or by name."""
    if isinstance(x, list):
        return [_number_of(f"x[{k}]", value) for k, value in enumerate(x)]
    if isinstance(x, dict):
        return {name: _number_of(name, value) for name, value in x.items()}
    if x is not None:
        raise DataError(f"x must be a list or an object, got {reprlib.repr(x)}")
    return None


def _time_of(value: Any) -> str | float | None:
    return value if isinstance(value, str) else _number_of("time", value)


def _number_of(name: str, value: Any, may_lack: bool = True) -> Any:
    """A number of a client's or a sensor's payload, or None where it may be missing."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        found = float(value) if is_number else math.nan
    except OverflowError:  # a whole number of hundreds of digits
        found = math.inf
    if math.isfinite(found):
        return found
    if value is None and may_lack:
        return None
    what = reprlib.repr(name)[1:-1]  # names are the client's, of any length
    null = " or null" if may_lack else ""
    raise DataError(f"{what} must be a finite number{null}, got {reprlib.repr(value)}")


def loaded(what: str, text: bytes | str) -> Any:
    """Read JSON; DataError says where it is not."""
    try:
        return from_json(text)
    except ValueError as error:  # also of bytes that are no text
        raise DataError(f"{what} must be JSON: {error}") from None


def listed(said: Any) -> list[Any]:
    """One sample or a list of samples, all accepted or none."""
    found: list[Any] = said if isinstance(said, list) else [said]
    if len(found) > MAX_SAMPLES:
        raise DataError(f"a list must have at most {MAX_SAMPLES} items, got {len(found)}")
    return found


def parse(text: bytes | str) -> list[Any]:
    """Read JSON of one sample or a list of samples, for `Format.sample`."""
    if len(text) > MAX_BYTES:
        raise DataError(f"sample must have at most {MAX_BYTES} bytes, got {len(text)}")
    return listed(loaded("sample", text))


class Prepared(NamedTuple):
    """A checked sample, as it is written to the write-ahead log and as it is learned."""

    entry: Entry
    values: Floats  # the entry's, on [0, 1]; of a mesh that forecasts in their units, and the time
    n_outside: int
    tick: int | None = None  # of a mesh that forecasts


class Inside(NamedTuple):
    """Values within their ranges, and how many of them were outside."""

    values: Floats
    n_outside: int


class Ranges:
    """Ranges of some values.

    Parameters
    ----------
    ranges : sequence of Range
    may_lack : bool or sequence of bool
        Whether values may be missing, NaN.
    is_strict : bool
        Refuse values outside, instead of clipping them.
    """

    def __init__(
        self, ranges: Sequence[Range], may_lack: bool | Sequence[bool], is_strict: bool
    ) -> None:
        self._ranges, self._may_lack, self._is_strict = ranges, np.array(may_lack), is_strict
        self.low, self.high = (
            np.array([getattr(each, end) for each in ranges]) for end in ("low", "high")
        )

    def inside(self, values: Floats, is_accepted: bool = False) -> Inside:
        """Clip values; DataError for those that are refused, unless they were accepted before.

        What is not finite is refused, except for a value that may be missing.
        """
        inside = np.minimum(np.maximum(values, self.low), self.high)
        is_outside = inside != values  # also true for NaN
        if not is_outside.any():
            return Inside(inside, 0)
        is_missing = np.isnan(values) & self._may_lack
        is_outside &= ~is_missing
        is_refused = is_outside if self._is_strict else ~np.isfinite(values) & ~is_missing
        if is_refused.any() and not is_accepted:
            k = int(np.argmax(is_refused))
            wrong = self._ranges[k]
            raise DataError(
                f"{wrong.name} must be in {wrong.low!r} .. {wrong.high!r}, got {float(values[k])!r}"
            )
        return Inside(inside, int(np.count_nonzero(is_outside)))

    def scaled(self, values: Floats, is_accepted: bool = False) -> Inside:
        """The same on [0, 1]."""
        inside, n_outside = self.inside(values, is_accepted)
        return Inside((inside - self.low) / (self.high - self.low), n_outside)

    def ordered(self, x: Values) -> Floats:
        """Values given by order or by name, in the order of the ranges; NaN stands for None."""
        names, may_lack = [each.name for each in self._ranges], bool(self._may_lack.any())
        if isinstance(x, Mapping):
            wrong = [name for name in x if name not in names]
            wrong += [] if may_lack else [name for name in names if name not in x]
            if wrong:
                what = "lacks" if wrong[0] in names else "has no place for"
                shown = reprlib.repr(wrong[0])
                raise DataError(f"sample {what} {shown}; inputs are {', '.join(names) or 'none'}")
            x = [x.get(name) for name in names]
        if len(x) != len(names):
            raise DataError(f"sample must have {len(names)} inputs, got {len(x)}")
        if None in x and not may_lack:
            raise DataError(f"input {names[x.index(None)]!r} must be a number, got null")
        return np.array([np.nan if value is None else value for value in x], dtype=np.float64)


class Ahead(NamedTuple):
    """Inputs that are known ahead, by the tick that they are of, and how many were clipped."""

    inputs: dict[int, dict[str, float]]
    n_outside: int


class Format:
    """What a sample of a mesh looks like; checks, clips and scales samples.

    Parameters
    ----------
    model : Model
        Of the first horizon.
    lags : int or None
        Of a time series.
    forecasting : Forecasting, optional
        Of a mesh that forecasts.
    inputs : ranges of its inputs, in the order of the mesh file
    clock : callable
        Seconds since 1970, for samples without a time.

    Attributes
    ----------
    plan : RowPlan or None
        How rows are made from samples; None if a sample is a row. A series is counted, one tick a
        value; values are scaled before they become rows.
    n_season : int
        Ticks of a season, of a mesh that forecasts.
    names : list of str
        The names of a sample's values in the log; the first may be the time.
    """

    def __init__(
        self,
        model: Model,
        lags: int | None = None,
        forecasting: Forecasting | None = None,
        inputs: Sequence[Range] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.model, self.lags, self.forecasting, self.clock = model, lags, forecasting, clock
        self.plan: RowPlan | None = None
        self.n_season, target = 0, model.target
        self._inputs = () if lags else model.inputs
        if lags:
            self.plan = RowPlan(target.name, lags=tuple(range(1, lags + 1)), hold=0)
        if forecasting is not None:
            self.plan, self.n_season = forecasting.plan(target, inputs), forecasting.n_season
            by_name = {each.name: each for each in inputs}
            self._inputs = tuple(by_name[name] for name in self.plan.columns[1:])
        is_strict, is_timed = model.outside == "refuse", forecasting is not None
        inner = [(each, is_timed) for each in self._inputs]
        label = [(target, not lags)]  # a value of a series must be there
        each, may_lack = zip(*(label + inner if is_timed else inner + label), strict=True)
        self._all = Ranges(each, may_lack, is_strict)
        self._x = Ranges(self._inputs, is_timed, is_strict)
        self._row = Ranges(model.inputs, False, is_strict)
        self.names = ["time"] * is_timed + [one.name for one in each]

    @classmethod
    def of(cls, config: MeshConfig) -> "Format":
        """The format of a mesh."""
        return cls(config.models()[0], config.lags, config.forecast, config.inputs)

    def sample(self, said: Any) -> Prepared:
        """Check a client's sample, as JSON; DataError at the first mistake."""
        said = _object("sample", said)
        x, key = _values_of(said.get("x")), said.get("id")
        named = {name: value for name, value in said.items() if name not in FIELDS}
        if named and x is not None:
            raise DataError(f"a sample with x has no place for {reprlib.repr(next(iter(named)))}")
        if key is not None and not (isinstance(key, str) and ID.fullmatch(key)):
            raise DataError(
                "id must be 1 to 200 characters of ASCII without spaces, got " + reprlib.repr(key)
            )
        own = {name: _number_of(name, said.get(name)) for name in ("y", "value") if name in said}
        if named:
            x, label = self._by_name(own | named)
        else:
            x, label = self._by_place(x, own)
        if self.lags and label is None:
            raise DataError("sample of a series must have value, and neither x nor y")
        values = self._x.ordered(() if x is None else x)
        y, when = np.nan if label is None else label, _time_of(said.get("time"))
        if self.forecasting is not None:
            read = self.clock() * 1000 if when is None else milliseconds(when)
            return self.prepared(Entry(np.array([float(round(read)), y, *values]), key or ""))
        if when is not None:
            raise DataError("time is for a mesh that forecasts; this one has no [forecast]")
        return self.prepared(Entry(np.array([*values, y]), key or ""))

    def prepared(self, entry: Entry, *, is_accepted: bool = False) -> Prepared:
        """Clip and scale the values of a row or of the log.

        DataError if a value is missing that must not be, or is outside its range and the model
        refuses that; not if the sample was accepted before.
        """
        if self.plan is None or self.forecasting is None:
            return Prepared(entry, *self._all.scaled(entry.values, is_accepted))
        inside, n_outside = self._all.inside(entry.values[1:], is_accepted)
        values = np.concatenate([entry.values[:1], inside])
        return Prepared(entry, values, n_outside, self.plan.clock.tick(int(values[0])))

    def inputs(self, x: Values) -> Inside:
        """Check and scale inputs to predict for."""
        if self.forecasting is not None:
            raise DataError("x must not be given: the node forecasts from its newest values")
        return self._row.scaled(self._row.ordered(x))

    def future(self, given: Sequence[Future], newest: int | None) -> Ahead:
        """Check inputs that are known ahead, given the newest tick to forecast from.

        Those of steps that no horizon asks for are checked too, and of no use.
        """
        assert self.plan is not None
        assert self.forecasting is not None
        found: dict[int, dict[str, float]] = {}
        n_outside, plan = 0, self.plan
        for each in given:
            tick = plan.clock.tick(round(milliseconds(each.time)))
            if newest is not None and tick <= newest:
                raise DataError(
                    f"future must be after {plan.clock.text(newest)}, the newest value,"
                    f" got {plan.clock.text(tick)}"
                )
            if tick in found:
                raise DataError(
                    f"future must have each step of {self.forecasting.step} once,"
                    f" got {plan.clock.text(tick)} twice"
                )
            plan.check_ahead(each.x)
            ranges = [r for r in self._inputs if r.name in each.x]
            given_x = np.array([each.x[r.name] for r in ranges])
            inside, n = Ranges(ranges, False, self.model.outside == "refuse").inside(given_x)
            found[tick] = dict(zip((r.name for r in ranges), inside.tolist(), strict=True))
            n_outside += n
        return Ahead(found, n_outside)

    def order_problem(self, newest: int, tick: int) -> str:
        """What is wrong with a sample of this tick after one of the newest."""
        assert self.plan is not None
        assert self.forecasting is not None
        return (
            f"time must be after {self.plan.clock.text(newest)}, the newest that was accepted,"
            f" got {self.plan.clock.text(tick)}; samples come in the order of time, one for each"
            f" step of {self.forecasting.step}"
        )

    def _by_name(self, said: Mapping[str, Any]) -> tuple[Values, float | None]:
        """Inputs and label of a sample that has them by their own names.

        Sensors send more than a mesh asks for, so other names are ignored. Except for a mesh that
        forecasts, the target must be there, if only as null.
        """
        target, may_lack = self.model.target.name, self.forecasting is not None
        names = [*(each.name for each in self._inputs), target]
        if target not in said and not (may_lack and any(name in said for name in names)):
            what = "must name inputs or target" if may_lack else f"lacks {target!r}"
            raise DataError(
                f"sample {what}, got {reprlib.repr(list(said))}; it has"
                f" {'x and y' if self._inputs else 'value'}, or {', '.join(names[:20])} by name"
            )
        x = {name: _number_of(name, said[name]) for name in names[:-1] if name in said}
        return x, _number_of(target, said.get(target))

    def _by_place(
        self, x: Values | None, own: Mapping[str, float | None]
    ) -> tuple[Values | None, float | None]:
        """Inputs and label of a sample that has x, y and value."""
        y, value = own.get("y"), own.get("value")
        if self.forecasting is not None:
            if y is not None and value is not None:
                raise DataError("sample must have y or value, got both")
            return {} if x is None else x, value if y is None else y
        if self.lags:
            return None, value if x is None and y is None else None
        if value is not None or x is None or "y" not in own:
            raise DataError("sample must have x and y, and no value: the mesh has no lags")
        return x, y


def milliseconds(given: str | float) -> float:
    """Read a time: ISO 8601, in UTC unless it says otherwise, or seconds since 1970.

    Examples
    --------
    >>> milliseconds("1970-01-02T00:00"), milliseconds("1970-01-02T01:00+01:00"), milliseconds(60)
    (86400000.0, 86400000.0, 60000.0)
    """
    if isinstance(given, str):
        try:
            found = float(parse_time(given))
        except ValueError:
            raise DataError(
                "time must be ISO 8601, such as 2026-11-17T05:00, or seconds since 1970,"
                f" got {reprlib.repr(given)}"
            ) from None
    else:
        found = float(given) * 1000
    if not _FIRST <= found < _END:
        raise DataError(
            f"time must be in the years {YEARS[0]} to {YEARS[1] - 1}, got {given!r};"
            " a number is seconds since 1970, not milliseconds"
        )
    return found


class OrderError(DataError):
    """A sample is not after those before it: nothing was accepted."""


class QueueFullError(MeshError):
    """Too many samples wait to be learned: nothing was accepted; try again later."""


INVALID = "invalid"  # why a sample was rejected; the other reasons:
REASONS: dict[type[Exception], str] = {
    QueueFullError: "queue full",
    OrderError: "out of order",
    DiskFullError: "disk full",
    BusyError: "no descriptors",
}


class _Group(NamedTuple):
    """New samples of one request, and the future number of the first."""

    items: list[Prepared]
    first: "asyncio.Future[int]"


class _Pending(NamedTuple):
    """A sample that is being written: its number is that of the group's first plus the offset."""

    first: "asyncio.Future[int]"
    offset: int


class Intake:
    """Accepts samples: when `accept` returns they are on disk.

    Requests that arrive while a sync is under way share the next one.

    Parameters
    ----------
    backlog : Backlog
    sample_format : Format
    capacity : int
        Samples that may wait to be learned.
    on_accepted : callable
        Called in the loop's thread whenever the backlog has grown.
    on_failure : callable
        Told of an error after which the log cannot be written any more.

    Attributes
    ----------
    n_repeated : int
        Samples that were sent again with a known id.
    rejected : Counter
        Samples that were not accepted, by reason.
    """

    def __init__(
        self,
        backlog: Backlog,
        sample_format: Format,
        capacity: int,
        on_accepted: Callable[[], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self.format, self.capacity = sample_format, capacity
        self.n_repeated = 0
        self.rejected: Counter[str] = Counter()
        self._backlog, self._log = backlog, backlog.log
        self._on_accepted, self._on_failure = on_accepted, on_failure
        self._waiting: list[_Group] = []
        self._n_waiting = 0
        self._tick: int | None = None  # of the newest sample on disk, if samples have times
        self._newest: int | None = None  # the same of those that wait to be written
        self._coming: dict[str, _Pending] = {}
        self._writer: asyncio.Task[None] | None = None
        self._resume()

    async def accept(self, items: Sequence[Prepared]) -> list[int]:
        """Write samples to the log; a sample whose id is known keeps the number that it has."""
        try:
            pending = self._sort(items)
            return [each if isinstance(each, int) else await _number(each) for each in pending]
        except Exception as error:
            self.rejected[REASONS.get(type(error), "failed")] += len(items)
            if type(error) not in REASONS:
                self._on_failure(error)
            raise

    async def close(self) -> None:
        """Wait for what is being written."""
        while self._writer is not None:
            await asyncio.wait([self._writer])

    def _resume(self) -> None:
        """Append what the log has after the checkpoint."""
        known = self._backlog.rows.known
        if known is not None and self._backlog.rows.is_dated:
            self._tick = known.tick
        for number, values in self._log.after(self._backlog.position):
            # what was accepted is learned, even if the mesh file refuses such values by now
            item = self.format.prepared(Entry(values), is_accepted=True)
            self._tick = item.tick
            self._backlog.add(number, item.values, item.n_outside)
        self._newest = self._tick

    def late(self, items: Sequence[Prepared]) -> OrderError | None:
        """What is wrong with the order of new samples: their ticks must ascend."""
        newest = self._newest
        for tick in (item.tick for item in items if item.tick is not None):
            if newest is not None and tick <= newest:
                return OrderError(self.format.order_problem(newest, tick))
            newest = tick
        return None

    def _sort(self, items: Sequence[Prepared]) -> list[int | _Pending]:
        """Hand new samples to the writer; give the number of each sample, or what it will be."""
        first: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        fresh: dict[str, _Pending] = {}
        new: list[Prepared] = []
        found: list[int | _Pending] = []
        for item in items:
            name = "" if item.entry.is_row else item.entry.id
            known = self._log.ids.get(name) or self._coming.get(name) or fresh.get(name)
            if known is None:
                known = _Pending(first, len(new))
                new.append(item)
                if name:
                    fresh[name] = known
            found.append(known)
        if new:
            self._check_room(len(new))
            if (late := self.late(new)) is not None:
                raise late
            self._newest = new[-1].tick
            self._coming |= fresh
            self._enqueue(_Group(new, first))
        self.n_repeated += len(items) - len(new)
        return found

    def _check_room(self, n: int) -> None:
        room = self.capacity - self._backlog.n_waiting - self._n_waiting
        if n > room:
            raise QueueFullError(
                f"queue must have room for {n} samples, got {max(0, room)}; try again later"
            )

    def _enqueue(self, group: _Group) -> None:
        group.first.add_done_callback(lambda first: first.cancelled() or first.exception())
        self._waiting.append(group)
        self._n_waiting += len(group.items)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            groups, self._waiting = self._waiting, []
            items = [item for group in groups for item in group.items]
            entries = [item.entry for item in items]
            try:
                first = await loop.run_in_executor(None, self._log.append, entries)
                for number, item in enumerate(items, first):
                    self._backlog.add(number, item.values, item.n_outside)
                self._tick = items[-1].tick
                self._on_accepted()
            except Exception as error:  # all requests that wait must be told
                if not self._waiting:
                    self._newest = self._tick
                for group in groups:
                    group.first.set_exception(error)
            else:
                for group in groups:
                    group.first.set_result(first)
                    first += len(group.items)
            self._n_waiting -= len(items)
            for item in items:
                self._coming.pop(item.entry.id, None)
        self._writer = None


async def _number(pending: _Pending) -> int:
    # Shielded: a client that goes away must not cancel what others wait for.
    return await asyncio.shield(pending.first) + pending.offset
