"""Between one learner and a network of them."""

from typing import Any

import numpy as np

from domkl.algorithms.base import Algorithm
from domkl.core.features import RandomFeatures
from domkl.errors import ParameterError
from domkl.estimators.host import Host
from domkl.graphs.graph import Graph
from domkl.sim.cells import Cell, first_state
from domkl.sim.result import Run


def spread(algorithm: Algorithm, features: RandomFeatures, state: Any, graph: Graph) -> Any:
    """The state of a network whose learners all know what this one knows."""
    first = first_state(Cell([graph], [features]), algorithm, np.float64)
    fields = [
        np.repeat(own, graph.n_learners, axis=0) if len(own) == 1 else room
        for own, room in zip(state, first, strict=True)  # what stands by edge begins anew
    ]
    return type(state)(*fields)


def taken_out(algorithm: Algorithm, features: RandomFeatures, run: Run, k: int) -> Any:
    """The state of a network's k-th learner, without what it owes to neighbors."""
    if run.component.ndim != 1:
        raise ParameterError("run must be of one trial, got a batch; simulate one graph alone")
    n_learners = len(run.component)
    if not 0 <= k < n_learners:
        raise ParameterError(f"k must be in 0..{n_learners - 1}, got {k!r}")
    room = Host(algorithm, features).first_state()
    if type(room) is not type(run.state):
        raise ParameterError(
            f"run must be one of {type(algorithm).__name__}, got {run.state!r:.60}"
        )
    fields = []
    for name, empty, values in zip(room._fields, room, run.state, strict=True):
        own = values[k : k + 1].astype(empty.dtype) if len(empty) else empty
        if own.shape != empty.shape:
            raise ParameterError(
                f"state.{name} must have shape {empty.shape} for these features, got {own.shape}"
            )
        fields.append(own)
    return algorithm.leave(type(room)(*fields))
