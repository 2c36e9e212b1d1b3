"""Edges of the named networks, as (E, 2) integer arrays; large ones in a few array operations."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domkl import checks
from domkl.errors import GraphError, ParameterError
from domkl.rng import generator
from domkl.typing import Floats, Ints, Seed

Bools = NDArray[np.bool_]


def random_edges(n_learners: int, probability: float, seed: Seed) -> Iterator[Ints]:
    """Draw graphs, one after another, in which each pair is joined with this probability.

    The number of edges is drawn first, then that many different pairs: O(E), not O(K²).
    """
    n_learners = checks.whole("n_learners", n_learners, 1)
    checks.fraction("probability", probability)
    rng = generator(seed, "graph")
    n_pairs = n_learners * (n_learners - 1) // 2
    while True:
        n_edges = rng.binomial(n_pairs, probability)
        yield pair_of(rng.choice(n_pairs, n_edges, replace=False, shuffle=False))


def pair_of(number: Ints) -> Ints:
    """The pair (a, b), a > b, with this number in the list (1,0), (2,0), (2,1), (3,0), …"""
    a = ((1 + np.sqrt(1 + 8 * number.astype(np.float64))) / 2).astype(np.int64)
    a -= a * (a - 1) // 2 > number  # the root of a large number may round up
    a += (a + 1) * a // 2 <= number
    return np.column_stack([a, number - a * (a - 1) // 2])


def regular_edges(n_learners: int, degree: int, seed: Seed) -> Iterator[Ints]:
    """Draw graphs in which every node has this degree.

    Pairs the ends of edges at random; loops and double edges are broken up by swaps with edges
    drawn at random, until none is left.
    """
    n_learners = checks.whole("n_learners", n_learners, 1)
    degree = checks.whole("degree", degree, 0)
    if degree >= n_learners or n_learners * degree % 2:
        raise ParameterError(
            f"degree must be below n_learners = {n_learners} and n_learners * degree even,"
            f" got {degree}"
        )
    rng = generator(seed, "graph")
    is_dense = degree > (n_learners - 1) / 2  # then draw the pairs that are *not* joined
    fewer = n_learners - 1 - degree if is_dense else degree
    while True:
        ends = rng.permutation(np.repeat(np.arange(n_learners), fewer)).reshape(-1, 2)
        edges = _without_clashes(ends, n_learners, rng)
        if edges is not None:
            yield _complement(edges, n_learners) if is_dense else edges


def _without_clashes(ends: Ints, n_learners: int, rng: np.random.Generator) -> Ints | None:
    """Swap ends of loops and double edges with random edges; None after a thousand attempts."""
    for _ in range(1000):
        clashes = np.flatnonzero(_clashes(ends, n_learners, np.ones(len(ends), dtype=bool)))
        if not len(clashes):
            return ends
        for bad in clashes:
            other = rng.integers(len(ends))
            ends[bad, 1], ends[other, 1] = ends[other, 1], ends[bad, 1]
    return None


def _complement(edges: Ints, n_learners: int) -> Ints:
    every = np.column_stack(np.triu_indices(n_learners, k=1))
    joined = edges.min(axis=1) * n_learners + edges.max(axis=1)
    return every[~np.isin(every[:, 0] * n_learners + every[:, 1], joined)]


def sparse_edges(n_learners: int, mean_degree: float, seed: Seed) -> Ints:
    """K·degree/2 different pairs, drawn at random."""
    n_learners = checks.whole("n_learners", n_learners, 1)
    if not 0 <= mean_degree <= n_learners - 1:
        raise ParameterError(f"mean_degree must be in [0, {n_learners - 1}], got {mean_degree!r}")
    n_pairs = n_learners * (n_learners - 1) // 2
    rng = generator(seed, "graph")
    n_edges = round(n_learners * mean_degree / 2)
    if n_edges > n_pairs // 2:
        return pair_of(rng.choice(n_pairs, n_edges, replace=False, shuffle=False))
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < n_edges:
        more = rng.integers(0, n_pairs, n_edges - len(drawn))
        drawn = distinct(np.concatenate([drawn, more]))
    return pair_of(drawn)


def nearest_edges(points: Floats, n_neighbors: int) -> Ints:
    """Pairs of each point and its nearest ones, and the shortest edges that join what is apart."""
    n_points = len(points)
    n_neighbors = checks.whole("n_neighbors", n_neighbors, 1)
    if n_neighbors >= n_points:
        raise ParameterError(
            f"n_neighbors must be below the {n_points} learners, got {n_neighbors}"
        )
    distance = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    np.fill_diagonal(distance, np.inf)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :n_neighbors]
    edges = np.column_stack([np.repeat(np.arange(n_points), n_neighbors), nearest.ravel()])
    component = np.arange(n_points)
    for a, b in edges:
        component[component == component[b]] = component[a]
    while len(np.unique(component)) > 1:
        apart = np.where(component[:, None] != component, distance, np.inf)
        a, b = np.unravel_index(apart.argmin(), apart.shape)
        edges = np.concatenate([edges, [[a, b]]])
        component[component == component[b]] = component[a]
    return edges


def bridges(component: Ints, seed: Seed) -> Ints:
    """An edge from every other component to the largest one, between nodes drawn at random."""
    rng = generator(seed, "bridges")
    shuffled = rng.permutation(len(component))
    numbers, first = np.unique(component[shuffled], return_index=True)
    largest = np.bincount(component).argmax()
    ends = shuffled[first[numbers != largest]]
    targets = np.flatnonzero(component == largest)
    return np.column_stack([ends, rng.choice(targets, len(ends))])


def small_world_edges(n_learners: int, degree: int, rewired: float, seed: Seed) -> Iterator[Ints]:
    """Draw rings with neighbors up to degree/2 away, some edges of which are rewired at random."""
    n_learners = checks.whole("n_learners", n_learners, 1)
    degree = checks.whole("degree", degree, 0)
    if not 0 <= rewired <= 1:
        raise ParameterError(f"rewired must be in [0, 1], got {rewired!r}")
    if degree % 2 or degree >= n_learners:
        raise ParameterError(
            f"degree must be even and below n_learners = {n_learners}, got {degree}"
        )
    rng = generator(seed, "graph")
    near = np.tile(np.arange(n_learners), degree // 2)
    far = (near + np.repeat(np.arange(1, degree // 2 + 1), n_learners)) % n_learners
    while True:
        edges = np.column_stack([near, far])
        chosen = rng.random(len(edges)) < rewired
        todo = np.flatnonzero(chosen)
        for _ in range(1000):
            edges[todo, 1] = rng.integers(0, n_learners, len(todo))
            todo = np.flatnonzero(_clashes(edges, n_learners, chosen))
            if not len(todo):
                break
        yield np.column_stack([near, far]) if len(todo) else edges  # too dense to rewire


def _clashes(edges: Ints, n_learners: int, movable: Bools) -> Bools:
    """Whether an edge is a loop or a duplicate; of equal edges, those that may move count first."""
    keys = edges.min(axis=1) * n_learners + edges.max(axis=1)
    order = np.lexsort((movable, keys))  # those that stay come first
    is_again = np.zeros(len(edges), dtype=bool)
    is_again[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    return np.asarray(is_again | (edges[:, 0] == edges[:, 1]))


def scale_free_edges(n_learners: int, links: int, seed: Seed) -> Ints:
    """Link each new node to nodes drawn with probabilities proportional to their degrees.

    All ends of edges are in one list, two per edge. The edge of a new node has this node at the
    even index, and at the odd index a copy of the end at a random earlier index: a node is drawn as
    often as it has edges. Chains of copies are resolved for all edges at once. A new node that
    would link twice to the same node draws again.
    """
    links = checks.whole("links", links, 1)
    n_learners = checks.whole("n_learners", n_learners, links + 1)
    rng = generator(seed, "graph")
    core = np.column_stack(np.triu_indices(links + 1, k=1))
    newcomers = np.repeat(np.arange(links + 1, n_learners), links)
    n_before = 2 * (len(core) + links * (newcomers - links - 1))  # ends in the list so far
    copied = rng.integers(0, n_before)
    while True:
        ends = _followed(core, newcomers, copied)
        again = _repeated(ends[2 * len(core) + 1 :: 2].reshape(-1, links)).ravel()
        if not again.any():
            return ends.reshape(-1, 2)
        copied[again] = rng.integers(0, n_before[again])


def _followed(core: Ints, newcomers: Ints, copied: Ints) -> Ints:
    """The list of ends, with every copy replaced by the node that it refers to."""
    start = core.size
    ends = np.empty(start + 2 * len(newcomers), dtype=np.int64)
    ends[:start], ends[start::2] = core.ravel(), newcomers
    place = copied.copy()
    while True:
        is_copy = (place >= start) & (place % 2 == 1)
        if not is_copy.any():
            break
        place[is_copy] = copied[(place[is_copy] - start) // 2]
    ends[start + 1 :: 2] = ends[place]
    return ends


def _repeated(rows: Ints) -> Bools:
    """Whether a number occurs earlier in its row."""
    order = np.argsort(rows, axis=1, kind="stable")
    ranked = np.take_along_axis(rows, order, axis=1)
    again = np.zeros(rows.shape, dtype=bool)
    np.put_along_axis(again, order[:, 1:], ranked[:, 1:] == ranked[:, :-1], axis=1)
    return again


def read_edges(path: Path) -> list[tuple[int, int]]:
    """Read two node numbers per line; # starts a comment."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise GraphError(f"cannot read the graph file {path}: {error}") from None
    edges = []
    for number, line in enumerate(lines, start=1):
        words = line.split("#")[0].replace(",", " ").split()
        if words:
            try:
                a, b = map(int, words)
            except ValueError:
                raise GraphError(
                    f"{path} line {number} must hold two node numbers, got {line.strip()!r}"
                ) from None
            edges.append((a, b))
    return edges


def as_pairs(edges: Iterable[tuple[int, int]] | ArrayLike) -> Ints:
    """Turn pairs of integers into an (E, 2) integer array."""
    try:
        pairs = edges if isinstance(edges, np.ndarray) else np.asarray(list(edges))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pairs = np.empty(0)
    else:
        if len(pairs) == 0:
            return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise GraphError(
            "edges must be pairs of integers, or an (E, 2) integer array,"
            f" got shape {pairs.shape} of {pairs.dtype}"
        )
    return pairs.astype(np.int64)


def distinct(keys: Ints) -> Ints:
    """The distinct numbers in ascending order; for millions, faster than `numpy.unique`."""
    ordered = np.sort(keys)
    is_new = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)]
    return np.asarray(ordered[is_new])
