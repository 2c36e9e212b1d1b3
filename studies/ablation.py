"""What each part of DOMKRLS is worth, and what half and twice each constant do.

The law has no switches. A variant is a copy of the package in a temporary folder, with edits of
ablation.toml; a process of its own runs the copy on all streams, with the same graphs and features
for all variants. What it compiles is stored in the same folder, and deleted with it. Binaries carry
a digest of their source besides, so that neither the package nor a variant can run the other's.
"""

import ast
import os
import pickle
import runpy
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

import domkl
from domkl import checks
from domkl.algorithms.base import Algorithm
from domkl.algorithms.least_squares import DOMKRLS
from domkl.data.forecast import Prepared
from domkl.data.streams import deal
from domkl.errors import ParameterError, WorkerError
from domkl.experiments.options import Setting
from domkl.experiments.reproduce import CLONE
from domkl.experiments.reproduce.document import Section, Value
from domkl.experiments.reproduce.session import SETS, Runs, Session
from domkl.experiments.reproduce.tasks import Report, Task
from domkl.experiments.store import Results
from domkl.metrics.intervals import interval
from domkl.typing import Floats
from studies.nodes import Nodes, forecasts, network_gaps, node_setting, rmse

#: a file of the package, and either a statement for its end or a text and what it becomes
Edit = list[str]
Edits = list[Edit]

PACKAGE = Path(domkl.__file__).parent
FACTORS = {"half": 0.5, "twice": 2.0}
FULL: Edits = []
#: random frequencies per kernel; rounds of the sets, of made streams and of nodes
N_FREQUENCIES, N_ROUNDS, N_MADE, N_HOURS = 20, 300, 400, 1000
#: sets of nodes: what to read of them, and how far ahead
NODES: dict[str, dict[str, str]] = {
    "beijing-air": {"horizon": "1,6,24", "rows": f"21936:{21936 + N_HOURS}"},
    "citylearn-homes": {"horizon": "1,24", "rows": f":{N_HOURS}"},
    "parking": {"horizon": "1,4", "rows": f":{N_HOURS}"},
}
#: functions of benchmarks/streams.py
MADE = {
    "drift, abrupt": "abrupt", "drift, all along": "turning", "drift, hyperplane": "hyperplane",
    "each its own function": "strangers", "each its own level": "levels",
    "random walks": "walks", "heavy tails": "outliers", "few labels": "seldom",
}  # fmt: skip
#: what is wrong with one sample in a hundred: it is multiplied
WRONG, FACTOR = ("wrong labels", "wrong inputs"), 1000.0
QUICK, QUICK_ROUNDS = ("traffic", "each its own level", "parking, h = 1", *WRONG), 100
#: quantiles of which the pinball loss is the mean, and those of the normal law
LEVELS = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
NORMAL = (-1.960, -1.282, -0.674, 0.0, 0.674, 1.282, 1.960)


@dataclass(frozen=True, eq=False)
class Stream:
    """A stream, who learns it, and which labels are scored."""

    nodes: Nodes
    algorithm: Algorithm
    setting: Setting
    is_scored: NDArray[np.bool_]  # (T, K)

    @classmethod
    def of(
        cls, nodes: Nodes, lag: int | None, setting: Setting, period: int | None = None
    ) -> "Stream":
        """A stream of which all labels are scored, on one core."""
        given = replace(
            setting, n_learners=nodes.y.shape[1], n_frequencies=N_FREQUENCIES, threads=1
        )
        return cls(
            nodes, DOMKRLS(newest_lag=lag, period=period), given, np.full(nodes.y.shape, True)
        )

    def cut(self, n_rounds: int) -> "Stream":
        """The first rounds."""
        nodes, part = self.nodes, slice(n_rounds)
        cut = replace(nodes, X=nodes.X[part], y=nodes.y[part])
        return replace(self, nodes=cut, is_scored=self.is_scored[part])

    def errors(self, has_bands: bool) -> Results:
        """RMSE and, if asked for, pinball loss, late ones too; number of scores: each (B,)."""
        found = network_gaps(
            lambda share: None, self.nodes, self.algorithm, self.setting, has_bands, False
        )
        gaps = np.where(self.is_scored, found["gaps"], np.nan)
        errors: Results = {"n": np.count_nonzero(np.isfinite(gaps), axis=(1, 2))}
        for word, start in (("", 0), ("late ", gaps.shape[1] // 2)):
            errors[f"{word}rmse"] = rmse(gaps[:, start:], (1, 2))
            if has_bands:
                errors[f"{word}pinball"] = pinball(gaps[:, start:], found["deviation"][:, start:])
        return errors


def pinball(gaps: Floats, deviation: Floats) -> Floats:
    """Mean pinball loss of normal bands over rounds, learners and `LEVELS`, (B,)."""
    deviation = np.where(np.isfinite(deviation), deviation, np.nan)
    beyond = [-gaps - z * deviation for z in NORMAL]  # label minus quantile
    losses = [np.maximum(a * e, (a - 1) * e) for a, e in zip(LEVELS, beyond, strict=True)]
    return np.asarray(np.nanmean(losses, axis=(0, 2, 3)))


# --- streams


def streams(session: Session) -> dict[str, Stream]:
    """All streams by name; a quick run has some of them, cut short."""

    def make() -> dict[str, Stream]:
        found = _sets(session) | _made(session)
        found |= {
            f"{name}, h = {h}": _of_nodes(session, data)
            for name in session.available(NODES)
            for h, data in forecasts(session, name, **NODES[name]).items()
        }
        if session.is_quick:
            found = {name: found[name].cut(QUICK_ROUNDS) for name in QUICK}
        return found

    return session.once("ablation", make)


def _sets(session: Session) -> dict[str, Stream]:
    """The sets of the paper, dealt in turn and in blocks."""
    found, setting = {}, session.setting
    for name in session.available(SETS):
        data = session.stream(name)
        for how in ("interleaved", "blocks"):
            X, y = deal(data.X, data.y, setting.n_learners, how, seed=setting.seed)
            nodes = Nodes(X[:N_ROUNDS], np.asarray(y)[:N_ROUNDS], None, 1, 1.0, 0.0)
            word = name + ", blocks" * (how == "blocks")
            found[word] = Stream.of(nodes, 0 if data.is_series else None, setting)
    return found


def _made(session: Session) -> dict[str, Stream]:
    """Streams that are made, and two with wrong samples, whose other samples are scored."""
    made = runpy.run_path(str(CLONE / "benchmarks" / "streams.py"))
    found = {}
    for name, word in MADE.items():
        X, y, lag, *_ = made[word]()
        nodes = Nodes(X[:N_MADE], np.asarray(y)[:N_MADE], None, 1, 1.0, 0.0)
        found[name] = Stream.of(nodes, lag, session.setting)
    X, noise = made["drawn"](N_MADE, seed=20)
    y = made["friedman"](X) + noise
    is_hit = np.random.default_rng(21).random(y.shape) < 0.01
    spoiled = (X, np.where(is_hit, FACTOR * y, y)), (np.where(is_hit[..., None], FACTOR * X, X), y)
    for name, (inputs, labels) in zip(WRONG, spoiled, strict=True):
        nodes = Nodes(inputs, labels, None, 1, 1.0, 0.0)
        found[name] = replace(Stream.of(nodes, None, session.setting), is_scored=~is_hit)
    return found


def _of_nodes(session: Session, data: Prepared) -> Stream:
    return Stream.of(Nodes.of(data), data.newest_lag, node_setting(session, data), data.period)


# --- variants


def groups() -> dict[str, dict[str, Edits]]:
    """The edits of each part and constant, as ablation.toml has them."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    found: dict[str, dict[str, Edits]] = tomllib.loads(text)
    return found


def with_factor(edits: Edits, factor: float) -> Edits:
    """The edits of a constant that is multiplied by this."""
    return [[word.replace("{factor}", str(factor)) for word in edit] for edit in edits]


def edited(source: str, edit: Edit) -> str:
    """The text of a file after an edit; an error if it has not what the edit changes.

    Examples
    --------
    >>> edited("LEAK = 0.01", ["core/some.py", "LEAK *= 2"])
    'LEAK = 0.01\\n\\nLEAK *= 2\\n'
    >>> edited("LEAK = 0.01", ["core/some.py", "leak", "0"])
    Traceback (most recent call last):
    domkl.errors.ParameterError: ablation.toml must change what is in core/some.py, got 'leak'
    """
    place, old, *new = edit
    is_there = old in source if new else _set_in(old) <= _set_in(source)
    if not is_there:
        raise ParameterError(f"ablation.toml must change what is in {place}, got {old!r}")
    return source.replace(old, new[0]) if new else f"{source}\n\n{old}\n"


def _set_in(text: str) -> set[str]:
    """Names that the statements of a module set."""
    targets: list[ast.expr] = []
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign):
            targets += statement.targets
        elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
            targets.append(statement.target)
    return {n.id for each in targets for n in ast.walk(each) if isinstance(n, ast.Name)}


def texts_of(edits: Edits) -> dict[str, str]:
    """The files that edits change, and what they become."""
    found: dict[str, str] = {}
    for edit in edits:
        name = edit[0]
        source = found.get(name) or (PACKAGE / name).read_text(encoding="utf-8")
        found[name] = edited(source, edit)
    return found


def measure(report: Report, edits: Edits, has_bands: bool, **given: Stream) -> Results:
    """The errors of a variant, each (S, B): S streams, B trials."""
    with TemporaryDirectory(prefix="domkl-ablation-") as name:
        folder = Path(name)
        shutil.copytree(PACKAGE, folder / "domkl", ignore=shutil.ignore_patterns("__pycache__"))
        for place, text in texts_of(edits).items():
            (folder / "domkl" / place).write_text(text, encoding="utf-8")
        (folder / "given").write_bytes(pickle.dumps((list(given.values()), has_bands)))
        path = os.pathsep.join([name, str(CLONE)])
        surroundings = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": f"{name}/binaries"}
        command = [sys.executable, "-c", "from studies.ablation import run_copy; run_copy()"]
        ended = subprocess.run(
            command, cwd=folder, env=surroundings, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            raise WorkerError(f"a variant {edits} failed: {ended.stderr[-2000:]}")
        found: Results = pickle.loads((folder / "found").read_bytes())
    return found


def run_copy() -> None:
    """In the process of a variant: run the streams in the file `given`, and write `found`."""
    folder = Path.cwd()
    assert folder / "domkl" == PACKAGE, f"{PACKAGE} is not the variant"
    given, has_bands = pickle.loads((folder / "given").read_bytes())
    errors = [stream.errors(has_bands) for stream in given]
    found = {name: np.stack([each[name] for each in errors]) for name in errors[0]}
    (folder / "found").write_bytes(pickle.dumps(found))


# --- the section


def runs(session: Session) -> Runs:
    """By group, name and what is done with it; ("full", has_bands) is the law as it is."""
    known = [name for group, each in groups().items() for name in (group, *each)]
    for name in session.only:
        checks.choice("only", name, known)
    given = streams(session)
    steps = sum(s.nodes.y.size * s.setting.n_trials for s in given.values())

    def task(label: str, edits: Edits, has_bands: bool) -> Task:
        texts_of(edits)  # an edit that cannot be done is told before anything runs
        arguments: dict[str, Any] = {"edits": edits, "has_bands": has_bands, **given}
        return Task(measure, arguments, label, 2e7 + 25.0 * steps, is_python=True)

    found: Runs = {}
    for group, variants in groups().items():
        has_bands = group == "bands"
        for name, edits in variants.items():
            if session.only and not {group, name} & set(session.only):
                continue
            found["full", has_bands] = task("the law as it is", FULL, has_bands)
            if group == "parts":
                found[group, name] = task(f"without {name}", edits, has_bands)
                continue
            for word, factor in FACTORS.items():
                changed = with_factor(edits, factor)
                found[group, name, word] = task(f"{name}, {word}", changed, has_bands)
    return found


def cells(ours: Results, full: Results, names: list[str], key: str) -> list[Value]:
    """Errors over those of the full law: geometric means, and the worst stream.

    Over all rounds with the interval over trials, in second halves, of streams with wrong samples.
    What has lost predictions is infinite.
    """
    is_wrong = np.array([name in WRONG for name in names])
    with np.errstate(divide="ignore", invalid="ignore"):
        found, late = (
            np.log(np.where(ours["n"] == full["n"], ours[each] / full[each], np.inf))
            for each in (key, f"late {key}")
        )
        mean, low, high = np.exp(interval(found[~is_wrong].mean(axis=0)))
    by_stream = np.where(is_wrong, -np.inf, found.mean(axis=1))
    worst = int(np.argmax(by_stream))
    told: list[Value] = [f"{mean:.4f}", f"{low:.4f} to {high:.4f}"]
    told += [f"{np.exp(by_stream[worst]):.3f} ({names[worst]})"]
    return told + [f"{np.exp(each.mean()):.4f}" for each in (late[~is_wrong], found[is_wrong])]


def section(session: Session) -> Section:
    """A table of parts, one of constants, and one of those that only deviations depend on."""
    found, names = session.results(runs(session)), list(streams(session))
    clean = [name for name in names if name not in WRONG]
    made = Section.of(
        "ablation", n=len(clean), n_trials=session.setting.n_trials, n_frequencies=N_FREQUENCIES,
        names="; ".join(clean), n_rounds=N_ROUNDS, n_made=N_MADE, n_hours=N_HOURS,
    )  # fmt: skip
    for group in groups():
        has_bands, rows = group == "bands", []
        for (of_group, *words), ours in found.items():
            if of_group == group:
                full = found["full", has_bands]
                told = cells(ours, full, names, "pinball" if has_bands else "rmse")
                rows.append([", ".join(words), *told])
        if rows:
            made.table(f"ablation-{group}", rows)
    return made
