"""Edges of the named networks, as (E, 2) integer arrays."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks
from domkl.errors import GraphError, ParameterError
from domkl.rng import generator
from domkl.typing import Ints, Seed


def random_edges(n_learners: int, probability: float, seed: Seed) -> Iterator[Ints]:
    """Draw graphs in which each pair is joined with this probability, one after another.

    Draws the number of edges, then that many different pairs: O(E), not O(K²).
    """
    n_learners = checks.whole("n_learners", n_learners, 1)
    checks.fraction("probability", probability)
    rng = generator(seed, "graph")
    n_pairs = n_learners * (n_learners - 1) // 2
    while True:
        n_edges = rng.binomial(n_pairs, probability)
        yield pair_of(rng.choice(n_pairs, n_edges, replace=False, shuffle=False))


def pair_of(number: Ints) -> Ints:
    """The pair (a, b), a > b, that stands at this place in (1,0), (2,0), (2,1), (3,0), …"""
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
    is_dense = degree > (n_learners - 1) / 2  # then the pairs that are *not* joined are drawn
    fewer = n_learners - 1 - degree if is_dense else degree
    while True:
        ends = rng.permutation(np.repeat(np.arange(n_learners), fewer)).reshape(-1, 2)
        edges = _without_clashes(ends, n_learners, rng)
        if edges is not None:
            yield _complement(edges, n_learners) if is_dense else edges


def _without_clashes(ends: Ints, n_learners: int, rng: np.random.Generator) -> Ints | None:
    """Swap ends of loops and double edges with edges drawn at random; give up after many tries."""
    for _ in range(1000):
        low, high = ends.min(axis=1), ends.max(axis=1)
        _, first = np.unique(low * n_learners + high, return_index=True)
        is_clash = np.ones(len(ends), dtype=bool)
        is_clash[first] = False
        clashes = np.flatnonzero(is_clash | (low == high))
        if not len(clashes):
            return ends
        for bad in clashes:
            other = rng.integers(len(ends))
            ends[bad, 1], ends[other, 1] = ends[other, 1], ends[bad, 1]
    return None


def _complement(edges: Ints, n_learners: int) -> Ints:
    every = complete_edges(n_learners)
    joined = edges.min(axis=1) * n_learners + edges.max(axis=1)
    return every[~np.isin(every[:, 0] * n_learners + every[:, 1], joined)]


def ring_edges(n_learners: int) -> Ints:
    """A cycle; two learners have one edge, one has none."""
    path = path_edges(n_learners)
    return path if n_learners < 3 else np.vstack([path, [[0, n_learners - 1]]])


def path_edges(n_learners: int) -> Ints:
    """A line."""
    k = np.arange(checks.whole("n_learners", n_learners, 1) - 1)
    return np.column_stack([k, k + 1])


def star_edges(n_learners: int) -> Ints:
    """Node 0 joined to all others."""
    k = np.arange(1, checks.whole("n_learners", n_learners, 1))
    return np.column_stack([np.zeros_like(k), k])


def grid_edges(n_rows: int, n_columns: int) -> Ints:
    """A rectangle, row after row."""
    checks.whole("n_rows", n_rows, 1)
    checks.whole("n_columns", n_columns, 1)
    k = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    along = np.column_stack([k[:, :-1].ravel(), k[:, 1:].ravel()])
    down = np.column_stack([k[:-1].ravel(), k[1:].ravel()])
    return np.vstack([along, down])


def tree_edges(n_learners: int, branching: int, seed: Seed | None) -> Ints:
    """A full tree rooted at 0, or, with a seed, each node below an earlier one at random."""
    k = np.arange(1, checks.whole("n_learners", n_learners, 1))
    if seed is None:
        return np.column_stack([(k - 1) // checks.whole("branching", branching, 1), k])
    return np.column_stack([generator(seed, "graph").integers(0, k), k])


def complete_edges(n_learners: int) -> Ints:
    """Every pair."""
    return np.column_stack(np.triu_indices(checks.whole("n_learners", n_learners, 1), k=1))


def read_edges(path: Path) -> list[tuple[int, int]]:
    """Read two node numbers a line; # starts a comment."""
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
    """Take pairs of integers, or an (E, 2) integer array, as the latter."""
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
    """Each number once, ascending; of millions, faster than NumPy's own."""
    ordered = np.sort(keys)
    is_new = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)]
    return np.asarray(ordered[is_new])
