"""The kinds of graph that a sweep can name, and their parameters."""

from collections.abc import Callable
from math import isqrt
from typing import Any, NamedTuple

from domkl.experiments.compare import N_NEAREST
from domkl.graphs.graph import Graph
from domkl.typing import Floats, Seed

#: the kind whose graphs depend on where the learners stand; its maker gets their places, too
NEAREST = "nearest"


class Kind(NamedTuple):
    """A kind of graph: its parameters with their defaults, and how one is made."""

    defaults: dict[str, Any]
    make: Callable[..., Graph]  # called with the number of learners, a seed and the parameters


def fixed(make: Callable[[int], Graph]) -> Kind:
    """A kind without parameters and randomness: the same graph in every trial."""
    return Kind({}, lambda n_learners, seed: make(n_learners))


def _random(n_learners: int, seed: Seed, connect: float) -> Graph:
    return Graph.random(n_learners, connect, seed=seed)


def _regular(n_learners: int, seed: Seed, degree: int) -> Graph:
    return Graph.random_regular(n_learners, degree, seed=seed)


def _sparse(n_learners: int, seed: Seed, mean_degree: float) -> Graph:
    return Graph.sparse(n_learners, mean_degree, seed=seed)


def _small_world(n_learners: int, seed: Seed, degree: int, rewired: float) -> Graph:
    return Graph.small_world(n_learners, degree, rewired, seed=seed)


def _scale_free(n_learners: int, seed: Seed, links: int) -> Graph:
    return Graph.scale_free(n_learners, links, seed=seed)


def _nearest(n_learners: int, seed: Seed, neighbors: int, places: Floats) -> Graph:
    return Graph.nearest(places, neighbors)


def _grid(n_learners: int, seed: Seed) -> Graph:
    """The rectangle that is nearest to a square."""
    n_rows = next(n for n in range(isqrt(n_learners), 0, -1) if n_learners % n == 0)
    return Graph.grid(n_rows, n_learners // n_rows)


KINDS: dict[str, Kind] = {
    "random": Kind({"connect": 0.25}, _random),
    "regular": Kind({"degree": 4}, _regular),
    "sparse": Kind({"mean_degree": 4.0}, _sparse),
    "small-world": Kind({"degree": 4, "rewired": 0.1}, _small_world),
    "scale-free": Kind({"links": 2}, _scale_free),
    "tree": Kind({}, lambda n, seed: Graph.tree(n, seed=seed)),
    "grid": Kind({}, _grid),
    "ring": fixed(Graph.ring),
    "path": fixed(Graph.path),
    "star": fixed(Graph.star),
    "complete": fixed(Graph.complete),
    "empty": fixed(Graph.empty),
    NEAREST: Kind({"neighbors": N_NEAREST}, _nearest),
}
