"""The rounds of one rank's learners, in stretches, with what is summed over the network."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from domkl.errors import ParameterError
from domkl.learner.restore import of_now, restored_state
from domkl.metrics.curves import running_average
from domkl.sim.blocked import play_network
from domkl.sim.cells import Cell
from domkl.sim.delay import Delayed, split_waiting, waiting_of_now
from domkl.sim.inputs import Stream
from domkl.sim.interpreted import run_cell
from domkl.sim.mpi.checkpoints import Kept
from domkl.sim.mpi.ranks import agreed
from domkl.sim.result import split_state
from domkl.typing import Floats


class Rounds:
    """A rank's learners, by the hosts of `simulate`: compiled passes, or else interpreted rounds.

    Passes work on own rows and halo in one array; interpreted rounds on own rows, and copy what
    they say.
    """

    def __init__(self, cell: Cell, state: Any) -> None:
        assert cell.place is not None, "a shard is a place"
        self._cell, self._algorithm, self._shard = cell, cell.algorithm, cell.place.shard
        is_compiled = cell.algorithm.law is not None
        self._play = play_network if is_compiled else run_cell
        cell.state = cell.first_state(self._shard.n_rows if is_compiled else None)
        if cell.options.cv != "off" and cell.algorithm.function(cell.state) is None:
            raise ParameterError(
                f"cv must be 'off' for {type(cell.algorithm).__name__}, which has no function(),"
                f" got {cell.options.cv!r}"
            )
        if state is not None:
            n_rows = [self._shard.n_learners]
            state, (waiting,) = split_waiting(state, cell.options.delay, n_rows)
            self._put(state)
            cell.waiting = waiting_of_now(waiting, cell.algorithm, cell.state)
        self.n_rounds = 0
        #: of each stretch, (3, rounds): squared errors, spread, labels
        self._sums: list[Floats] = []
        self._predictions: list[Floats] = []

    @property
    def final_state(self) -> Any:
        """To go on from: the learners', with what waits if labels come late."""
        waiting = self._cell.waiting
        return self.state if waiting is None else Delayed(self.state, waiting)

    @property
    def state(self) -> Any:
        """Of own learners: views."""
        n_learners = self._shard.n_learners
        return type(self._cell.state)(*(values[:n_learners] for values in self._cell.state))

    def _put(self, state: Any) -> None:
        state = of_now(self._algorithm, state, self.state)
        (given,) = split_state(self._algorithm, state, [self.state], is_reused=True)
        for own, values in zip(self.state, given, strict=True):
            own[:] = values

    def go_on(self, comm: Any, files: Kept) -> None:
        """Take up what all ranks kept last."""
        common = set.intersection(*comm.allgather(agreed(comm, files.rounds)))
        if common:
            fields, sums, waiting = agreed(comm, lambda: files.read(max(common)))
            self._put(restored_state(self._algorithm, fields, self.state))
            self._cell.waiting = waiting_of_now(waiting, self._algorithm, self.state)
            if len(sums) == 2:  # version 0.1, where every learner had a label
                sums = np.vstack([sums, np.full(sums.shape[1], float(self._shard.n_learners))])
            self._sums, self.n_rounds = [sums], max(common)

    def run(
        self,
        rounds: Iterator[tuple[Floats, Floats]],
        comm: Any,
        files: Kept | None,
        every: int,
        report: Callable[[int], None] | None,
    ) -> None:
        """Run all rounds that are left, and keep the state after each stretch of ``every``."""
        done = self.n_rounds

        def after_rounds(n_rounds: int) -> None:
            nonlocal done
            done += n_rounds
            if report is not None:
                report(done)

        while self._run_stretch(islice(rounds, None if files is None else every), after_rounds):
            if files is not None:
                sums = np.concatenate(self._sums, axis=1)
                files.write(self.n_rounds, self.state, sums, self._cell.waiting)
                comm.Barrier()
                files.forget_before(self.n_rounds)

    def _run_stretch(
        self, rounds: Iterator[tuple[Floats, Floats]], after_rounds: Callable[[int], None]
    ) -> bool:
        """Whether there were any."""
        stream, n_learners = Stream(None, rounds, []), self._shard.n_learners
        self._play(self._cell, stream, after_rounds)
        records = self._cell.records
        if records is None or records.n_rounds == 0:
            return False
        names = ("disagreement", "squared_error", "n_labels")
        spread, error, n_labels = (records.found(name)[0] for name in names)
        spread = spread * max(n_learners - 1, 1)
        squares = n_labels * np.nan_to_num(error)
        self._sums.append(np.stack([squares, n_learners * spread, n_labels]))
        self.n_rounds += records.n_rounds
        kept = records.found("predictions")
        if kept is not None:
            self._predictions.append(kept[0])
        return True

    def curves(self, comm: Any, n_learners: int) -> tuple[Floats, Floats]:
        """MSE(t) and CV(t) of the whole network, of K learners."""
        here = np.concatenate(self._sums, axis=1)
        total = np.empty_like(here)
        comm.Allreduce(here, total)
        squares, spread, n_labels = total
        mean = np.divide(squares, n_labels, out=np.full_like(squares, np.nan), where=n_labels > 0)
        cv = running_average(spread / n_learners)
        return running_average(mean, counts=n_labels), cv / max(n_learners - 1, 1)

    def predictions(self) -> Floats | None:
        """(T, n), where they were kept."""
        return np.concatenate(self._predictions) if self._predictions else None
