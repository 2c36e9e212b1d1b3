"""A cell: a few trials that share a stream and run together; its network and its first state."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from domkl.algorithms.base import Algorithm, Net, Sizes
from domkl.core.exchange import Wires, delivered
from domkl.core.features import RandomFeatures
from domkl.errors import ParameterError
from domkl.graphs.graph import Graph, disjoint_union
from domkl.sim.delay import Waiting
from domkl.sim.mpi.shard import Place, Shard
from domkl.sim.recorder import Records
from domkl.speech.base import Speech
from domkl.speech.plain import PLAIN
from domkl.typing import Array, Floats


@dataclass(frozen=True)
class Options:
    """How a simulation is run and what is kept of it."""

    dtype: DTypeLike
    cv: str
    kept: tuple[str, ...]  # names in sim/recorder.py
    seed: int
    threads: int = 1  # for each cell
    is_patient: bool = False  # whether a small run may do without the compiler
    delay: int = 0  # rounds until a label is seen
    speech: Speech = PLAIN


@dataclass
class Cell:
    """A few trials that run together, and what came of them."""

    graphs: list[Graph]
    maps: list[RandomFeatures]
    first_trial: int = 0
    place: Place | None = None  # of a network that is spread over several
    state: Any = None
    waiting: Waiting | None = None  # what was predicted and has no label yet
    records: Records | None = None
    sampled_mean: Floats | None = None  # (T, B), of a sampled cv
    sampled_variance: Floats | None = None


class Network:
    """Several trials' graphs, side by side as the components of one, with buffers for messages.

    ``is_alone`` takes all edges away, for what is said as for what is summed; the graphs stay
    what the metrics see. At a ``place`` that is one of several, the graph has no edges, and what
    is heard comes from the other places too.
    """

    def __init__(self, graphs: list[Graph], *, is_alone: bool, place: Place | None = None) -> None:
        self.n_trials = len(graphs)
        self.n_learners = graphs[0].n_learners  # of one trial
        self.graph = disjoint_union(graphs)
        edges: Graph | Shard = Graph.empty(self.graph.n_learners) if is_alone else self.graph
        self._edges = place.shard if place is not None else edges
        self._place = place
        self.total = None if place is None else place.total
        self._span = 1 if is_alone else self.n_learners
        size = np.full(self.graph.n_learners, float(self._span))
        self.net = Net(self._edges.degree.astype(np.float64), size, self._edges.indptr)
        self._buffers: dict[str, Array] = {}

    @property
    def n_edges(self) -> int:
        """Directed ones, that messages use."""
        return len(self._edges.indices)

    @cached_property
    def wires(self) -> Wires:
        """The network as compiled code takes it."""
        edges = self._edges
        if isinstance(edges, Graph):
            rest = (edges.metropolis[1], edges.reverse)
        else:
            rest = (edges.weight, np.empty(0, dtype=np.int64))
        return Wires(edges.indptr, edges.indices, *rest, self.net.degree, self._span)

    def share(self, *values: Array) -> None:
        """Fill the rows of learners elsewhere, which stand behind those of this place."""
        if self._place is not None:
            self._place.share(*values)

    def deliver(self, algorithm: Algorithm, message: Any, words: Any) -> Any:
        """Give what is heard of what was said of a message, a tuple of the message's own type."""
        exchange = algorithm.exchange
        if set(exchange) != set(message._fields):
            raise ParameterError(
                f"exchange must name the message's fields {', '.join(message._fields)},"
                f" got {', '.join(exchange) or 'none'}"
            )
        exact = [np.ascontiguousarray(values) for values in message]
        said = exact if words is message else list(words)
        if isinstance(self._edges, Shard):
            said = [self._edges.extended(values) for values in said]
            self.share(*said)
        heard = []
        for field, values, before in zip(message._fields, said, exact, strict=True):
            own = values[: len(self.net.degree)] if isinstance(self._edges, Shard) else values
            if field not in self._buffers:
                self._buffers[field] = np.empty_like(own)
            out = self._buffers[field]
            heard.append(delivered(exchange[field], values, own, self.wires, out, before))
        return type(message)(*heard)


def network_of(cell: Cell, algorithm: Algorithm) -> Network:
    """The cell's graphs, as the algorithm uses them."""
    return Network(cell.graphs, is_alone=algorithm.is_alone, place=cell.place)


def first_state(cell: Cell, algorithm: Algorithm, dtype: DTypeLike) -> Any:
    """The state before the first round."""
    network, features = network_of(cell, algorithm), cell.maps[0]
    sizes = (network.graph.n_learners, features.n_kernels, features.n_features, features.n_inputs)
    rest = (network.n_edges, dtype, features.n_frequencies, features.linear)
    return algorithm.init(Sizes(*sizes, *rest))
