"""The laws of the four families, for every kernel at once: local step, merge, weights.

ADMM is DOKL and DOMKL, diffusion RFF-DOKL and RFF-DOMKL, server COMKL, least squares DOMKRLS. With
one kernel the Hedge gives weight 1 and changes nothing. The pages of algorithms/ say what each
array means; every host calls these functions, the interpreted ones through the pages and
core/rounds.py directly.
"""

from typing import NamedTuple

import numpy as np

from domkl.core.admm import dual_step, heard_dual_step, primal_step
from domkl.core.gradient import gradient_step, gradients, mean_step
from domkl.core.hedge import evidence_weights, hedge_weights
from domkl.core.jit import sweep
from domkl.core.losses import (
    LOGISTIC,
    accumulate_loss,
    loss_value,
    pull,
    robust_square,
    sigmoid,
)
from domkl.core.rls import shrink, variance
from domkl.core.vectors import copied, shifted
from domkl.typing import Array, Floats, Ints

ADMM, DIFFUSION, SERVER, LEAST_SQUARES = range(4)

_NO_ROW, _NO_TABLE = np.empty(0), np.empty((0, 0))  # what a family does not use


class Chain(NamedTuple):
    """A family's state and parameters, as the compiled functions take them."""

    family: int
    theta: Array  # (K, P, D)
    second: Array  # (K, P, D)  ADMM: dual; diffusion: ψ; server: gradients; least squares: D
    third: Array  # (K, P, D)   ADMM: center; least squares: U, (K, P, D(D − 1)/2); else empty
    loss: Floats  # (K, P)
    weights: Floats  # (K, P)
    rho: float  # ADMM
    eta_l: float  # ADMM
    step: float  # diffusion and server
    eta_g: float
    kind: int  # of the loss
    shape: float
    ridge: float = 1.0  # least squares, and all below
    forget: float = 1.0
    rounds: Floats = _NO_ROW  # (K,)      number in the account, forgotten like it
    prior: Floats = _NO_TABLE  # (K, P)   weights before any loss


@sweep
def consensus_local(
    chain: Chain, z: Array, energy: Floats, f: Floats, y: Floats, degree: Floats
) -> None:
    """Add each kernel's loss to its account (15), and solve (11)."""
    accumulate_loss(chain.loss, f, y, chain.kind, chain.shape)
    primal_step(
        chain.theta,
        chain.third,
        z,
        energy,
        y,
        degree,
        chain.eta_l,
        chain.rho,
        chain.kind,
        chain.shape,
    )


@sweep
def consensus_merge(chain: Chain, gap: Array, degree: Floats) -> None:
    """Ascend by (12)."""
    dual_step(chain.second, chain.third, chain.theta, gap, degree, chain.eta_l, chain.rho)


@sweep
def consensus_exchange(chain: Chain, indptr: Ints, indices: Ints, degree: Floats) -> None:
    """Hear the neighbors and ascend by (12), in one sweep."""
    heard_dual_step(
        chain.second,
        chain.third,
        chain.theta,
        indptr,
        indices,
        degree,
        chain.eta_l,
        chain.rho,
    )


@sweep
def weigh(chain: Chain, nbr_loss: Floats) -> None:
    """Weigh the kernels by own and neighbors' losses, (16)."""
    hedge_weights(chain.weights, chain.loss, nbr_loss, chain.eta_g)


@sweep
def diffusion_local(chain: Chain, z: Array, f: Floats, y: Floats) -> None:
    """Add each kernel's loss to its account (15), and step from ψ along the gradient."""
    accumulate_loss(chain.loss, f, y, chain.kind, chain.shape)
    gradient_step(chain.theta, chain.second, z, f, y, chain.step, chain.kind, chain.shape)


@sweep
def diffusion_merge(chain: Chain, combined: Array) -> None:
    """Keep ψ."""
    for k in range(len(combined)):
        for p in range(combined.shape[1]):
            copied(chain.second[k, p], combined[k, p])


@sweep
def server_local(chain: Chain, z: Array, f: Floats, y: Floats, loss: Floats) -> None:
    """Write each learner's gradients, and add its losses of this round to ``loss``."""
    gradients(chain.second, z, f, y, chain.kind, chain.shape)
    accumulate_loss(loss, f, y, chain.kind, chain.shape)


@sweep
def server_merge(chain: Chain, gradient: Array, loss: Floats, size: float) -> None:
    """Descend by (41), add all learners' losses of this round up, and weigh by them."""
    mean_step(chain.theta, gradient, size, chain.step)
    for k in range(len(loss)):
        for p in range(loss.shape[1]):
            chain.loss[k, p] += loss[k, p]
    weigh(chain, np.zeros_like(loss))


LEAST_CURVATURE = 1e-6  # of the logistic loss: its inverse is a noise variance


@sweep
def noise_variances(out: Floats, chain: Chain) -> None:
    """Write s², the mean loss of the best kernel; 0 before any sample: out (K,)."""
    for k in range(len(out)):
        out[k] = chain.loss[k].min() / chain.rounds[k] if chain.rounds[k] > 0 else 0.0


@sweep
def least_squares_local(chain: Chain, z: Array, f: Floats, y: Floats) -> None:
    """Forget a little, add each kernel's loss to its account, and take the sample into its fit."""
    n_learners, n_kernels, n_features = chain.theta.shape
    gain = np.empty(n_features, chain.theta.dtype)
    noise = np.empty(n_learners)
    noise_variances(noise, chain)
    for k in range(n_learners):
        chain.rounds[k] = chain.forget * chain.rounds[k] + 1
        for p in range(n_kernels):
            if chain.kind == LOGISTIC:
                loss = loss_value(LOGISTIC, 0.0, f[k, p], y[k])
                step = _logistic_shrink(chain, k, p, z[k, p], gain, f[k, p], y[k])
            else:
                loss = robust_square(y[k] - f[k, p], noise[k])
                step = _squared_shrink(chain, k, p, z[k, p], gain, y[k] - f[k, p])
            chain.loss[k, p] = chain.forget * chain.loss[k, p] + loss
            shifted(chain.theta[k, p], chain.theta[k, p], gain, chain.theta.dtype.type(step))


@sweep
def _squared_shrink(chain: Chain, k: int, p: int, z: Array, gain: Array, error: float) -> float:
    """Write the gain Cz, take the sample into C; give the step along the gain."""
    factor, diagonal = chain.third[k, p], chain.second[k, p]
    return float(error / shrink(factor, diagonal, z, gain, 1.0, chain.forget, chain.ridge))


@sweep
def _logistic_shrink(
    chain: Chain, k: int, p: int, z: Array, gain: Array, f: float, y: float
) -> float:
    """The same for the logistic loss: θ⁺ = argmin ℓ(θᵀz, y) + ½ (θ − θ_k)ᵀ(C/forget)⁻¹(θ − θ_k).

    That is one scalar equation, core/losses.py, and never oversteps. C then takes in the loss's
    curvature at the solution.
    """
    factor, diagonal = chain.third[k, p], chain.second[k, p]
    reach = float(variance(factor, diagonal, z)) / chain.forget
    slope = pull(LOGISTIC, 0.0, f, y, reach)
    p_one = sigmoid(f - reach * slope)
    noise = 1 / max(p_one * (1 - p_one), LEAST_CURVATURE)
    shrink(factor, diagonal, z, gain, noise, chain.forget, chain.ridge)
    return -slope / chain.forget


@sweep
def least_squares_merge(chain: Chain, combined: Array, combined_loss: Floats) -> None:
    """Keep the mean of own and neighbors' θ and losses, and weigh the kernels by the latter.

    The weights are the evidence's: exp(−loss/2s²) for errors of variance s², and exp(−loss) for
    the logistic loss, which is a negative logarithm of a probability by itself.
    """
    scale = np.ones(len(combined))
    for k in range(len(combined)):
        copied(chain.loss[k], combined_loss[k])
        for p in range(combined.shape[1]):
            copied(chain.theta[k, p], combined[k, p])
    if chain.kind != LOGISTIC:
        noise_variances(scale, chain)
        for k in range(len(combined)):
            scale[k] *= 2
    evidence_weights(chain.weights, chain.loss, scale, chain.prior, 1 - chain.forget)


@sweep
def deviations(out: Floats, chain: Chain, z: Array, y_hat: Floats, f: Floats) -> None:
    """Write the standard deviation of each prediction: out, y_hat (K,), f (K, P).

    Σ_p q_p [s² (1 + z_pᵀC_p z_p) + (f_p − f)²]: the noise, what the samples leave open, and how
    far the kernels disagree. For the logistic loss that of f itself, without noise and s² = 1.
    """
    n_learners, n_kernels = f.shape
    is_logistic = chain.kind == LOGISTIC
    noise = np.ones(n_learners)
    if not is_logistic:
        noise_variances(noise, chain)
    for k in range(n_learners):
        total = 0.0
        for p in range(n_kernels):
            reach = variance(chain.third[k, p], chain.second[k, p], z[k, p])
            own = noise[k] * (reach if is_logistic else 1 + reach)
            total += chain.weights[k, p] * (own + (f[k, p] - y_hat[k]) ** 2)
        out[k] = np.sqrt(total)
