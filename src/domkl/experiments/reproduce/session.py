"""What the parts of a reproduction share: settings, data sets, and the results of tasks."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from domkl.algorithms.base import Algorithm
from domkl.algorithms.registry import find
from domkl.data.cache import locate, not_found
from domkl.data.catalog import DATASETS
from domkl.data.forecast import Prepared
from domkl.data.sets import load_set
from domkl.errors import DomklError
from domkl.experiments.compare import Setting, suited_to
from domkl.experiments.data import read_forecasts
from domkl.experiments.options import DataOptions
from domkl.experiments.reproduce.tasks.base import ReportProgress, Stream, Task
from domkl.experiments.reproduce.tasks.curves import Curves
from domkl.experiments.reproduce.tasks.nodes import NodeErrors
from domkl.experiments.store import Results, Store
from domkl.sim.threads import available_cores

#: the panels of Figure 1, in its order
PANELS = ("conductivity", "weather", "wave", "air-quality", "traffic", "temperature")
SETS = (*PANELS, "twitter")

#: samples of a stream that a quick run takes, the first ones
QUICK_ROWS = 2000

#: called with a label, the cost of what is done, and the total cost
Progress = Callable[[str, float, float], None]
Made = TypeVar("Made")


@dataclass
class Session:
    """Settings of a reproduction, and the streams and results that it has so far."""

    setting: Setting
    store: Store
    data_dir: Path | None = None
    is_quick: bool = False  # fewer samples, horizons and models as well as trials
    missing: dict[str, str] = field(default_factory=dict)  # data set: where it was looked for
    _streams: dict[Any, Any] = field(default_factory=dict)
    _results: dict[str, Results] = field(default_factory=dict)
    #: facts of the data sets in the order of loading
    _used: dict[str, dict[str, Any]] = field(default_factory=dict)

    def stream(self, name: str, **options: Any) -> Stream:
        """Load a data set, as the paper's authors prepared it unless options say otherwise.

        Without options, a quick run gets the first samples only.
        """

        def make() -> Stream:
            loaded = load_set(name, data_dir=self.data_dir, **options)
            facts = {**loaded.facts, "note": loaded.note}
            self._used.setdefault(name, facts)
            made = Stream(name, loaded.X, loaded.y, loaded.is_series, facts)
            return made if options else self._cut(made)

        return self.made((name, *sorted(options.items())), make)

    def forecasts(self, name: str, **options: Any) -> dict[int, Prepared]:
        """The streams of a set of nodes by horizon; the options are those of `DataOptions`."""

        def make() -> dict[int, Prepared]:
            found = read_forecasts(DataOptions(data=name, data_dir=self.data_dir, **options))
            self._used.setdefault(name, {**found[0].facts, "note": found[0].note})
            return {int(each.facts["horizon"]): each for each in found}

        return self.made((name, *sorted(options.items())), make)

    def made(self, key: Any, make: Callable[[], Made]) -> Made:
        """The stream, or streams, for this key, made when they are first asked for."""
        if key not in self._streams:
            self._streams[key] = make()
        found: Made = self._streams[key]
        return found

    def available(self, names: Iterable[str]) -> list[str]:
        """Those of the data sets whose file exists.

        For the others, `missing` records where the file was looked for. A file that exists and is
        not what it should be is an error.
        """
        found = []
        for name in names:
            if DATASETS[name].is_shipped or locate(DATASETS[name], self.data_dir) is not None:
                found.append(name)
            elif name not in self.missing:
                self.missing[name] = not_found(DATASETS[name], self.data_dir)
        return found

    def curves(
        self,
        stream: Stream | str,
        name: str,
        algorithm: Algorithm,
        *,
        network: str = "random",
        partition: str = "interleaved",
        at_most: int | None = None,
        **setting: Any,
    ) -> Curves:
        """The task to run an algorithm on a stream; ``setting`` overrides the session's."""
        if isinstance(stream, str):
            stream = self.stream(stream)
        chosen = replace(self.setting, **setting)
        if at_most is not None:
            chosen = replace(chosen, n_trials=min(chosen.n_trials, at_most))
        return Curves(self._cut(stream), name, algorithm, chosen, network, partition)

    def _cut(self, stream: Stream) -> Stream:
        """As much of a stream as is run."""
        if not self.is_quick or len(stream.y) <= QUICK_ROWS:
            return stream
        return replace(stream, X=stream.X[:QUICK_ROWS], y=stream.y[:QUICK_ROWS])

    def node_errors(
        self, data: Prepared, name: str, *, at_most: int | None = None, **given: Any
    ) -> NodeErrors:
        """The task to run a named algorithm at the nodes of a set, on the set's own network.

        ``given`` are parameters of the algorithm, and what `NodeErrors` should keep.
        """
        kept = {key: given.pop(key) for key in list(given) if key.startswith("has_")}
        algorithm = suited_to(data, find(name).make().replaced(**given))
        return NodeErrors(data, name, algorithm, self.node_setting(data, at_most), **kept)

    def node_setting(self, data: Prepared, at_most: int | None = None) -> Setting:
        """The session's setting for a set of nodes."""
        n_trials = min(self.setting.n_trials, at_most or self.setting.n_trials)
        return replace(
            self.setting, n_trials=n_trials, n_learners=len(data.stations), connection=None,
            topology=data.graph,
        )  # fmt: skip

    def do(self, tasks: Iterable[Task], progress: Progress) -> None:
        """Do the tasks that were not done before, in this run or in an earlier one."""
        todo = {task.key: task for task in tasks if not self.store.has(task.key)}
        total, done = sum(task.cost for task in todo.values()), 0.0
        for task in (task for task in todo.values() if not task.is_python):
            progress(task.label, done, total)

            def report(share: float, task: Task = task, done: float = done) -> None:
                progress(task.label, done + share * task.cost, total)

            self.store.put(task.key, timed(task, report))
            done += task.cost
        for task, results in self._in_processes([t for t in todo.values() if t.is_python]):
            self.store.put(task.key, results)
            done += task.cost
            progress(task.label, done, total)
        progress("", total, total)

    def _in_processes(self, tasks: list[Task]) -> Iterator[tuple[Task, Results]]:
        """Run tasks in processes, the longest first; yield results in the order of completion."""
        if not tasks:
            return
        pool = ProcessPoolExecutor(
            min(self.n_cores, len(tasks)),
            multiprocessing.get_context("spawn"),
            initializer=_ignore_interrupts,
        )
        try:
            order = sorted(tasks, key=lambda task: -task.cost)
            waiting = {pool.submit(timed, task, None): task for task in order}
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BrokenProcessPool:
            raise DomklError(
                "a process was killed, perhaps because memory ran out; what was finished is kept:"
                " run the command again"
            ) from None
        except BaseException:
            for process in list(pool._processes.values()):
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def __getitem__(self, task: Task) -> Results:
        """The results of a task, which is done now if it has not been done."""
        if task.key not in self._results:
            found = self.store.get(task.key)
            if found is None:
                found = timed(task, None)
                self.store.put(task.key, found)
            self._results[task.key] = found
        return self._results[task.key]

    @property
    def used(self) -> dict[str, dict[str, Any]]:
        """The data sets that were loaded, each with its facts."""
        return dict(self._used)

    @property
    def n_cores(self) -> int:
        """Number of cores to use."""
        return self.setting.threads or available_cores()


def timed(task: Task, report: ReportProgress | None) -> Results:
    """Do a task, and add the time that it took to its results."""
    start = time.perf_counter()
    results = task.compute(report or (lambda share: None))
    return {**results, "seconds": np.array(time.perf_counter() - start)}


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C; the parent process handles it and ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
