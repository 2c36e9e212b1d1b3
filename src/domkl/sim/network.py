"""Deliver messages: the simulator's side of the contract in algorithms/base.py."""

from typing import Any

import numpy as np

from domkl.algorithms.base import Algorithm, Delivery, Net
from domkl.core.exchange import neighbor_gap, neighbor_sum, total_sum, weighted_mean
from domkl.errors import ParameterError
from domkl.graphs.graph import Graph, disjoint_union
from domkl.typing import Array


class Network:
    """Several trials' graphs, side by side as the components of one, with room for what is heard.

    ``is_alone`` takes all edges away, for what is said as for what is summed; the graphs stay
    what the metrics see.
    """

    def __init__(self, graphs: list[Graph], *, is_alone: bool) -> None:
        self.n_trials = len(graphs)
        self.n_learners = graphs[0].n_learners  # of one trial
        self.graph = disjoint_union(graphs)
        self.wires = Graph.empty(self.graph.n_learners) if is_alone else self.graph
        self._span = 1 if is_alone else self.n_learners
        size = np.full(self.graph.n_learners, float(self._span))
        self.net = Net(self.wires.degree.astype(np.float64), size, self.wires.indptr)
        self._room: dict[str, Array] = {}

    def deliver(self, algorithm: Algorithm, message: Any) -> Any:
        """Give what is heard of a message, a tuple of the message's own type."""
        exchange = algorithm.exchange
        if set(exchange) != set(message._fields):
            raise ParameterError(
                f"exchange must name the message's fields {', '.join(message._fields)},"
                f" got {', '.join(exchange) or 'none'}"
            )
        heard = [self._deliver(f, exchange[f], getattr(message, f)) for f in message._fields]
        return type(message)(*heard)

    def _deliver(self, field: str, delivery: Delivery, said: Array) -> Array:
        said = np.ascontiguousarray(said)
        if field not in self._room:
            self._room[field] = np.empty_like(said)
        heard = self._room[field]
        indptr, indices = self.wires.indptr, self.wires.indices
        if delivery == "sum":
            neighbor_sum(heard, said, indptr, indices)
        elif delivery == "gap":
            neighbor_gap(heard, said, said, indptr, indices)
        elif delivery == "metropolis":
            weighted_mean(heard, said, said, indptr, indices, self.wires.metropolis[1])
        elif delivery == "total":
            total_sum(heard, said, self._span)
        else:
            np.take(said, self.wires.reverse, axis=0, out=heard)
        return heard
