"""Many kernels as one function: predictions, weights from accumulated losses, message passing."""

import math

from domkl.core.jit import sweep
from domkl.core.vectors import dot, scaled
from domkl.typing import Array, Floats, Ints


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
def evidence_weights(
    weights: Floats, loss: Floats, scale: Floats, prior: Floats, share: float
) -> None:
    """Weigh the kernels by prior · exp(−loss/scale), normalised: all (K, P) but scale, (K,).

    The prior is mixed in with ``share``, fixed share: a kernel that was bad for long comes back
    within some 1/share rounds. A scale of 0 leaves the kernels with the smallest loss alone.
    """
    n_learners, n_kernels = loss.shape
    for k in range(n_learners):
        best = loss[k].min()
        total = 0.0
        for p in range(n_kernels):
            gap = loss[k, p] - best
            weights[k, p] = prior[k, p] * (math.exp(-gap / scale[k]) if gap > 0 else 1.0)
            total += weights[k, p]
        for p in range(n_kernels):
            weights[k, p] = (1 - share) * weights[k, p] / total + share * prior[k, p]


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
