"""Run a sweep: units whose results are stored are skipped, new results are stored at once."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from domkl import checks
from domkl.errors import ParameterError
from domkl.experiments.compare import Progress
from domkl.experiments.store import Results, Store
from domkl.experiments.sweep.plan import Combination, SweepPlan, Unit, make_plan, run_unit, warm_up
from domkl.experiments.sweep.spec import read_spec
from domkl.experiments.sweep.table import Table, tabulate
from domkl.experiments.workers import client_of, on_cluster, on_every_host, on_processes
from domkl.sim.threads import available_cores

Run = Callable[[Unit], Results]


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
    plan: SweepPlan,
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
    if not todo:
        return tabulate(plan, outcomes)
    report = progress or (lambda label, done, total: None)
    with client_of(workers, cluster) as client:
        prepare = partial(_compile, _one_of_each_kind(todo))
        with preparing or nullcontext():
            prepare() if client is None else on_every_host(prepare, client)
        if client is None:
            coming = on_processes(run, todo, min(workers or available_cores(), len(todo)))
        else:
            coming = on_cluster(run, todo, client)
        done, total = 0.0, sum(unit.cost for unit in todo)
        report(f"0 of {len(todo)} units", done, total)
        for number, (unit, results) in enumerate(coming, start=1):
            store.put(unit.key, results)
            outcomes[unit.key] = results
            done += unit.cost
            report(f"{number} of {len(todo)} units", done, total)
    return tabulate(plan, outcomes)


def finished(plan: SweepPlan, store: Store) -> tuple[dict[str, Results], list[Unit]]:
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


def _compile(combinations: Sequence[Combination]) -> None:
    """Compile in this process; other processes of the machine find the compiled code on disk."""
    for each in combinations:
        warm_up(each)


def _one_of_each_kind(units: Sequence[Unit]) -> list[Combination]:
    """One combination for each algorithm and precision, which are compiled separately."""
    found = {}
    for made in (unit.combination for unit in units):
        inner = getattr(made.algorithm, "algorithm", made.algorithm)
        found[type(made.algorithm), type(inner), made.dtype] = made
    return list(found.values())
