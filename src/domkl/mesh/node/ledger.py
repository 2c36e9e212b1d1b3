"""What a node has accepted and learned, in memory as on disk.

The rules of this file
----------------------
- Samples have two numbers: that of the journal, and that of the protocol. They are equal but for a
  series, where the first values make no sample.
- What is accepted is in the journal; what is learned is in the checkpoint, or is learned again
  from the journal after a restart, in the same order.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from domkl.errors import DataError
from domkl.mesh.node.checkpoint import Checkpoints, Saved
from domkl.mesh.node.journal import Journal
from domkl.mesh.node.samples import Desk, Prepared
from domkl.mesh.node.segment import Entry
from domkl.mesh.node.series import Series
from domkl.mesh.protocol.events import Sample
from domkl.mesh.protocol.model import Model
from domkl.storage import Parts


class Ledger:
    """Journal, checkpoints and the samples that wait to be learned.

    Parameters
    ----------
    folder : Path
        The node's own, where nobody else writes.
    model : Model
    lags : int or None
        Of a time series.

    Attributes
    ----------
    state : Parts or None
        Of the protocol, to go on from.
    waiting : deque of Sample
        Accepted and not yet handed to the protocol.
    position : int
        Number in the journal of the last sample that is learned, or that is nothing but a lag.
    n_outside : int
        Values outside of their ranges among all that were learned.
    """

    def __init__(self, folder: Path, model: Model, lags: int | None) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.desk = Desk(model, lags)
        self.checkpoints = Checkpoints(folder)
        saved = self.checkpoints.load()
        self.journal = Journal(folder / "journal", self.desk.width)
        self.waiting: deque[Sample] = deque()
        self._outside: deque[int] = deque()
        self._lags = lags or 0
        self.state = None if saved is None else saved.state
        self.position = 0 if saved is None else saved.position
        self.n_outside = 0 if saved is None else saved.counts.get("outside", 0)
        lag_values = () if saved is None else saved.lags.tolist()
        self.series = Series(lags, self.position, lag_values) if lags else None
        self.journal.skip_to(self.position)
        self._resume({} if saved is None else dict(saved.rows))

    @property
    def n_waiting(self) -> int:
        """Accepted and not yet learned."""
        return self.journal.last - self.position

    def accepted(self, first: int, items: Sequence[Prepared]) -> None:
        """Queue samples that are on disk."""
        for number, item in enumerate(items, first):
            self._enter(number, item)

    def learned(self, number: int) -> None:
        """The protocol has learned up to this number of its own."""
        self.position = number + self._lags
        self.n_outside += self._outside.popleft()

    def saved(self, state: Parts) -> Saved:
        """What a checkpoint of this moment holds."""
        assert self.position == state.header["learned"] + self._lags or not state.header["learned"]
        lags = np.empty(0) if self.series is None else self.series.before(self.position)
        counts = {"outside": self.n_outside}
        return Saved(self.position, state, lags, dict(self.journal.rows), counts)

    def store(self, saved: Saved) -> None:
        """Write a checkpoint, and forget what is needed no more; may run in another thread."""
        self.checkpoints.save(saved)
        self.journal.reserve = 2 * self.checkpoints.size
        self.journal.forget(self.checkpoints.oldest)

    def tidy(self) -> None:
        """Let go of values that no checkpoint will need."""
        if self.series is not None:
            self.series.forget(self.position)

    def close(self) -> None:
        """Close the files."""
        self.journal.close()

    def _resume(self, rows: dict[str, int]) -> None:
        """Queue what the journal has after the checkpoint."""
        for name, row in rows.items():
            self.journal.rows[name] = max(row, self.journal.rows.get(name, 0))
        # what was accepted is learned, also if the mesh file refuses such values by now
        desk = Desk(replace(self.desk.model, outside="clip"), self._lags or None)
        for number, values in self.journal.after(self.position):
            self._enter(number, desk.prepared(Entry(values)))

    def _enter(self, number: int, item: Prepared) -> None:
        if self.series is None:
            self.waiting.append(Sample(number, item.scaled[:-1], float(item.scaled[-1])))
            self._outside.append(item.n_outside)
            return
        if number != self.series.position + 1:
            raise DataError(f"value must have number {self.series.position + 1}, got {number}")
        x = self.series.sample(float(item.scaled[0]))
        if x is None:  # nothing to learn yet
            self.position = number
            self.n_outside += item.n_outside
        else:
            self.waiting.append(Sample(number - self._lags, x, float(item.scaled[0])))
            self._outside.append(item.n_outside)
