"""Online ADMM: the primal step (11) and the dual step (12) of every learner and kernel.

All of (11) but the sample is known as soon as the neighbors are heard. With

    b₀ = η_l θ + ρ Σ_{ℓ∈N_k} (θ + θ_ℓ)/2 − λ,   c = η_l + ρ |N_k|,

b₀/c is the minimiser of (11) without its loss: the *center*. So the work is split where the
network splits it: `dual_step` takes in what was heard and leaves the new center, `primal_step`
moves from the center along z. A learner with no fresh sample steps to the center itself.
"""

import numpy as np

from domkl.core.exchange import gap_row, prefetch_rows
from domkl.core.jit import row, sweep
from domkl.core.losses import pull
from domkl.core.vectors import dot, lines, shifted
from domkl.typing import Array, Floats, Ints, Number


@sweep
def primal_step(
    theta: Array,
    center: Array,
    z: Array,
    energy: Floats,
    y: Floats,
    degree: Floats,
    eta_l: float,
    rho: float,
    kind: int,
    shape: float,
) -> None:
    """Solve every learner's subproblem (11) exactly, for any convex loss, in O(D) a kernel.

    θ⁺ = argmin_θ ℓ(θᵀz, y) + λᵀθ + η_l/2 ‖θ − θ_k‖² + ρ/2 Σ_{ℓ∈N_k} ‖θ − (θ_k + θ_ℓ)/2‖²

    θ⁺ = center − g/c · z with the one number g of core/losses.py. For the squared loss that is
    center + 2(y − zᵀcenter)/(c + 2‖z‖²) · z: Remark 1 without its D×D inverse.

    Parameters
    ----------
    theta, center, z : (K, P, D)
        ``theta`` is written.
    energy : (K, P)
        ‖z‖².
    y, degree : (K,)
    """
    n_learners, n_kernels, _ = theta.shape
    factor = np.empty(n_kernels)
    for k in range(n_learners):
        stiffness = eta_l + rho * degree[k]
        for p in range(n_kernels):
            factor[p] = dot(center[k, p], z[k, p])
        for p in range(n_kernels):
            tau = energy[k, p] / stiffness
            factor[p] = -pull(kind, shape, factor[p], y[k], tau) / stiffness
        for p in range(n_kernels):
            shifted(theta[k, p], center[k, p], z[k, p], theta.dtype.type(factor[p]))


@sweep
def dual_step(
    dual: Array,
    center: Array,
    theta: Array,
    gap: Array,
    degree: Floats,
    eta_l: float,
    rho: float,
) -> None:
    """Ascend the duals, eq. (12), and leave the center of the next primal step.

    λ⁺ = λ + ρ/2 Σ_{ℓ∈N_k} (θ − θ_ℓ),   center = b₀/c = θ + (ρ/2 Σ_{ℓ∈N_k} (θ_ℓ − θ) − λ⁺)/c

    Parameters
    ----------
    dual, center, theta, gap : (K, P, D)
        ``dual`` and ``center`` are written; ``gap`` is Σ_{ℓ∈N_k} (θ_ℓ − θ).
    degree : (K,)
    """
    dual, center, theta, gap = lines(dual), lines(center), lines(theta), lines(gap)
    real = theta.dtype.type
    for k in range(len(theta)):
        compliance = real(1 / (eta_l + rho * degree[k]))
        _ascend(dual[k], center[k], theta[k], gap[k], real(rho / 2), compliance)


@sweep
def heard_dual_step(
    dual: Array,
    center: Array,
    theta: Array,
    values: Array,
    indptr: Ints,
    indices: Ints,
    degree: Floats,
    eta_l: float,
    rho: float,
) -> None:
    """`neighbor_gap`, then `dual_step`, learner by learner: what is heard stays in cache.

    ``values`` (N, P, D) are all learners' θ, the others' first axis may be some of them.
    """
    dual, center, theta, values = lines(dual), lines(center), lines(theta), lines(values)
    real = theta.dtype.type
    gap = np.empty_like(theta[0])
    for k in range(len(theta)):
        prefetch_rows(values, k + 1, indptr, indices)
        gap_row(gap, values, theta[k], indices[indptr[k] : indptr[k + 1]])
        compliance = real(1 / (eta_l + rho * degree[k]))
        _ascend(dual[k], center[k], theta[k], gap, real(rho / 2), compliance)


@sweep
def dual_amendment(
    dual: Array, center: Array, gap: Array, degree: Floats, eta_l: float, rho: float
) -> None:
    """Change the duals, and the centers with them, as if this gap had been heard in the past, too.

    λ⁺ = λ − ρ/2 gap: what a host does where an exchange was completed late, or is to be undone.
    ``dual`` and ``center`` (K, P, D) are written; ``gap`` (K, P, D), ``degree`` (K,).
    """
    dual, center, gap = lines(dual), lines(center), lines(gap)
    real = dual.dtype.type
    for k in range(len(dual)):
        compliance = real(1 / (eta_l + rho * degree[k]))
        shifted(dual[k], dual[k], gap[k], real(-rho / 2))
        shifted(center[k], center[k], gap[k], real(rho / 2) * compliance)


@row
def _ascend(
    dual: Array, center: Array, theta: Array, gap: Array, half_rho: Number, compliance: Number
) -> None:
    for i in range(theta.size):
        pulled = half_rho * gap[i]
        risen = dual[i] - pulled
        dual[i] = risen
        center[i] = theta[i] + compliance * (pulled - risen)
