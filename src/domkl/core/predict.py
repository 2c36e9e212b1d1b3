"""Predictions of linear-in-features learners, and how far learners disagree."""

import numpy as np

from domkl.core.jit import sweep
from domkl.core.vectors import dot, dot_block, lines, scaled
from domkl.typing import Array, Floats, Ints, Number


@sweep
def kernel_predictions(f: Floats, theta: Array, z: Array) -> None:
    """Write f_p = θ_pᵀz_p: f (K, P), theta and z (K, P, D)."""
    n_learners, n_kernels = f.shape
    for k in range(n_learners):
        for p in range(n_kernels):
            f[k, p] = dot(theta[k, p], z[k, p])


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
