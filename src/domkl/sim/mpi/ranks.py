"""The ranks of an MPI world: exchange the halo, agree on errors, stop together.

Everything here takes mpi4py's communicator as it is given, and needs no more of MPI.
"""

import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np

from domkl.errors import DataError, DomklError, ParameterError
from domkl.sim.mpi.shard import Shard
from domkl.typing import Array, Floats

T = TypeVar("T")

PAUSE = 1.0  # seconds between an error's message and the end: mpiexec drops what it has not read


def world() -> Any:
    """All ranks that mpiexec started."""
    if find_spec("mpi4py") is None:
        raise ParameterError(
            "comm must be a communicator of mpi4py, which is not installed;"
            " pip install 'domkl[mpi]'"
        )
    from domkl.sim.mpi.world import WORLD

    return WORLD


class Halo:
    """Sends own rows to the ranks that hear them, and receives theirs in place."""

    def __init__(self, shard: Shard, comm: Any) -> None:
        self._shard, self._comm = shard, comm
        self._rooms: dict[tuple[int, int], Array] = {}
        self.seconds = 0.0  # spent here, waiting for slower ranks included
        self.n_bytes = 0  # sent in the last exchange

    def __call__(self, *values: Array) -> None:
        """Fill the rows of learners elsewhere: each of values is (n + h, …), contiguous."""
        began = time.perf_counter()
        requests = [
            self._comm.Irecv(array[rows], rank, tag)
            for tag, array in enumerate(values)
            for rank, rows in self._shard.receives
        ]
        self.n_bytes = 0
        for tag, array in enumerate(values):
            for rank, rows in self._shard.sends:
                room = self._rooms.setdefault(
                    (tag, rank), np.empty((len(rows), *array.shape[1:]), array.dtype)
                )
                np.take(array, rows, axis=0, out=room, mode="clip")  # any other mode copies twice
                requests.append(self._comm.Isend(room, rank, tag))
                self.n_bytes += room.nbytes
        for request in requests:
            request.Wait()
        self.seconds += time.perf_counter() - began


def summed(comm: Any) -> Callable[[Floats], None]:
    """What replaces an array by its sum over the ranks."""

    def total(values: Floats) -> None:
        mine = values.copy()
        comm.Allreduce(mine, values)

    return total


def agreed(comm: Any, work: Callable[[], T]) -> T:
    """Do what each rank does by itself; where it fails on one, raise on all.

    A rank that raised alone would leave the others waiting for it.
    """
    error: Exception | None = None
    try:
        result = work()
    except Exception as raised:
        error = raised
    said = comm.allgather(None if error is None else f"{type(error).__name__}: {error}")
    if error is not None:
        raise error
    for rank, text in enumerate(said):
        if text is not None:
            raise DomklError(f"rank {rank} of {comm.size} stopped: {text}")
    return result


def check_equal(comm: Any, name: str, value: str) -> None:
    """Raise on all ranks where they were not given the same."""
    values = comm.allgather(value)
    for rank, other in enumerate(values):
        if other != values[0]:
            raise ParameterError(
                f"{name} must be the same on all ranks, got {other} on rank {rank}"
                f" and {values[0]} on rank 0"
            )


def in_step(comm: Any, rounds: Iterator[T]) -> Iterator[T]:
    """Give rounds as long as every rank has one."""
    here, total = np.zeros(1), np.zeros(1)
    for t, sample in enumerate(_then_none(rounds)):
        here[0] = sample is not None
        comm.Allreduce(here, total)
        if 0 < total[0] < comm.size:
            raise DataError(
                "streams must have equally many rounds on all ranks, got none for round"
                f" {t} on {comm.size - int(total[0])} of {comm.size} ranks"
            )
        if sample is None:
            return
        yield sample


def _then_none(rounds: Iterator[T]) -> Iterator[T | None]:
    yield from rounds
    yield None


@contextmanager
def stop_together(comm: Any) -> Iterator[None]:
    """On an error, say which rank had it and end all: the others wait for this one's rows."""
    try:
        yield
    except BaseException as error:
        if comm.size == 1:
            raise
        if not isinstance(error, DomklError):
            traceback.print_exc()
        print(
            f"domkl: rank {comm.rank} of {comm.size}: {type(error).__name__}: {error};"
            " all ranks are stopped",
            file=sys.stderr,
            flush=True,
        )
        time.sleep(PAUSE)
        comm.Abort(1)
        raise  # until the signal comes
