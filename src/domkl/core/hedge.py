"""Many kernels as one function: predictions, weights from accumulated losses, message passing."""

import math

from domkl.core.jit import sweep
from domkl.core.lanes import dot
from domkl.core.vectors import scaled, smallest
from domkl.typing import Array, Floats, Ints

#: of a prediction: what experts differ by less than this is rounding
ROUNDING = 1e-12


@sweep
def kernel_predictions(f: Floats, theta: Array, z: Array) -> None:
    """Write f_p = θ_pᵀz_p: f (K, P), theta and z (K, P, D)."""
    n_learners, n_kernels = f.shape
    for k in range(n_learners):
        for p in range(n_kernels):
            f[k, p] = dot(theta[k, p], z[k, p])


@sweep
def single_predictions(y_hat: Floats, f: Floats, theta: Array, z: Array) -> None:
    """Write the predictions of one kernel, with weight 1: y_hat (K,), f (K, 1)."""
    kernel_predictions(f, theta, z)
    for k in range(len(f)):
        y_hat[k] = f[k, 0]


@sweep
def combined_predictions(y_hat: Floats, f: Floats, theta: Array, weights: Floats, z: Array) -> None:
    """Write f_p, and Σ_p q_p f_p of eq. (14): y_hat (K,), f and weights (K, P)."""
    kernel_predictions(f, theta, z)
    combine(y_hat, f, weights)


@sweep
def combine(y_hat: Floats, f: Floats, weights: Floats) -> None:
    """Write Σ_p q_p f_p: y_hat (K,), f and weights (K, P)."""
    for k in range(len(f)):
        y_hat[k] = dot(weights[k], f[k])


@sweep
def blend(out: Array, theta: Array, weights: Floats) -> None:
    """Write q_p θ_p, so that a learner's function is one row: out, theta (K, P, D)."""
    n_learners, n_kernels, _ = theta.shape
    for k in range(n_learners):
        for p in range(n_kernels):
            scaled(out[k, p], theta[k, p], out.dtype.type(weights[k, p]))


@sweep
def hedge_weights(weights: Floats, loss: Floats, heard: Floats, eta_g: float) -> None:
    """Weigh the kernels by exp(−(loss + heard)/η_g), normalised, eq. (16): all (K, P).

    The paper multiplies and divides products that underflow after a few thousand samples. Here
    the smallest loss is subtracted first: the best kernel has exponent 0, whatever the losses are.
    """
    n_learners, n_kernels = loss.shape
    for k in range(n_learners):
        best = loss[k, 0] + heard[k, 0]
        for p in range(n_kernels):
            weights[k, p] = loss[k, p] + heard[k, p]
            best = min(best, weights[k, p])
        total = 0.0
        for p in range(n_kernels):
            weights[k, p] = math.exp((best - weights[k, p]) / eta_g)
            total += weights[k, p]
        for p in range(n_kernels):
            weights[k, p] /= total


@sweep
def evidence(weights: Floats, loss: Floats, scale: float, prior: Floats) -> None:
    """Weigh experts by prior · exp(−loss/scale), normalised: all (E,).

    A scale of 0 leaves the experts with the smallest loss alone.
    """
    best, total = smallest(loss), 0.0
    for i in range(len(loss)):
        gap = loss[i] - best
        weights[i] = prior[i] * (math.exp(-gap / scale) if gap > 0 else 1.0)
        total += weights[i]
    for i in range(len(loss)):
        weights[i] /= total


@sweep
def polynomial(weights: Floats, regret: Floats, variance: Floats, prior: Floats) -> None:
    """Weigh experts by max(R_i, 0)/V_i, normalised; as the prior where no regret is positive.

    This is ML-Poly (Gaillard, Stoltz and van Erven, 2014): each expert has a rate of its own,
    1/V_i, which needs no setting. All (E,).
    """
    total, prior_total = 0.0, 0.0
    for i in range(len(regret)):
        weights[i] = regret[i] / variance[i] if regret[i] > 0 and variance[i] > 0 else 0.0
        total += weights[i]
        prior_total += prior[i]
    for i in range(len(regret)):
        weights[i] = weights[i] / total if total > 0 else prior[i] / prior_total


@sweep
def add_regrets(
    regret: Floats, variance: Floats, f: Floats, y_hat: float, slope: float, keep: float
) -> None:
    """Add a label to the regrets of a mixture towards its experts, all (E,).

    R_i⁺ = keep R_i + r_i,   V_i⁺ = keep V_i + r_i²,   r_i = slope · (y_hat − f_i)

    with the slope of the loss at the mixture's prediction: the loss as a line, so that the mixture
    is compared with the best mixture, and not with the best expert only. Experts that agree with
    the mixture up to rounding have no regret: R/V of rounding alone would be huge.
    """
    for i in range(len(regret)):
        gap = y_hat - f[i]
        r = slope * gap if abs(gap) > ROUNDING * abs(y_hat) else 0.0
        regret[i] = keep * regret[i] + r
        variance[i] = keep * variance[i] + r * r


@sweep
def pass_messages(outbox: Floats, heard: Floats, loss: Floats, inbox: Floats, indptr: Ints) -> None:
    """Message passing on acyclic graphs, in the log domain: eq. (19), and the sum in (20).

    outbox[k → ℓ] = loss_k + Σ_{i∈N_k, i≠ℓ} inbox[i → k],   heard_k = Σ_{i∈N_k} inbox[i → k]

    Parameters
    ----------
    outbox, inbox : (E, P)
        One row per directed edge. Learner k's rows are indptr[k]:indptr[k + 1], one per neighbor
        in ascending order: to that neighbor in ``outbox``, from it in ``inbox``.
    heard, loss : (K, P)
        ``outbox`` and ``heard`` are written.
    """
    n_learners, n_kernels = loss.shape
    for k in range(n_learners):
        for p in range(n_kernels):
            total = 0.0
            for edge in range(indptr[k], indptr[k + 1]):
                total += inbox[edge, p]
            heard[k, p] = total
            for edge in range(indptr[k], indptr[k + 1]):
                outbox[edge, p] = loss[k, p] + (total - inbox[edge, p])
