"""Measure a round: errors, consensus violation, discrepancy between neighbors."""

from typing import Any

import numpy as np

from domkl import rng
from domkl.algorithms.base import Algorithm, Function, Inputs, Prediction, flat
from domkl.core.predict import blend, neighbor_gaps, pair_gaps, sampled_gaps
from domkl.sim.network import Network
from domkl.typing import Array, Floats

N_SAMPLED_PAIRS = 1000


class Disagreement:
    """Sums of (f_k(x_k) − f_ℓ(x_k))² each round, exact or sampled, for all trials of a cell."""

    def __init__(
        self, algorithm: Algorithm, network: Network, cv: str, discrepancy: bool, seed: int
    ) -> None:
        self._algorithm, self._network = algorithm, network
        self._cv, self._discrepancy = cv, discrepancy
        self._pairs = rng.child(seed, "cv")
        self._room: Array | None = None
        n_learners = network.graph.n_learners
        # per learner: Σ over the trial and over its component, both divided by K − 1 partners
        self.spread: Floats = np.zeros(n_learners)
        self.inside: Floats = np.zeros(n_learners)
        self.gaps: Floats = np.zeros(n_learners)
        self.trial_mean: Floats = np.zeros(network.n_trials)
        self.trial_variance: Floats = np.zeros(network.n_trials)  # of trial_mean, when sampled

    def update(self, state: Any, inputs: Inputs, prediction: Prediction) -> None:
        """Measure the functions that made this prediction."""
        if self._cv == "off" and not self._discrepancy:
            return
        function = self._algorithm.function(state)
        if function is None:
            self._by_prediction(state, inputs, prediction)
            return
        functions, z = self._blended(function), flat(inputs.z)
        if self._cv == "exact":
            component, n_learners = self._network.graph.component, self._network.n_learners
            pair_gaps(self.spread, self.inside, functions, z, component, n_learners)
            self._average()
        elif self._cv == "sampled":
            self._sample(functions, z)
        if self._discrepancy:
            graph = self._network.graph
            neighbor_gaps(self.gaps, functions, z, graph.indptr, graph.indices)

    def _blended(self, function: Function) -> Array:
        if self._room is None:
            self._room = np.empty_like(function.theta)
        blend(self._room, function.theta, function.weights)
        return flat(self._room)

    def _average(self) -> None:
        n_learners = self._network.n_learners
        pairs = max(n_learners * (n_learners - 1), 1)
        self.trial_mean = self.spread.reshape(-1, n_learners).sum(axis=1) / pairs

    def _sample(self, functions: Array, z: Array) -> None:
        n_learners = self._network.n_learners
        shape = (self._network.n_trials, N_SAMPLED_PAIRS)
        k = self._pairs.integers(n_learners, size=shape)
        other = (k + self._pairs.integers(1, n_learners, size=shape)) % n_learners
        start = n_learners * np.arange(shape[0])[:, None]
        gaps = np.empty(shape)
        sampled_gaps(gaps.ravel(), functions, z, (start + k).ravel(), (start + other).ravel())
        self.trial_mean = gaps.mean(axis=1)
        self.trial_variance = gaps.var(axis=1, ddof=1) / N_SAMPLED_PAIRS

    def _by_prediction(self, state: Any, inputs: Inputs, prediction: Prediction) -> None:
        """Let every learner's state predict every other's inputs, by turning states around."""
        n_learners, graph = self._network.n_learners, self._network.graph
        k = np.arange(graph.n_learners)
        self.spread, self.inside, signed = (np.zeros(len(k)) for _ in range(3))
        for turn in range(1, n_learners):
            other = k - k % n_learners + (k + turn) % n_learners
            turned = type(state)(*(field[other] for field in state))
            gap = prediction.y_hat - self._algorithm.predict(turned, inputs).y_hat
            self.spread += gap**2
            self.inside += np.where(graph.component[other] == graph.component, gap**2, 0)
            if self._discrepancy:
                signed += np.where(self._are_neighbors(k, other), gap, 0)
        self.gaps = signed**2
        self._average()

    def _are_neighbors(self, k: Any, other: Any) -> Any:
        graph = self._network.graph
        keys = graph.sources * graph.n_learners + graph.indices
        return np.isin(k * graph.n_learners + other, keys)
