"""Sums over neighbors, always in ascending neighbor id: what a learner hears.

Arrays have one learner per entry of their first axis, whatever the shape of the rest. ``values``
are all that may be heard and ``own`` those of the learners that hear: the same array where all
learners are at one place.
"""

from domkl.core.jit import sweep
from domkl.core.prefetch import prefetched
from domkl.core.vectors import (
    added,
    added_difference,
    added_share,
    cleared,
    copied,
    difference,
)
from domkl.typing import Array, Floats, Ints


@sweep
def neighbor_sum(out: Array, values: Array, indptr: Ints, indices: Ints) -> None:
    """Write Σ_{ℓ∈N_k} values_ℓ for every learner: out (K, …), values (N, …)."""
    out = out.reshape(len(out), -1)
    values = values.reshape(len(values), -1)
    for k in range(len(out)):
        prefetch_rows(values, k + 4, indptr, indices)  # losses are short rows, and quickly added
        cleared(out[k])
        for edge in range(indptr[k], indptr[k + 1]):
            added(out[k], values[indices[edge]])


@sweep
def neighbor_gap(out: Array, values: Array, own: Array, indptr: Ints, indices: Ints) -> None:
    """Write Σ_{ℓ∈N_k} (values_ℓ − own_k) for every learner: out, own (K, …), values (N, …).

    The same as a sum less degree times own, but each term is the exact opposite of what the
    neighbor computes, rounded or not. So the duals of a network, which sum such terms up, go on
    summing to zero; the other way they drift, in float32, and with them the predictions.
    """
    out = out.reshape(len(out), -1)
    own = own.reshape(len(own), -1)
    values = values.reshape(len(values), -1)
    for k in range(len(out)):
        gap_row(out[k], values, own[k], indices[indptr[k] : indptr[k + 1]])


@sweep
def gap_row(out: Array, values: Array, own: Array, neighbors: Ints) -> None:
    """Write Σ_ℓ (values_ℓ − own) of one learner: out, own (L,), values (N, L)."""
    if len(neighbors) == 0:
        cleared(out)
    else:
        difference(out, values[neighbors[0]], own)
        for other in neighbors[1:]:
            added_difference(out, values[other], own)


@sweep
def prefetch_rows(values: Array, k: int, indptr: Ints, indices: Ints) -> None:
    """Ask for what learner k will hear, values (N, L), while one before it is at work."""
    if k + 1 < len(indptr):
        for edge in range(indptr[k], indptr[k + 1]):
            prefetched(values[indices[edge]])


@sweep
def weighted_mean(
    out: Array, values: Array, own: Array, indptr: Ints, indices: Ints, weight: Floats
) -> None:
    """Write own_k + Σ_{ℓ∈N_k} a_kℓ (values_ℓ − own_k): out, own (K, …), values (N, …), weight (E,).

    That is Σ_ℓ a_kℓ values_ℓ with a_kk = 1 − Σ_{ℓ≠k} a_kℓ, and learners that agree stay as they
    are, to the bit.
    """
    out = out.reshape(len(out), -1)
    own = own.reshape(len(own), -1)
    values = values.reshape(len(values), -1)
    for k in range(len(out)):
        prefetch_rows(values, k + 1, indptr, indices)
        copied(out[k], own[k])
        for edge in range(indptr[k], indptr[k + 1]):
            share = out.dtype.type(weight[edge])
            added_share(out[k], values[indices[edge]], own[k], share)


@sweep
def total_sum(out: Array, values: Array, n_learners: int) -> None:
    """Write to each learner the sum over its trial, what a server would hear: out, values (N, …).

    Rows of one trial stand together, ``n_learners`` of them.
    """
    out = out.reshape(len(out), -1)
    values = values.reshape(len(values), -1)
    for start in range(0, len(values), n_learners):
        copied(out[start], values[start])
        for k in range(start + 1, start + n_learners):
            added(out[start], values[k])
        for k in range(start + 1, start + n_learners):
            copied(out[k], out[start])
