"""The backlog of a node: samples that it has accepted and not yet learned.

The rules of this file
----------------------
- A sample has two numbers: that of the write-ahead log, and that of the protocol. They are equal
  except for a time series, where the first values are lags only and make no sample.
- After a loss that was accepted they differ by the number of samples that the learner forgot, too.
- What is accepted is in the write-ahead log. What is learned is in the newest checkpoint, or is
  learned again from the log after a restart, in the same order.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from domkl import checks
from domkl.errors import DataError
from domkl.mesh.protocol.events import Event, Sample
from domkl.mesh.store.checkpoint import Checkpoints, Saved
from domkl.mesh.store.recovery import Known, open_log
from domkl.mesh.store.rows import TickRows
from domkl.storage import Parts
from domkl.typing import Array, Floats


class Series:
    """The newest values of a time series, already scaled: single values in, lags out.

    Parameters
    ----------
    n_lags : int
    position : int
        Number of the newest value; values are numbered from 1.
    values : iterable of float
        The newest ``n_lags`` values up to there, oldest first, or all if there are fewer.

    Examples
    --------
    >>> series = Series(2)
    >>> [series.sample(value) for value in (0.1, 0.2, 0.3)]
    [None, None, array([0.2, 0.1])]
    >>> series.lags
    array([0.3, 0.2])
    """

    def __init__(self, n_lags: int, position: int = 0, values: Iterable[float] = ()) -> None:
        self.n_lags = checks.whole("lags", n_lags, 1)
        self.position = position
        self._values = deque(float(value) for value in values)

    @property
    def lags(self) -> Floats | None:
        """Inputs for the next value, newest first; None while there are not enough values."""
        if len(self._values) < self.n_lags:
            return None
        return np.array([self._values[-k] for k in range(1, self.n_lags + 1)])

    def sample(self, value: float) -> Floats | None:
        """Append the next value; return the inputs that belong to it, if there are enough."""
        x = self.lags
        self._values.append(float(value))
        self.position += 1
        return x

    def before(self, position: int) -> Floats:
        """The values up to this one that a checkpoint must keep, oldest first."""
        end = len(self._values) - (self.position - position)
        return np.array([self._values[i] for i in range(max(0, end - self.n_lags), end)])

    def forget(self, position: int) -> None:
        """Drop values that `before` does not need for this position or later ones."""
        while len(self._values) - (self.position - position) > self.n_lags:
            self._values.popleft()


class Backlog:
    """Samples between the write-ahead log and the protocol.

    Parameters
    ----------
    folder : Path
        The node's data folder; nobody else writes there.
    width : int
        Values of a sample in the log.
    lags : int or None
        Of a time series.
    make_rows : callable, optional
        Of a node that forecasts: makes its `TickRows`, given the arrays of a checkpoint.
    accept_loss : bool
        Go on if acknowledged samples are missing in the log, instead of an error.

    Attributes
    ----------
    log : WriteAheadLog
    checkpoints : Checkpoints
    state : Parts or None
        The protocol's state in the newest checkpoint.
    waiting : deque of Sample
        Not yet given to the protocol; of a node that forecasts, numbers and values.
    rows : TickRows or None
        Of a node that forecasts.
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
        lags: int | None,
        accept_loss: bool = False,
        make_rows: Callable[[Mapping[str, Array]], TickRows] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.checkpoints = Checkpoints(folder)
        found = self.checkpoints.load()
        saved = Saved(0, Parts({}, {}), np.empty(0)) if found is None else found
        accepted, is_damaged = saved.counts.get("accepted", 0), bool(self.checkpoints.damaged)
        known = Known(saved.position, accepted, found is not None, is_damaged)
        self.log, self.position, n_lost = open_log(folder, width, known, accept_loss)
        self.waiting: deque[Sample | tuple[int, Floats]] = deque()
        self._outside: deque[int] = deque()
        self._lags = lags or 0
        self.state = None if found is None else saved.state
        self.n_outside = saved.counts.get("outside", 0)
        self.n_lost = saved.counts.get("lost", 0) + n_lost
        self._n_forgotten = saved.counts.get("forgotten", 0) + self.position - saved.position
        self.series = Series(lags, self.position, saved.lags.tolist()) if lags else None
        self.rows = None if make_rows is None else make_rows(saved.state.arrays)
        for name, row in saved.rows.items():
            self.log.rows[name] = max(row, self.log.rows.get(name, 0))

    @property
    def n_waiting(self) -> int:
        """Samples that are accepted and not yet learned."""
        return self.log.last - self.position

    def add(self, number: int, scaled: Floats, n_outside: int) -> None:
        """Append the sample of the log with this number: its scaled inputs and label."""
        if self.rows is not None:
            self.waiting.append((number - self._n_forgotten, scaled))
            self._outside.append(n_outside)
            return
        y = float(scaled[-1])
        if self.series is None:
            self.waiting.append(Sample(number - self._n_forgotten, scaled[:-1], y))
            self._outside.append(n_outside)
            return
        if number != self.series.position + 1:
            raise DataError(f"value must have number {self.series.position + 1}, got {number}")
        x = self.series.sample(y)
        if x is None:  # a lag only: there is nothing to learn yet
            self.position = number
            self.n_outside += n_outside
        else:
            self.waiting.append(Sample(number - self._lags - self._n_forgotten, x, y))
            self._outside.append(n_outside)

    def next(self) -> tuple[Event, ...]:
        """Take the next sample: what the protocol is told, or each of several ones."""
        found = self.waiting.popleft()
        if isinstance(found, Sample):
            return (found,)
        assert self.rows is not None
        return self.rows.moments(*found)

    def learned(self, number: int) -> None:
        """Note that the protocol has learned its sample of this number."""
        if self.rows is not None:
            self.rows.learned(number)
        self.position = self.place(number)
        self.n_outside += self._outside.popleft()

    def place(self, number: int) -> int:
        """The number in the log of the protocol's sample of this number."""
        return number + self._lags + self._n_forgotten

    def saved(self, state: Parts) -> Saved:
        """The content of a checkpoint, given the protocol's state now."""
        learned, before = state.header["learned"], self._lags + self._n_forgotten
        assert self.position == learned + before or not learned
        lags = np.empty(0)
        if self.series is not None:
            self.series.forget(self.position)
            lags = self.series.before(self.position)
        counts = {"outside": self.n_outside, "accepted": self.log.last}
        counts |= {"lost": self.n_lost, "forgotten": self._n_forgotten} if self.n_lost else {}
        if self.rows is not None:
            state = Parts(state.header, {**state.arrays, **self.rows.saved()})
        return Saved(self.position, state, lags, dict(self.log.rows), counts)
