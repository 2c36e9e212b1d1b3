"""Tasks for Theorems 1 and 2: regrets at one horizon, and how far neighbors' weights differ."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from domkl import rng
from domkl.algorithms.admm import DOKL, DOMKL
from domkl.algorithms.base import Algorithm
from domkl.core.features import RandomFeatures
from domkl.core.kernels import gaussian_bank
from domkl.experiments.reproduce.tasks import Report, Task
from domkl.experiments.store import Results
from domkl.graphs.graph import Graph
from domkl.sim.regret import regret
from domkl.sim.simulate import simulate
from domkl.typing import Floats

N_FREQUENCIES = 50


def growing(kind: str, n_rounds: int) -> Algorithm:
    """DOKL or DOMKL with rho = eta_l = eta_g = √T, for features not divided by √M.

    ``kind`` is "dokl", "domkl" or "domkl, message passing".
    """
    root = float(np.sqrt(n_rounds))
    rho = eta_l = root / N_FREQUENCIES
    if kind == "dokl":
        return DOKL(rho=rho, eta_l=eta_l)
    made = DOMKL(rho=rho, eta_l=eta_l, eta_g=root)
    return replace(made, weights="message-passing") if "message" in kind else made


def draw_features_of(
    bandwidths: tuple[float, ...] | None, n_inputs: int, seed: int, trial: int
) -> RandomFeatures:
    """Features of a dictionary, the paper's by default."""
    child = rng.child(seed, "features", trial)
    return RandomFeatures.draw(gaussian_bank(bandwidths), n_inputs, N_FREQUENCIES, seed=child)


@dataclass(frozen=True)
class Rounds:
    """Samples that are dealt already, and the trials to run on them."""

    X: Floats  # (T, K, d)
    y: Floats  # (T, K)
    network: str  # "random" with connection probability 0.25, "path", "star" or "complete"
    bandwidths: tuple[float, ...] | None  # the paper's seventeen by default
    n_trials: int
    seed: int
    kind: str = "domkl"  # see `growing`

    def task(self, function: Callable[..., Results], name: str) -> Task:
        """The task to calculate `regrets` or `weight_gaps`."""
        n_kernels = 17 if self.bandwidths is None else len(self.bandwidths)
        cost = (
            15.0 * self.y.size * n_kernels * self.n_trials  # mostly least squares, by kernel
            if function is regrets
            else len(self.y) * (1000.0 + 400.0 * self.n_trials)  # a call of `simulate` per round
        )
        label = f"{function.__name__} {name} {self.kind} T = {len(self.y)}"
        return Task(function, {"rounds": self}, label, cost)

    def trials(self) -> Iterator[tuple[Graph, RandomFeatures]]:
        """Graph and features of each trial."""
        n_learners, n_inputs = self.X.shape[1:]
        named = {"path": Graph.path, "star": Graph.star, "complete": Graph.complete}
        for b in range(self.n_trials):
            graph = (
                Graph.random(n_learners, 0.25, seed=rng.child(self.seed, "graph", b))
                if self.network == "random"
                else named[self.network](n_learners)
            )
            yield graph, draw_features_of(self.bandwidths, n_inputs, self.seed, b)


def regrets(report: Report, rounds: Rounds) -> Results:
    """The regrets of accuracy and of discrepancy after all rounds, trial by trial."""
    X, y = rounds.X, rounds.y
    algorithm = growing(rounds.kind, len(y))
    found: dict[str, list[Any]] = {}
    for b, (graph, features) in enumerate(rounds.trials()):
        run = simulate(algorithm, X, y, graph, features, discrepancy=True)
        values = regret(run, X, y, features)._asdict()
        values["loss"] = getattr(run.state, "loss", np.zeros((X.shape[1], 1)))  # (K, P)
        for name, value in values.items():
            found.setdefault(name, []).append(value)
        report((b + 1) / rounds.n_trials)
    return {name: np.array(value) for name, value in found.items()}


def weight_gaps(report: Report, rounds: Rounds) -> Results:
    """ε_t of assumption (a4): the maximum over edges and kernels of |q_k − q_ℓ|."""
    n_rounds, n_learners, _ = rounds.X.shape
    graphs, maps = map(list, zip(*rounds.trials(), strict=True))
    edges = [(np.repeat(np.arange(n_learners), np.diff(g.indptr)), g.indices) for g in graphs]
    algorithm, state = growing(rounds.kind, n_rounds), None
    gaps = np.zeros((rounds.n_trials, n_rounds))  # the first weights are equal
    for t in range(n_rounds - 1):
        samples = rounds.X[t : t + 1], rounds.y[t : t + 1]
        # one round of each trial is less work than to start a second thread
        run = simulate(algorithm, *samples, graphs, maps, state=state, cv="off", threads=1)
        state = run.state
        assert run.weights is not None
        for b, (ours, theirs) in enumerate(edges):
            gaps[b, t + 1] = np.abs(run.weights[b][ours] - run.weights[b][theirs]).max()
        report((t + 1) / n_rounds)
    return {"squares": np.cumsum(gaps**2, axis=1)[:, -1], "largest": gaps.max(axis=1)}
