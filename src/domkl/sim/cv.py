"""Measure a round: errors, consensus violation, discrepancy between neighbors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from domkl.algorithms.base import Algorithm, Function, Inputs, Prediction
from domkl.core.moments import moment_gaps
from domkl.core.predict import blend, neighbor_gaps, pair_gaps, sampled_gaps
from domkl.errors import ParameterError
from domkl.sim.mpi.shard import Total
from domkl.sim.network import Network
from domkl.sim.recorder import Records
from domkl.typing import Array, Floats, Ints

N_SAMPLED_PAIRS = 1000

#: θ (n, P, D) and q (n, P) of the learners with these numbers
Functions = Callable[[Ints], tuple[Array, Floats]]
#: and their features z (n, P, D)
Features = Callable[[Ints], Array]


class Pairs:
    """Mean and variance, over pairs drawn at random, of (f_k(x_k) − f_ℓ(x_k))² in each round."""

    def __init__(self, generators: list[np.random.Generator], n_learners: int) -> None:
        self._generators, self._n_learners = generators, n_learners  # one generator per trial
        self._means: list[Floats] = []  # of each round, (B,)
        self._variances: list[Floats] = []

    def update(self, functions: Functions, features: Features) -> None:
        """Draw pairs k ≠ ℓ and measure them; rows of one trial stand together."""
        n_learners = self._n_learners
        k = self.draw(0, n_learners, N_SAMPLED_PAIRS)
        other = (k + self.draw(1, n_learners, N_SAMPLED_PAIRS)) % n_learners
        start = n_learners * np.arange(len(k))[:, None]
        k, other, gaps = (start + k).ravel(), (start + other).ravel(), np.empty(k.shape)
        sampled_gaps(gaps.ravel(), *functions(k), *functions(other), features(k))
        self.keep(gaps)

    def draw(self, low: int, high: int, size: int) -> Ints:
        """Whole numbers (B, size) in low..high − 1, each trial's from its own generator."""
        return np.stack([each.integers(low, high, size=size) for each in self._generators])

    def keep(self, gaps: Floats) -> None:
        """Keep this round's mean and the variance of the mean: gaps (B, S)."""
        self._means.append(gaps.mean(axis=1))
        self._variances.append(gaps.var(axis=1, ddof=1) / gaps.shape[1])

    def sampled(self) -> tuple[Floats, Floats]:
        """Means and their variances, (T, B) each."""
        return np.array(self._means), np.array(self._variances)


def by_moments(
    spread: Floats,
    inside: Floats | None,
    functions: Functions,
    features: Features,
    component: Ints,
    total: Total | None = None,
) -> None:
    """Write what `pair_gaps` does for one trial, in a time that grows as K.

    Of a trial that is spread over places this is one, and ``total`` sums over them.
    """
    everyone = np.arange(len(spread))
    _moments(spread, everyone, functions, features, total)
    if inside is None:
        return
    if not component.any():
        inside[:] = spread
        return
    by_component = np.argsort(component, kind="stable")
    for members in np.split(by_component, np.cumsum(np.bincount(component))[:-1]):
        out = np.empty(len(members))
        theta, q = functions(members[:1])
        if len(members) > theta[0].size:
            _moments(out, members, functions, features)
        else:
            zeros = np.zeros(len(members), dtype=np.int64)
            theta, q = functions(members)
            pair_gaps(out, np.empty_like(out), theta, q, features(members), zeros, len(members))
        inside[members] = out


def _moments(
    out: Floats,
    members: Ints,
    functions: Functions,
    features: Features,
    total: Total | None = None,
) -> None:
    def parameters(low: int, high: int) -> Array:
        theta, q = functions(members[low:high])
        return np.reshape(theta * q[:, :, None], (high - low, -1))

    def inputs(low: int, high: int) -> Array:
        return features(members[low:high]).reshape(high - low, -1)

    moment_gaps(out, parameters, inputs, total)


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
        self.pairs = Pairs(pairs, network.n_learners)
        self._room: Array | None = None

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
        elif self._cv == "moments":
            self._by_moments(function, inputs.z)
        elif self._cv == "sampled":
            theta, weights = function
            self.pairs.update(lambda rows: (theta[rows], weights[rows]), lambda k: inputs.z[k])
        if self._discrepancy:
            functions, gaps = self._blended(function), self._records.row("gaps")
            neighbor_gaps(gaps, functions, inputs.z, graph.indptr, graph.indices)

    def _blended(self, function: Function) -> Array:
        if self._room is None:
            self._room = np.empty_like(function.theta)
        blend(self._room, function.theta, function.weights)
        return self._room

    def _by_moments(self, function: Function, z: Array) -> None:
        n_learners, theta, q = self._network.n_learners, function.theta, function.weights
        spread, inside = self._records.row("spread"), self._records.row("inside")
        component = self._network.graph.component.reshape(-1, n_learners)
        for b, start in enumerate(range(0, len(z), n_learners)):
            here = slice(start, start + n_learners)

            def functions(rows: Ints, start: int = start) -> tuple[Array, Floats]:
                return theta[start + rows], q[start + rows]

            def features(rows: Ints, start: int = start) -> Array:
                return z[start + rows]

            within = inside[here] if self._records.keeps("inside") else None
            number = component[b] - component[b].min()
            total = self._network.total
            by_moments(spread[here], within, functions, features, number, total)

    def _by_prediction(self, state: Any, inputs: Inputs, prediction: Prediction) -> None:
        """Let learners' states predict each other's inputs: learner k's by k + shift's state."""
        n_learners, graph = self._network.n_learners, self._network.graph
        if self._cv == "sampled":
            shifts = self.pairs.draw(1, n_learners, -(-N_SAMPLED_PAIRS // n_learners))
            gaps = [self._shifted_gap(shift, state, inputs, prediction)[0] for shift in shifts.T]
            by_trial = (np.reshape(gap, (-1, n_learners)) ** 2 for gap in gaps)
            self.pairs.keep(np.concatenate(list(by_trial), axis=1))
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
        if self._cv in ("exact", "moments"):
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
