"""Divide a network into parts of equal size that exchange few rows.

The cost of a partition is counted in rows: a part sends a learner's row once to every other part
that has a neighbor of this learner, however many neighbors it has there.
"""

from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from domkl import checks
from domkl.errors import ParameterError
from domkl.graphs.graph import Graph
from domkl.typing import Ints

SLACK = 1.1  # how much larger than the mean a part of METIS may be


class Cut(NamedTuple):
    """The cost of a partition."""

    edges: int  # undirected, between parts
    rows: int  # sent each round, by all parts together
    largest: int  # learners of the largest part

    def __str__(self) -> str:
        return f"{self.edges} edges cut, {self.rows} rows a round, at most {self.largest} learners"


def partition(graph: Graph, n_parts: int) -> Ints:
    """Give each learner's part 0..n_parts − 1, (K,); no part is empty.

    The cheapest of three: blocks of consecutive learners, blocks in reverse Cuthill-McKee order,
    and METIS if it is installed. Where the numbering follows the network, as in a ring or a small
    world, blocks may be as good as METIS.

    Examples
    --------
    >>> partition(Graph.path(6), 2)
    array([0, 0, 0, 1, 1, 1])
    """
    n_parts = checks.whole("n_parts", n_parts, 1)
    n_learners = graph.n_learners
    if n_parts > n_learners:
        raise ParameterError(f"n_parts must be at most the {n_learners} learners, got {n_parts}")
    found = [blocks(n_learners, n_parts), _near_blocks(graph, n_parts)]
    if n_parts > 1 and find_spec("pymetis") is not None:
        from domkl.graphs.metis import metis_parts

        part = metis_parts(graph, n_parts)
        sizes = np.bincount(part, minlength=n_parts)
        if sizes.min() > 0 and sizes.max() <= max(SLACK * n_learners / n_parts, 1 + sizes.min()):
            found.append(part)
    return min(found, key=lambda part: cut_of(graph, part).rows)


def blocks(n_learners: int, n_parts: int) -> Ints:
    """Parts of consecutive learners."""
    return np.arange(n_learners) * n_parts // n_learners


def _near_blocks(graph: Graph, n_parts: int) -> Ints:
    """Blocks in an order that brings neighbors together."""
    n_learners = graph.n_learners
    ones = np.ones(len(graph.indices), dtype=np.int8)
    matrix = csr_array((ones, graph.indices, graph.indptr), shape=(n_learners, n_learners))
    part = np.empty(n_learners, dtype=np.int64)
    part[reverse_cuthill_mckee(matrix, symmetric_mode=True)] = blocks(n_learners, n_parts)
    return part


def cut_of(graph: Graph, part: Ints) -> Cut:
    """Count the cost of this partition.

    Examples
    --------
    >>> print(cut_of(Graph.star(4), np.array([0, 0, 1, 1])))
    2 edges cut, 3 rows a round, at most 2 learners
    """
    sources, there = graph.sources, part[graph.indices]
    is_cut = part[sources] != there
    n_parts = int(part.max()) + 1
    rows = np.unique(sources[is_cut] * n_parts + there[is_cut])
    return Cut(int(is_cut.sum()) // 2, len(rows), int(np.bincount(part).max()))
