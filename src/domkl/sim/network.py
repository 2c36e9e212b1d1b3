"""Deliver messages: the simulator's side of the contract in algorithms/base.py."""

from typing import Any

import numpy as np

from domkl.algorithms.base import Algorithm, Delivery, Net
from domkl.core.exchange import neighbor_gap, neighbor_sum, total_sum, weighted_mean
from domkl.errors import ParameterError
from domkl.graphs.graph import Graph, disjoint_union
from domkl.sim.mpi.shard import Place, Shard
from domkl.typing import Array, Floats


class Network:
    """Several trials' graphs, side by side as the components of one, with room for what is heard.

    ``is_alone`` takes all edges away, for what is said as for what is summed; the graphs stay
    what the metrics see. At a ``place`` that is one of several, the graph has no edges, and what
    is heard comes from the other places too.
    """

    def __init__(self, graphs: list[Graph], *, is_alone: bool, place: Place | None = None) -> None:
        self.n_trials = len(graphs)
        self.n_learners = graphs[0].n_learners  # of one trial
        self.graph = disjoint_union(graphs)
        self.wires: Graph | Shard = Graph.empty(self.graph.n_learners) if is_alone else self.graph
        if place is not None:
            self.wires = place.shard
        self._place = place
        self.total = None if place is None else place.total
        self._span = 1 if is_alone else self.n_learners
        size = np.full(self.graph.n_learners, float(self._span))
        self.net = Net(self.wires.degree.astype(np.float64), size, self.wires.indptr)
        self._room: dict[str, Array] = {}

    @property
    def weight(self) -> Floats:
        """Metropolis weights of the directed edges, (E,)."""
        return self.wires.weight if isinstance(self.wires, Shard) else self.wires.metropolis[1]

    def share(self, *values: Array) -> None:
        """Fill the rows of learners elsewhere, which stand behind those of this place."""
        if self._place is not None:
            self._place.share(*values)

    def deliver(self, algorithm: Algorithm, message: Any) -> Any:
        """Give what is heard of a message, a tuple of the message's own type."""
        exchange = algorithm.exchange
        if set(exchange) != set(message._fields):
            raise ParameterError(
                f"exchange must name the message's fields {', '.join(message._fields)},"
                f" got {', '.join(exchange) or 'none'}"
            )
        said = [np.ascontiguousarray(values) for values in message]
        if isinstance(self.wires, Shard):
            said = [self.wires.extended(values) for values in said]
            self.share(*said)
        named = zip(message._fields, said, strict=True)
        return type(message)(*(self._deliver(f, exchange[f], values) for f, values in named))

    def _deliver(self, field: str, delivery: Delivery, said: Array) -> Array:
        own = said[: self.wires.n_learners] if isinstance(self.wires, Shard) else said
        if field not in self._room:
            self._room[field] = np.empty_like(own)
        heard = self._room[field]
        indptr, indices = self.wires.indptr, self.wires.indices
        if delivery == "sum":
            neighbor_sum(heard, said, indptr, indices)
        elif delivery == "gap":
            neighbor_gap(heard, said, own, indptr, indices)
        elif delivery == "metropolis":
            weighted_mean(heard, said, own, indptr, indices, self.weight)
        elif delivery == "total":
            total_sum(heard, said, self._span)
        else:
            assert isinstance(self.wires, Graph), "simulate_sharded refuses messages by edge"
            np.take(said, self.wires.reverse, axis=0, out=heard)
        return heard
