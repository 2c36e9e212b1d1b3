"""The backlog of a node: samples that it has accepted and not yet learned, and their rows.

The rules of this file
----------------------
- A sample has two numbers: that of the write-ahead log, and that of the protocol. They are equal
  except for a time series, where the first values are lags only and make no sample.
- After a loss that was accepted they differ by the number of samples that the learner forgot, too.
- What is accepted is in the write-ahead log. What is learned is in the newest checkpoint, or is
  learned again from the log after a restart, in the same order.
- A sample with inputs and label is a row by itself. From the values of a series, and from the
  samples of a mesh that forecasts, `RowMaker` (domkl.data.rows) makes the rows: here tick by tick,
  in the simulator all at once. A series is a forecast of the next value by a clock that counts.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from domkl.data.rows import RowMaker, RowPlan
from domkl.errors import DataError
from domkl.mesh.protocol.events import Event, Moment, Sample
from domkl.mesh.protocol.forecasts import as_bits, from_bits
from domkl.mesh.store.checkpoint import Checkpoints, Saved, going_on
from domkl.mesh.store.recovery import open_log
from domkl.storage import Parts
from domkl.typing import Array, Floats

ROWS = "rows."  # of the arrays in a checkpoint
WHOLE = ("tick", "age")  # those of whole numbers; the others may hold NaN, and are saved as bits


class KnownInputs(NamedTuple):
    """The newest inputs, from which a node forecasts on request."""

    tick: int
    X: Floats  # (d,) without inputs that are known ahead


class Rows:
    """Turns the samples of a node into events for its protocols, one for each horizon.

    Parameters
    ----------
    plan : RowPlan or None
        None if each sample is a row; else its clock counts values, or the samples have a time.
    n_season : int
        Ticks of a season, for the seasonal naive forecast.
    lags : array
        Of a series: its newest values in a checkpoint, oldest first.
    arrays : mapping
        Of a mesh that forecasts: the arrays of a checkpoint.
    """

    def __init__(
        self,
        plan: RowPlan | None,
        n_season: int = 0,
        lags: Sequence[float] | Floats = (),
        arrays: Mapping[str, Array] | None = None,
    ) -> None:
        self.plan, self._n_season = plan, n_season
        self.known: KnownInputs | None = None
        self._before: deque[tuple[int, dict[str, Floats]]] = deque()  # by number, not learned yet
        if plan is None:
            return
        self._maker = RowMaker(plan)
        self._recent = np.full(n_season + max(plan.horizons), np.nan)  # target by tick, a ring
        stored = {k.removeprefix(ROWS): v for k, v in (arrays or {}).items() if k.startswith(ROWS)}
        if stored:
            self._restore(stored)
        elif len(lags):
            X = self._maker.push(np.asarray(lags)[:, None]).X
            self.known = KnownInputs(self._maker.tick - 1, X[-1])

    @property
    def is_dated(self) -> bool:
        """Whether samples have times, and the protocols forecast."""
        return self.plan is not None and self.plan.clock.is_dated

    @property
    def n_lags(self) -> int:
        """Values of a series that come before its first sample."""
        return 0 if self.plan is None or self.is_dated else len(self.plan.lags)

    def events(self, number: int, values: Floats) -> tuple[Event, ...]:
        """Take the next sample; give what each protocol is told, or nothing for a lag alone."""
        if self.plan is None:
            return (Sample(number, values[:-1], float(values[-1])),)
        self._before.append((number, self._state()))
        if self.is_dated:
            return self._moments(number, values, self.plan)
        block = self._maker.push(values[None])
        self.known = KnownInputs(self._maker.tick - 1, block.X[0])
        x = block.pairs[1].X[0]
        if np.isnan(x).any():  # there are not enough lags yet
            self._before.pop()
            return ()
        return (Sample(number, x, float(values[0])),)

    def row(self, horizon: int, future: Mapping[str, float]) -> Floats:
        """The newest inputs to forecast from, with inputs that are known ahead."""
        if self.known is None:
            raise DataError("there is no value yet to forecast from")
        return self._maker.row(self.known.X, horizon, future)

    def lags_after(self, values: Sequence[Floats]) -> Floats | None:
        """Of a series, the inputs for the value after these, which follow the newest known ones."""
        assert self.plan is not None
        if not values:
            return None if self.known is None else self.known.X
        found: Floats = RowMaker(self.plan, self._maker.state()).push(np.array(values)).X[-1]
        return found

    def lags_at(self, number: int) -> Floats:
        """Of a series, the inputs for the value after the sample of this number."""
        later = (state for n, state in self._before if n > number)
        found: Floats = next(later, self._state())["pending"][0]
        return found

    def learned(self, number: int) -> None:
        """Samples up to this one are learned."""
        while self._before and self._before[0][0] <= number:
            self._before.popleft()

    def saved_lags(self) -> Floats:
        """The values of a series for a checkpoint, oldest first, up to the last one learned."""
        if not self.n_lags:
            return np.empty(0)
        lags = self._saved()["pending"][0][::-1]
        kept: Floats = lags[~np.isnan(lags)]
        return kept

    def saved_arrays(self) -> dict[str, Array]:
        """The arrays of a checkpoint: as they were after the last sample that is learned."""
        found = self._saved() if self.is_dated else {}
        return {ROWS + n: v if n in WHOLE else as_bits(v) for n, v in found.items()}

    def _saved(self) -> dict[str, Floats]:
        return self._before[0][1] if self._before else self._state()

    def _state(self) -> dict[str, Floats]:
        known = np.empty(0) if self.known is None else np.array([self.known.tick, *self.known.X])
        return self._maker.state() | {"recent": self._recent, "known": known}

    def _restore(self, stored: Mapping[str, Array]) -> None:
        assert self.plan is not None
        found: dict[str, Any] = {n: v if n in WHOLE else from_bits(v) for n, v in stored.items()}
        recent, known = found.pop("recent"), found.pop("known")
        if recent.shape != self._recent.shape:
            raise DataError("checkpoint must be of the same horizons and season")
        self._recent = recent.copy()
        self._maker = RowMaker(self.plan, found)
        self.known = KnownInputs(int(known[0]), known[1:]) if known.size else None

    def _moments(self, number: int, values: Floats, plan: RowPlan) -> tuple[Moment, ...]:
        """What each horizon is told: the label of now, and the inputs of then and now."""
        tick, maker = plan.clock.tick(int(values[0])), self._maker
        if self.known is None:
            maker.tick = min(tick, maker.tick)  # the first sample may be of before 1970
        if tick < maker.tick:
            raise DataError(f"time must ascend, got {plan.clock.text(tick)} after later ones")
        recent, n = self._recent.copy(), len(self._recent)
        for skipped in range(max(maker.tick, tick - n), tick):
            recent[skipped % n] = np.nan
        if tick > maker.tick:
            maker.skip(tick - maker.tick)
        block = maker.push(values[None, 1:])
        y = float(plan.scaled(plan.target, values[1:2])[0])
        recent[tick % n] = y
        self._recent, self.known = recent, KnownInputs(tick, block.X[0])
        back = (recent[(tick - k) % n] for k in range(min(plan.hold + 1, n)))
        held = next((float(value) for value in back if not np.isnan(value)), float("nan"))
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

    def _seasonal(self, tick: int, horizon: int) -> float:
        """The value of whole seasons before the label, the newest that is known now."""
        n_seasons = -(-horizon // self._n_season)
        back = n_seasons * self._n_season - horizon
        return float(self._recent[(tick - back) % len(self._recent)])


class Backlog:
    """Samples between the write-ahead log and the protocol.

    Parameters
    ----------
    folder : Path
        The node's data folder; nobody else writes there.
    width : int
        Values of a sample in the log.
    plan : RowPlan or None
        How rows are made from samples; None if a sample is a row.
    n_season : int
        Ticks of a season, of a mesh that forecasts.
    accept_loss : bool
        Go on if acknowledged samples are missing in the log, instead of an error.

    Attributes
    ----------
    log : WriteAheadLog
    checkpoints : Checkpoints
    state : Parts or None
        The protocol's state in the newest checkpoint.
    waiting : deque
        Numbers, for the protocol, and values of samples that it has not been given yet.
    rows : Rows
    position : int
        Number in the log of the last sample that is learned, or that is only a lag.
    n_outside : int
        Values outside their ranges, among all samples that were learned.
    n_lost : int
        Acknowledged samples that were lost, ever, with a line in the node's log.
    """

    def __init__(
        self,
        folder: Path,
        width: int,
        plan: RowPlan | None = None,
        n_season: int = 0,
        accept_loss: bool = False,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.checkpoints = Checkpoints(folder)
        found = self.checkpoints.load()
        saved = found or Saved()
        self.log, self.position, n_lost = open_log(folder, width, self.checkpoints, accept_loss)
        self.waiting: deque[tuple[int, Floats]] = deque()
        self._outside: deque[int] = deque()
        self.state = None if found is None else saved.state
        self.n_outside = saved.counts.get("outside", 0)
        self.n_lost = saved.counts.get("lost", 0) + n_lost
        self._n_forgotten = saved.counts.get("forgotten", 0) + self.position - saved.position
        with going_on():
            self.rows = Rows(plan, n_season, saved.lags, saved.state.arrays)
        for name, row in saved.rows.items():
            self.log.rows[name] = max(row, self.log.rows.get(name, 0))

    @property
    def n_waiting(self) -> int:
        """Samples that are accepted and not yet learned."""
        return self.log.last - self.position

    def add(self, number: int, values: Floats, n_outside: int) -> None:
        """Append the sample of the log with this number."""
        self.waiting.append((number - self.rows.n_lags - self._n_forgotten, values))
        self._outside.append(n_outside)

    def next(self) -> tuple[Event, ...]:
        """Take the next sample: what each protocol is told; nothing if it is only a lag."""
        number, values = self.waiting.popleft()
        found = self.rows.events(number, values)
        if not found:
            self.learned(number)
        return found

    def learned(self, number: int) -> None:
        """Note that the protocol has learned its sample of this number."""
        self.rows.learned(number)
        self.position = self.place(number)
        self.n_outside += self._outside.popleft()

    def place(self, number: int) -> int:
        """The number in the log of the protocol's sample of this number."""
        return number + self.rows.n_lags + self._n_forgotten

    def newest_lags(self) -> Floats | None:
        """Of a series, the inputs for the next value; None while there is no value."""
        newest = islice(reversed(self.waiting), self.rows.n_lags)
        return self.rows.lags_after([values for _, values in newest][::-1])

    def saved(self, state: Parts) -> Saved:
        """The content of a checkpoint, given the protocol's state now."""
        learned = state.header["learned"]
        assert self.position == self.place(learned) or not learned
        counts = {"outside": self.n_outside, "accepted": self.log.last}
        counts |= {"lost": self.n_lost, "forgotten": self._n_forgotten} if self.n_lost else {}
        state = Parts(state.header, {**state.arrays, **self.rows.saved_arrays()})
        return Saved(self.position, state, self.rows.saved_lags(), dict(self.log.rows), counts)
