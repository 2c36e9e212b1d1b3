"""One learner: the algorithm's state, what was heard from each neighbor, and what is measured.

It calls the algorithm as the simulator does, in the same order: predict, local_step, the sums over
neighbors of core/exchange.py, merge. Without faults both agree to the bit.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from typing import Any, NamedTuple

import numpy as np

from domkl.algorithms.base import Inputs, Net, Prediction, Sizes
from domkl.core.exchange import Wires, delivered
from domkl.core.features import FeatureStack
from domkl.errors import DataError
from domkl.graphs.graph import metropolis_weights
from domkl.mesh.protocol.model import Model
from domkl.mesh.protocol.wire import Layout, Offer
from domkl.typing import Array, Floats


class LocalLearner:
    """The state of one learner, and the buffers that its steps need.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.state = self.first_state()
        self.net = _net(0)  # what the algorithm knows of the network: the number of neighbors
        exchange = self._exchange = dict(model.algorithm.exchange)
        #: fields of a message that the algorithm hears as sums of gaps
        self.gap_fields = [field for field, how in exchange.items() if how == "gap"]
        #: fields that pull towards a neighbor: once an exchange, and not between exchanges
        self.pulling = [field for field, how in exchange.items() if how in ("gap", "metropolis")]
        self._is_weighted = "metropolis" in exchange.values()
        self._heard: dict[str, Array] = {}  # last merged values by field, one row per neighbor
        self._is_blank = True
        self._waiting: deque[Pair] = deque()  # predicted, and not learned yet; oldest first
        self._stack = FeatureStack([model.features])
        self._features = model.features.empty(1, 1, model.dtype)  # buffers of z and its energy

    def first_state(self) -> Any:
        """Return the state before the first sample, without neighbors."""
        features = self.model.features
        sizes = (1, features.n_kernels, features.n_features, features.n_inputs)
        room = Sizes(*sizes, 0, self.model.dtype, features.n_frequencies, features.linear)
        return self.model.algorithm.init(room)

    def restore(self, prefix: str, arrays: Mapping[str, Array]) -> None:
        """Take the state from a checkpoint, except what it keeps of each neighbor."""
        algorithm, first, start = self.model.algorithm, self.first_state(), len(prefix) + 1
        stored = {name[start:]: arrays[name] for name in arrays if name.startswith(f"{prefix}.")}
        stored |= {field: getattr(first, field) for field in algorithm.by_edge}
        state = algorithm.restored(stored, first)
        for field, empty in first._asdict().items():
            values = getattr(state, field)
            if values.shape != empty.shape or values.dtype != empty.dtype:
                raise DataError(f"{prefix}.{field} must have shape {empty.shape}")
            if not np.isfinite(values).all():
                raise DataError(f"{prefix}.{field} must be finite")
        self.state = state
        self._restore_waiting(f"waiting.{prefix}", arrays)

    def saved(self, prefix: str) -> dict[str, Array]:
        """Return what a checkpoint keeps: the state, and the samples that wait."""
        arrays: dict[str, Array] = {f"{prefix}.{f}": v for f, v in self.state._asdict().items()}
        if self._waiting:
            columns = zip(Pair._fields, zip(*self._waiting, strict=True), strict=True)
            arrays |= {f"waiting.{prefix}.{f}": np.concatenate(each) for f, each in columns}
        return arrays

    def _restore_waiting(self, prefix: str, arrays: Mapping[str, Array]) -> None:
        """Take the samples that wait from a checkpoint; one without any has none."""
        self._waiting.clear()
        stored = [arrays[name] for f in Pair._fields if (name := f"{prefix}.{f}") in arrays]
        if not stored:
            return
        like = self._pair(*self.look(np.zeros(self.model.features.n_inputs)), np.zeros(1))
        n = len(stored[0])
        are_sound = len(stored) == len(like) and 0 < n <= self.model.delay
        if not are_sound or any(
            each.shape != (n, *part.shape[1:]) for each, part in zip(stored, like, strict=True)
        ):
            raise DataError(f"{prefix} must be of at most {self.model.delay} samples, and whole")
        columns = [np.asarray(each, dtype=np.float64) for each in stored]
        self._waiting.extend(Pair(*(each[[i]] for each in columns)) for i in range(n))

    def layout(self) -> Layout:
        """Return the layout of this learner's messages, from the message of a trial step."""
        trial = LocalLearner(self.model)
        trial.rewire([], ["someone"])
        y = np.array([-1.0])  # a label that suits every loss
        _, message = trial.local_step(*trial.look(np.zeros(self.model.features.n_inputs)), y)
        return Layout(self.model.algorithm, message)

    def look(self, x: Floats) -> tuple[Inputs, Prediction]:
        """Compute the features of an input (d,) and predict its label.

        Both results are buffers that the next call overwrites.
        """
        inputs = self.inputs(x)
        return inputs, self.model.algorithm.predict(self.state, inputs)

    def inputs(self, x: Floats) -> Inputs:
        """Compute the features of an input (d,), into the buffers."""
        row = np.ascontiguousarray(x, dtype=np.float64).reshape(1, -1)
        z, energy = self._features
        if self.model.algorithm.uses_features:
            self._stack.write(row, z, energy)
        return Inputs(row, z[0], energy[0])

    def due(
        self, inputs: Inputs, prediction: Prediction, y: Floats
    ) -> tuple[Inputs, Prediction, Floats] | None:
        """Give what is to be learned now that this sample was predicted, for `local_step`.

        With a delay of n it is the sample of n before, with what was predicted then; None while
        there is none.
        """
        if self.model.delay == 0:
            return inputs, prediction, y
        self._waiting.append(self._pair(inputs, prediction, y))
        if len(self._waiting) <= self.model.delay:
            return None
        x, y, *then = self._waiting.popleft()
        return self.inputs(x), Prediction(*then), y

    def _pair(self, inputs: Inputs, prediction: Prediction, y: Floats) -> "Pair":
        return Pair(*(each.copy() for each in (inputs.x, y, *prediction)))

    @property
    def is_blank(self) -> bool:
        """Whether every prediction would be 0, as before anything was learned or heard."""
        if self._is_blank:
            function = self.model.algorithm.function(self.state)
            self._is_blank = function is not None and not function.theta.any()
        return self._is_blank

    def deviation(self, x: Floats) -> float | None:
        """Return the standard deviation of a prediction; None if the algorithm has none."""
        return self.deviation_of(self.look(x)[0])

    def deviation_of(self, inputs: Inputs) -> float | None:
        """Return the standard deviation of the prediction for what `look` returned."""
        found = self.model.algorithm.deviation(self.state, inputs)
        return None if found is None else float(found[0])

    def neighbor_distance(self, inputs: Inputs, y_hat: float) -> float | None:
        """Return the mean squared distance to the neighbors' predictions for the same inputs.

        It uses the θ that was last merged from each neighbor, with our kernel weights. None without
        neighbors, or if the algorithm's function has no such form.
        """
        if not self._heard:
            return None
        found = self.model.algorithm.neighbors(self.state, self._heard)
        if found is None:
            return None
        theirs = np.einsum("npd,pd,np->n", found.theta, inputs.z[0], found.weights)
        apart = theirs - y_hat
        return float(apart @ apart) / len(apart)

    def learn(self, x: Floats, y: float) -> Prediction:
        """Take a sample without neighbors; return the prediction made before."""
        inputs, prediction = self.look(x)
        due = self.due(inputs, prediction, np.array([y]))
        message = None if due is None else self.local_step(*due)[1]
        if message is not None:
            self.merge(message, ())
        return prediction

    def local_step(self, inputs: Inputs, prediction: Prediction, y: Floats) -> tuple[Any, Any]:
        """Learn a sample, given what `look` or `due` returned; return the state and the message.

        Without a label, NaN, it is a step without a sample; the message is None if the algorithm
        cannot make one.
        """
        algorithm = self.model.algorithm
        if np.isnan(y[0]) and not algorithm.takes_missing:
            return self.state, self.idle_step()
        self.state, message = algorithm.local_step(self.state, inputs, y, prediction, self.net)
        return self.state, message

    def idle_step(self) -> Any:
        """Step without a sample; return the message, or None if the algorithm cannot."""
        found = self.model.algorithm.idle_step(self.state, self.net)
        if found is None:
            return None
        self.state, message = found
        return message

    def merge(self, message: Any, heard: Sequence[Offer | None]) -> None:
        """End the step of this message with one offer from each neighbor, in their order.

        None stands for a neighbor from whom nothing was heard yet.
        """
        known = [offer for offer in heard if offer is not None]
        ends, no_edges = np.array([0, len(known)], dtype=np.int64), np.empty(0, dtype=np.int64)
        weight = self._metropolis(known)
        wires = Wires(ends, np.arange(len(known)), weight, no_edges, self.net.degree, 1)
        fields = []
        for field in message._fields:
            how, own = self._exchange[field], np.ascontiguousarray(getattr(message, field))
            if how == "edge":
                fields.append(_by_edge(field, own, heard))
            else:
                fields.append(delivered(how, self._rows(field, own, known), own, wires))
        self.state = self.model.algorithm.merge(self.state, type(message)(*fields), self.net)

    def amend(self, gaps: Mapping[str, Array]) -> None:
        """Change the state as if these gaps had been heard, too."""
        self.state = self.model.algorithm.amend(self.state, gaps, self.net)

    def rewire(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Have other neighbors; what the state keeps of a neighbor moves with its name."""
        for field in self.model.algorithm.by_edge:
            rows: Array = getattr(self.state, field)
            fresh = np.zeros((len(after), *rows.shape[1:]), dtype=rows.dtype)
            for i, name in enumerate(after):
                if name in before:
                    fresh[i] = rows[before.index(name)]
            self.state = self.state._replace(**{field: fresh})
        self.net = _net(len(after))
        if not after:
            self._heard = {}

    def _rows(self, field: str, own: Array, known: Sequence[Offer]) -> Array:
        """Collect a field of all offers, one row each; without any, some row that is not read."""
        if not known:
            self._heard.pop(field, None)
            return own
        shape = (len(known), *own.shape[1:])
        rows = self._heard.get(field)
        if rows is None or rows.shape != shape:
            rows = self._heard[field] = np.empty(shape, dtype=own.dtype)
        for i, offer in enumerate(known):
            rows[i] = offer.fields[field][0]
        return rows

    def _metropolis(self, known: Sequence[Offer]) -> Floats:
        """Return the Metropolis weight of each offer; empty if the algorithm needs none."""
        if not self._is_weighted:
            return np.empty(0)
        degrees = np.array([float(offer.degree) for offer in known])
        return metropolis_weights(self.net.degree, degrees)


class Pair(NamedTuple):
    """A sample that waits for its label, and what was predicted: each one row."""

    x: Floats  # (1, d)
    y: Floats  # (1,)
    y_hat: Floats  # (1,)
    by_kernel: Floats  # (1, P)
    notes: Floats  # (1, N)


def _net(degree: int) -> Net:
    ends = np.array([0, degree], dtype=np.int64)
    return Net(np.array([float(degree)]), np.array([1.0]), ends)


def _by_edge(field: str, own: Array, heard: Sequence[Offer | None]) -> Array:
    """Collect a field of all offers, one row per neighbor; zeros where nothing was heard yet."""
    rows = np.zeros((len(heard), *own.shape[1:]), dtype=own.dtype)
    for i, offer in enumerate(heard):
        if offer is not None:
            rows[i] = offer.fields[field][0]
    return rows


@dataclass
class Mean:
    """A running mean."""

    n: int = 0
    total: float = 0.0

    def add(self, value: float) -> None:
        """Include a value."""
        self.n += 1
        self.total += value

    @property
    def value(self) -> float | None:
        """The mean; None before the first value."""
        return self.total / self.n if self.n else None


@dataclass
class EdgeMeasures:
    """Measures of the edge to one neighbor, since this process started."""

    is_open: bool = False
    epoch: tuple[int, int] = (0, 0)  # own number, the neighbor's
    n_exchanged: int = 0  # completed exchanges, in all epochs
    n_asked: int = 0  # requests for an offer that had not come
    n_epochs: int = 0  # times that the edge was opened
    is_barred: bool = False  # whether the neighbor is not heeded, see guard.py
    n_barred: int = 0  # how often that was decided
    last_heard: float | None = None  # time, by the clock that `Protocol.handle` is given


@dataclass
class Measures:
    """Measures of a learner, in scaled units.

    Checkpoints keep them, except for ``refused`` and ``edges``, which begin with the process.
    """

    errors: Mean = attribute(default_factory=Mean)  # squared, of the predictions
    errors_alone: Mean = attribute(default_factory=Mean)  # of the same learner without neighbors
    errors_last_value: Mean = attribute(default_factory=Mean)  # of predicting the previous label
    errors_seasonal: Mean = attribute(default_factory=Mean)  # of the label one season before
    gaps: Mean = attribute(default_factory=Mean)  # squared distances to the neighbors' predictions
    n_rounds: int = 0  # steps, with and without a sample
    n_waited: int = 0  # rounds that ended by time-out
    n_idle: int = 0  # steps without a sample
    refused: Counter[tuple[str, str]] = attribute(default_factory=Counter)  # by (peer, reason)
    edges: dict[str, EdgeMeasures] = attribute(default_factory=dict)  # by neighbor
    last_label: float = 0.0

    def judge(self, y: float, y_hat: float, gap: float | None) -> None:
        """Record a prediction of a label, and its squared distance to the neighbors' ones.

        Without a label, NaN, there is nothing to record.
        """
        if np.isnan(y):
            return
        self.errors.add((y_hat - y) ** 2)
        self.errors_last_value.add((self.last_label - y) ** 2)
        if gap is not None:
            self.gaps.add(gap)

    def judge_forecast(self, y: float, y_hat: float, naive: Floats) -> None:
        """Record a forecast, beside those by the last value and by the last season."""
        if np.isnan(y):
            return
        self.errors.add((y_hat - y) ** 2)
        for mean, said in zip((self.errors_last_value, self.errors_seasonal), naive, strict=True):
            if not np.isnan(said):
                mean.add((float(said) - y) ** 2)

    def judge_alone(self, y: float, y_hat: float) -> None:
        """Record what the learner without neighbors predicted."""
        if not np.isnan(y):
            self.errors_alone.add((y_hat - y) ** 2)

    def see(self, y: float) -> None:
        """Take note of a label that is known from now on."""
        if not np.isnan(y):
            self.last_label = y

    @property
    def n_learned(self) -> int:
        """Number of samples with a label that were predicted; with a delay, the last ones wait."""
        return self.errors.n

    @property
    def mse(self) -> float | None:
        """Mean squared error of the predictions made before each label was seen."""
        return self.errors.value

    @property
    def mse_alone(self) -> float | None:
        """The same of a learner without neighbors; None if it is not measured."""
        return self.errors_alone.value

    @property
    def mse_last_value(self) -> float | None:
        """The same of predicting the previous label."""
        return self.errors_last_value.value

    @property
    def mse_seasonal(self) -> float | None:
        """The same of the label one season before; None if it is not measured."""
        return self.errors_seasonal.value

    @property
    def neighbor_gap(self) -> float | None:
        """Mean squared distance between own and neighbors' predictions, with our kernel weights."""
        return self.gaps.value

    def saved(self) -> dict[str, list[float]]:
        """Return what a checkpoint keeps, ready for JSON."""
        means = {name: [mean.n, mean.total] for name, mean in self._means().items()}
        counts: list[float] = [self.n_rounds, self.n_waited, self.n_idle]
        return {**means, "counts": counts, "last": [self.last_label]}

    def restore(self, saved: dict[str, list[float]]) -> None:
        """Continue from what `saved` returned."""
        for name, mean in self._means().items():
            n, total = saved.get(name, (0, 0.0))  # files of 0.1 have no seasonal one
            mean.n, mean.total = int(n), float(total)
        self.last_label = float(saved["last"][0])
        self.n_rounds, self.n_waited, self.n_idle = (int(n) for n in saved["counts"])

    def _means(self) -> dict[str, Mean]:
        names = "errors", "errors_alone", "errors_last_value", "errors_seasonal", "gaps"
        return {name: getattr(self, name) for name in names}
