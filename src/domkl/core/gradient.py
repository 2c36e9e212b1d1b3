"""First-order steps along z: what the gradient methods share."""

from domkl.core.jit import sweep
from domkl.core.losses import loss_derivative
from domkl.core.vectors import lines, scaled, shifted
from domkl.typing import Array, Floats


@sweep
def gradients(out: Array, z: Array, f: Floats, y: Floats, kind: int, shape: float) -> None:
    """Write ∇ℓ = ℓ′(f, y) z of every learner and kernel: out, z (K, P, D), f (K, P), y (K,)."""
    n_learners, n_kernels = f.shape
    for k in range(n_learners):
        for p in range(n_kernels):
            slope = loss_derivative(kind, shape, f[k, p], y[k])
            scaled(out[k, p], z[k, p], out.dtype.type(slope))


@sweep
def gradient_step(
    theta: Array,
    start: Array,
    z: Array,
    f: Floats,
    y: Floats,
    step: float,
    kind: int,
    shape: float,
) -> None:
    """Write θ = start − step · ℓ′(f, y) z: theta, start, z (K, P, D), f (K, P), y (K,)."""
    n_learners, n_kernels = f.shape
    for k in range(n_learners):
        for p in range(n_kernels):
            slope = loss_derivative(kind, shape, f[k, p], y[k])
            shifted(theta[k, p], start[k, p], z[k, p], theta.dtype.type(-step * slope))


@sweep
def mean_step(theta: Array, total: Array, size: float, step: float) -> None:
    """Descend by step times the mean of ``size`` gradients, eq. (41): theta, total (K, P, D)."""
    theta, total = lines(theta), lines(total)
    for k in range(len(theta)):
        shifted(theta[k], theta[k], total[k], theta.dtype.type(-step / size))
