"""The network of a mesh: named topologies, and edges by the names of learners."""

from collections.abc import Sequence
from typing import Any

from domkl import checks
from domkl.errors import ParameterError
from domkl.graphs.kinds import KINDS, PLAIN

Edges = tuple[tuple[str, str], ...]


def named_edges(
    topology: str, names: Sequence[str], *, connect: float = 0.4, seed: int = 1
) -> Edges:
    """The edges of a named topology; "random" joins each pair with probability ``connect``."""
    kind = KINDS[checks.choice("topology", topology, PLAIN)]
    given: dict[str, Any] = {"connect": connect} if "connect" in kind.defaults else {}
    graph = kind.make(len(names), seed if kind.is_random else None, **given)
    return tuple((names[a], names[b]) for a, b in graph.edges.tolist())


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
