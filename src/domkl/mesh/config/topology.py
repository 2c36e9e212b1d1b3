"""The network of a mesh: named topologies, and edges by the names of learners.

Importing this module loads no graphs, so that `domkl --help` can read the names of topologies.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from domkl.errors import ParameterError

if TYPE_CHECKING:
    from domkl.graphs.graph import Graph

Edges = tuple[tuple[str, str], ...]
TOPOLOGIES = ("ring", "ring-with-chords", "path", "star", "tree", "grid", "complete", "random")


def named_edges(
    topology: str, names: Sequence[str], *, connect: float = 0.4, seed: int = 1
) -> Edges:
    """The edges of a named topology; "random" joins each pair with probability ``connect``."""
    graph = topology_graph(topology, len(names), connect=connect, seed=seed)
    return tuple((names[a], names[b]) for a, b in graph.edges.tolist())


def topology_graph(
    topology: str, n_learners: int, *, connect: float = 0.4, seed: int = 1
) -> "Graph":
    """The graph of a named topology."""
    from domkl.graphs.graph import Graph

    if topology not in TOPOLOGIES:
        raise ParameterError(f"topology must be one of {', '.join(TOPOLOGIES)}, got {topology!r}")
    if topology == "random":
        return Graph.random(n_learners, connect, seed=seed)
    if topology == "grid":
        n_rows = max(k for k in range(1, int(n_learners**0.5) + 1) if n_learners % k == 0)
        return Graph.grid(n_rows, n_learners // n_rows)
    if topology == "ring-with-chords":  # if one learner fails, the others stay connected
        half = n_learners // 2
        chords = [(k, k + half) for k in range(half)]
        return Graph.from_edges(n_learners, [*Graph.ring(n_learners).edges.tolist(), *chords])
    made: Graph = getattr(Graph, topology)(n_learners)
    return made


def parse_edges(text: str, names: Sequence[str]) -> Edges:
    """Read a-b,b-c; names may contain hyphens if only one way to split makes sense.

    Examples
    --------
    >>> parse_edges("a-b, b-c-1", ["a", "b", "c-1"])
    (('a', 'b'), ('b', 'c-1'))
    """
    made = []
    for word in filter(None, map(str.strip, text.split(","))):
        cuts = [k for k, letter in enumerate(word) if letter == "-"]
        pairs = [(word[:k], word[k + 1 :]) for k in cuts]
        fitting = [pair for pair in pairs if pair[0] in names and pair[1] in names]
        if len(fitting) != 1:
            raise ParameterError(
                f"edges must join two of the learners {_some(names)}, got {word!r}"
            )
        made.append(fitting[0])
    return tuple(made)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
