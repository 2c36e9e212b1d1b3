"""What a sample of a mesh that forecasts looks like: a time, the target, and inputs.

Any value may be missing. A sample belongs to the nearest tick of the mesh's clock, and ticks
ascend: a sample of a tick that has passed is refused.
"""

import datetime
import reprlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from domkl.errors import DataError
from domkl.mesh.config.forecasting import Forecasting
from domkl.mesh.node.intake import Future, Given, OrderError, Prepared, Scaled, Values, ordered
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.store.rows import words
from domkl.mesh.store.wal import Entry
from domkl.text import parse_time
from domkl.typing import Floats

#: of times, the first and the one after the last: a wrong unit or a broken clock must not become
#: the newest time, after which all others have passed
YEARS = (1000, 9000)
_FIRST, _END = (
    datetime.datetime(year, 1, 1, tzinfo=datetime.UTC).timestamp() * 1000 for year in YEARS
)


class Ahead(NamedTuple):
    """Inputs that are known ahead, by the tick that they are of, and how many were clipped."""

    inputs: dict[int, dict[str, float]]
    n_outside: int


class TickFormat:
    """What a sample of a mesh that forecasts looks like; checks it and puts it on the clock.

    Parameters
    ----------
    model : Model
        Of the first horizon.
    forecasting : Forecasting
    inputs : ranges of the inputs, in the order of the mesh file
    clock : callable
        Seconds since 1970, for samples without a time.
    """

    def __init__(
        self,
        model: Model,
        forecasting: Forecasting,
        inputs: Sequence[Range],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.model, self.forecasting, self.clock = model, forecasting, clock
        self.plan = forecasting.plan(model.target, inputs)
        by_name = {each.name: each for each in inputs}
        self._inputs = tuple(by_name[name] for name in self.plan.columns[1:])
        self._ranges = (model.target, *self._inputs)
        self._newest: int | None = None  # the last tick that was taken note of
        self._accepted: int | None = None  # the last one that is on disk

    @property
    def names(self) -> list[str]:
        """The names of a sample's values in the log: the time, the target, the inputs."""
        return ["time", *(each.name for each in self._ranges)]

    def sample(self, given: Given) -> Prepared:
        """Check a client's sample."""
        given = given.named(self._inputs, self.model.target, may_lack=True)
        if given.y is not None and given.value is not None:
            raise DataError("sample must have y or value, got both")
        label = given.value if given.y is None else given.y
        x = {} if given.x is None else given.x
        values = ordered(x, self._inputs, may_lack=True)
        when = self.clock() * 1000 if given.time is None else milliseconds(given.time)
        made = [float(round(when)), np.nan if label is None else label, *values.tolist()]
        return self.prepared(Entry(np.array(made), given.id or ""))

    def prepared(self, entry: Entry) -> Prepared:
        """Clip values to their ranges; DataError if the model refuses those outside."""
        inside, n_outside = self._clipped(entry.values[1:], self._ranges)
        return Prepared(entry, np.concatenate([entry.values[:1], inside]), n_outside)

    def future(self, given: Sequence[Future], newest: int | None) -> "Ahead":
        """Check inputs that are known ahead, given the newest tick to forecast from.

        Those of steps that no horizon asks for are checked too, and of no use.
        """
        found: dict[int, dict[str, float]] = {}
        n_outside = 0
        for each in given:
            tick = self.plan.clock.tick(round(milliseconds(each.time)))
            if newest is not None and tick <= newest:
                raise DataError(
                    f"future must be after {words(self.plan, newest)}, the newest value,"
                    f" got {words(self.plan, tick)}"
                )
            if tick in found:
                raise DataError(
                    f"future must have each step of {self.forecasting.step} once,"
                    f" got {words(self.plan, tick)} twice"
                )
            self.plan.check_ahead(each.x)
            ranges = [r for r in self._inputs if r.name in each.x]
            inside, n = self._clipped(np.array([each.x[r.name] for r in ranges]), ranges)
            found[tick] = {r.name: float(v) for r, v in zip(ranges, inside, strict=True)}
            n_outside += n
        return Ahead(found, n_outside)

    def _clipped(self, values: Floats, ranges: Sequence[Range]) -> Scaled:
        """Values in their units, clipped; NaN stays. DataError if the model refuses."""
        low, high = (np.array([getattr(r, end) for r in ranges]) for end in ("low", "high"))
        inside = np.minimum(np.maximum(values, low), high)
        is_outside = (inside != values) & ~np.isnan(values)
        if is_outside.any() and self.model.outside == "refuse":
            k = int(np.argmax(is_outside))
            wrong = ranges[k]
            raise DataError(
                f"{wrong.name} must be in {wrong.low!r} .. {wrong.high!r}, got {float(values[k])!r}"
            )
        return Scaled(inside, int(np.count_nonzero(is_outside)))

    def inputs(self, x: Values) -> Scaled:
        """Refuse inputs to predict for: this node knows them."""
        raise DataError("x must not be given: the node forecasts from its newest values")

    def clipping(self) -> "TickFormat":
        """The same format for samples that were accepted, whatever their values."""
        made = replace(self.model, outside="clip")
        return TickFormat(made, self.forecasting, self._inputs, self.clock)

    def resume(self, tick: int) -> None:
        """Go on from a checkpoint: this is the tick of its newest sample."""
        self._newest = self._accepted = tick

    def can_follow(self, items: Sequence[Prepared]) -> bool:
        """Whether new samples can come next: their ticks ascend."""
        ticks = [self.tick_of(item.scaled) for item in items]
        before = ticks[:1] if self._newest is None else [self._newest + 1]
        return all(a < b for a, b in pairwise((before[0] - 1, *ticks))) if ticks else True

    def follow(self, items: Sequence[Prepared]) -> None:
        """Take note of the ticks of new samples; OrderError, and no note, unless they ascend."""
        newest = self._newest
        for item in items:
            tick = self.tick_of(item.scaled)
            if newest is not None and tick <= newest:
                raise OrderError(
                    f"time must be after {words(self.plan, newest)}, the newest that was accepted,"
                    f" got {words(self.plan, tick)}; samples come in the order of time, one for"
                    f" each step of {self.forecasting.step}"
                )
            newest = tick
        self._newest = newest

    def settle(self, items: Sequence[Prepared]) -> None:
        """Take note that samples are on disk; none: that those taken note of could not be."""
        if items:
            before = self._newest
            self._accepted = self.tick_of(items[-1].scaled)
            self._newest = max(self._accepted, self._accepted if before is None else before)
        else:
            self._newest = self._accepted

    def tick_of(self, values: Floats) -> int:
        """The tick of a sample's values."""
        return self.plan.clock.tick(int(values[0]))


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
