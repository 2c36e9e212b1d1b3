"""What one place holds of a network that is cut into parts: its learners, and whom they hear.

Rows of values stand as own learners first, then the halo: those of other parts that have a neighbor
here. Each learner's neighbors stand in ascending number in the whole network, wherever they are, so
that sums come out as if there were one place, to the bit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from domkl.graphs.graph import Graph, metropolis_weights
from domkl.typing import Array, Floats, Ints

#: fill the halo rows of each array, (n + h, …), with what the other parts hold there
Share = Callable[..., None]
#: replace an array by its sum over all places
Total = Callable[[Floats], None]


@dataclass(frozen=True)
class Shard:
    """One part of a network: n learners, and a halo of h."""

    learners: Ints  # (n,)  their numbers in the whole network, ascending
    halo: Ints  # (h,)      by part, and ascending there
    indptr: Ints  # (n + 1,)
    indices: Ints  # (E,)   rows of values: own learners, then the halo
    weight: Floats  # (E,)  Metropolis
    sends: tuple[tuple[int, Ints], ...]  # part, and the rows that it hears
    receives: tuple[tuple[int, slice], ...]  # part, and the rows that it fills

    @property
    def n_learners(self) -> int:
        """Own ones."""
        return len(self.learners)

    @property
    def n_rows(self) -> int:
        """Of values: own learners and halo."""
        return len(self.learners) + len(self.halo)

    @property
    def degree(self) -> Ints:
        """Number of neighbors, here and elsewhere, (n,)."""
        return np.diff(self.indptr)

    def extended(self, own: Array) -> Array:
        """Rows of own learners with room for the halo, (n + h, …)."""
        out = np.empty((self.n_rows, *own.shape[1:]), own.dtype)
        out[: len(own)] = own
        return out


class Place(NamedTuple):
    """A shard, and what connects it to the others."""

    shard: Shard
    share: Share
    total: Total


def shard_of(graph: Graph, part: Ints, here: int) -> Shard:
    """Take the learners of one part out of the whole network.

    Examples
    --------
    >>> shard = shard_of(Graph.path(4), np.array([1, 0, 0, 1]), 0)
    >>> shard.learners, shard.halo, shard.indices
    (array([1, 2]), array([0, 3]), array([2, 1, 0, 3]))
    """
    learners = np.flatnonzero(part == here)
    degree = graph.degree[learners]
    indptr = np.concatenate([[0], np.cumsum(degree)])
    place = np.repeat(graph.indptr[learners] - indptr[:-1], degree) + np.arange(indptr[-1])
    neighbors, source = graph.indices[place], np.repeat(np.arange(len(learners)), degree)
    owner = part[neighbors]
    is_far = owner != here
    far = np.unique(neighbors[is_far])
    order = np.argsort(part[far], kind="stable")
    row = np.empty_like(order)
    row[order] = len(learners) + np.arange(len(far))
    indices = np.searchsorted(learners, neighbors)
    indices[is_far] = row[np.searchsorted(far, neighbors[is_far])]
    halo = far[order]
    parts, starts = np.unique(part[halo], return_index=True)
    bounds = len(learners) + np.append(starts, len(halo))
    receives = [
        (int(p), slice(int(start), int(stop)))
        for p, (start, stop) in zip(parts, pairwise(bounds), strict=True)
    ]
    sends = [(int(p), np.unique(source[owner == p])) for p in parts]  # edges go both ways
    weight = metropolis_weights(degree[source], graph.degree[neighbors])
    return Shard(learners, halo, indptr, indices, weight, tuple(sends), tuple(receives))
