"""The one way in for samples: checked, written to the log, and appended to the backlog.

All sources use it: HTTP, standard input, files, MQTT, and the write-ahead log after a restart.
"""

import asyncio
import json
import math
import re
import reprlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from domkl.errors import DataError, MeshError
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.store.backlog import Backlog
from domkl.mesh.store.wal import BusyError, DiskFullError, Entry
from domkl.typing import Floats

Values = Sequence[float | None] | Mapping[str, float | None]
ID = re.compile(r"[!-~]{1,200}")
MAX_BYTES = 2**20  # of a request's body, a line or a message
MAX_SAMPLES = 10_000  # of a list


class Future(NamedTuple):
    """Inputs that are known ahead, at a time to come."""

    time: str | float
    x: dict[str, float]

    @classmethod
    def read(cls, said: Any) -> "Future":
        """Read them from JSON; DataError at the first mistake."""
        said = _object("future", said, ("time", "x"))
        x = _object("x of future", said.get("x"))
        when = _time_of(said.get("time"))
        if when is None:
            raise DataError("future must have time and x")
        found = {name: _number_of(name, value, may_lack=False) for name, value in x.items()}
        return cls(when, {name: value for name, value in found.items() if value is not None})


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
        return cls(_values_of(said.get("x")), [Future.read(each) for each in ahead])


class Given(NamedTuple):
    """A sample: x and y, the next value of a series, or inputs and target by their own names."""

    x: Values | None  # in the order of mesh.toml, or by name
    y: float | None  # the label, in its own units; None if missing
    value: float | None  # the next value of a time series
    time: str | float | None  # of a mesh that forecasts: ISO 8601, or seconds since 1970
    id: str | None  # the client's: a sample that is sent again is learned once
    said: frozenset[str]  # which of these the client named, if only as null
    others: dict[str, Any]  # what it named besides: of a flat sample, inputs and target

    @classmethod
    def read(cls, said: Any) -> "Given":
        """Read a sample from JSON; DataError at the first mistake."""
        said = _object("sample", said)
        others = {name: value for name, value in said.items() if name not in GIVEN}
        x = _values_of(said.get("x"))
        if others and x is not None:
            raise DataError(f"a sample with x has no place for {reprlib.repr(next(iter(others)))}")
        key = said.get("id")
        if key is not None and not (isinstance(key, str) and ID.fullmatch(key)):
            raise DataError(
                "id must be 1 to 200 characters of ASCII without spaces, got " + reprlib.repr(key)
            )
        y, value = (_number_of(name, said.get(name)) for name in ("y", "value"))
        return cls(x, y, value, _time_of(said.get("time")), key, GIVEN & said.keys(), others)

    def named(self, inputs: "Sequence[Range]", target: "Range", may_lack: bool) -> "Given":
        """The same sample with x and y, if it has inputs and target by their own names.

        Sensors send more than a mesh asks for, so other names are ignored. Where nothing may lack,
        the target must be there, if only as null.
        """
        if not self.others:
            return self
        own = {"y": self.y, "value": self.value}
        said = {name: own[name] for name in own if name in self.said} | self.others
        names = [each.name for each in (*inputs, target)]
        if target.name not in said and not (may_lack and any(name in said for name in names)):
            what = "must name inputs or target" if may_lack else f"lacks {target.name!r}"
            raise DataError(
                f"sample {what}, got {reprlib.repr(list(said))}; it has"
                f" {'x and y' if inputs else 'value'}, or {', '.join(names[:20])} by name"
            )
        x = {name: _number_of(name, said[name]) for name in names[:-1] if name in said}
        y = _number_of(target.name, said.get(target.name))
        return self._replace(x=x, y=y, value=None, said=frozenset({"x", "y"}), others={})


#: what a sample may name besides inputs and target
GIVEN = frozenset({"x", "y", "value", "time", "id"})


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


def _number_of(name: str, value: Any, may_lack: bool = True) -> float | None:
    """A number of a client's or a sensor's payload, or None."""
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
        return json.loads(text)
    except RecursionError:
        raise DataError(f"{what} must be JSON, and not nested so deeply") from None
    except ValueError as error:  # also of bytes that are no text
        raise DataError(f"{what} must be JSON: {error}") from None


def listed(said: Any) -> list[Any]:
    """One sample or a list of samples, all accepted or none."""
    found: list[Any] = said if isinstance(said, list) else [said]
    if len(found) > MAX_SAMPLES:
        raise DataError(f"a list must have at most {MAX_SAMPLES} items, got {len(found)}")
    return found


def parse(text: bytes | str) -> list[Given]:
    """Read one sample or a list of samples from JSON."""
    if len(text) > MAX_BYTES:
        raise DataError(f"sample must have at most {MAX_BYTES} bytes, got {len(text)}")
    return [Given.read(each) for each in listed(loaded("sample", text))]


class Prepared(NamedTuple):
    """A sample that was checked, as it is written to the log and as it is learned."""

    entry: Entry
    scaled: Floats  # the entry's values, on [0, 1]
    n_outside: int


class Scaled(NamedTuple):
    """Values on [0, 1], and how many of them were outside their ranges."""

    values: Floats
    n_outside: int


class SampleFormat:
    """What a sample of this mesh looks like; checks and scales samples by the agreed model.

    Parameters
    ----------
    model : Model
    lags : int or None
        Of a time series.
    """

    def __init__(self, model: Model, lags: int | None) -> None:
        self.model, self.lags = model, lags
        self._ranges = (*model.inputs, model.target)
        self._low = np.array([each.low for each in self._ranges])
        self._high = np.array([each.high for each in self._ranges])
        self._part = slice(-1, None) if lags else slice(None)  # the values in the log

    @property
    def names(self) -> list[str]:
        """The names of a sample's values in the log: inputs and target, or a series' target."""
        return [each.name for each in self._ranges[self._part]]

    def sample(self, given: Given) -> Prepared:
        """Check and scale a client's sample."""
        return self.prepared(Entry(self._values(given), given.id or ""))

    def prepared(self, entry: Entry) -> Prepared:
        """Scale a sample; DataError if a value is outside its range and the model refuses that.

        A label may be missing, NaN; the value of a series may not.
        """
        if not self.lags and np.isnan(entry.values[-1]):
            inputs, n_outside = self._scaled(entry.values[:-1], slice(-1))
            return Prepared(entry, np.append(inputs, np.nan), n_outside)
        return Prepared(entry, *self._scaled(entry.values, self._part))

    def inputs(self, x: Values) -> Scaled:
        """Check and scale inputs to predict for."""
        return self._scaled(ordered(x, self.model.inputs), slice(-1))

    def clipping(self) -> "SampleFormat":
        """The same format for samples that were accepted, whatever their values."""
        return SampleFormat(replace(self.model, outside="clip"), self.lags)

    def resume(self, tick: int) -> None:
        """Go on from a checkpoint; samples have no times here."""

    def can_follow(self, items: Sequence[Prepared]) -> bool:
        """Whether new samples can come next; their order says nothing here."""
        return True

    def follow(self, items: Sequence[Prepared]) -> None:
        """Take note of new samples."""

    def settle(self, items: Sequence[Prepared]) -> None:
        """Take note that samples are on disk."""

    def _scaled(self, values: Floats, part: slice) -> Scaled:
        low, high = self._low[part], self._high[part]
        inside = np.minimum(np.maximum(values, low), high)
        is_outside = inside != values  # also true for NaN
        is_finite, is_refused = np.isfinite(values), self.model.outside == "refuse"
        if is_outside.any() and (is_refused or not is_finite.all()):
            k = int(np.argmax(is_outside if is_refused else ~is_finite))
            wrong = self._ranges[part][k]
            raise DataError(
                f"{wrong.name} must be in {wrong.low!r} .. {wrong.high!r}, got {float(values[k])!r}"
            )
        return Scaled((inside - low) / (high - low), int(np.count_nonzero(is_outside)))

    def _values(self, given: Given) -> Floats:
        if given.time is not None:
            raise DataError("time is for a mesh that forecasts; this one has no [forecast]")
        is_flat, inputs = bool(given.others), () if self.lags else self.model.inputs
        given = given.named(inputs, self.model.target, may_lack=False)
        if self.lags:
            value = given.y if is_flat else given.value
            if value is None or (not is_flat and (given.x is not None or given.y is not None)):
                raise DataError("sample of a series must have value, and neither x nor y")
            return np.array([value])
        if given.value is not None or given.x is None or "y" not in given.said:
            raise DataError("sample must have x and y, and no value: the mesh has no lags")
        y = np.nan if given.y is None else given.y  # null: there is no label
        return np.append(ordered(given.x, self.model.inputs), y)


class Format(Protocol):
    """What a sample of a mesh looks like."""

    model: Model

    @property
    def names(self) -> list[str]:
        """The names of a sample's values in the log."""

    def sample(self, given: Given) -> Prepared:
        """Check a client's sample."""

    def prepared(self, entry: Entry) -> Prepared:
        """Check a sample of the log, or a row of a file."""

    def inputs(self, x: Values) -> Scaled:
        """Check and scale inputs to predict for."""

    def clipping(self) -> "Format":
        """The same format for samples that were accepted, whatever their values."""

    def resume(self, tick: int) -> None:
        """Go on from a checkpoint: this is the tick of its newest sample."""

    def can_follow(self, items: Sequence[Prepared]) -> bool:
        """Whether new samples can come next."""

    def follow(self, items: Sequence[Prepared]) -> None:
        """Take note of new samples before they are written; OrderError if they cannot follow."""

    def settle(self, items: Sequence[Prepared]) -> None:
        """Take note that samples are on disk; none: that those taken note of could not be."""


def ordered(x: Values, ranges: Sequence[Range], may_lack: bool = False) -> Floats:
    """Inputs in the order of their ranges; where they may be missing, NaN stands for None."""
    names = [each.name for each in ranges]
    if isinstance(x, Mapping):
        wrong = [name for name in x if name not in names]
        wrong += [] if may_lack else [name for name in names if name not in x]
        if wrong:
            what = "lacks" if wrong[0] in names else "has no place for"
            shown = reprlib.repr(wrong[0])
            raise DataError(f"sample {what} {shown}; inputs are {', '.join(names) or 'none'}")
        x = [x.get(name) for name in names]
    if len(x) != len(ranges):
        raise DataError(f"sample must have {len(ranges)} inputs, got {len(x)}")
    if None in x and not may_lack:
        raise DataError(f"input {names[x.index(None)]!r} must be a number, got null")
    return np.array([np.nan if value is None else value for value in x], dtype=np.float64)


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
        # What was accepted is learned, even if the mesh file refuses such values by now.
        clipped, rows = self.format.clipping(), self._backlog.rows
        if rows is not None and rows.known is not None:
            self.format.resume(rows.known.tick)
        for number, values in self._log.after(self._backlog.position):
            item = clipped.prepared(Entry(values))
            self.format.settle([item])
            self._backlog.add(number, item.scaled, item.n_outside)

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
            self.format.follow(new)
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
                    self._backlog.add(number, item.scaled, item.n_outside)
                self.format.settle(items)
                self._on_accepted()
            except Exception as error:  # all requests that wait must be told
                if not self._waiting:
                    self.format.settle(())
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
