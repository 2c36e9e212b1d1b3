"""The network of a new mesh: who is in it, who are neighbors, and where each learner listens.

This module imports no library, so that `domkl --help` need not wait for one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from domkl.errors import ParameterError
from domkl.graphs.kinds import KINDS, PLAIN
from domkl.options import flag
from domkl.text import parse_names

Edges = tuple[tuple[str, str], ...]
HOST = "127.0.0.1"
#: below 32768: Linux uses ports above for outgoing connections
PORT, HTTP_PORT, PAGE_PORT = 21000, 22000, 22999
N_LEARNERS, CONNECT, SEED = 5, 0.4, 1


@dataclass(frozen=True)
class Layout:
    """The network of a new mesh, as the options of `domkl mesh init` describe it."""

    learners: int | None = flag(
        None, f"number of learners (default: {N_LEARNERS})", "K", group="learners"
    )
    names: str | None = flag(
        None, "names of the learners, instead of --learners", "A,B,...", group="learners"
    )
    topology: str = flag("ring", ", ".join(PLAIN), "NAME", choices=PLAIN, group="learners")
    edges: str | None = flag(
        None, "edges by name, instead of --topology", "A-B,...", group="learners"
    )
    connect: float = flag(CONNECT, "probability of an edge, for random", "P", group="learners")
    seed: int = flag(SEED, "seed of random topologies and of the features", "S", group="learners")
    hosts: str = flag(HOST, "one host, or one per learner", "H,...", group="network")
    port: int = flag(PORT, "first port", "P", group="network")
    http_host: str = flag(
        HOST, "host for HTTP; 0.0.0.0 for access from elsewhere", "H", group="network"
    )
    http_port: int = flag(HTTP_PORT, "first port for HTTP", "P", group="network")

    def called(self) -> tuple[str, ...]:
        """The names of the learners."""
        if self.names is not None and self.learners is not None:
            raise ParameterError("--learners and --names exclude each other")
        n_learners = N_LEARNERS if self.learners is None else self.learners
        if n_learners < 1:
            raise ParameterError(f"learners must be an integer >= 1, got {n_learners}")
        width = len(str(n_learners))
        numbered = tuple(f"learner-{k:0{width}}" for k in range(1, n_learners + 1))
        given = parse_names(self.names)
        return numbered if given is None else given

    def joined(self) -> Edges:
        """The neighbors, by name."""
        if self.edges is not None:
            return parse_edges(self.edges, self.called())
        return named_edges(self.topology, self.called(), connect=self.connect, seed=self.seed)


def named_edges(
    topology: str, names: Sequence[str], *, connect: float = CONNECT, seed: int = SEED
) -> Edges:
    """The edges of a named topology; "random" joins each pair with probability ``connect``."""
    if topology not in PLAIN:
        raise ParameterError(f"topology must be one of {', '.join(PLAIN)}, got {topology!r}")
    kind = KINDS[topology]
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
    for word in parse_names(text) or ():
        cuts = [k for k, letter in enumerate(word) if letter == "-"]
        pairs = [(word[:k], word[k + 1 :]) for k in cuts]
        fitting = [pair for pair in pairs if pair[0] in names and pair[1] in names]
        if len(fitting) != 1:
            some = ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
            raise ParameterError(f"edges must join two of the learners {some}, got {word!r}")
        made.append(fitting[0])
    return tuple(made)
