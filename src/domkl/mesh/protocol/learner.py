"""The mesh's host of the laws: one learner, and what it heard of each neighbor.

It calls what the simulator calls, in the same order: predict, local_step, the sums of
core/exchange.py, merge. Without faults both agree to the bit.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from domkl.algorithms.base import Inputs, Net, Prediction, Sizes
from domkl.core.exchange import Delivery, Wires, delivered
from domkl.core.features import FeatureStack
from domkl.core.hedge import blend
from domkl.errors import DataError
from domkl.mesh.protocol.model import Model
from domkl.mesh.protocol.wire import Layout, Offer
from domkl.typing import Array, Floats, Ints


class Snapshot(NamedTuple):
    """What a checkpoint keeps: no pickle needed."""

    header: dict[str, Any]  # JSON-ready
    arrays: dict[str, NDArray[Any]]


class LocalLearner:
    """A law's state, with room for what is heard.

    Parameters
    ----------
    model : Model
    state, optional
        Of a learner without neighbors.
    """

    def __init__(self, model: Model, state: Any = None) -> None:
        self.model = model
        self._stack = FeatureStack([model.features])
        z, energy = model.features.empty(1, 1, model.dtype)
        self._z, self._energy = z[0], energy[0]
        self._room = z, energy
        self._blend = np.empty_like(self._z)
        self.net = _net(0)
        self.state = self.first_state() if state is None else state
        self._exchange = dict(model.algorithm.exchange)
        self.gap_fields = [f for f, how in model.algorithm.exchange.items() if how == "gap"]
        self._rows: dict[str, Array] = {}  # heard values, one row per neighbor

    def first_state(self) -> Any:
        """Before the first sample, without neighbors."""
        features = self.model.features
        sizes = (1, features.n_kernels, features.n_features, features.n_inputs)
        room = Sizes(*sizes, 0, self.model.dtype, features.n_frequencies, features.linear)
        return self.model.algorithm.init(room)

    def restore(self, prefix: str, arrays: Mapping[str, Array]) -> None:
        """Take the state of a checkpoint; what it keeps of each neighbor begins anew."""
        found = {}
        for field, room in self.first_state()._asdict().items():
            values = np.array(arrays[f"{prefix}.{field}"])
            if field in self.model.algorithm.by_edge:
                values = room
            if values.shape != room.shape or values.dtype != room.dtype:
                raise DataError(f"{prefix}.{field} must have shape {room.shape}")
            if not np.isfinite(values).all():
                raise DataError(f"{prefix}.{field} must be finite")
            found[field] = values
        self.state = type(self.state)(**found)

    def layout(self) -> Layout:
        """How this learner's messages lie in an offer."""
        twin = LocalLearner(self.model)
        twin.rewire([], ["someone"])
        y = np.array([-1.0])  # a label that suits every loss
        _, message = twin.local_step(*twin.look(np.zeros(self.model.features.n_inputs)), y)
        return Layout(self.model.algorithm, message)

    def look(self, x: Floats) -> tuple[Inputs, Prediction]:
        """Map an input (d,) and predict its label; good until the next call."""
        row = np.ascontiguousarray(x, dtype=np.float64).reshape(1, -1)
        if self.model.algorithm.uses_features:
            self._stack.write(row, *self._room)
        inputs = Inputs(row, self._z, self._energy)
        return inputs, self.model.algorithm.predict(self.state, inputs)

    def deviation(self, x: Floats) -> float | None:
        """The standard deviation of a prediction, where the algorithm has one."""
        inputs, _ = self.look(x)
        found = self.model.algorithm.deviation(self.state, inputs)
        return None if found is None else float(found[0])

    def neighbor_gap(self, inputs: Inputs, y_hat: float) -> float | None:
        """Mean squared distance to the neighbors' predictions, by what was merged last."""
        rows, function = self._rows.get("theta"), self.model.algorithm.function(self.state)
        if rows is None or not len(rows) or function is None:
            return None
        blend(self._blend, inputs.z, function.weights)
        theirs = rows.reshape(len(rows), -1) @ self._blend.ravel()
        apart = theirs - y_hat
        return float(apart @ apart) / len(apart)

    def learn(self, x: Floats, y: float) -> float:
        """Learn a sample without neighbors; give what was said before."""
        inputs, prediction = self.look(x)
        self.merge(self.local_step(inputs, prediction, np.array([y]))[1], ())
        return float(prediction.y_hat[0])

    def local_step(self, inputs: Inputs, prediction: Prediction, y: Floats) -> tuple[Any, Any]:
        """Learn a sample that was looked at; give the state and the message."""
        algorithm = self.model.algorithm
        self.state, message = algorithm.local_step(self.state, inputs, y, prediction, self.net)
        return self.state, message

    def idle_step(self) -> Any:
        """Go without a sample; give the message, or None where the algorithm cannot."""
        found = self.model.algorithm.idle_step(self.state, self.net)
        if found is None:
            return None
        self.state, message = found
        return message

    def merge(self, message: Any, heard: Sequence[Offer | None]) -> None:
        """Take in one offer of each neighbor, in their order; None where nothing is known yet."""
        algorithm, known = self.model.algorithm, [offer for offer in heard if offer is not None]
        fields = []
        for field in message._fields:
            how, own = self._exchange[field], np.ascontiguousarray(getattr(message, field))
            if how == "edge":
                fields.append(_by_edge(field, own, heard))
            else:
                fields.append(self._delivered(how, self._stacked(field, own, known), own, known))
        self.state = algorithm.merge(self.state, type(message)(*fields), self.net)

    def amend(self, gaps: Mapping[str, Array]) -> None:
        """Let the state have heard these gaps, too."""
        self.state = self.model.algorithm.amend(self.state, gaps, self.net)

    def rewire(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Have other neighbors: what the state keeps of each goes with its name."""
        for field in self.model.algorithm.by_edge:
            rows: Array = getattr(self.state, field)
            fresh = np.zeros((len(after), *rows.shape[1:]), dtype=rows.dtype)
            for i, name in enumerate(after):
                if name in before:
                    fresh[i] = rows[before.index(name)]
            self.state = self.state._replace(**{field: fresh})
        self.net = _net(len(after))
        if not after:
            self._rows = {}

    def _stacked(self, field: str, own: Array, known: Sequence[Offer]) -> Array:
        shape = (len(known), *own.shape[1:])
        rows = self._rows.get(field)
        if rows is None or rows.shape != shape:
            rows = self._rows[field] = np.empty(shape, dtype=own.dtype)
        for i, offer in enumerate(known):
            rows[i] = offer.fields[field][0]
        return rows

    def _delivered(self, how: Delivery, rows: Array, own: Array, known: Sequence[Offer]) -> Array:
        indptr, indices = _wires(len(rows))
        degrees = np.array([float(offer.degree) for offer in known])
        weight = 1 / (1 + np.maximum(degrees, self.net.degree[0]))  # as Graph.metropolis
        wires = Wires(indptr, indices, weight, NO_EDGES, self.net.degree, 1)
        return delivered(how, rows, own, wires)


NO_EDGES = np.empty(0, dtype=np.int64)


@lru_cache(maxsize=64)
def _wires(degree: int) -> tuple[Ints, Ints]:
    """Edges of one learner, in CSR form."""
    return np.array([0, degree], dtype=np.int64), np.arange(degree)


def _net(degree: int) -> Net:
    ends = np.array([0, degree], dtype=np.int64)
    return Net(np.array([float(degree)]), np.array([1.0]), ends)


def _by_edge(field: str, own: Array, heard: Sequence[Offer | None]) -> Array:
    rows = np.zeros((len(heard), *own.shape[1:]), dtype=own.dtype)
    for i, offer in enumerate(heard):
        if offer is not None:
            rows[i] = offer.fields[field][0]
    return rows
