"""Recursive least squares: the exact ridge fit of all samples so far, one sample at a time."""

import numpy as np

from domkl.core.jit import sweep
from domkl.core.vectors import dot, scaled, shifted
from domkl.typing import Array, Floats


@sweep
def rls_step(theta: Array, covariance: Array, z: Array, error: Floats) -> None:
    """Take one sample into each row's fit, in place.

    g = Cz,   θ⁺ = θ + (y − θᵀz) g / (1 + zᵀg),   C⁺ = C − g gᵀ / (1 + zᵀg)

    C is the inverse of ridge · I + Σ z zᵀ. The root of 1 + zᵀg goes into both factors of g gᵀ, so
    that the two triangles of C get the same products: it stays symmetric to the bit.

    Parameters
    ----------
    theta, z : (N, D)
    covariance : (N, D, D)
        C; I/ridge before the first sample.
    error : (N,)
        y − θᵀz.
    """
    n_rows, n_features = theta.shape
    for n in range(n_rows):
        gain = theta[n].copy()
        for i in range(n_features):
            gain[i] = dot(covariance[n, i], z[n])
        root = theta.dtype.type(1 / np.sqrt(1 + dot(z[n], gain)))
        scaled(gain, gain, root)
        shifted(theta[n], theta[n], gain, theta.dtype.type(error[n] * root))
        for i in range(n_features):
            row = covariance[n, i]
            shifted(row, row, gain, -gain[i])
