"""An undirected network in compressed sparse rows, neighbors in ascending order."""

from collections.abc import Iterable
from functools import cached_property
from math import isqrt
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks, rng
from domkl.errors import GraphError
from domkl.graphs import generators
from domkl.typing import Floats, Ints, Seed


class Graph:
    """An undirected network of learners 0..K−1, without self-loops.

    Make one with `random`, `sparse`, `random_regular`, `small_world`, `scale_free`, `ring`,
    `ring_with_chords`, `path`, `star`, `grid`, `rectangle`, `tree`, `complete`, `nearest`, `empty`,
    `from_edges`, `from_networkx` or `from_file`.

    Examples
    --------
    >>> graph = Graph.from_edges(4, [(0, 1), (1, 2)])
    >>> graph.degree, graph.neighbors(1), graph.n_components
    (array([1, 2, 1, 0]), array([0, 2]), 2)
    """

    def __init__(self, indptr: Ints, indices: Ints) -> None:
        """Use these rows unchecked; `from_edges` checks and sorts."""
        self.indptr = np.ascontiguousarray(indptr, dtype=np.int64)
        self.indices = np.ascontiguousarray(indices, dtype=np.int64)

    @classmethod
    def from_edges(cls, n_learners: int, edges: Iterable[tuple[int, int]] | ArrayLike) -> Self:
        """Build from pairs, or an (E, 2) integer array. Pairs given twice count once."""
        n_learners = checks.whole("n_learners", n_learners, 1)
        pairs = generators.as_pairs(edges)
        outside = pairs[((pairs < 0) | (pairs >= n_learners)).any(axis=1)]
        if len(outside):
            edge = tuple(outside[0].tolist())
            raise GraphError(f"edges must join nodes 0..{n_learners - 1}, got {edge}")
        loops = pairs[pairs[:, 0] == pairs[:, 1]]
        if len(loops):
            edge = tuple(loops[0].tolist())
            raise GraphError(f"edges must join two different nodes, got the self-loop {edge}")
        both = np.concatenate([pairs, pairs[:, ::-1]])
        keys = generators.distinct(both[:, 0] * n_learners + both[:, 1])
        counts = np.bincount(keys // n_learners, minlength=n_learners)
        return cls(np.concatenate([[0], np.cumsum(counts)]), keys % n_learners)

    @classmethod
    def random(
        cls,
        n_learners: int,
        probability: float,
        *,
        seed: Seed,
        connected: bool = True,
        max_draws: int = 10_000,
    ) -> Self:
        """Join each pair with this probability; redraw until connected, as the paper does."""
        return cls._drawn(
            generators.random_edges(n_learners, probability, seed), n_learners, connected, max_draws
        )

    @classmethod
    def random_regular(
        cls,
        n_learners: int,
        degree: int,
        *,
        seed: Seed,
        connected: bool = True,
        max_draws: int = 1000,
    ) -> Self:
        """Give every learner this many neighbors at random; redraw until connected."""
        return cls._drawn(
            generators.regular_edges(n_learners, degree, seed), n_learners, connected, max_draws
        )

    @classmethod
    def sparse(
        cls, n_learners: int, mean_degree: float, *, seed: Seed, connected: bool = True
    ) -> Self:
        """Join random pairs, so that learners have this many neighbors on average.

        A large graph of this kind is almost never connected: each component is then joined to the
        largest one by an edge between random learners. With a mean degree of 4 that adds 1 %.
        """
        edges = generators.sparse_edges(n_learners, mean_degree, seed)
        graph = cls.from_edges(n_learners, edges)
        if not connected or graph.is_connected:
            return graph
        bridges = generators.bridges(graph.component, seed)
        return cls.from_edges(n_learners, np.concatenate([edges, bridges]))

    @classmethod
    def circle(cls, n_learners: int, degree: int = 4) -> Self:
        """A ring in which each learner is joined with those up to degree/2 places away."""
        if n_learners <= degree + 1:
            return cls.complete(n_learners)
        return cls.small_world(n_learners, degree, 0.0, seed=0)

    @classmethod
    def small_world(
        cls,
        n_learners: int,
        degree: int,
        rewired: float,
        *,
        seed: Seed,
        connected: bool = True,
        max_draws: int = 1000,
    ) -> Self:
        """A ring in which learners have ``degree`` neighbors, with this share of edges rewired.

        The model of Watts and Strogatz; redrawn until connected.
        """
        draws = generators.small_world_edges(n_learners, degree, rewired, seed)
        return cls._drawn(draws, n_learners, connected, max_draws)

    @classmethod
    def scale_free(cls, n_learners: int, links: int, *, seed: Seed) -> Self:
        """Add learners one by one, each linked to ``links`` others, preferably to those with many.

        The model of Barabási and Albert, which starts from a complete graph of ``links`` + 1
        learners. The graph is always connected, and its mean degree is about 2·links.
        """
        return cls.from_edges(n_learners, generators.scale_free_edges(n_learners, links, seed))

    @classmethod
    def nearest(cls, places: ArrayLike, n_neighbors: int) -> Self:
        """Join each learner with the ``n_neighbors`` nearest to its place, and make it connected.

        Two learners are joined if either is among the nearest of the other. Components that are
        left are joined by the shortest edges between them. ``places`` is (K, 2), or of any other
        number of coordinates.

        Examples
        --------
        >>> Graph.nearest([[0.0], [1.0], [3.0], [10.0], [11.0]], 1).edges.tolist()
        [[0, 1], [1, 2], [2, 3], [3, 4]]
        """
        points = checks.samples("places", places, "K c")
        return cls.from_edges(len(points), generators.nearest_edges(points, n_neighbors))

    @classmethod
    def _drawn(
        cls, draws: Iterable[Ints], n_learners: int, connected: bool, max_draws: int
    ) -> Self:
        checks.whole("max_draws", max_draws, 1)
        for edges, _ in zip(draws, range(max_draws), strict=False):
            graph = cls.from_edges(n_learners, edges)
            if graph.is_connected or not connected:
                return graph
        raise GraphError(
            f"no connected graph of {n_learners} learners in {max_draws} draws; raise the"
            " connection probability or degree, or allow graphs in parts (connected=False)"
        )

    @classmethod
    def ring(cls, n_learners: int) -> Self:
        """A cycle; two learners have one edge, one has none."""
        n_learners = checks.whole("n_learners", n_learners, 1)
        k = np.arange(n_learners if n_learners > 1 else 0)
        return cls.from_edges(n_learners, np.column_stack([k, (k + 1) % n_learners]))

    @classmethod
    def ring_with_chords(cls, n_learners: int) -> Self:
        """A cycle whose opposite learners are joined, too: if two fail, the rest is connected."""
        ring, k = cls.ring(n_learners).edges, np.arange(n_learners // 2)
        return cls.from_edges(n_learners, np.vstack([ring, np.column_stack([k, k + len(k)])]))

    @classmethod
    def path(cls, n_learners: int) -> Self:
        """A line."""
        k = np.arange(checks.whole("n_learners", n_learners, 1) - 1)
        return cls.from_edges(n_learners, np.column_stack([k, k + 1]))

    @classmethod
    def star(cls, n_learners: int) -> Self:
        """Learner 0 joined to all others."""
        k = np.arange(1, checks.whole("n_learners", n_learners, 1))
        return cls.from_edges(n_learners, np.column_stack([np.zeros_like(k), k]))

    @classmethod
    def grid(cls, n_rows: int, n_columns: int) -> Self:
        """A rectangle of learners, row after row."""
        size = checks.whole("n_rows", n_rows, 1), checks.whole("n_columns", n_columns, 1)
        k = np.arange(n_rows * n_columns).reshape(size)
        along = np.column_stack([k[:, :-1].ravel(), k[:, 1:].ravel()])
        down = np.column_stack([k[:-1].ravel(), k[1:].ravel()])
        return cls.from_edges(k.size, np.vstack([along, down]))

    @classmethod
    def rectangle(cls, n_learners: int) -> Self:
        """The grid of this many learners that is nearest to a square."""
        n_rows = next(n for n in range(isqrt(n_learners), 0, -1) if n_learners % n == 0)
        return cls.grid(n_rows, n_learners // n_rows)

    @classmethod
    def tree(cls, n_learners: int, *, branching: int = 2, seed: Seed | None = None) -> Self:
        """A full tree with this branching, rooted at 0; with a seed, one at random."""
        k = np.arange(1, checks.whole("n_learners", n_learners, 1))
        parents = (k - 1) // checks.whole("branching", branching, 1)
        if seed is not None:  # every learner is attached to a random earlier one
            parents = rng.generator(seed, "graph").integers(0, k)
        return cls.from_edges(n_learners, np.column_stack([parents, k]))

    @classmethod
    def complete(cls, n_learners: int) -> Self:
        """Every pair joined."""
        n_learners = checks.whole("n_learners", n_learners, 1)
        return cls.from_edges(n_learners, np.column_stack(np.triu_indices(n_learners, k=1)))

    @classmethod
    def empty(cls, n_learners: int) -> Self:
        """No pair joined."""
        return cls.from_edges(n_learners, [])

    @classmethod
    def from_networkx(cls, graph: Any) -> Self:
        """Take a networkx graph; learners are its nodes in its own order."""
        if not hasattr(graph, "is_directed") or graph.is_directed():
            raise GraphError(f"graph must be an undirected networkx graph, got {graph!r}")
        index = {node: k for k, node in enumerate(graph.nodes)}
        return cls.from_edges(len(index), [(index[a], index[b]) for a, b in graph.edges()])

    @classmethod
    def from_file(cls, path: str | Path, n_learners: int | None = None) -> Self:
        """Read a text file with one edge per line, as two node numbers; # starts a comment.

        Without ``n_learners``, the largest number seen is the last learner.
        """
        edges = generators.read_edges(Path(path))
        if n_learners is None:
            n_learners = 1 + max((max(edge) for edge in edges), default=-1)
        return cls.from_edges(n_learners, edges)

    @property
    def n_learners(self) -> int:
        """K."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """Undirected edges."""
        return len(self.indices) // 2

    @cached_property
    def degree(self) -> Ints:
        """Number of neighbors, (K,)."""
        return np.diff(self.indptr)

    def neighbors(self, k: int) -> Ints:
        """Learner k's neighbors, ascending."""
        return self.indices[self.indptr[k] : self.indptr[k + 1]]

    @cached_property
    def sources(self) -> Ints:
        """The learner in whose row each directed edge is, (2E,)."""
        return np.repeat(np.arange(self.n_learners), self.degree)

    @cached_property
    def reverse(self) -> Ints:
        """Position of each directed edge's opposite, (2E,)."""
        return np.lexsort((self.sources, self.indices))

    @property
    def edges(self) -> Ints:
        """Undirected edges (E, 2), the smaller node first."""
        keep = self.sources < self.indices
        return np.column_stack([self.sources[keep], self.indices[keep]])

    @cached_property
    def component(self) -> Ints:
        """The number of each learner's connected component, (K,)."""
        lowest = _lowest_reachable(self.indptr, self.indices)
        return np.asarray(np.unique(lowest, return_inverse=True)[1], dtype=np.int64)

    @property
    def n_components(self) -> int:
        """Number of connected components."""
        return int(self.component.max()) + 1

    @property
    def is_connected(self) -> bool:
        """Whether all learners can reach each other."""
        return self.n_components == 1

    @property
    def is_acyclic(self) -> bool:
        """Whether the graph is a forest."""
        return self.n_edges == self.n_learners - self.n_components

    @cached_property
    def metropolis(self) -> tuple[Floats, Floats]:
        """Metropolis weights: each learner's own (K,) and each directed edge's (2E,).

        ``a_kℓ = 1/(1 + max(|N_k|, |N_ℓ|))`` for neighbors, and a_kk is the rest up to 1.
        """
        edge = metropolis_weights(self.degree[self.sources], self.degree[self.indices])
        spent = np.bincount(self.sources, weights=edge, minlength=self.n_learners)
        own = 1 - np.asarray(spent, dtype=np.float64)
        return own, edge

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Graph)
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
        )

    def __hash__(self) -> int:
        return hash((self.indptr.tobytes(), self.indices.tobytes()))

    def __repr__(self) -> str:
        return f"Graph({self.n_learners} learners, {self.n_edges} edges)"


def metropolis_weights(degree: Ints | Floats, neighbors_degree: Ints | Floats) -> Floats:
    """Give the weight of edges between learners of these degrees: 1/(1 + the larger)."""
    return np.asarray(1 / (1 + np.maximum(degree, neighbors_degree).astype(np.float64)))


def disjoint_union(graphs: list[Graph]) -> Graph:
    """Join graphs as the components of one graph; learners are renumbered in order."""
    if len(graphs) == 1:
        return graphs[0]
    learners = np.cumsum([0, *(g.n_learners for g in graphs)])
    edges = np.cumsum([0, *(len(g.indices) for g in graphs)])
    indptr = [g.indptr[:-1] + start for g, start in zip(graphs, edges, strict=False)]
    indices = [g.indices + start for g, start in zip(graphs, learners, strict=False)]
    return Graph(np.concatenate([*indptr, edges[-1:]]), np.concatenate(indices))


def _lowest_reachable(indptr: Ints, indices: Ints) -> Ints:
    """The smallest node that each node can reach, (K,).

    Each node points to a smaller one, or to itself. In turns, what a node points to is pointed to
    the smallest that a neighbor of the node points to, and every pointer is followed to its end. A
    few turns suffice, also on a ring of a million, and it takes about as long as SciPy's
    search, which a node would load for this alone.
    """
    rows = np.flatnonzero(np.diff(indptr))  # of nodes that have neighbors
    lowest = np.arange(len(indptr) - 1)
    while True:
        before = lowest.copy()
        if len(rows):
            heard = np.minimum.reduceat(before[indices], indptr[rows])
            np.minimum.at(lowest, before[rows], heard)
            lowest[rows] = np.minimum(lowest[rows], heard)
        while not np.array_equal(further := lowest[lowest], lowest):
            lowest = further
        if np.array_equal(lowest, before):
            return lowest
