"""Recursive least squares: the exact ridge fit of all samples so far, one sample at a time.

The inverse C of ridge · I + Σ z zᵀ is kept as U D Uᵀ, U unit upper triangular and D diagonal
(Bierman). What is kept is positive by construction: rounding cannot make D negative, not in
float32 and not after a million samples, and a matrix so written is symmetric. The columns of U
above its diagonal stand one after the other in one row, ``factor``: D(D − 1)/2 numbers, half of
what C would take. A 0 in ``diagonal`` marks a feature that is padding; its column is skipped.
"""

import numpy as np
from numpy.typing import ArrayLike

from domkl.core.jit import scalar
from domkl.core.lanes import dot
from domkl.core.vectors import bierman_column
from domkl.typing import Array, Floats, Number


@scalar
def shrink(
    factor: Array, diagonal: Array, z: Array, gain: Array, noise: float, forget: float, ridge: float
) -> Number:
    """Take one sample of this noise variance into a row's C; write Cz of before, in ``gain``.

    C⁺ = (C − g gᵀ/a)/forget,   g = Cz,   a = forget · noise + zᵀCz: what is returned.

    Forgetting makes C grow where no sample points. No element of D grows above 1/ridge, so
    that nothing winds up.
    """
    real = z.dtype.type
    largest, rate = real(1 / ridge), real(1 / forget)
    before, start = real(forget * noise), 0
    for j in range(z.size):
        column = factor[start : start + j]
        start += j
        gain[j] = 0
        if diagonal[j] > 0:
            f = z[j] + dot(column, z)
            v = diagonal[j] * f
            after = before + f * v
            bierman_column(column, gain, f / before, v)
            gain[j] = v
            diagonal[j] = min(diagonal[j] * (before / after) * rate, largest)
            before = after
    return before


@scalar
def variance(factor: Array, diagonal: Array, z: Array) -> Number:
    """zᵀCz of one row."""
    total, start = z.dtype.type(0), 0
    for j in range(z.size):
        if diagonal[j] > 0:
            f = z[j] + dot(factor[start : start + j], z)
            total += diagonal[j] * f * f
        start += j
    return total


def first_factors(
    lengths: tuple[int, ...], n_features: int, ridge: ArrayLike
) -> tuple[Floats, Floats]:
    """U and D before the first sample, for rows that use this many of the features.

    One ridge serves all rows, or each has its own.

    Examples
    --------
    >>> factor, diagonal = first_factors((3, 2), 3, ridge=0.5)
    >>> factor.shape, diagonal.tolist()
    ((2, 3), [[2.0, 2.0, 2.0], [2.0, 2.0, 0.0]])
    """
    factor = np.zeros((len(lengths), n_features * (n_features - 1) // 2))
    is_used = np.arange(n_features) < np.array(lengths)[:, None]
    largest = 1 / np.broadcast_to(ridge, len(lengths))[:, None]
    return factor, np.where(is_used, largest, 0.0)
