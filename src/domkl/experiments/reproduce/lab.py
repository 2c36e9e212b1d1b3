"""What all experiments share: streams, settings, outcomes."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from domkl.algorithms.base import Algorithm
from domkl.data.catalog import DATASETS
from domkl.data.sets import load_set
from domkl.data.store import locate, not_found
from domkl.errors import DomklError
from domkl.experiments.compare import Setting
from domkl.experiments.reproduce.works.base import Report, Stream, Work
from domkl.experiments.reproduce.works.curves import Curves
from domkl.experiments.store import Kept, Store
from domkl.sim.threads import available_cores

#: the panels of Figure 1, in its order
PANELS = ("conductivity", "weather", "wave", "air-quality", "traffic", "temperature")
SETS = (*PANELS, "twitter")

Progress = Callable[[str, float, float], None]  # label, cost done, cost in all


@dataclass
class Lab:
    """Settings of a reproduction, and the streams and outcomes it has so far."""

    setting: Setting
    store: Store
    data_dir: Path | None = None
    is_quick: bool = False  # fewer horizons and models as well as trials
    missing: dict[str, str] = field(default_factory=dict)  # set → where it was looked for
    _streams: dict[Any, Stream] = field(default_factory=dict)
    _outcomes: dict[str, Kept] = field(default_factory=dict)
    _used: dict[str, None] = field(default_factory=dict)  # sets that were loaded, in order

    def stream(self, name: str, **options: Any) -> Stream:
        """Load a data set, as the paper's authors prepared it unless options say otherwise."""

        def make() -> Stream:
            loaded = load_set(name, data_dir=self.data_dir, **options)
            self._used[name] = None
            facts = {**loaded.facts, "note": loaded.note}
            return Stream(name, loaded.X, loaded.y, loaded.is_series, facts)

        return self.made((name, *sorted(options.items())), make)

    def made(self, key: Any, make: Callable[[], Stream]) -> Stream:
        """A stream that is made once."""
        if key not in self._streams:
            self._streams[key] = make()
        return self._streams[key]

    def available(self, names: Iterable[str]) -> list[str]:
        """Those of the sets whose file is there; of the others, `missing` says where it was sought.

        A file that is there and is not what it should be is an error.
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
        """The work of running an algorithm on a stream, in our setting but for what is given."""
        if isinstance(stream, str):
            stream = self.stream(stream)
        chosen = replace(self.setting, **setting)
        if at_most is not None:
            chosen = replace(chosen, n_trials=min(chosen.n_trials, at_most))
        return Curves(stream, name, algorithm, chosen, network, partition)

    def do(self, works: Iterable[Work], progress: Progress) -> None:
        """Do what was not done before, in this run or an earlier one."""
        todo = {work.key: work for work in works if not self.store.has(work.key)}
        total, done = sum(work.cost for work in todo.values()), 0.0
        for work in (work for work in todo.values() if not work.is_python):
            progress(work.label, done, total)

            def report(share: float, work: Work = work, done: float = done) -> None:
                progress(work.label, done + share * work.cost, total)

            self.store.put(work.key, timed(work, report))
            done += work.cost
        for work, kept in self._shared_out([w for w in todo.values() if w.is_python]):
            self.store.put(work.key, kept)
            done += work.cost
            progress(work.label, done, total)
        progress("", total, total)

    def _shared_out(self, works: list[Work]) -> Iterator[tuple[Work, Kept]]:
        """Run works in processes of their own, the longest first; outcomes as they come."""
        if not works:
            return
        pool = ProcessPoolExecutor(
            min(self.n_cores, len(works)),
            multiprocessing.get_context("spawn"),
            initializer=_ignore_interrupts,
        )
        try:
            order = sorted(works, key=lambda work: -work.cost)
            waiting = {pool.submit(timed, work, None): work for work in order}
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BrokenProcessPool:
            raise DomklError(
                "a process was killed, perhaps for want of memory; what was finished is kept:"
                " run the command again"
            ) from None
        except BaseException:
            for process in list(pool._processes.values()):
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def __getitem__(self, work: Work) -> Kept:
        """The outcome of a piece of work; done now, should it not be there."""
        if work.key not in self._outcomes:
            found = self.store.get(work.key)
            if found is None:
                found = timed(work, None)
                self.store.put(work.key, found)
            self._outcomes[work.key] = found
        return self._outcomes[work.key]

    @property
    def used(self) -> list[str]:
        """Names of the sets that were loaded."""
        return list(self._used)

    @property
    def n_cores(self) -> int:
        """Cores in use."""
        return self.setting.threads or available_cores()


def timed(work: Work, report: Report | None) -> Kept:
    """Do a piece of work, and keep how long it took."""
    start = time.perf_counter()
    kept = work.compute(report or (lambda share: None))
    return {**kept, "seconds": np.array(time.perf_counter() - start)}


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent, who ends its processes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
