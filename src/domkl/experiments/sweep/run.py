"""Run a sweep: units whose results are stored are skipped, new results are stored at once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from domkl import checks
from domkl.errors import ParameterError
from domkl.experiments.compare import Progress
from domkl.experiments.store import Results, Store
from domkl.experiments.sweep.plan import Plan, make_plan
from domkl.experiments.sweep.spec import read_spec
from domkl.experiments.sweep.table import Table, tabulate
from domkl.experiments.sweep.unit import Cell, Unit, run_unit, warm_up
from domkl.experiments.workers import (
    active_client,
    check_workers,
    connected,
    on_cluster,
    on_every_host,
    on_processes,
)
from domkl.sim.threads import available_cores

Run = Callable[[Unit], Results]
Outcomes = Iterator[tuple[Unit, Results]]


def sweep(
    spec: str | Path | Mapping[str, Any],
    *,
    out: str | Path = "domkl-out",
    workers: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Table:
    """Run every trial of a declared sweep, and return one tidy table.

    Parameters
    ----------
    spec : path of a TOML file, or a mapping of the same form
        docs/howto/sweeps.md describes its tables and keys.
    out : path
        Finished units are stored in ``out/units``. A sweep that was stopped continues from there
        when it is run again.
    workers : int
        Number of processes on this machine; by default as many as there are cores.
    cluster : str
        Address of a Dask scheduler. Without ``workers`` and ``cluster``, an active Dask client is
        used if there is one.
    progress : callable
        Called with a label, the cost of what is done, and the total cost.

    Examples
    --------
    >>> import tempfile
    >>> tables = {
    ...     "sweep": {"trials": 2},
    ...     "data": {"name": "traffic", "rounds": 20},
    ...     "algorithms": {"name": "domkl", "rho": [0.2, 2.0]},
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = sweep(tables, out=folder, workers=1)
    >>> table.columns["rho"], table.columns["trial"]
    ([0.2, 0.2, 2.0, 2.0], [0, 1, 0, 1])
    """
    plan = make_plan(read_spec(spec))
    return complete(plan, Store(Path(out) / "units"), workers, cluster, progress)


def complete(
    plan: Plan,
    store: Store,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
    run: Run = run_unit,
    preparing: AbstractContextManager[None] | None = None,
) -> Table:
    """Run the units of a plan whose results are not stored, and put all results into a table."""
    if workers is not None:
        checks.whole("workers", workers, 1)
        if cluster is not None:
            raise ParameterError("workers and cluster exclude each other")
    outcomes, todo = finished(plan, store)
    if todo:
        with _workers(run, workers, cluster) as (prepare, start):
            with preparing or nullcontext():
                prepare(_one_of_each_kind(todo))
            for unit, results in _watched(start(todo), todo, progress):
                store.put(unit.key, results)
                outcomes[unit.key] = results
    return tabulate(plan, outcomes)


def finished(plan: Plan, store: Store) -> tuple[dict[str, Results], list[Unit]]:
    """The stored results, and the units still to run, the longest first."""
    outcomes: dict[str, Results] = {}
    todo: dict[str, Unit] = {}
    for unit in plan.units:
        results = store.get(unit.key)
        if results is None:
            todo[unit.key] = unit
        else:
            outcomes[unit.key] = results
    return outcomes, sorted(todo.values(), key=lambda unit: -unit.cost)


Prepare = Callable[[Sequence[Cell]], None]
Start = Callable[[Sequence[Unit]], Outcomes]


@contextmanager
def _workers(run: Run, workers: int | None, cluster: str | None) -> Iterator[tuple[Prepare, Start]]:
    """How to compile and how to run units: on the named or active cluster, or on this machine."""
    if cluster is not None:
        with connected(cluster) as client:
            yield partial(_prepare_hosts, client), lambda units: on_cluster(run, units, client)
        return
    client = active_client() if workers is None else None
    if client is not None:
        check_workers(client)
        yield partial(_prepare_hosts, client), lambda units: on_cluster(run, units, client)
        return
    n_workers = workers or available_cores()
    yield _prepare, lambda units: on_processes(run, units, min(n_workers, len(units)))


def _prepare(cells: Sequence[Cell]) -> None:
    """Compile in this process; other processes find the compiled code on disk."""
    for cell in cells:
        warm_up(cell)


def _prepare_hosts(client: Any, cells: Sequence[Cell]) -> None:
    """Compile on one worker of each machine; its other workers find the code on disk."""
    on_every_host(partial(_prepare, cells), client)


def _one_of_each_kind(units: Sequence[Unit]) -> list[Cell]:
    """One cell for each algorithm and precision, which are compiled separately."""
    kinds = {(*_classes(unit.cell), unit.cell.dtype): unit.cell for unit in units}
    return list(kinds.values())


def _classes(cell: Cell) -> tuple[type, type]:
    inner = getattr(cell.algorithm, "algorithm", cell.algorithm)
    return type(cell.algorithm), type(inner)


def _watched(outcomes: Outcomes, todo: Sequence[Unit], progress: Progress | None) -> Outcomes:
    """Pass outcomes on, and report progress after each; units stored before do not count."""
    total, done, report = sum(unit.cost for unit in todo), 0.0, progress or _silent
    report(f"0 of {len(todo)} units", done, total)
    for number, (unit, results) in enumerate(outcomes, start=1):
        yield unit, results
        done += unit.cost
        report(f"{number} of {len(todo)} units", done, total)


def _silent(label: str, done: float, total: float | None) -> None:
    """Show nothing."""
