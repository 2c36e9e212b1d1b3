"""Consensus violation: how far learners disagree, over all pairs, by moments, or sampled.

By moments: with m the mean of the learners' parameters Θ_ℓ, the kernels' weights multiplied in, and
C the sum of (Θ_ℓ − m)(Θ_ℓ − m)ᵀ,

    Σ_ℓ (f_k(x_k) − f_ℓ(x_k))² = K((Θ_k − m)ᵀz_k)² + z_kᵀ C z_k,

in a time that grows as K and not as K². Sums are in double precision, and centred before they are
squared: learners that agree are near to m and far from 0, and what is wanted would be lost in the
difference of two large numbers.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from domkl.algorithms.base import Algorithm, Function, Inputs, Prediction
from domkl.core.hedge import blend
from domkl.core.jit import sweep
from domkl.core.lanes import dot, dot_block
from domkl.core.vectors import lines
from domkl.errors import ParameterError
from domkl.sim.cells import Network
from domkl.sim.mpi.shard import Total
from domkl.sim.recorder import Records
from domkl.typing import Array, Floats, Ints, Number

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


@sweep
def pair_gaps(
    spread: Floats,
    inside: Floats,
    theta: Array,
    weights: Floats,
    z: Array,
    component: Ints,
    n_learners: int,
) -> None:
    """Sum (f_k(x_k) − f_ℓ(x_k))² over ℓ, for every learner k: what CV averages.

    Parameters
    ----------
    spread, inside : (B·K,)
        Written: the sum over all learners of the trial, and over those of k's component.
    theta, z : (B·K, P, D)
    weights : (B·K, P)
    component : (B·K,)
    n_learners : int
        K: rows of one trial stand together.
    """
    blended = np.empty((n_learners, theta.shape[1], theta.shape[2]), theta.dtype)
    functions, inputs = lines(blended), lines(z)
    values = np.empty((n_learners + 1, n_learners + 1))
    last = n_learners - 1
    for start in range(0, len(theta), n_learners):
        stop = start + n_learners
        blend(blended, theta[start:stop], weights[start:stop])
        for k in range(0, n_learners, 2):
            a, b = inputs[start + k], inputs[start + min(k + 1, last)]
            for other in range(0, n_learners, 2):
                c, d = functions[other], functions[min(other + 1, last)]
                ac, ad, bc, bd = dot_block(a, b, c, d)
                values[k, other] = ac
                values[k, other + 1] = ad
                values[k + 1, other] = bc
                values[k + 1, other + 1] = bd
        for k in range(n_learners):
            total = 0.0
            within = 0.0
            for other in range(n_learners):
                gap = (values[k, k] - values[k, other]) ** 2
                total += gap
                if component[start + other] == component[start + k]:
                    within += gap
            spread[start + k] = total
            inside[start + k] = within


@sweep
def sampled_gaps(
    gaps: Floats,
    own: Array,
    own_weights: Floats,
    other: Array,
    other_weights: Floats,
    z: Array,
) -> None:
    """Write (f_k(x_k) − f_ℓ(x_k))² of S pairs: gaps (S,), both θ and z_k (S, P, D), q (S, P)."""
    for i in range(len(gaps)):
        gap = 0.0
        for p in range(z.shape[1]):
            gap += own_weights[i, p] * dot(own[i, p], z[i, p])
            gap -= other_weights[i, p] * dot(other[i, p], z[i, p])
        gaps[i] = gap * gap


@sweep
def neighbor_gaps(out: Floats, functions: Array, z: Array, indptr: Ints, indices: Ints) -> None:
    """Write [Σ_{ℓ∈N_k} f_k(x_k) − f_ℓ(x_k)]², what regret_d of Theorems 1 and 2 sums: out (K,)."""
    functions, z = lines(functions), lines(z)
    for k in range(len(out)):
        own = dot(z[k], functions[k])
        total: Number = 0.0
        for edge in range(indptr[k], indptr[k + 1]):
            total += own - dot(z[k], functions[indices[edge]])
        out[k] = total * total


MOMENT_BLOCK = 1024  # learners at a time

#: rows low..high − 1 of an array (K, L) that need not exist as a whole
RowsOf = Callable[[int, int], Array]


def moment_gaps(
    out: Floats, parameters: RowsOf, inputs: RowsOf, total: Callable[[Floats], None] | None = None
) -> None:
    """Write Σ_ℓ (f_k(x_k) − f_ℓ(x_k))² of every learner: out (K,), Θ and z as (K, P·D).

    Costs 2(P·D)² multiply-adds a learner. Where learners are at several places, ``total``
    replaces an array by its sum over them.

    Examples
    --------
    >>> theta, z = np.array([[1.0], [2.0], [4.0]]), np.array([[1.0], [1.0], [2.0]])
    >>> out = np.empty(3)
    >>> moment_gaps(out, lambda low, high: theta[low:high], lambda low, high: z[low:high])
    >>> out.round(9)
    array([10.,  5., 52.])
    """
    summed: Floats = np.zeros(parameters(0, 1).shape[1])
    count = np.full(1, float(len(out)))
    for low, high in _blocks(len(out)):
        summed += parameters(low, high).sum(axis=0, dtype=np.float64)
    if total is not None:
        total(summed)
        total(count)
    n_learners = count[0]
    mean = summed / n_learners
    spread = np.zeros((len(mean), len(mean)))
    for low, high in _blocks(len(out)):
        centered = parameters(low, high) - mean
        spread += centered.T @ centered
    if total is not None:
        total(spread)
    for low, high in _blocks(len(out)):
        z = np.asarray(inputs(low, high), dtype=np.float64)
        own = np.einsum("ki,ki->k", parameters(low, high) - mean, z)
        out[low:high] = n_learners * own**2 + np.einsum("ki,ki->k", z @ spread, z)


def _blocks(n_learners: int) -> Iterator[tuple[int, int]]:
    for low in range(0, n_learners, MOMENT_BLOCK):
        yield low, min(low + MOMENT_BLOCK, n_learners)
