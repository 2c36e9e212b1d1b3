"""Edges of large networks drawn at random, as (E, 2) integer arrays, in a few array operations."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from domkl import checks
from domkl.errors import ParameterError
from domkl.graphs.generators import distinct, pair_of
from domkl.rng import generator
from domkl.typing import Ints, Seed

Bools = NDArray[np.bool_]


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


def bridges(component: Ints, seed: Seed) -> Ints:
    """An edge from each component but the largest to that one, between nodes drawn at random."""
    rng = generator(seed, "bridges")
    shuffled = rng.permutation(len(component))
    numbers, first = np.unique(component[shuffled], return_index=True)
    largest = np.bincount(component).argmax()
    ends = shuffled[first[numbers != largest]]
    mainland = np.flatnonzero(component == largest)
    return np.column_stack([ends, rng.choice(mainland, len(ends))])


def small_world_edges(n_learners: int, degree: int, rewired: float, seed: Seed) -> Iterator[Ints]:
    """Draw rings with neighbors up to degree/2 away, some edges of which lead anywhere."""
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
    """Whether an edge is a loop or stands there twice; of two, those that are movable, or one."""
    keys = edges.min(axis=1) * n_learners + edges.max(axis=1)
    order = np.lexsort((movable, keys))  # those that stay come first
    is_again = np.zeros(len(edges), dtype=bool)
    is_again[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    return np.asarray(is_again | (edges[:, 0] == edges[:, 1]))


def scale_free_edges(n_learners: int, links: int, seed: Seed) -> Ints:
    """Newcomers link to the ends of edges drawn at random: to a node, as often as it has links.

    All ends stand in one list, two an edge. A newcomer's edge has itself at the even place, and at
    the odd one a copy of what stands at an earlier place: chains of copies are followed for all
    edges at once. A newcomer that would link twice to the same node draws again.
    """
    links = checks.whole("links", links, 1)
    n_learners = checks.whole("n_learners", n_learners, links + 1)
    rng = generator(seed, "graph")
    core = np.column_stack(np.triu_indices(links + 1, k=1))
    newcomers = np.repeat(np.arange(links + 1, n_learners), links)
    n_before = 2 * (len(core) + links * (newcomers - links - 1))  # ends that stood there first
    copied = rng.integers(0, n_before)
    while True:
        ends = _followed(core, newcomers, copied)
        again = _repeated(ends[2 * len(core) + 1 :: 2].reshape(-1, links)).ravel()
        if not again.any():
            return ends.reshape(-1, 2)
        copied[again] = rng.integers(0, n_before[again])


def _followed(core: Ints, newcomers: Ints, copied: Ints) -> Ints:
    """The list of ends, every copy replaced by what it is a copy of."""
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
    """Whether a number stands earlier in its row."""
    order = np.argsort(rows, axis=1, kind="stable")
    ranked = np.take_along_axis(rows, order, axis=1)
    again = np.zeros(rows.shape, dtype=bool)
    np.put_along_axis(again, order[:, 1:], ranked[:, 1:] == ranked[:, :-1], axis=1)
    return again
