"""MSE(t) and CV(t) of an algorithm."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from domkl import rng
from domkl.algorithms.base import Algorithm
from domkl.data.streams import deal
from domkl.experiments.compare import Outcome, Setting, compare, compile_for, cost_of, draw_graphs
from domkl.experiments.reproduce.tasks.base import ReportProgress, Stream, Task
from domkl.experiments.store import Results, algorithm_digest
from domkl.graphs.graph import Graph


@dataclass(frozen=True, eq=False)
class Curves(Task):
    """An algorithm's MSE(t) and CV(t) on a stream, over all trials.

    Trials with the same number have the same graph and features for every algorithm, so results
    can be paired.
    """

    stream: Stream
    name: str
    algorithm: Algorithm
    setting: Setting
    network: str = "random"  # or "tree", "complete"
    partition: str = "interleaved"

    @property
    def label(self) -> str:
        """Stream and algorithm."""
        return f"{self.stream.name} {self.name}"

    @property
    def parts(self) -> dict[str, Any]:
        """Samples, algorithm and setting; not the number of threads, which changes nothing."""
        setting = {key: value for key, value in asdict(self.setting).items() if key != "threads"}
        return {
            "stream": self.stream.digest,
            "algorithm": algorithm_digest(self.algorithm),
            "setting": setting,
            "network": self.network,
            "partition": self.partition,
        }

    @property
    def cost(self) -> float:
        """The cost of all trials."""
        n_learners, n_trials = self.setting.n_learners, self.setting.n_trials
        n_samples, n_inputs = self.stream.X.shape
        return n_trials * cost_of(self.algorithm, n_samples, n_inputs, n_learners)

    def compute(self, report: ReportProgress) -> Results:
        """Run all trials."""
        setting = self.setting
        X, y = deal(
            self.stream.X, self.stream.y, setting.n_learners, self.partition, seed=setting.seed
        )
        named = {self.name: self.algorithm}
        compile_for(named, X, y, setting)
        with np.errstate(over="ignore", invalid="ignore"):
            (outcome,) = compare(
                named,
                X,
                y,
                self._graphs(),
                setting,
                lambda _, done, total: report(_share(done, total)),
            )
        return results_of(outcome)

    def _graphs(self) -> list[Graph]:
        setting = self.setting
        if self.network == "random":
            return draw_graphs(setting)
        if self.network == "complete":
            return [Graph.complete(setting.n_learners)] * setting.n_trials
        seeds = (rng.child(setting.seed, "tree", b) for b in range(setting.n_trials))
        return [Graph.tree(setting.n_learners, seed=seed) for seed in seeds]


def results_of(outcome: Outcome) -> Results:
    """What is stored of a comparison: curves over trials, and each trial's first and last value."""
    found: Results = {"diverged": np.array(outcome.n_diverged)}
    if outcome.weights is not None:
        found["weights"] = outcome.weights
    for curve in ("mse", "cv"):
        values = getattr(outcome, curve)
        found[curve] = np.stack(outcome.interval(curve))  # (3, T): mean, low, high
        found[f"{curve}_first"], found[f"{curve}_last"] = values[:, 0], values[:, -1]
    return found


def _share(done: int, total: int | None) -> float:
    return done / total if total else 1.0
