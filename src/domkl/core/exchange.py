"""What a learner hears: sums over neighbors, always in ascending neighbor id.

Values are 2-D here, one row per learner. ``values`` are the rows of all who may be heard, ``own``
those of the learners that hear; the same array where all learners are in one place.
"""

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import numpy as np

from domkl.core.jit import row, sweep
from domkl.core.numba_internals import prefetch
from domkl.core.vectors import added, added_difference, added_share, cleared, copied, difference
from domkl.typing import Array, Floats, Ints

#: how a host delivers a field of a message; algorithms/base.py says what each means
Delivery = Literal["sum", "gap", "metropolis", "edge", "total"]
SUM, GAP, METROPOLIS, EDGE, TOTAL = range(5)


class DeliveryKind(NamedTuple):
    """A row of the table of deliveries: what hosts must know of one."""

    code: int  # by which compiled code knows it
    pulls: bool = False  # moves a learner towards its neighbors, so it acts once an exchange
    accumulates: bool = False  # the state keeps the sum of what was heard, so nothing may get lost
    needs_weights: bool = False  # Metropolis weights, for which a host must know both degrees
    needs_reverse: bool = False  # has one row per directed edge, and reads that of the other end
    spans_all: bool = False  # comes from all learners, not from neighbors
    has_own: bool = False  # includes the learner's own value, all that one without neighbors hears

    @property
    def is_symmetric(self) -> bool:
        """Whether the two ends of an edge hear exactly opposite things, so that sums stay."""
        return self.pulls

    @property
    def is_summed(self) -> bool:
        """Whether a learner hears one row, which is a sum over its neighbors."""
        return not self.needs_reverse and not self.spans_all


#: the only table of deliveries: all hosts, MPI, the protocol and the wire read it
DELIVERIES: dict[str, DeliveryKind] = {
    "sum": DeliveryKind(SUM),
    "gap": DeliveryKind(GAP, pulls=True, accumulates=True),
    "metropolis": DeliveryKind(METROPOLIS, pulls=True, needs_weights=True, has_own=True),
    "edge": DeliveryKind(EDGE, needs_reverse=True),
    "total": DeliveryKind(TOTAL, spans_all=True, has_own=True),
}


def fields_that(exchange: Mapping[str, str], has: Callable[[DeliveryKind], bool]) -> list[str]:
    """The fields of a message, in its order, whose delivery has a property.

    Examples
    --------
    >>> fields_that({"theta": "gap", "loss": "sum"}, lambda kind: kind.pulls)
    ['theta']
    """
    return [field for field, how in exchange.items() if has(DELIVERIES[how])]


class Wires(NamedTuple):
    """The network of the learners that hear, in compressed sparse rows."""

    indptr: Ints  # (K + 1,)  learner k's directed edges are indptr[k]:indptr[k + 1]
    indices: Ints  # (E,)     the row of each edge's neighbor, ascending for each learner
    weight: Floats  # (E,)    Metropolis weights; empty where nobody asks for them
    reverse: Ints  # (E,)     the same edge in the other direction; empty likewise
    span: int  # number of learners that a total spans


@sweep
def deliver(
    how: int,
    out: Array,
    values: Array,
    own: Array,
    exact: Array,
    totals: Array,
    indptr: Ints,
    indices: Ints,
    weight: Floats,
    reverse: Ints,
    span: int,
    low: int,
) -> None:
    """Write what learners low, low + 1, … hear of one field of the message.

    The only switch over deliveries: the simulator's hosts, the estimators and the mesh all call it.

    Parameters
    ----------
    how : int
        The code of a delivery in `DELIVERIES`.
    out : (n, L), or with "edge" one row for each of the n learners' directed edges
    values : (N, L), or with "edge" (E, L)
    own : (n, L)
        The learners' own rows of ``values``: what the neighbors decode.
    exact : (n, L)
        The same before it was said, to which what is averaged with the neighbors is added; ``own``
        itself where speech is exact. So an average keeps the mean, however roughly learners speak.
    totals : (N / span, L)
        `totals_of` the values; not looked at unless the delivery is "total".
    indptr, indices, weight, reverse, span
        The fields of `Wires`, which are faster passed on from Python than in a tuple.
    """
    if how == EDGE:
        first = indptr[low]
        for edge in range(len(out)):
            copied(out[edge], values[reverse[first + edge]])
        return
    ahead = 1 if out.shape[1] > 64 else 4  # short rows are quickly added
    for i in range(len(out)):
        k = low + i
        if how == TOTAL:
            copied(out[i], own[i] if span == 1 else totals[k // span])
            continue
        prefetch_rows(values, k + ahead, indptr, indices)
        neighbors = indices[indptr[k] : indptr[k + 1]]
        if how == SUM:
            cleared(out[i])
            for other in neighbors:
                added(out[i], values[other])
        elif how == GAP:
            gap_row(out[i], values, own[i], neighbors)
        else:
            copied(out[i], exact[i])
            for j in range(len(neighbors)):
                share = out.dtype.type(weight[indptr[k] + j])
                added_share(out[i], values[neighbors[j]], own[i], share)


@sweep
def gap_row(out: Array, values: Array, own: Array, neighbors: Ints) -> None:
    """Write Σ_ℓ (values_ℓ − own) of one learner: out, own (L,), values (N, L).

    This is the same as a sum less degree times own, but each term is the exact opposite of what
    the neighbor computes, rounded or not. So the duals of a network, which add such terms up, keep
    summing to zero; computed the other way they drift in float32, and the predictions with them.
    """
    if len(neighbors) == 0:
        cleared(out)
    else:
        difference(out, values[neighbors[0]], own)
        for other in neighbors[1:]:
            added_difference(out, values[other], own)


@sweep
def totals_of(totals: Array, values: Array, span: int, start: int, stop: int) -> None:
    """Write columns start..stop − 1 of the sum of each ``span`` rows: (N / span, L), (N, L).

    Each column is added up in the order of the learners, so that threads may share the columns.
    """
    for trial in range(len(totals)):
        out = totals[trial, start:stop]
        copied(out, values[trial * span, start:stop])
        for k in range(trial * span + 1, (trial + 1) * span):
            added(out, values[k, start:stop])


def delivered(
    how: str,
    values: Array,
    own: Array,
    wires: Wires,
    out: Array | None = None,
    exact: Array | None = None,
) -> Array:
    """Give what all learners hear of one field: own (K, …), values (N, …), or (E, …) by edge.

    ``exact`` is ``own`` before it was said, the same by default.

    Examples
    --------
    >>> ends, other = np.array([0, 1, 2]), np.array([1, 0])
    >>> path = Wires(ends, other, np.array([0.5, 0.5]), other, 2)
    >>> values = np.array([[1.0], [4.0]])
    >>> [delivered(how, values, values, path).ravel().tolist() for how in DELIVERIES]
    [[4.0, 1.0], [3.0, -3.0], [2.5, 2.5], [4.0, 1.0], [5.0, 5.0]]
    """
    out = np.empty_like(own) if out is None else out
    said = rows_of(values)
    totals = said[:0]
    kind = DELIVERIES[how]
    if kind.spans_all and wires.span > 1:
        totals = np.empty((len(values) // wires.span, said.shape[1]), said.dtype)
        totals_of(totals, said, wires.span, 0, said.shape[1])
    rows = rows_of(own)
    before = rows if exact is None else rows_of(exact)
    deliver(kind.code, rows_of(out), said, rows, before, totals, *wires, 0)
    return out


def heard_alone(how: str, own: Array, exact: Array) -> Array:
    """Give what learners without neighbors hear of a field, as `delivered` would.

    Examples
    --------
    >>> own, exact = np.array([[0.5]]), np.array([[0.51]])
    >>> [heard_alone(how, own, exact).item() for how in ("sum", "gap", "metropolis", "total")]
    [0.0, 0.0, 0.51, 0.5]
    """
    kind = DELIVERIES[how]
    if not kind.has_own:
        return np.zeros(own.shape, own.dtype)
    return np.array(own if kind.spans_all else exact, order="C")


def rows_of(values: Array) -> Array:
    """Each learner's values in one row: (K, …) as (K, L)."""
    return values if values.ndim == 2 else values.reshape(len(values), math.prod(values.shape[1:]))


@sweep
def is_within(values: Array, limit: float) -> bool:
    """Whether every number of a 1-D array is finite and at most ``limit`` in size.

    Hosts ask this of numbers that come from elsewhere.
    """
    for i in range(len(values)):  # noqa: SIM110  Numba knows no all()
        if not -limit <= values[i] <= limit:  # true of NaN, too
            return False
    return True


# Prefetching: a neighbor's row stands anywhere in memory. The processor foresees what follows in
# memory and nothing else, so in a large network each such row costs a wait of some hundred
# nanoseconds, unless it is asked for while the learner before is at work.

LINE = 64  # bytes that come at once


@row
def prefetched(values: Array) -> None:
    """Ask for a contiguous row; without effect in Python."""
    for i in range(0, values.size, LINE // values.itemsize):
        prefetch(values, i)


@sweep
def prefetch_rows(values: Array, k: int, indptr: Ints, indices: Ints) -> None:
    """Ask for what learner k will hear, values (N, L)."""
    if k + 1 < len(indptr):
        for edge in range(indptr[k], indptr[k + 1]):
            prefetched(values[indices[edge]])
