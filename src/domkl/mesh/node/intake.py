"""The one way in for samples: checked, written to the log, and appended to the backlog.

All sources use it: HTTP, standard input, files, MQTT, and the write-ahead log after a restart.
"""

import asyncio
import math
import reprlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple, Protocol, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from domkl.errors import DataError, MeshError
from domkl.mesh.node.backlog import Backlog
from domkl.mesh.node.wal import BusyError, DiskFullError, Entry
from domkl.mesh.protocol.model import Model, Range
from domkl.typing import Floats

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
# Stop at the first wrong value: to report all of them would hold up the node and its neighbors.
Values = Annotated[list[Number | None], Field(fail_fast=True)] | dict[str, Number | None]
ID = r"^[!-~]{1,200}$"
MAX_BYTES = 2**20  # of a request's body, a line or a message
MAX_SAMPLES = 10_000  # of a list


class Future(BaseModel):
    """Inputs that are known ahead, at a time to come."""

    model_config = ConfigDict(extra="forbid")

    time: str | Number
    x: dict[str, Number]


class Inputs(BaseModel):
    """Inputs to predict for, in their own units; none for the next value of a series."""

    model_config = ConfigDict(extra="forbid")

    x: Values | None = Field(None, description="in the order of mesh.toml, or by name")
    future: list[Future] | None = Field(
        None, max_length=MAX_SAMPLES, description="of a mesh that forecasts: inputs known ahead"
    )


class Given(BaseModel):
    """A sample: x and y, the next value of a series, or inputs and target by their own names."""

    model_config = ConfigDict(extra="allow")

    x: Values | None = Field(None, description="in the order of mesh.toml, or by name")
    y: Number | None = Field(None, description="the label, in its own units; null if missing")
    value: Number | None = Field(None, description="the next value of a time series")
    time: str | Number | None = Field(
        None, description="of a mesh that forecasts: ISO 8601, or seconds since 1970; default now"
    )
    id: str | None = Field(
        None, pattern=ID, description="the client's: a sample that is sent again is learned once"
    )

    @model_validator(mode="after")
    def _is_flat_or_not(self) -> Self:
        """Refuse other names beside x: they are inputs and target of a flat sample, or wrong."""
        if self.model_extra and self.x is not None:
            name = reprlib.repr(next(iter(self.model_extra)))
            raise DataError(f"a sample with x has no place for {name}")
        return self

    def named(self, inputs: "Sequence[Range]", target: "Range", may_lack: bool) -> "Given":
        """The same sample with x and y, if it has inputs and target by their own names.

        Sensors send more than a mesh asks for, so other names are ignored. Where nothing may lack,
        the target must be there, if only as null.
        """
        if not self.model_extra:
            return self
        said = self.model_dump(include={"y", "value"}, exclude_unset=True) | self.model_extra
        names = [each.name for each in (*inputs, target)]
        if target.name not in said and not (may_lack and any(name in said for name in names)):
            what = "must name inputs or target" if may_lack else f"lacks {target.name!r}"
            raise DataError(
                f"sample {what}, got {reprlib.repr(list(said))}; it has x and y, or"
                f" {', '.join(names[:20])} by name"
            )
        x = {name: _number_of(name, said[name]) for name in names[:-1] if name in said}
        y = _number_of(target.name, said.get(target.name))
        return Given.model_validate({"x": x, "y": y, "time": self.time, "id": self.id})


def _number_of(name: str, value: Any) -> float | None:
    """A number of a sensor's payload, or None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        found = float(value) if is_number else math.nan
    except OverflowError:  # a whole number of hundreds of digits
        found = math.inf
    if value is not None and not math.isfinite(found):
        raise DataError(f"{name} must be a finite number or null, got {reprlib.repr(value)}")
    return None if value is None else found


#: a list of samples, all accepted or none
Batch = Annotated[list[Given], Field(max_length=MAX_SAMPLES, fail_fast=True)]
_ONE_OR_MORE: TypeAdapter[Given | list[Given]] = TypeAdapter(Given | Batch)
#: names that pydantic gives to the ways to read a body, of no use to a client
BRANCHES = ("body", "Given", "list[Given]", "list[nullable[float]]", "dict[str,nullable[float]]",
            "float", "str")  # fmt: skip


def parse(text: bytes | str) -> list[Given]:
    """Read one sample or a list of samples from JSON."""
    if len(text) > MAX_BYTES:
        raise DataError(f"sample must have at most {MAX_BYTES} bytes, got {len(text)}")
    try:
        found = _ONE_OR_MORE.validate_json(text)
    except ValidationError as error:
        raise DataError(
            f"sample must be JSON as of POST /learn; {explained(error.errors(include_url=False))}"
        ) from None
    return found if isinstance(found, list) else [found]


def explained(errors: Sequence[Mapping[str, Any]]) -> str:
    """Where and why, for the most telling of pydantic's errors; values are not repeated."""
    found = max(errors, key=lambda each: (len(each["loc"]), each["type"] == "too_long"))
    where = ".".join(str(part) for part in found["loc"] if part not in BRANCHES)
    return f"{where}: {found['msg']}" if where else str(found["msg"])


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
        is_flat, inputs = bool(given.model_extra), () if self.lags else self.model.inputs
        given = given.named(inputs, self.model.target, may_lack=False)
        if self.lags:
            value = given.y if is_flat else given.value
            if value is None or (not is_flat and (given.x is not None or given.y is not None)):
                raise DataError("sample of a series must have value, and neither x nor y")
            return np.array([value])
        if given.value is not None or given.x is None or "y" not in given.model_fields_set:
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
