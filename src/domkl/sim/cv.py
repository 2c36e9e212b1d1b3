"""Consensus violation: how far learners disagree, over all pairs, by moments, or sampled.

By moments: with m the mean of the learners' parameters Θ_ℓ, the kernels' weights multiplied in, and
C the sum of (Θ_ℓ − m)(Θ_ℓ − m)ᵀ,

    Σ_ℓ (f_k(x_k) − f_ℓ(x_k))² = K((Θ_k − m)ᵀz_k)² + z_kᵀ C z_k,

in a time that grows as K and not as K². Sums are in double precision, and centred before they are
squared: learners that agree are near to m and far from 0, and what is wanted would be lost in the
difference of two large numbers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from domkl import rng
from domkl.algorithms.base import Function, Inputs, Prediction
from domkl.core.hedge import blend
from domkl.core.jit import sweep
from domkl.core.lanes import dot, dot_block
from domkl.core.vectors import lines
from domkl.errors import ParameterError
from domkl.sim.cells import Cell, Records
from domkl.sim.mpi.shard import Total
from domkl.typing import Array, Floats, Ints, Number

N_SAMPLED_PAIRS = 1000
MOMENT_BLOCK = 1024  # learners at a time

#: features z (n, P, D) of the learners with these numbers, which count on from trial to trial
Features = Callable[[Ints], Array]


class Disagreement:
    """Sums of (f_k(x_k) − f_ℓ(x_k))² each round, exact or sampled, for all trials of a cell."""

    def __init__(self, cell: Cell, records: Records) -> None:
        self._algorithm, self._network, self._records = cell.algorithm, cell.network, records
        self._cv, self._discrepancy = cell.options.cv, records.keeps("gaps")
        trials = range(cell.first_trial, cell.first_trial + cell.network.n_trials)
        self._generators = [rng.child(cell.options.seed, "cv", trial) for trial in trials]
        self._means: list[Floats] = []  # of each round, (B,), where pairs are sampled
        self._variances: list[Floats] = []

    def update(
        self, state: Any, features: Features, made: tuple[Inputs, Prediction] | None = None
    ) -> None:
        """Measure the functions that predict this round.

        What they were given and what they made of it is needed in all modes but two: sampled pairs
        and moments of functions of the form (6).
        """
        if self._cv == "off" and not self._discrepancy:
            return
        function = self._algorithm.function(state)
        if function is None:
            assert made is not None, "compiled hosts measure functions only"
            self._by_prediction(state, *made)
        elif self._cv == "moments":
            self._by_moments(function, features)
        elif self._cv == "sampled":
            self._by_pairs(function, features)
        elif self._cv == "exact" and made is not None:
            spread, inside = self._records.row("spread"), self._records.row("inside")
            component, n_learners = self._network.graph.component, self._network.n_learners
            pair_gaps(spread, inside, *function, made[0].z, component, n_learners)
        if self._discrepancy and function is not None and made is not None:
            functions, graph = np.empty_like(function.theta), self._network.graph
            blend(functions, *function)
            gaps = self._records.row("gaps")
            neighbor_gaps(gaps, functions, made[0].z, graph.indptr, graph.indices)

    def sampled(self) -> tuple[Floats, Floats]:
        """Means over the pairs of each round and their variances, (T, B) each."""
        return np.array(self._means), np.array(self._variances)

    def _by_pairs(self, function: Function, features: Features) -> None:
        """Draw pairs k ≠ ℓ of each trial and measure them."""
        n_learners, (theta, q) = self._network.n_learners, function
        k = self._draw(0, N_SAMPLED_PAIRS)
        other = (k + self._draw(1, N_SAMPLED_PAIRS)) % n_learners
        start = n_learners * np.arange(len(k))[:, None]
        k, other, gaps = (start + k).ravel(), (start + other).ravel(), np.empty(k.shape)
        sampled_gaps(gaps.ravel(), theta[k], q[k], theta[other], q[other], features(k))
        self._keep(gaps)

    def _draw(self, low: int, size: int) -> Ints:
        """Whole numbers (B, size) in low..K − 1, each trial's from its own generator."""
        high = self._network.n_learners
        return np.stack([each.integers(low, high, size=size) for each in self._generators])

    def _keep(self, gaps: Floats) -> None:
        """Keep this round's mean and the variance of the mean: gaps (B, S)."""
        self._means.append(gaps.mean(axis=1))
        self._variances.append(gaps.var(axis=1, ddof=1) / gaps.shape[1])

    def _by_moments(self, function: Function, features: Features) -> None:
        """Write what `pair_gaps` does, in a time that grows as K."""
        network = self._network
        spread, inside = self._records.row("spread"), self._records.row("inside")
        everyone = np.arange(network.graph.n_learners)
        for trial in everyone.reshape(-1, network.n_learners):
            spread[trial] = moment_gaps(trial, function, features, network.total)
            if not self._records.keeps("inside"):
                continue
            component = network.graph.component[trial]
            if (component == component[0]).all():
                inside[trial] = spread[trial]
                continue
            order = np.argsort(component, kind="stable")
            cuts = np.flatnonzero(np.diff(component[order])) + 1
            for members in np.split(trial[order], cuts):
                inside[members] = _gaps_among(members, function, features)

    def _by_prediction(self, state: Any, inputs: Inputs, prediction: Prediction) -> None:
        """Let learners' states predict each other's inputs: learner k's by k + shift's state."""
        n_learners, graph = self._network.n_learners, self._network.graph
        if self._cv == "sampled":
            shifts = self._draw(1, -(-N_SAMPLED_PAIRS // n_learners))
            gaps = [self._shifted_gap(shift, state, inputs, prediction)[0] for shift in shifts.T]
            by_trial = (np.reshape(gap, (-1, n_learners)) ** 2 for gap in gaps)
            self._keep(np.concatenate(list(by_trial), axis=1))
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
    gaps: Floats, own: Array, own_weights: Floats, other: Array, other_weights: Floats, z: Array
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


def moment_gaps(
    members: Ints, function: Function, features: Features, total: Total | None = None
) -> Floats:
    """Give Σ_ℓ (f_k(x_k) − f_ℓ(x_k))² of each of these learners, over all of them: (n,).

    Costs 2(P·D)² multiply-adds a learner. Where learners are at several places, ``total``
    replaces an array by its sum over them.

    Examples
    --------
    >>> theta, z = np.array([[[1.0]], [[2.0]], [[4.0]]]), np.array([[[1.0]], [[1.0]], [[2.0]]])
    >>> moment_gaps(np.arange(3), Function(theta, np.ones((3, 1))), lambda k: z[k]).round(9)
    array([10.,  5., 52.])
    """
    theta, q = function

    def parameters(some: Ints) -> Array:
        return np.reshape(theta[some] * q[some][:, :, None], (len(some), -1))

    blocks = [members[low : low + MOMENT_BLOCK] for low in range(0, len(members), MOMENT_BLOCK)]
    summed: Floats = np.zeros(theta[0].size)
    count = np.full(1, float(len(members)))
    for some in blocks:
        summed += parameters(some).sum(axis=0, dtype=np.float64)
    if total is not None:
        total(summed)
        total(count)
    n_learners = count[0]
    mean = summed / n_learners
    spread = np.zeros((len(mean), len(mean)))
    for some in blocks:
        centered = parameters(some) - mean
        spread += centered.T @ centered
    if total is not None:
        total(spread)
    gaps = []
    for some in blocks:
        z = np.asarray(features(some).reshape(len(some), -1), dtype=np.float64)
        own = np.einsum("ki,ki->k", parameters(some) - mean, z)
        gaps.append(n_learners * own**2 + np.einsum("ki,ki->k", z @ spread, z))
    return np.concatenate(gaps)


def _gaps_among(members: Ints, function: Function, features: Features) -> Floats:
    """The same, by pairs where there are fewer learners than parameters."""
    theta, q = function
    if len(members) > theta[0].size:
        return moment_gaps(members, function, features)
    spread, inside = np.empty(len(members)), np.empty(len(members))
    zeros = np.zeros(len(members), dtype=np.int64)
    pair_gaps(spread, inside, theta[members], q[members], features(members), zeros, len(members))
    return spread
