"""Sums over neighbors, always in ascending neighbor id: what a learner hears.

Arrays have one learner per entry of their first axis, whatever the shape of the rest.
"""

from domkl.core.jit import sweep
from domkl.core.vectors import added, added_scaled, cleared, copied, scaled, sum_of_two
from domkl.typing import Array, Floats, Ints


@sweep
def neighbor_sum(out: Array, values: Array, indptr: Ints, indices: Ints) -> None:
    """Write Σ_{ℓ∈N_k} values_ℓ for every learner: out (K, …), values (N, …)."""
    out = out.reshape(len(out), -1)
    values = values.reshape(len(values), -1)
    for k in range(len(out)):
        first, last = indptr[k], indptr[k + 1]
        if last == first:
            cleared(out[k])
        elif last == first + 1:
            copied(out[k], values[indices[first]])
        else:
            sum_of_two(out[k], values[indices[first]], values[indices[first + 1]])
            for edge in range(first + 2, last):
                added(out[k], values[indices[edge]])


@sweep
def weighted_sum(
    out: Array,
    values: Array,
    own: Array,
    indptr: Ints,
    indices: Ints,
    own_weight: Floats,
    edge_weight: Floats,
) -> None:
    """Write a_kk own_k + Σ_{ℓ∈N_k} a_kℓ values_ℓ: out, own (K, …), values (N, …)."""
    out = out.reshape(len(out), -1)
    own = own.reshape(len(own), -1)
    values = values.reshape(len(values), -1)
    real = out.dtype.type
    for k in range(len(out)):
        scaled(out[k], own[k], real(own_weight[k]))
        for edge in range(indptr[k], indptr[k + 1]):
            added_scaled(out[k], values[indices[edge]], real(edge_weight[edge]))


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
