"""The laws of the least-squares family, DOMKRLS: fit, track the mean of the fits, weigh.

Every learner has two opinions per kernel: its own fit φ, the exact ridge fit of its own samples,
and θ, which tracks the mean of all learners' fits. It weighs kernels twice, by the losses of the
θs and by those of the φs, and at last the two opinions by the losses of theirs.

The accounts. A loss is forgotten in time, so that the cold start is not remembered for ever: with
n the number of rounds in an account, all are multiplied by forget · 2n/(2n + 1) before the next
loss is added. Then n grows by a half each round, and what is older than half of the stream counts
little. Accounts are robust: see `robust_square`.
"""

import numpy as np

from domkl.core.hedge import evidence_weights
from domkl.core.jit import scalar, sweep
from domkl.core.laws import Chain
from domkl.core.losses import LOGISTIC, loss_value, pull, robust_square, sigmoid
from domkl.core.rls import shrink, variance
from domkl.core.vectors import copied, dot, mixture, tracked
from domkl.typing import Array, Floats

#: of θ's way to φ, each round: what a lost message did to the mean is healed in some 100 rounds
LEAK = 0.01
#: trust in θ before any loss; the rest is in φ
TRUST = 0.999
#: of the own fit in what predicts: less would be a denormal number, and slow
LEAST_SHARE = 1e-20
#: of the logistic loss: its inverse is a noise variance
LEAST_CURVATURE = 1e-6


@sweep
def least_squares_local(chain: Chain, z: Array, y: Floats) -> None:
    """Take each sample into its learner's fits, move θ as the fits move, and keep the accounts."""
    fits, n_kernels = chain.fits, chain.theta.shape[1]
    by_theta, by_own, _ = _opinions(chain)
    gain = np.empty(chain.theta.shape[2], chain.theta.dtype)
    for k in range(len(y)):
        n = fits.rounds[k]
        keep = fits.forget * 2 * n / (2 * n + 1)
        noise, own_noise = _mean_loss(chain.loss[k], n), _mean_loss(fits.own_loss[k], n)
        theirs, ours = 0.0, 0.0
        for p in range(n_kernels):
            f = float(dot(chain.theta[k, p], z[k, p]))
            own = float(dot(fits.own[k, p], z[k, p]))
            theirs += by_theta[k, p] * f
            ours += by_own[k, p] * own
            loss = _loss(chain.kind, f, y[k], noise)
            own_loss = _loss(chain.kind, own, y[k], own_noise)
            chain.loss[k, p] = keep * chain.loss[k, p] + loss
            fits.own_loss[k, p] = keep * fits.own_loss[k, p] + own_loss
            step = _shrink(chain, k, p, z[k, p], gain, own, y[k])
            real = chain.theta.dtype.type
            tracked(fits.own[k, p], chain.theta[k, p], gain, real(step), real(LEAK))
        noise = _mean_loss(fits.score[k], n)
        fits.score[k, 0] = keep * fits.score[k, 0] + _loss(chain.kind, theirs, y[k], noise)
        fits.score[k, 1] = keep * fits.score[k, 1] + _loss(chain.kind, ours, y[k], noise)
        fits.rounds[k] = keep * n + 1


@sweep
def least_squares_merge(chain: Chain, mean: Array, mean_loss: Floats) -> None:
    """Keep the means of own and neighbors' θ and losses, and make the function that predicts.

    A learner that has no sample of its own yet takes θ for its fit: it follows the others, and
    does not pull their mean to 0.
    """
    fits = chain.fits
    for k in range(len(mean)):
        copied(chain.loss[k], mean_loss[k])
        for p in range(mean.shape[1]):
            copied(chain.theta[k, p], mean[k, p])
            if fits.rounds[k] == 0:
                copied(fits.own[k, p], mean[k, p])
    by_theta, by_own, trust = _opinions(chain)
    for k in range(len(mean)):
        for p in range(mean.shape[1]):
            own = trust[k, 1] * by_own[k, p]
            weight = trust[k, 0] * by_theta[k, p] + own
            share = chain.theta.dtype.type(own / weight if own > LEAST_SHARE * weight else 0.0)
            chain.weights[k, p] = weight
            mixture(chain.second[k, p], chain.theta[k, p], fits.own[k, p], share)


@sweep
def deviations(out: Floats, chain: Chain, z: Array, y_hat: Floats, f: Floats) -> None:
    """Write the standard deviation of each prediction: out, y_hat (K,), f (K, P).

    Σ_p q_p [s² (1 + z_pᵀC_p z_p) + (f_p − f)²]: the noise, what the samples leave open, and how
    far the kernels disagree. For the logistic loss that of f itself, without noise and s² = 1.
    Infinite before the first sample: nothing is known then.
    """
    fits, is_logistic = chain.fits, chain.kind == LOGISTIC
    for k in range(len(out)):
        noise = 1.0 if is_logistic else _mean_loss(fits.score[k], fits.rounds[k])
        total = 0.0
        for p in range(f.shape[1]):
            reach = float(variance(fits.factor[k, p], fits.diagonal[k, p], z[k, p]))
            open_part = noise * (reach if is_logistic else 1 + reach)
            total += chain.weights[k, p] * (open_part + (f[k, p] - y_hat[k]) ** 2)
        is_blind = not is_logistic and fits.rounds[k] == 0
        out[k] = np.inf if is_blind else np.sqrt(total)


@sweep
def _opinions(chain: Chain) -> tuple[Floats, Floats, Floats]:
    """Weights of the kernels by the losses of θ and of φ, (K, P), and of the two, (K, 2).

    They are the evidence's: exp(−loss/2s²) for errors of variance s², and exp(−loss) for the
    logistic loss, which is the negative logarithm of a probability by itself.
    """
    fits = chain.fits
    by_theta, by_own = np.empty_like(chain.loss), np.empty_like(chain.loss)
    trust = np.empty_like(fits.score)
    first_trust = np.empty_like(fits.score)
    first_trust[:, 0] = TRUST
    first_trust[:, 1] = 1 - TRUST
    share = 1 - fits.forget
    _weigh(by_theta, chain.loss, fits.prior, chain, share)
    _weigh(by_own, fits.own_loss, fits.prior, chain, share)
    _weigh(trust, fits.score, first_trust, chain, share)
    return by_theta, by_own, trust


@sweep
def _weigh(weights: Floats, loss: Floats, prior: Floats, chain: Chain, share: float) -> None:
    scale = np.ones(len(loss))
    if chain.kind != LOGISTIC:
        for k in range(len(loss)):
            scale[k] = 2 * _mean_loss(loss[k], chain.fits.rounds[k])
    evidence_weights(weights, loss, scale, prior, share)


@sweep
def _mean_loss(loss: Floats, rounds: float) -> float:
    """s², the mean loss of the best; 0 before any sample."""
    return float(loss.min() / rounds) if rounds > 0 else 0.0


@scalar
def _loss(kind: int, f: float, y: float, noise: float) -> float:
    return loss_value(LOGISTIC, 0.0, f, y) if kind == LOGISTIC else robust_square(y - f, noise)


@sweep
def _shrink(chain: Chain, k: int, p: int, z: Array, gain: Array, own: float, y: float) -> float:
    """Write the gain Cz, take the sample into C; give the fit's step along the gain.

    For the logistic loss φ⁺ = argmin ℓ(φᵀz, y) + ½ (φ − φ_k)ᵀ(C/forget)⁻¹(φ − φ_k). That is one
    scalar equation, core/losses.py, and never oversteps; C then takes in the loss's curvature at
    the solution.
    """
    fits = chain.fits
    factor, diagonal = fits.factor[k, p], fits.diagonal[k, p]
    if chain.kind != LOGISTIC:
        return float((y - own) / shrink(factor, diagonal, z, gain, 1.0, fits.forget, fits.ridge))
    reach = float(variance(factor, diagonal, z)) / fits.forget
    slope = pull(LOGISTIC, 0.0, own, y, reach)
    chance = sigmoid(own - reach * slope)
    noise = 1 / max(chance * (1 - chance), LEAST_CURVATURE)
    shrink(factor, diagonal, z, gain, noise, fits.forget, fits.ridge)
    return -slope / fits.forget
