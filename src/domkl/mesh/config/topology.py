"""Who hears whom: named networks of named learners, and where each of them listens."""

from collections.abc import Callable, Sequence

from domkl.errors import ParameterError
from domkl.graphs.graph import Graph
from domkl.mesh.config.settings import Member
from domkl.mesh.transports.base import Address

PORT, HTTP_PORT = 21000, 22000  # below 32768, where Linux takes ports for outgoing connections
Edges = tuple[tuple[str, str], ...]


def ring_with_chords(n_learners: int) -> Graph:
    """A ring, and chords to the opposite side: whoever fails, the others stay connected."""
    half = n_learners // 2
    chords = [(k, k + half) for k in range(half)]  # of two or three learners, the ring has them
    return Graph.from_edges(n_learners, [*Graph.ring(n_learners).edges.tolist(), *chords])


def _grid(n_learners: int) -> Graph:
    n_rows = max(k for k in range(1, int(n_learners**0.5) + 1) if n_learners % k == 0)
    return Graph.grid(n_rows, n_learners // n_rows)


TOPOLOGIES: dict[str, Callable[[int], Graph]] = {
    "ring": Graph.ring,
    "ring-with-chords": ring_with_chords,
    "path": Graph.path,
    "star": Graph.star,
    "tree": Graph.tree,
    "grid": _grid,
    "complete": Graph.complete,
}


def named_edges(
    topology: str, names: Sequence[str], *, connect: float = 0.4, seed: int = 1
) -> Edges:
    """The edges of a named network; "random" joins each pair with probability ``connect``."""
    if topology == "random":
        graph = Graph.random(len(names), connect, seed=seed)
    elif topology in TOPOLOGIES:
        graph = TOPOLOGIES[topology](len(names))
    else:
        known = ", ".join((*TOPOLOGIES, "random"))
        raise ParameterError(f"topology must be one of {known}, got {topology!r}")
    return tuple((names[a], names[b]) for a, b in graph.edges.tolist())


def parse_edges(text: str, names: Sequence[str]) -> Edges:
    """Read a-b,b-c; names may hold hyphens themselves, as long as only one cut makes sense.

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


def members_at(
    names: Sequence[str],
    hosts: Sequence[str],
    *,
    port: int = PORT,
    http_host: str = "127.0.0.1",
    http_port: int = HTTP_PORT,
) -> tuple[Member, ...]:
    """Give every learner its addresses; ports count up among those of one host."""
    if len(hosts) not in (1, len(names)):
        raise ParameterError(f"hosts must be one or {len(names)}, got {len(hosts)}")
    seen: dict[str, int] = {}
    made = []
    for k, name in enumerate(names):
        host = hosts[k % len(hosts)]
        nth = seen.get(host, 0)
        seen[host] = nth + 1
        ends = Address(host, port + nth), Address(http_host, http_port + nth)
        made.append(Member(name, *ends))
    return tuple(made)


def next_member(members: Sequence[Member], name: str, host: str) -> Member:
    """Addresses for one more learner: the next free ports of its host."""
    there = [each for each in members if each.address.host == host]
    port = max((each.address.port for each in there), default=PORT - 1) + 1
    http_port = max((each.http.port for each in there), default=HTTP_PORT - 1) + 1
    http_host = members[0].http.host if members else "127.0.0.1"
    return Member(name, Address(host, port), Address(http_host, http_port))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
