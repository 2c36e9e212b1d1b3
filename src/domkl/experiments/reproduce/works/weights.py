"""How far apart neighbors' weights are, round by round: assumption (a4)."""

import numpy as np

from domkl.experiments.reproduce.works.base import Report
from domkl.experiments.reproduce.works.regrets import (
    OnRounds,
    draw_map,
    draw_network,
    growing,
)
from domkl.experiments.store import Kept
from domkl.sim.simulate import simulate


class WeightGaps(OnRounds):
    """ε_t = max over edges and kernels of |q_k − q_ℓ|, with parameters as √T."""

    @property
    def cost(self) -> float:
        """A call for every round."""
        return len(self.y) * (1000.0 + 400.0 * self.n_trials)

    def compute(self, report: Report) -> Kept:
        """Step all trials round by round and look at the weights between."""
        n_rounds, n_learners, n_inputs = self.X.shape
        trials = range(self.n_trials)
        graphs = [draw_network(self.network, n_learners, self.seed, b) for b in trials]
        maps = [draw_map(self.bandwidths, n_inputs, self.seed, b) for b in trials]
        edges = [(np.repeat(np.arange(n_learners), np.diff(g.indptr)), g.indices) for g in graphs]
        algorithm, state = growing(self.kind, n_rounds), None
        gaps = np.zeros((self.n_trials, n_rounds))  # the first weights are equal
        for t in range(n_rounds - 1):
            part = slice(t, t + 1)
            run = simulate(
                algorithm, self.X[part], self.y[part], graphs, maps, state=state, cv="off"
            )
            state = run.state
            assert run.weights is not None
            for b, (ours, theirs) in enumerate(edges):
                gaps[b, t + 1] = np.abs(run.weights[b][ours] - run.weights[b][theirs]).max()
            report((t + 1) / n_rounds)
        return {"squares": np.cumsum(gaps**2, axis=1)[:, -1], "largest": gaps.max(axis=1)}
