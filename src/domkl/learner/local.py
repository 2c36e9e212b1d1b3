"""One learner as a host: predict, learn, say, hear, merge.

It calls the algorithm as the simulator does, in the same order, and what is heard comes from
`core/exchange.py` there as here. Without faults both agree to the bit.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike

from domkl.algorithms.base import Algorithm, Inputs, Net, Prediction, Sizes, merged
from domkl.core.exchange import DELIVERIES, Wires, delivered, fields_that, heard_alone
from domkl.core.features import FeatureStack, RandomFeatures
from domkl.graphs.graph import metropolis_weights
from domkl.learner.late import LateLabels, Sample
from domkl.learner.restore import checked, fields_of, restored_state
from domkl.speech.base import Fields, Layout, Speech, Voice
from domkl.speech.plain import PLAIN
from domkl.typing import Array, Floats, Ints

#: rows whose features are computed together
CHUNK = 256

#: levels of the quantiles that a node tells: the median, and bands of 50, 80 and 95 %
TOLD = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)


class Heard(Protocol):
    """What one neighbor said."""

    @property
    def degree(self) -> int:
        """Number of the neighbor's own neighbors."""

    @property
    def fields(self) -> Fields:
        """The fields of its message, one row each."""


class Words(NamedTuple):
    """The message of a step, and what the neighbors have of it: the same if speech is exact."""

    message: Any
    said: Any


class LocalLearner:
    """The state of one learner, and the buffers that its steps need.

    Parameters
    ----------
    algorithm : Algorithm
    features : RandomFeatures
    dtype : "float64" or "float32"
    delay : int
        Samples until a label is seen, as of `domkl.simulate`.
    speech : Speech
    n_rows : int
        Rows of the state: several are learners without neighbors that see the same inputs, each
        with a label of its own.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        features: RandomFeatures,
        dtype: DTypeLike = "float64",
        *,
        delay: int = 0,
        speech: Speech = PLAIN,
        n_rows: int = 1,
    ) -> None:
        self.algorithm, self.features, self.dtype = algorithm, features, dtype
        self.delay, self.n_rows = delay, n_rows
        self.state = self.first_state()
        self.net = _net(0, n_rows)  # what the algorithm knows of the network: its degree
        exchange = self._exchange = dict(algorithm.exchange)
        #: fields of a message that the algorithm accumulates, as sums of gaps
        self.gap_fields = fields_that(exchange, lambda kind: kind.accumulates)
        #: fields that pull towards a neighbor: once an exchange, and not between exchanges
        self.pulling = fields_that(exchange, lambda kind: kind.pulls)
        self._is_weighted = bool(fields_that(exchange, lambda kind: kind.needs_weights))
        self.heard: dict[str, Array] = {}  # last merged values by field, one row per neighbor
        self._wires: Wires | None = None  # to neighbors of these degrees
        self._degrees: list[float] = []
        self._voice = Voice(speech)
        self._is_blank = True
        self._late = LateLabels(Sample)  # predicted, and not learned yet
        self._stack = FeatureStack([features])
        self._features = features.empty(1, 1, dtype)  # buffers of z and its energy

    def first_state(self) -> Any:
        """Return the state before the first sample, without neighbors."""
        features = self.features
        sizes = (self.n_rows, features.n_kernels, features.n_features, features.n_inputs)
        rest = (0, self.dtype, features.n_frequencies, features.linear)
        return self.algorithm.init(Sizes(*sizes, *rest))

    def restore(self, prefix: str, arrays: Mapping[str, Array]) -> None:
        """Take the state from a checkpoint, except what it keeps of each neighbor."""
        first = self.first_state()
        stored = fields_of(prefix, arrays)
        stored |= {field: getattr(first, field) for field in self.algorithm.by_edge}
        self.state = checked(prefix, restored_state(self.algorithm, stored, first), first)
        inputs, prediction = self.look(np.zeros(self.features.n_inputs))
        like = Sample(inputs.x, np.zeros(self.n_rows), *prediction)
        self._late.restore(f"waiting.{prefix}", arrays, like, self.delay)

    def saved(self, prefix: str) -> dict[str, Array]:
        """Return what a checkpoint keeps: the state, and the samples that wait."""
        arrays: dict[str, Array] = {f"{prefix}.{f}": v for f, v in self.state._asdict().items()}
        return arrays | self._late.saved(f"waiting.{prefix}")

    def layout(self) -> Layout:
        """Return the layout of what this learner says, from the message of a trial step."""
        trial = LocalLearner(self.algorithm, self.features, self.dtype)
        trial.rewire([], ["someone"])
        y = np.array([-1.0])  # a label that suits every loss
        words = trial.local_step(*trial.look(np.zeros(self.features.n_inputs)), y)
        assert words is not None, "a step with a label has a message"
        return self._voice.speech.layout(self._exchange, words.message)

    def at(self, step: int) -> None:
        """Let the next label be that of this step of the clock."""
        self.state = self.algorithm.at(self.state, step)

    def look(self, x: Floats) -> tuple[Inputs, Prediction]:
        """Compute the features of an input (d,) and predict its label.

        Both results are buffers that the next call overwrites.
        """
        inputs = self.inputs(x)
        return inputs, self.algorithm.predict(self.state, inputs)

    def look_at_all(self, x: Floats) -> Iterator[tuple[Inputs, Prediction]]:
        """Do the same for inputs (n, d), with features that are computed together."""
        for start in range(0, len(x), CHUNK):
            part = np.ascontiguousarray(x[start : start + CHUNK], dtype=np.float64)
            is_one = len(x) == 1
            z, energy = self._features if is_one else self.features.empty(1, len(part), self.dtype)
            if self.algorithm.uses_features:
                self._stack.write(part, z, energy)
            for i in range(len(part)):
                inputs = Inputs(part[i : i + 1], z[0, i : i + 1], energy[0, i : i + 1])
                if self.n_rows > 1:
                    inputs = Inputs._make(np.repeat(v, self.n_rows, axis=0) for v in inputs)
                yield inputs, self.algorithm.predict(self.state, inputs)

    def inputs(self, x: Floats) -> Inputs:
        """Compute the features of an input (d,), into the buffers."""
        row = np.ascontiguousarray(x, dtype=np.float64).reshape(1, -1)
        z, energy = self._features
        if self.algorithm.uses_features:
            self._stack.write(row, z, energy)
        inputs = Inputs(row, z[0], energy[0])
        if self.n_rows == 1:
            return inputs
        return Inputs._make(np.repeat(values, self.n_rows, axis=0) for values in inputs)

    def deviation(self, inputs: Inputs, prediction: Prediction) -> float | None:
        """Return the standard deviation of what `look` returned; None without one."""
        found = self.algorithm.deviation(self.state, inputs, prediction)
        return None if found is None else float(found[0])

    def quantiles(self, inputs: Inputs, prediction: Prediction) -> tuple[float, ...] | None:
        """Return the quantiles of levels `TOLD` of what `look` returned; None without."""
        found = self.algorithm.quantiles(self.state, inputs, prediction, np.array(TOLD))
        return None if found is None else tuple(found[0].tolist())

    def due(
        self, inputs: Inputs, prediction: Prediction, y: Floats
    ) -> tuple[Inputs, Prediction, Floats] | None:
        """Give what is to be learned now that this sample was predicted, for `local_step`.

        With a delay of n it is the sample of n before, with what was predicted then; None while
        there is none.
        """
        if self.delay == 0:
            return inputs, prediction, y
        self._late.add(Sample.copied(inputs.x, y, prediction))
        return self._taken(self.delay)

    def still_due(self) -> tuple[Inputs, Prediction, Floats] | None:
        """Give the oldest sample that waits, before its time; None if none does."""
        return self._taken(0)

    def _taken(self, delay: int) -> tuple[Inputs, Prediction, Floats] | None:
        then = self._late.take(delay)
        return None if then is None else (self.inputs(then.x[0]), then.prediction, then.y)

    @property
    def is_blank(self) -> bool:
        """Whether every prediction would be 0, as before anything was learned or heard."""
        if self._is_blank:
            function = self.algorithm.function(self.state)
            self._is_blank = function is not None and not function.theta.any()
        return self._is_blank

    def learn(self, x: Floats, y: float) -> Prediction:
        """Take a sample without neighbors; return the prediction made before."""
        return self.learn_seen(self.inputs(x), y)

    def learn_seen(self, inputs: Inputs, y: float) -> Prediction:
        """Do the same, given the features of the input, of this learner or one like it."""
        prediction = self.algorithm.predict(self.state, inputs)
        self.learn_due(self.due(inputs, prediction, np.array([y])))
        return prediction

    def learn_due(self, due: tuple[Inputs, Prediction, Floats] | None) -> bool:
        """Learn what is due, without neighbors; return whether anything was."""
        words = None if due is None else self.local_step(*due)
        if words is not None:
            self.merge(words)
        return due is not None

    def local_step(self, inputs: Inputs, prediction: Prediction, y: Floats) -> Words | None:
        """Learn a sample, given what `look` or `due` returned; return what is said.

        Without a label, NaN, it is a step without a sample; None if the algorithm has none.
        """
        if math.isnan(y[0]) and np.isnan(y).all() and not self.algorithm.takes_missing:
            return self.idle_step()
        self.state, message = self.algorithm.local_step(self.state, inputs, y, prediction, self.net)
        return self._words(message)

    def idle_step(self) -> Words | None:
        """Step without a sample; return what is said, None if the algorithm has no such step."""
        found = self.algorithm.idle_step(self.state, self.net)
        if found is None:
            return None
        self.state, message = found
        return self._words(message)

    def _words(self, message: Any) -> Words:
        return Words(message, self._voice.say(message))

    def merge(self, words: Words, heard: Sequence[Heard | None] = ()) -> None:
        """End the step of these words with those of each neighbor, in their order.

        None stands for a neighbor from whom nothing was heard yet.
        """
        message, said = words
        known = [each for each in heard if each is not None]
        if not known:
            self.heard.clear()
        wires, fields = self._wires_to(known), []
        for field, exact, own in zip(message._fields, message, said, strict=True):
            how = self._exchange[field]
            if DELIVERIES[how].needs_reverse:
                fields.append(_by_edge(field, own, heard))
            elif not known:
                fields.append(heard_alone(how, own, exact))
            else:
                own, exact = np.ascontiguousarray(own), np.ascontiguousarray(exact)
                rows = self._rows(field, own, known)
                fields.append(delivered(how, rows, own, wires, exact=exact))
        own_words = None if said is message else said
        heard_fields = type(message)(*fields)
        self.state = merged(self.algorithm, self.state, heard_fields, self.net, own_words)

    def amend(self, gaps: Mapping[str, Array]) -> None:
        """Change the state as if these gaps had been heard, too."""
        self.state = self.algorithm.amend(self.state, gaps, self.net)

    def rewire(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Have other neighbors; what the state keeps of a neighbor moves with its name."""
        for field in self.algorithm.by_edge:
            rows: Array = getattr(self.state, field)
            fresh = np.zeros((len(after), *rows.shape[1:]), dtype=rows.dtype)
            for i, name in enumerate(after):
                if name in before:
                    fresh[i] = rows[before.index(name)]
            self.state = self.state._replace(**{field: fresh})
        self.net, self._wires = _net(len(after)), None
        if not after:
            self.heard = {}

    def _rows(self, field: str, own: Array, known: Sequence[Heard]) -> Array:
        """Collect a field of all neighbors, one row each."""
        shape = (len(known), *own.shape[1:])
        rows = self.heard.get(field)
        if rows is None or rows.shape != shape:
            rows = self.heard[field] = np.empty(shape, dtype=own.dtype)
        for i, each in enumerate(known):
            rows[i] = each.fields[field][0]
        return rows

    def _wires_to(self, known: Sequence[Heard]) -> Wires:
        """Return the network of this learner and those neighbors, with weights if needed."""
        degrees = [float(each.degree) for each in known]
        if self._wires is None or degrees != self._degrees:
            weight, no_edges = np.empty(0), np.empty(0, dtype=np.int64)
            if self._is_weighted and known:
                weight = metropolis_weights(self.net.degree, np.array(degrees))
            ends, rows = _ends(len(known), self.n_rows), np.arange(len(known))
            self._wires = Wires(ends, rows, weight, no_edges, 1)
            self._degrees = degrees
        return self._wires


def _net(degree: int, n_rows: int = 1) -> Net:
    return Net(np.full(n_rows, float(degree)), np.ones(n_rows), _ends(degree, n_rows))


def _ends(degree: int, n_rows: int) -> Ints:
    """Where the edges of each row end, in compressed sparse rows."""
    return np.arange(n_rows + 1, dtype=np.int64) * degree


def _by_edge(field: str, own: Array, heard: Sequence[Heard | None]) -> Array:
    """Collect a field of all neighbors, one row each; zeros where nothing was heard yet."""
    rows = np.zeros((len(heard), *own.shape[1:]), dtype=own.dtype)
    for i, each in enumerate(heard):
        if each is not None:
            rows[i] = each.fields[field][0]
    return rows
