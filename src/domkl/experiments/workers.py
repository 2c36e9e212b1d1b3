"""Run units of work in processes on this machine, through joblib, or on a Dask cluster.

Results are yielded in the order of completion. When a worker dies, only the unit that it was
running is lost, and that unit is run again: on a cluster by Dask itself, on this machine by giving
the missing units to new processes, once.
"""

import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any, TypeVar

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from domkl.errors import DataError, ParameterError, WorkerError
from domkl.experiments.store import Results

Unit = TypeVar("Unit")

ADDRESS = r"(?:(?:tcp|tls|ws|wss|ucx)://)?[^/\s]+:\d+"
CONNECT_SECONDS = 5.0
WORKER_SECONDS = 10.0


def on_processes(
    run: Callable[[Unit], Results], units: Sequence[Unit], n_workers: int
) -> Iterator[tuple[Unit, Results]]:
    """Run units in this many processes; with one, in the calling process."""
    left = dict(enumerate(units))
    for is_last in (False, True):
        with joblib.parallel_config("loky", n_jobs=n_workers, inner_max_num_threads=1):
            # a new one each time, so that late results of the first are not taken for the second's
            parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        jobs = [joblib.delayed(_numbered)(run, i, unit) for i, unit in left.items()]
        try:
            with _interrupts_blocked():
                coming = parallel(jobs)
            for i, results in coming:
                yield left.pop(i), results
            return
        except TerminatedWorkerError:
            if is_last:
                raise WorkerError(
                    "a process was killed twice, perhaps because memory ran out; what was finished"
                    " is kept: run the same command again, with fewer workers or threads"
                ) from None


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Start processes that ignore Ctrl-C; the parent handles it and ends them."""
    resource_tracker.ensure_running()  # starting it later would lift the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _numbered(run: Callable[[Unit], Results], number: int, unit: Unit) -> tuple[int, Results]:
    return number, run(unit)


def on_cluster(
    run: Callable[[Unit], Results], units: Sequence[Unit], client: Any
) -> Iterator[tuple[Unit, Results]]:
    """Run units on a Dask cluster.

    Not through joblib's own Dask backend: that waits for ever for a unit whose workers all died,
    or when the scheduler is gone.
    """
    import distributed

    futures = client.map(_remote, [run] * len(units), units, pure=False)
    unit_of = dict(zip(futures, units, strict=True))
    del futures
    try:
        with _dask_errors():
            coming: Any = distributed.as_completed(  # type: ignore[no-untyped-call]
                list(unit_of), with_results=True, loop=client.loop
            )
            for future, results in coming:
                if isinstance(results, BaseException):  # Dask reports cancelled units like this
                    raise results
                yield unit_of.pop(future), results
    finally:
        client.cancel(list(unit_of))


def on_every_host(task: Callable[[], None], client: Any) -> None:
    """Run this on one worker of each machine of a Dask cluster."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    hosts = {worker["host"]: address for address, worker in workers.items()}
    options = {"allow_other_workers": True, "pure": False}
    with _dask_errors():
        client.gather([client.submit(task, workers=[at], **options) for at in hosts.values()])


@contextmanager
def _dask_errors() -> Iterator[None]:
    """Turn Dask's errors about lost workers or a lost scheduler into WorkerError."""
    try:
        yield
    except _lost() as error:
        raise WorkerError(
            f"the cluster lost a unit for good: {error}; what was finished is kept: run the sweep"
            " again"
        ) from None


def _lost() -> tuple[type[BaseException], ...]:
    """The exceptions that Dask raises when workers or the scheduler are gone."""
    from asyncio import CancelledError

    from distributed import CancelledError as Cancelled
    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    return KilledWorker, Cancelled, CancelledError, CommClosedError


def _remote(run: Callable[[Unit], Results], unit: Unit) -> Results:
    try:
        return run(unit)
    except DataError as error:
        raise DataError(
            f"a worker of the cluster: {error}; workers read data files themselves, from a shared"
            " folder or their own DOMKL_DATA"
        ) from None


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the Dask cluster at this address, which must answer and have workers."""
    try:
        import distributed
    except ImportError:
        raise ParameterError("a cluster needs Dask: pip install 'domkl[dask]'") from None
    if not re.fullmatch(ADDRESS, address):  # Dask could not close a client of such an address
        raise ParameterError(
            f"cluster must be an address, such as tcp://host:8786, got {address!r}"
        )
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise WorkerError(
            f"cluster must be the address of a Dask scheduler, no answer from {address}: {error}"
        ) from None
    with client:
        check_workers(client)
        yield client


def check_workers(client: Any) -> None:
    """Wait a few seconds for the first worker."""
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError:
        raise WorkerError(
            f"the cluster must have at least one worker, none came to {client.scheduler.address}"
            f" in {WORKER_SECONDS:g} s"
        ) from None


def active_client() -> Any | None:
    """The Dask client that the caller has created, if any."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


@contextmanager
def client_of(workers: int | None, cluster: str | None) -> Iterator[Any | None]:
    """A client of the named cluster, or the caller's active one; None: processes run the units."""
    if cluster is not None:
        with connected(cluster) as client:
            yield client
        return
    active = active_client() if workers is None else None
    if active is not None:
        check_workers(active)
    yield active
