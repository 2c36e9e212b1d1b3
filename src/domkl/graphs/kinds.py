"""The table of graph kinds: what `simulate`, sweeps and `domkl mesh init` know of each.

To add a kind, write a method of `Graph` and add an entry here. Importing this module loads no
graphs, so that `domkl --help` can read the names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from domkl.graphs.graph import Graph
    from domkl.typing import Floats, Seed


@dataclass(frozen=True)
class Kind:
    """A kind of graph under the name that files and options use."""

    name: str
    maker: str  # the method of `Graph` that makes one
    defaults: Mapping[str, Any] = field(default_factory=dict)  # its parameters, in order
    is_random: bool = False  # whether the maker must have a seed
    takes_seed: bool = False  # whether it makes a random one if it has a seed
    takes_places: bool = False  # whether it joins learners by where they stand, given as places
    is_connected: bool = True

    def make(
        self,
        n_learners: int,
        seed: "Seed | None" = None,
        places: "Floats | None" = None,
        **parameters: Any,
    ) -> "Graph":
        """Make one; parameters that are not given have their defaults.

        Examples
        --------
        >>> KINDS["grid"].make(6).edges.tolist()
        [[0, 1], [0, 3], [1, 2], [1, 4], [2, 5], [3, 4], [4, 5]]
        >>> KINDS["regular"].make(10, 1, degree=3).degree.tolist()
        [3, 3, 3, 3, 3, 3, 3, 3, 3, 3]
        """
        from domkl.graphs.graph import Graph

        seeds = {"seed": seed} if self.is_random or self.takes_seed else {}
        values = {**self.defaults, **parameters}.values()
        made: Graph = getattr(Graph, self.maker)(
            places if self.takes_places else n_learners, *values, **seeds
        )
        return made


NEAREST = "nearest"
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("ring", "ring"),
        Kind("ring-with-chords", "ring_with_chords"),
        Kind("circle", "circle", {"degree": 4}),
        Kind("path", "path"),
        Kind("star", "star"),
        Kind("tree", "tree", takes_seed=True),
        Kind("grid", "rectangle"),
        Kind("complete", "complete"),
        Kind("random", "random", {"connect": 0.25}, is_random=True),
        Kind("regular", "random_regular", {"degree": 4}, is_random=True),
        Kind("sparse", "sparse", {"mean_degree": 4.0}, is_random=True),
        Kind("small-world", "small_world", {"degree": 4, "rewired": 0.1}, is_random=True),
        Kind("scale-free", "scale_free", {"links": 2}, is_random=True),
        Kind(NEAREST, "nearest", {"neighbors": 3}, takes_places=True),
        Kind("empty", "empty", is_connected=False),
    )
}
#: the connected ones that need no more than a probability: what `domkl mesh init` offers
PLAIN = tuple(
    name
    for name, kind in KINDS.items()
    if kind.is_connected and not kind.takes_places and not kind.defaults.keys() - {"connect"}
)
