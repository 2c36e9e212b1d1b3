"""A part of the reproduction: what its sections share, and how they become a document and files."""

import platform
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import domkl
from domkl.algorithms.base import Algorithm
from domkl.data.cache import locate, not_found
from domkl.data.catalog import DATASETS
from domkl.data.sets import load_set
from domkl.errors import DataError
from domkl.experiments.compare import Progress
from domkl.experiments.figures import draw, plain
from domkl.experiments.options import Setting
from domkl.experiments.reproduce import PARTS, QUICK_ROWS, case_studies
from domkl.experiments.reproduce.document import as_html, figures_of
from domkl.experiments.reproduce.tasks import Stream, Task, curves_task
from domkl.experiments.rivals import installed
from domkl.experiments.store import LIBRARIES, Results, Store
from domkl.experiments.workers import on_processes
from domkl.sim.threads import available_cores

#: the panels of Figure 1, in its order
PANELS = ("conductivity", "weather", "wave", "air-quality", "traffic", "temperature")
SETS = (*PANELS, "twitter")

Made = TypeVar("Made")
#: what a section needs: its tasks, by keys of its own
Runs = dict[Any, Task]


@dataclass
class Session:
    """Settings of a reproduction, and the streams and results that it has so far."""

    setting: Setting
    store: Store
    data_dir: Path | None = None
    is_quick: bool = False  # fewer samples, horizons and models as well as trials
    only: tuple[str, ...] = ()  # what to do of the ablation; all if empty
    missing: dict[str, str] = field(default_factory=dict)  # data set: where it was looked for
    used: dict[str, dict[str, Any]] = field(default_factory=dict)  # data set: its facts
    _made: dict[Any, Any] = field(default_factory=dict)

    def stream(self, name: str, **options: Any) -> Stream:
        """Load a data set, as the paper's authors prepared it unless options say otherwise.

        Without options, a quick run gets the first samples only.
        """

        def make() -> Stream:
            loaded = load_set(name, data_dir=self.data_dir, **options)
            self.used.setdefault(name, {**loaded.facts, "note": loaded.note})
            made = Stream(name, loaded.X, loaded.y, loaded.is_series)
            return made if options else self._cut(made)

        return self.once((name, *sorted(options.items())), make)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What belongs to this key, made when it is first asked for."""
        if key not in self._made:
            self._made[key] = make()
        found: Made = self._made[key]
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
        label: str,
        algorithm: Algorithm,
        *,
        at_most: int | None = None,
        how: Mapping[str, str] | None = None,
        **setting: Any,
    ) -> Task:
        """The task to run an algorithm on a stream.

        ``at_most`` limits the trials, ``how`` has the network and the partition if they are not
        the usual ones, and ``setting`` overrides the session's.
        """
        stream = self.stream(stream) if isinstance(stream, str) else stream
        chosen = replace(self.setting, n_trials=self.n_trials(at_most), **setting)
        return curves_task(self._cut(stream), label, algorithm, chosen, **how or {})

    def _cut(self, stream: Stream) -> Stream:
        """As much of a stream as is run."""
        if not self.is_quick or len(stream.y) <= QUICK_ROWS:
            return stream
        return replace(stream, X=stream.X[:QUICK_ROWS], y=stream.y[:QUICK_ROWS])

    def n_trials(self, at_most: int | None = None) -> int:
        """The session's number of trials, or less."""
        return min(self.setting.n_trials, at_most or self.setting.n_trials)

    def do(self, tasks: Iterable[Task], progress: Progress) -> None:
        """Do the tasks that were not done before, in this run or in an earlier one."""
        todo = {task.key: task for task in tasks if not self.store.has(task.key)}
        total, done = sum(task.cost for task in todo.values()), 0.0
        for task in (task for task in todo.values() if not task.is_python):
            progress(task.label, done, total)

            def report(share: float, task: Task = task, done: float = done) -> None:
                progress(task.label, done + share * task.cost, total)

            self.store.put(task.key, task.compute(report))
            done += task.cost
        in_python = sorted((t for t in todo.values() if t.is_python), key=lambda task: -task.cost)
        for task, results in on_processes(Task.compute, in_python, self.n_cores):
            self.store.put(task.key, results)
            done += task.cost
            progress(task.label, done, total)
        progress("", total, total)

    def __getitem__(self, task: Task) -> Results:
        """The results of a task, which is done now if it has not been done."""

        def make() -> Results:
            found = self.store.get(task.key)
            if found is None:
                found = task.compute()
                self.store.put(task.key, found)
            return found

        return self.once(task.key, make)

    def results(self, runs: Runs) -> dict[Any, Results]:
        """The results of a section's tasks, by the same keys."""
        return {key: self[task] for key, task in runs.items()}

    @property
    def n_cores(self) -> int:
        """Number of cores to use."""
        return self.setting.threads or available_cores()


def modules_of(part: str) -> dict[str, ModuleType]:
    """The module of each section: ``runs(session)`` has its tasks, ``section(session)`` makes it.

    The module may name data sets without any of which the part cannot be done, as ``NEEDED``.
    """
    package = case_studies(part) if PARTS[part].is_study else "domkl.experiments.reproduce"
    names = PARTS[part].sections
    return {name: import_module(f"{package}.{name.replace('-', '_')}") for name in names}


def reproduce(session: Session, part: str, command: str, progress: Progress) -> dict[str, Any]:
    """Do a part of the reproduction and return its document, ready for JSON."""
    modules = modules_of(part)
    if len(modules) == 1:
        (needed,) = (getattr(module, "NEEDED", ()) for module in modules.values())
        if needed and not session.available(needed):
            raise DataError("; ".join(session.missing[name] for name in needed))
    runs = {name: module.runs(session) for name, module in modules.items()}
    session.do([task for group in runs.values() for task in group.values()], progress)
    made = [module.section(session) for module in modules.values()]
    return {
        "domkl": domkl.__version__,
        "command": command,
        "part": part,
        "seed": session.setting.seed,
        "trials": session.setting.n_trials,
        "is_quick": session.is_quick,
        "dtype": session.setting.dtype,
        "cores": session.n_cores,
        "seconds": {name: plain(_seconds(session, group)) for name, group in runs.items()},
        "versions": _versions(),
        "data": [
            {"name": name}
            | {key: facts[key] for key in ("rows", "rows_of_paper", "note", "sha256")}
            for name, facts in session.used.items()
        ],
        "missing": session.missing,
        "sections": [section.as_json() for section in made],
    }


def write(document: dict[str, Any], text: str, folder: Path) -> None:
    """Make a folder with results.json, report.html, and every figure as SVG and PNG."""
    pictures = folder / "figures"
    pictures.mkdir(parents=True)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    drawn = {}
    for figure in figures_of(document):
        drawn[figure["id"]] = draw(figure, "svg")
        (pictures / f"{figure['id']}.svg").write_bytes(drawn[figure["id"]])
        (pictures / f"{figure['id']}.png").write_bytes(draw(figure, "png"))
    (folder / "report.html").write_text(as_html(document, drawn), encoding="utf-8")


def _seconds(session: Session, runs: Runs) -> float:
    """Time that a section's tasks took when they were done; shared tasks count for each section."""
    tasks = {task.key: task for task in runs.values()}
    return sum(float(session[task]["seconds"]) for task in tasks.values())


def _versions() -> dict[str, str]:
    found: dict[str, str | None] = {"python": platform.python_version()}
    found |= {name: version(name) for name in LIBRARIES}
    found |= {name: installed(name) for name in ("river", "lightgbm")}
    return {name: each for name, each in found.items() if each is not None}
