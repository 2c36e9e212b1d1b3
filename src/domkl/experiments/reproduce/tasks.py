"""Tasks: the calculations of a reproduction, each of which is done once and stored."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from domkl import rng
from domkl.algorithms.base import Algorithm
from domkl.data.streams import deal
from domkl.experiments.compare import compare, compile_for, cost_of, draw_graphs
from domkl.experiments.options import Setting
from domkl.experiments.rivals import maker, play, rivals
from domkl.experiments.store import Results, described, digest_of, key_of
from domkl.graphs.graph import Graph
from domkl.metrics.curves import running_average
from domkl.typing import Floats

Report = Callable[[float], None]  # called with the share that is done, from 0 to 1


@dataclass(frozen=True, eq=False)
class Stream:
    """Samples before they are dealt to learners."""

    name: str = field(compare=False)
    X: Floats = field(compare=False)  # (N, d)
    y: Floats = field(compare=False)  # (N,)
    is_series: bool = field(default=False, compare=False)
    digest: str = field(init=False)  # of the samples

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", digest_of(self.X, self.y))


@dataclass(frozen=True, eq=False)
class Task:
    """A calculation whose results depend on nothing but its function, arguments and our code."""

    function: Callable[..., Results]  # called with a `Report` and the arguments
    arguments: dict[str, Any]
    label: str  # text for the progress bar
    cost: float  # approximate microseconds on one core
    is_python: bool = False  # runs on one core, so that such tasks run in processes of their own

    @cached_property
    def key(self) -> str:
        """The key of its results in the store."""
        given = {name: described(value) for name, value in self.arguments.items()}
        return key_of({"task": described(self.function), **given})

    def compute(self, report: Report = lambda share: None) -> Results:
        """Do the calculation, and add the time that it took to its results."""
        start = time.perf_counter()
        results = self.function(report, **self.arguments)
        return {**results, "seconds": np.array(time.perf_counter() - start)}


def curves_task(
    stream: Stream, label: str, algorithm: Algorithm, setting: Setting, **how: Any
) -> Task:
    """The task to run an algorithm on a stream; see `curves` for the other arguments."""
    n_samples, n_inputs = stream.X.shape
    each = cost_of(algorithm, n_samples, n_inputs, setting.n_learners)
    given = {"stream": stream, "algorithm": algorithm, "setting": setting, **how}
    return Task(curves, given, f"{stream.name} {label}", setting.n_trials * each)


def curves(
    report: Report,
    stream: Stream,
    algorithm: Algorithm,
    setting: Setting,
    network: str = "random",
    partition: str = "interleaved",
) -> Results:
    """An algorithm's MSE(t) and CV(t), (3, T): mean over trials, low, high; and their ends.

    Trials with the same number have the same graph and features for every algorithm, so results
    can be paired. ``network`` is "random" or "tree".
    """
    X, y = deal(stream.X, stream.y, setting.n_learners, partition, seed=setting.seed)
    graphs = draw_graphs(setting)
    if network == "tree":
        seeds = [rng.child(setting.seed, "tree", b) for b in range(setting.n_trials)]
        graphs = [Graph.tree(setting.n_learners, seed=seed) for seed in seeds]
    named = {"": algorithm}
    compile_for(named, X, y, setting)

    def progress(_: str, done: float, total: float | None) -> None:
        report(done / total if total else 1.0)

    with np.errstate(over="ignore", invalid="ignore"):
        (outcome,) = compare(named, X, y, graphs, setting, progress)
    found: Results = {} if outcome.weights is None else {"weights": outcome.weights}
    for curve, values in (("mse", outcome.mse), ("cv", outcome.cv)):
        found[curve] = np.stack(outcome.interval(curve))
        found[f"{curve}_first"], found[f"{curve}_last"] = values[:, 0], values[:, -1]
    return found


def rival_task(stream: Stream, name: str, n_learners: int, is_pooled: bool) -> Task:
    """The task to run a model outside the network, one for all learners or one for each."""
    n_samples, n_inputs = stream.X.shape
    each = {  # microseconds, measured
        "river linear": 10 + n_inputs,
        "river tree": 30 + 3 * n_inputs,
        "river neighbors": 2200,
        "lightgbm": 1000 if is_pooled else 4000,
    }.get(name, 900 + 20 * n_inputs)
    given = {"stream": stream, "name": name, "n_learners": n_learners, "is_pooled": is_pooled}
    given["version"] = rivals()[name]
    label = f"{stream.name} {name}{' pooled' * is_pooled}"
    return Task(rival_curve, given, label, float(n_samples * each), is_python=True)


def rival_curve(
    report: Report, stream: Stream, name: str, n_learners: int, is_pooled: bool, version: str
) -> Results:
    """MSE(t) of a rival in one trial, in the form of `curves`."""
    X, y = deal(stream.X, stream.y, n_learners)
    predictions = play(maker(name, X.shape[2]), X, y, is_pooled=is_pooled, report=report)
    with np.errstate(over="ignore"):
        mean = running_average(((predictions - np.asarray(y)) ** 2).mean(axis=1))
    return {"mse": np.stack([mean, mean, mean]), "mse_first": mean[:1], "mse_last": mean[-1:]}
