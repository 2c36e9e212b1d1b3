"""How far each learner is from all others, in a time that grows as K and not as K².

With m the mean of the learners' parameters Θ_ℓ, the kernels' weights multiplied in, and C the sum
of (Θ_ℓ − m)(Θ_ℓ − m)ᵀ,

    Σ_ℓ (f_k(x_k) − f_ℓ(x_k))² = K((Θ_k − m)ᵀz_k)² + z_kᵀ C z_k.

Sums are in double precision, and centred before they are squared: learners that agree are near to
m and far from 0, and what is wanted would be lost in the difference of two large numbers.
"""

from collections.abc import Callable, Iterator

import numpy as np

from domkl.typing import Array, Floats

BLOCK = 1024  # learners at a time

#: rows low..high − 1 of an array (K, L) that need not exist as a whole
Rows = Callable[[int, int], Array]


def moment_gaps(
    out: Floats, parameters: Rows, inputs: Rows, total: Callable[[Floats], None] | None = None
) -> None:
    """Write Σ_ℓ (f_k(x_k) − f_ℓ(x_k))² of every learner: out (K,), Θ and z as (K, P·D).

    Costs 2(P·D)² multiply-adds a learner. Where learners are at several places, ``total``
    replaces an array by its sum over them.

    Examples
    --------
    >>> theta, z = np.array([[1.0], [2.0], [4.0]]), np.array([[1.0], [1.0], [2.0]])
    >>> out = np.empty(3)
    >>> moment_gaps(out, lambda low, high: theta[low:high], lambda low, high: z[low:high])
    >>> out.round(9)
    array([10.,  5., 52.])
    """
    summed: Floats = np.zeros(parameters(0, 1).shape[1])
    count = np.full(1, float(len(out)))
    for low, high in _blocks(len(out)):
        summed += parameters(low, high).sum(axis=0, dtype=np.float64)
    if total is not None:
        total(summed)
        total(count)
    n_learners = count[0]
    mean = summed / n_learners
    spread = np.zeros((len(mean), len(mean)))
    for low, high in _blocks(len(out)):
        centered = parameters(low, high) - mean
        spread += centered.T @ centered
    if total is not None:
        total(spread)
    for low, high in _blocks(len(out)):
        z = np.asarray(inputs(low, high), dtype=np.float64)
        own = np.einsum("ki,ki->k", parameters(low, high) - mean, z)
        out[low:high] = n_learners * own**2 + np.einsum("ki,ki->k", z @ spread, z)


def _blocks(n_learners: int) -> Iterator[tuple[int, int]]:
    for low in range(0, n_learners, BLOCK):
        yield low, min(low + BLOCK, n_learners)
