"""How the samples of a node that forecasts become moments, which the protocol is told.

`RowMaker` (domkl.data.rows) makes the rows: here tick by tick, in the simulator all at once.
"""

import datetime
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from domkl.data.rows import RowMaker, RowPlan
from domkl.errors import DataError
from domkl.mesh.protocol.events import Moment
from domkl.mesh.protocol.forecasts import as_bits, from_bits
from domkl.typing import Array, Floats

ROWS = "rows."  # of the arrays in a checkpoint
WHOLE = ("tick", "age")  # those of whole numbers; the others may hold NaN, and are saved as bits


def words(plan: RowPlan, tick: int) -> str:
    """A tick's time in ISO 8601, UTC."""
    start = datetime.datetime(1970, 1, 1)
    return (start + datetime.timedelta(milliseconds=plan.clock.time(tick))).isoformat()


class Known(NamedTuple):
    """The newest inputs, from which a node forecasts on request."""

    tick: int
    X: Floats  # (d,) without inputs that are known ahead


class TickRows:
    """Turns the samples of a node into moments, one for each horizon.

    Parameters
    ----------
    plan : RowPlan
    n_season : int
        Ticks of a season, for the seasonal naive forecast.
    arrays : mapping, optional
        Of a checkpoint, to go on from.
    """

    def __init__(
        self, plan: RowPlan, n_season: int, arrays: Mapping[str, Array] | None = None
    ) -> None:
        self.plan, self._n_season = plan, n_season
        self._recent = np.full(n_season + max(plan.horizons), np.nan)  # target by tick, a ring
        stored = {k.removeprefix(ROWS): v for k, v in (arrays or {}).items() if k.startswith(ROWS)}
        self._maker = RowMaker(plan)
        self.known: Known | None = None
        self._before: deque[tuple[int, dict[str, Array]]] = deque()  # by number, not learned yet
        if stored:
            self._restore(stored)

    def moments(self, number: int, values: Floats) -> tuple[Moment, ...]:
        """Take the next sample: its time and values; give what each horizon is told."""
        self._before.append((number, self._arrays()))
        tick, maker, plan = self.plan.clock.tick(int(values[0])), self._maker, self.plan
        if self.known is None:
            maker.tick = min(tick, maker.tick)  # the first sample may be of before 1970
        if tick < maker.tick:
            raise DataError(f"time must ascend, got {words(plan, tick)} after later ones")
        self._forget(maker.tick, tick)
        maker.skip(tick - maker.tick)
        block = maker.push(values[None, 1:])
        y = float(plan.scaled(plan.target, values[1:2])[0])
        self._recent[tick % len(self._recent)] = y
        self.known = Known(tick, block.X[0])
        held = self._held(tick)
        return tuple(
            Moment(
                number,
                tick,
                y,
                block.pairs[h].X[0],
                maker.row(block.X[0], h),
                (held, self._seasonal(tick, h)),
            )
            for h in plan.horizons
        )

    def row(self, horizon: int, future: Mapping[str, float]) -> Floats:
        """The newest inputs to forecast from, with inputs that are known ahead."""
        if self.known is None:
            raise DataError("there is no value yet to forecast from")
        return self._maker.row(self.known.X, horizon, future)

    def learned(self, number: int) -> None:
        """Samples up to this one are learned."""
        while self._before and self._before[0][0] <= number:
            self._before.popleft()

    def saved(self) -> dict[str, Array]:
        """The arrays of a checkpoint: as they were after the last sample that is learned."""
        found = self._before[0][1] if self._before else self._arrays()
        return {ROWS + name: values for name, values in found.items()}

    def _arrays(self) -> dict[str, Array]:
        state = self._maker.state()
        made = {name: v if name in WHOLE else as_bits(v) for name, v in state.items()}
        known = np.empty(0) if self.known is None else np.append(self.known.tick, self.known.X)
        return made | {"recent": as_bits(self._recent), "known": as_bits(known)}

    def _restore(self, stored: Mapping[str, Array]) -> None:
        found: dict[str, Any] = {n: v if n in WHOLE else from_bits(v) for n, v in stored.items()}
        recent, known = found.pop("recent"), found.pop("known")
        if recent.shape != self._recent.shape:
            raise DataError("checkpoint must be of the same horizons and season")
        self._recent[:] = recent
        self._maker = RowMaker(self.plan, found)
        self.known = Known(int(known[0]), known[1:]) if known.size else None

    def _forget(self, start: int, stop: int) -> None:
        """Drop the values of ticks that were left out."""
        n = len(self._recent)
        for tick in range(max(start, stop - n), stop):
            self._recent[tick % n] = np.nan

    def _held(self, tick: int) -> float:
        """The newest known value of the target."""
        for back in range(min(self.plan.hold + 1, len(self._recent))):
            value = self._recent[(tick - back) % len(self._recent)]
            if not np.isnan(value):
                return float(value)
        return float("nan")

    def _seasonal(self, tick: int, horizon: int) -> float:
        """The value of whole seasons before the label, the newest that is known now."""
        n_seasons = -(-horizon // self._n_season)
        back = n_seasons * self._n_season - horizon
        return float(self._recent[(tick - back) % len(self._recent)])
