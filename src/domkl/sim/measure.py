"""Measure a round: errors, consensus violation, discrepancy between neighbors."""

from typing import Any

import numpy as np

from domkl.algorithms.base import Algorithm, Function, Inputs, Prediction
from domkl.core.predict import blend, neighbor_gaps, pair_gaps, sampled_gaps
from domkl.errors import ParameterError
from domkl.sim.network import Network
from domkl.sim.records import Records
from domkl.typing import Array, Floats, Ints

N_SAMPLED_PAIRS = 1000


class Disagreement:
    """Sums of (f_k(x_k) − f_ℓ(x_k))² each round, exact or sampled, for all trials of a cell."""

    def __init__(
        self,
        algorithm: Algorithm,
        network: Network,
        records: Records,
        cv: str,
        pairs: list[np.random.Generator],
    ) -> None:
        self._algorithm, self._network, self._records = algorithm, network, records
        self._cv = cv
        self._discrepancy = records.keeps("gaps")
        self._pairs = pairs  # one generator per trial
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
        k = self._draw(0, n_learners, N_SAMPLED_PAIRS)
        other = (k + self._draw(1, n_learners, N_SAMPLED_PAIRS)) % n_learners
        start = n_learners * np.arange(len(k))[:, None]
        gaps = np.empty(k.shape)
        sampled_gaps(gaps.ravel(), functions, z, (start + k).ravel(), (start + other).ravel())
        self._keep_sample(gaps)

    def _draw(self, low: int, high: int, size: int) -> Ints:
        """Whole numbers (B, size) in low..high − 1, each trial's from its own generator."""
        return np.stack([pairs.integers(low, high, size=size) for pairs in self._pairs])

    def _keep_sample(self, gaps: Floats) -> None:
        self.sampled_mean.append(gaps.mean(axis=1))
        self.sampled_variance.append(gaps.var(axis=1, ddof=1) / gaps.shape[1])

    def _by_prediction(self, state: Any, inputs: Inputs, prediction: Prediction) -> None:
        """Let learners' states predict each other's inputs: learner k's by k + shift's state."""
        n_learners, graph = self._network.n_learners, self._network.graph
        if self._cv == "sampled":
            shifts = self._draw(1, n_learners, -(-N_SAMPLED_PAIRS // n_learners))
            gaps = [self._shifted_gap(shift, state, inputs, prediction)[0] for shift in shifts.T]
            by_trial = (np.reshape(gap, (-1, n_learners)) ** 2 for gap in gaps)
            self._keep_sample(np.concatenate(list(by_trial), axis=1))
            if not self._discrepancy:
                return
        spread, inside, signed = (np.zeros(graph.n_learners) for _ in range(3))
        for shift in range(1, n_learners):
            each = np.full(self._network.n_trials, shift)
            gap, other = self._shifted_gap(each, state, inputs, prediction)
            spread += gap**2
            inside += np.where(graph.component[other] == graph.component, gap**2, 0)
            if self._discrepancy:
                signed += np.where(self._are_neighbors(other), gap, 0)
        if self._cv == "exact":
            self._records.row("spread")[:] = spread
            self._records.row("inside")[:] = inside
        if self._discrepancy:
            self._records.row("gaps")[:] = signed**2

    def _shifted_gap(
        self, shifts: Ints, state: Any, inputs: Inputs, prediction: Prediction
    ) -> tuple[Floats, Ints]:
        """f_k(x_k) − f_ℓ(x_k), and ℓ, the learner ``shift`` places on in k's trial: (B·K,)."""
        n_learners = self._network.n_learners
        k = np.arange(self._network.graph.n_learners)
        other = k - k % n_learners + (k + np.repeat(shifts, n_learners)) % n_learners
        if any(np.shape(field)[:1] != (len(k),) for field in state):
            raise ParameterError(
                "every field of the state must have one entry per learner, where an algorithm"
                " has no function(); else pass cv='off'"
            )
        shifted = type(state)(*(field[other] for field in state))
        return prediction.y_hat - self._algorithm.predict(shifted, inputs).y_hat, other

    def _are_neighbors(self, other: Ints) -> Any:
        graph = self._network.graph
        keys = graph.sources * graph.n_learners + graph.indices
        return np.isin(np.arange(graph.n_learners) * graph.n_learners + other, keys)
