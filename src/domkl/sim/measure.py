"""Measure a round: errors, consensus violation, discrepancy between neighbors."""

from typing import Any

import numpy as np

from domkl import rng
from domkl.algorithms.base import Algorithm, Function, Inputs, Prediction
from domkl.core.predict import blend, neighbor_gaps, pair_gaps, sampled_gaps
from domkl.sim.network import Network
from domkl.sim.records import Records
from domkl.typing import Array, Floats, Ints

N_SAMPLED_PAIRS = 1000


class Disagreement:
    """Sums of (f_k(x_k) − f_ℓ(x_k))² each round, exact or sampled, for all trials of a cell."""

    def __init__(
        self, algorithm: Algorithm, network: Network, records: Records, cv: str, seed: int
    ) -> None:
        self._algorithm, self._network, self._records = algorithm, network, records
        self._cv = cv
        self._discrepancy = records.keeps("gaps")
        self._pairs = rng.child(seed, "cv")
        self._room: Array | None = None
        self.sampled_mean: list[Floats] = []  # of each round, (B,)
        self.sampled_variance: list[Floats] = []

    def update(self, state: Any, inputs: Inputs, prediction: Prediction) -> None:
        """Measure the functions that made this prediction."""
        if self._cv == "off" and not self._discrepancy:
            return
        function = self._algorithm.function(state)
        if function is None:
            self._by_prediction(state, inputs, prediction)
            return
        graph = self._network.graph
        if self._cv == "exact":
            spread, inside = self._records.row("spread"), self._records.row("inside")
            component, n_learners = graph.component, self._network.n_learners
            pair_gaps(spread, inside, *function, inputs.z, component, n_learners)
        elif self._cv == "sampled":
            self._sample(self._blended(function), inputs.z)
        if self._discrepancy:
            functions, gaps = self._blended(function), self._records.row("gaps")
            neighbor_gaps(gaps, functions, inputs.z, graph.indptr, graph.indices)

    def _blended(self, function: Function) -> Array:
        if self._room is None:
            self._room = np.empty_like(function.theta)
        blend(self._room, function.theta, function.weights)
        return self._room

    def _sample(self, functions: Array, z: Array) -> None:
        n_learners = self._network.n_learners
        shape = (self._network.n_trials, N_SAMPLED_PAIRS)
        k = self._pairs.integers(n_learners, size=shape)
        other = (k + self._pairs.integers(1, n_learners, size=shape)) % n_learners
        start = n_learners * np.arange(shape[0])[:, None]
        gaps = np.empty(shape)
        sampled_gaps(gaps.ravel(), functions, z, (start + k).ravel(), (start + other).ravel())
        self.sampled_mean.append(gaps.mean(axis=1))
        self.sampled_variance.append(gaps.var(axis=1, ddof=1) / N_SAMPLED_PAIRS)

    def _by_prediction(self, state: Any, inputs: Inputs, prediction: Prediction) -> None:
        """Let every learner's state predict every other's inputs, by turning states around."""
        n_learners, graph = self._network.n_learners, self._network.graph
        k = np.arange(graph.n_learners)
        spread, inside, signed = (np.zeros(len(k)) for _ in range(3))
        for turn in range(1, n_learners):
            other = k - k % n_learners + (k + turn) % n_learners
            turned = type(state)(*(field[other] for field in state))
            gap = prediction.y_hat - self._algorithm.predict(turned, inputs).y_hat
            spread += gap**2
            inside += np.where(graph.component[other] == graph.component, gap**2, 0)
            if self._discrepancy:
                signed += np.where(self._are_neighbors(k, other), gap, 0)
        self._records.row("spread")[:] = spread
        self._records.row("inside")[:] = inside
        self._records.row("gaps")[:] = signed**2

    def _are_neighbors(self, k: Ints, other: Ints) -> Any:
        graph = self._network.graph
        keys = graph.sources * graph.n_learners + graph.indices
        return np.isin(k * graph.n_learners + other, keys)
