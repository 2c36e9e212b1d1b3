"""DOMKRLS as it was in version 0.1, its first form, to hold the present one against.

Least squares at each learner, the mean of all fits between neighbors, no rate to set. What a
learner says is what a DOMKL learner says: θ and the accumulated losses of its kernels.

Every learner has two estimates per kernel: its own fit φ, the exact ridge fit of its own samples,
and θ, which tracks the mean of all learners' fits. It weighs kernels twice, by the losses of the
θs and by those of the φs, and finally the two estimates by the losses of theirs.

Losses are forgotten in time, so that the cold start does not count for ever: with n the number of
rounds in an account, all are multiplied by forget · 2n/(2n + 1) before the next loss is added. Then
n grows by a half each round, and what is older than half of the stream counts little. Accounts
are robust: see `robust_square`.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from domkl import checks
from domkl.algorithms.base import CompiledAlgorithm, Inputs, Net, Prediction, Sizes, uniform
from domkl.algorithms.law import Law
from domkl.core.hedge import combined_predictions, evidence
from domkl.core.jit import row, scalar, sweep
from domkl.core.kernels import Dictionary, default_bank
from domkl.core.lanes import dot
from domkl.core.losses import (
    LOGISTIC,
    BuiltIn,
    Logistic,
    Loss,
    Squared,
    loss_value,
    pull,
    robust_square,
    sigmoid,
)
from domkl.core.rls import first_factors, shrink, variance
from domkl.core.vectors import copied, mixture
from domkl.errors import ParameterError
from domkl.typing import Array, Floats, Number

#: of θ's way to φ, each round: what a lost message did to the mean is healed in some 100 rounds
LEAK = 0.01
#: trust in θ before any loss; the rest is in φ
TRUST = 0.999
#: of the own fit in what predicts: less would be a denormal number, and slow
LEAST_SHARE = 1e-20
#: of the logistic loss: its inverse is a noise variance
LEAST_CURVATURE = 1e-6


class State(NamedTuple):
    """What a DOMKRLS learner keeps."""

    theta: Array  # (K, P, D)            tracks the mean of all learners' fits
    combined: Array  # (K, P, D)         what predicts: a mixture of θ and the own fit
    loss: Floats  # (K, P)               of the θs, mean over learners as far as it is heard
    weights: Floats  # (K, P)
    own: Array  # (K, P, D)              φ, the fit of the learner's own samples
    diagonal: Array  # (K, P, D)         of its C = U D Uᵀ, core/rls.py
    factor: Array  # (K, P, D(D − 1)/2)  and U
    own_loss: Floats  # (K, P)           of the φs
    score: Floats  # (K, 2)              losses of all θs together, and of all φs
    rounds: Floats  # (K,)               number of rounds in each of the accounts
    prior: Floats  # (K, P)              weights before any loss


class Message(NamedTuple):
    """What a DOMKRLS learner says."""

    theta: Array  # (K, P, D)
    loss: Floats  # (K, P)


@sweep
def predict(state: State, params: Any, inputs: Inputs, prediction: Prediction) -> None:
    """The mixture of θ and φ, for all kernels."""
    y_hat, f = prediction.y_hat, prediction.by_kernel
    combined_predictions(y_hat, f, state.combined, state.weights, inputs.z)


@sweep
def local_step(
    state: State,
    params: Any,
    inputs: Inputs,
    y: Floats,
    prediction: Prediction,
    net: Net,
    message: Message,
) -> None:
    """Take each sample into its learner's fits, say θ moved as the fits move, and add losses up.

    A learner without a label, NaN, says again what its means are.
    """
    z, n_kernels, kind = inputs.z, state.theta.shape[1], params.loss.kind
    by_theta, by_own, _ = _estimates(state, params)
    gain = np.empty(state.theta.shape[2], state.theta.dtype)
    for k in range(len(y)):
        if math.isnan(y[k]):
            copied(message.loss[k], state.loss[k])
            for p in range(n_kernels):
                copied(message.theta[k, p], state.theta[k, p])
            continue
        n = state.rounds[k]
        keep = params.forget * 2 * n / (2 * n + 1)
        noise, own_noise = _mean_loss(state.loss[k], n), _mean_loss(state.own_loss[k], n)
        theirs, ours = 0.0, 0.0
        for p in range(n_kernels):
            f = float(dot(state.theta[k, p], z[k, p]))
            own = float(dot(state.own[k, p], z[k, p]))
            theirs += by_theta[k, p] * f
            ours += by_own[k, p] * own
            loss = _loss(kind, f, y[k], noise)
            own_loss = _loss(kind, own, y[k], own_noise)
            message.loss[k, p] = keep * state.loss[k, p] + loss
            state.own_loss[k, p] = keep * state.own_loss[k, p] + own_loss
            step = _shrink(state, params, k, p, z[k, p], gain, own, y[k])
            real = state.theta.dtype.type
            theta, own_fit = state.theta[k, p], state.own[k, p]
            tracked(own_fit, message.theta[k, p], theta, gain, real(step), real(LEAK))
        noise = _mean_loss(state.score[k], n)
        state.score[k, 0] = keep * state.score[k, 0] + _loss(kind, theirs, y[k], noise)
        state.score[k, 1] = keep * state.score[k, 1] + _loss(kind, ours, y[k], noise)
        state.rounds[k] = keep * n + 1


@sweep
def merge(state: State, params: Any, heard: Message, net: Net) -> None:
    """Keep the means of own and neighbors' θ and losses, and make the function that predicts.

    A learner that has no sample of its own yet takes θ for its fit: it follows the others, and
    does not pull their mean to 0.
    """
    mean = heard.theta
    for k in range(len(mean)):
        copied(state.loss[k], heard.loss[k])
        for p in range(mean.shape[1]):
            copied(state.theta[k, p], mean[k, p])
            if state.rounds[k] == 0:
                copied(state.own[k, p], mean[k, p])
    by_theta, by_own, trust = _estimates(state, params)
    for k in range(len(mean)):
        for p in range(mean.shape[1]):
            own = trust[k, 1] * by_own[k, p]
            weight = trust[k, 0] * by_theta[k, p] + own
            share = state.theta.dtype.type(own / weight if own > LEAST_SHARE * weight else 0.0)
            state.weights[k, p] = weight
            mixture(state.combined[k, p], state.theta[k, p], state.own[k, p], share)


@sweep
def deviations(out: Floats, state: State, params: Any, z: Array, y_hat: Floats, f: Floats) -> None:
    """Write the standard deviation of each prediction: out, y_hat (K,), f (K, P).

    Σ_p q_p [s² (1 + z_pᵀC_p z_p) + (f_p − f)²]: the noise, what the samples leave open, and how
    far the kernels disagree. For the logistic loss that of f itself, without noise and s² = 1.
    Infinite before the first sample: nothing is known then.
    """
    is_logistic = params.loss.kind == LOGISTIC
    for k in range(len(out)):
        noise = 1.0 if is_logistic else _mean_loss(state.score[k], state.rounds[k])
        total = 0.0
        for p in range(f.shape[1]):
            reach = float(variance(state.factor[k, p], state.diagonal[k, p], z[k, p]))
            open_part = noise * (reach if is_logistic else 1 + reach)
            total += state.weights[k, p] * (open_part + (f[k, p] - y_hat[k]) ** 2)
        is_blind = not is_logistic and state.rounds[k] == 0
        out[k] = np.inf if is_blind else np.sqrt(total)


@sweep
def _estimates(state: State, params: Any) -> tuple[Floats, Floats, Floats]:
    """Weights of the kernels by the losses of θ and of φ, (K, P), and of the two, (K, 2).

    They are the evidence's: exp(−loss/2s²) for errors of variance s², and exp(−loss) for the
    logistic loss, which is the negative logarithm of a probability by itself.
    """
    by_theta, by_own = np.empty_like(state.loss), np.empty_like(state.loss)
    trust = np.empty_like(state.score)
    first_trust = np.empty_like(state.score)
    first_trust[:, 0] = TRUST
    first_trust[:, 1] = 1 - TRUST
    _weigh(by_theta, state.loss, state.prior, state, params)
    _weigh(by_own, state.own_loss, state.prior, state, params)
    _weigh(trust, state.score, first_trust, state, params)
    return by_theta, by_own, trust


@sweep
def _weigh(weights: Floats, loss: Floats, prior: Floats, state: State, params: Any) -> None:
    for k in range(len(loss)):
        is_logistic = params.loss.kind == LOGISTIC
        scale = 1.0 if is_logistic else 2 * _mean_loss(loss[k], state.rounds[k])
        evidence(weights[k], loss[k], scale, prior[k])
        for i in range(len(prior[k])):  # an expert that was bad for long comes back
            weights[k, i] = params.forget * weights[k, i] + (1 - params.forget) * prior[k, i]


@row
def tracked(own: Array, out: Array, theta: Array, gain: Array, step: Number, leak: Number) -> None:
    """Move own by step · gain; write theta moved likewise, then by leak · (own − theta)."""
    for i in range(own.size):
        move = step * gain[i]
        own[i] += move
        after = theta[i] + move
        out[i] = after + leak * (own[i] - after)


@sweep
def _mean_loss(loss: Floats, rounds: float) -> float:
    """s², the mean loss of the best; 0 before any sample."""
    return float(loss.min() / rounds) if rounds > 0 else 0.0


@scalar
def _loss(kind: int, f: float, y: float, noise: float) -> float:
    return (
        loss_value(BuiltIn(LOGISTIC, 0.0), f, y)
        if kind == LOGISTIC
        else robust_square(y - f, noise)
    )


@sweep
def _shrink(
    state: State, params: Any, k: int, p: int, z: Array, gain: Array, own: float, y: float
) -> float:
    """Write the gain Cz, take the sample into C; give the fit's step along the gain.

    For the logistic loss φ⁺ = argmin ℓ(φᵀz, y) + ½ (φ − φ_k)ᵀ(C/forget)⁻¹(φ − φ_k). That is one
    scalar equation, core/losses.py, and never oversteps; C then takes in the loss's curvature at
    the solution.
    """
    factor, diagonal = state.factor[k, p], state.diagonal[k, p]
    if params.loss.kind != LOGISTIC:
        return float(
            (y - own) / shrink(factor, diagonal, z, gain, 1.0, params.forget, params.ridge)
        )
    reach = float(variance(factor, diagonal, z)) / params.forget
    slope = pull(params.loss, own, y, reach)
    chance = sigmoid(own - reach * slope)
    noise = 1 / max(chance * (1 - chance), LEAST_CURVATURE)
    shrink(factor, diagonal, z, gain, noise, params.forget, params.ridge)
    return float(-slope / params.forget)


@sweep
def function(state: State) -> tuple[Array, Floats]:
    """What predicts."""
    return state.combined, state.weights


@dataclass(frozen=True)
class DOMKRLS(CompiledAlgorithm):
    """Learn with many kernels by recursive least squares, and no rate to choose.

    φ_k⁺ = φ_k + C_k z (y − φ_kᵀz)/(1 + zᵀC_k z),   θ_k⁺ = Σ_ℓ a_kℓ (θ_ℓ + φ_ℓ⁺ − φ_ℓ)

    with Metropolis weights a: every θ tracks the mean of all fits φ. Kernels are weighed by
    prior · exp(−loss/2s²), s² the mean loss of the best, and so are θ and φ against each other:
    where neighbors are no help a learner turns to its own fit.

    Parameters
    ----------
    forget : float
        What a sample's weight is multiplied by each round; below 1 to follow drift. Kernels are
        then weighed with fixed share 1 − forget.
    ridge : float
        Weight of ‖φ‖² beside the squared errors; ten times that for every second kernel with a
        spectrum, so that a dictionary with neighbors much alike tries two.
    loss : Loss
        Squared() or Logistic(). With the latter predictions are log-odds, and 2s² = 1.
    """

    forget: float = 1.0
    ridge: float = 1e-3
    loss: Loss = Squared()

    takes_missing = True
    relative_cost = 6.0  # as benchmarks/bench_domkrls.py measures it
    law = Law(
        State,
        Message,
        predict,
        local_step,
        merge,
        function,
        exchange={"theta": "metropolis", "loss": "metropolis"},
    )

    def __post_init__(self) -> None:
        checks.fraction("forget", self.forget)
        checks.positive("ridge", self.ridge)
        if not isinstance(self.loss, (Squared, Logistic)):
            raise ParameterError(f"loss must be Squared() or Logistic(), got {self.loss!r}")

    def init(self, sizes: Sizes) -> State:
        """All zero, C = I/ridge; the linear kernel has half of the prior."""
        prior, ridges = uniform(sizes), np.full(sizes.n_kernels, float(self.ridge))
        ridges[1 : sizes.n_kernels - sizes.linear : 2] *= 10
        if sizes.linear:
            prior[:] = 0.5 / (sizes.n_kernels - 1)
            prior[:, -1] = 0.5
        factor, diagonal = (
            np.tile(each.astype(sizes.dtype), (sizes.n_learners, 1, 1))
            for each in first_factors(sizes.lengths, sizes.n_features, ridges)
        )
        theta, combined, own = (np.zeros(sizes.theta, dtype=sizes.dtype) for _ in range(3))
        loss, own_loss = np.zeros(sizes.weights), np.zeros(sizes.weights)
        score, rounds = np.zeros((sizes.n_learners, 2)), np.zeros(sizes.n_learners)
        learned = (theta, combined, loss, prior.copy())
        return State(*learned, own, diagonal, factor, own_loss, score, rounds, prior)

    def deviation(self, state: State, inputs: Inputs) -> Floats:
        """√ Σ_p q_p [s² (1 + z_pᵀC_p z_p) + (f_p − f)²]; of log-odds, without the noise."""
        out = np.empty(len(state.theta))
        y_hat, f, _ = self.predict(state, inputs)
        deviations(out, state, self.compiled, inputs.z, y_hat, f)
        return out

    def idle_step(self, state: State, net: Net) -> tuple[State, Message]:
        """Say again what the means are."""
        return state, Message(state.theta.copy(), state.loss.copy())

    def bank(self) -> Dictionary:
        """With the linear kernel."""
        return default_bank()
