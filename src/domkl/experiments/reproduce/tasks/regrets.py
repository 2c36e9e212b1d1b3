"""Tasks for Theorems 1 and 2: regrets at one horizon, and how far neighbors' weights differ."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from domkl import rng
from domkl.algorithms.admm import DOKL, DOMKL
from domkl.algorithms.base import Algorithm
from domkl.core.features import RandomFeatures
from domkl.core.kernels import gaussian_bank
from domkl.experiments.reproduce.tasks.base import ReportProgress, Task
from domkl.experiments.store import Results, digest_of
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


def draw_network(network: str, n_learners: int, seed: int, trial: int) -> Graph:
    """A "random" network of connection probability 0.25, "path", "star" or "complete"."""
    if network == "random":
        return Graph.random(n_learners, 0.25, seed=rng.child(seed, "graph", trial))
    make = {"path": Graph.path, "star": Graph.star, "complete": Graph.complete}
    return make[network](n_learners)


def draw_map(
    bandwidths: tuple[float, ...] | None, n_inputs: int, seed: int, trial: int
) -> RandomFeatures:
    """Features of a dictionary, the paper's by default."""
    bank = gaussian_bank(bandwidths)
    return RandomFeatures.draw(
        bank, n_inputs, N_FREQUENCIES, seed=rng.child(seed, "features", trial)
    )


@dataclass(frozen=True, eq=False)
class OnRounds(Task):
    """A task on dealt samples: some trials of a kind of network and of features."""

    name: str
    X: Floats  # (T, K, d)
    y: Floats  # (T, K)
    network: str
    bandwidths: tuple[float, ...] | None  # the paper's seventeen by default
    n_trials: int
    seed: int
    kind: str = "domkl"  # see `growing`

    @property
    def label(self) -> str:
        """Stream, algorithm and horizon."""
        return f"{type(self).__name__} {self.name} {self.kind} T = {len(self.y)}"

    @property
    def parts(self) -> dict[str, Any]:
        """Samples, algorithm, network, dictionary, trials."""
        return {
            "samples": digest_of(self.X, self.y),
            "kind": self.kind,
            "network": self.network,
            "bandwidths": self.bandwidths,
            "trials": self.n_trials,
            "seed": self.seed,
        }


class Regrets(OnRounds):
    """The regrets of accuracy and of discrepancy after all rounds."""

    @property
    def cost(self) -> float:
        """Most of the time is least squares, for every kernel."""
        n_kernels = 17 if self.bandwidths is None else len(self.bandwidths)
        return 15.0 * self.y.size * n_kernels * self.n_trials

    def compute(self, report: ReportProgress) -> Results:
        """Run and compare with the best in hindsight, trial by trial."""
        n_rounds, n_learners, n_inputs = self.X.shape
        algorithm = growing(self.kind, n_rounds)
        found: dict[str, list[Any]] = {}
        for b in range(self.n_trials):
            graph = draw_network(self.network, n_learners, self.seed, b)
            features = draw_map(self.bandwidths, n_inputs, self.seed, b)
            run = simulate(algorithm, self.X, self.y, graph, features, discrepancy=True)
            values = regret(run, self.X, self.y, features)._asdict()
            values["loss"] = getattr(run.state, "loss", np.zeros((n_learners, 1)))  # (K, P)
            for name, value in values.items():
                found.setdefault(name, []).append(value)
            report((b + 1) / self.n_trials)
        return {name: np.array(value) for name, value in found.items()}


class WeightGaps(OnRounds):
    """ε_t of assumption (a4): the maximum over edges and kernels of |q_k − q_ℓ|."""

    @property
    def cost(self) -> float:
        """There is one call of `simulate` per round."""
        return len(self.y) * (1000.0 + 400.0 * self.n_trials)

    def compute(self, report: ReportProgress) -> Results:
        """Run all trials round by round, and compare the weights after each."""
        n_rounds, n_learners, n_inputs = self.X.shape
        trials = range(self.n_trials)
        graphs = [draw_network(self.network, n_learners, self.seed, b) for b in trials]
        maps = [draw_map(self.bandwidths, n_inputs, self.seed, b) for b in trials]
        edges = [(np.repeat(np.arange(n_learners), np.diff(g.indptr)), g.indices) for g in graphs]
        algorithm, state = growing(self.kind, n_rounds), None
        gaps = np.zeros((self.n_trials, n_rounds))  # the first weights are equal
        for t in range(n_rounds - 1):
            part = slice(t, t + 1)
            samples = (self.X[part], self.y[part])
            # one round of each trial is less work than to start a second thread
            run = simulate(algorithm, *samples, graphs, maps, state=state, cv="off", threads=1)
            state = run.state
            assert run.weights is not None
            for b, (ours, theirs) in enumerate(edges):
                gaps[b, t + 1] = np.abs(run.weights[b][ours] - run.weights[b][theirs]).max()
            report((t + 1) / n_rounds)
        return {"squares": np.cumsum(gaps**2, axis=1)[:, -1], "largest": gaps.max(axis=1)}
