"""Forecasts that wait for their labels: made on time, learned and scored when the label comes.

A learner of horizon h is told of each moment: the label of now, and the inputs of now. It first
learns the label, with the inputs of h ticks ago and the forecast that was made then, and when that
step has ended it forecasts from the inputs of now. This is the order of `simulate` with a delay of
h − 1, cut at another place, so without faults both agree to the bit.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from domkl.algorithms.base import Prediction
from domkl.errors import DataError
from domkl.mesh.protocol.events import Moment
from domkl.mesh.protocol.learner import LocalLearner
from domkl.typing import Array, Floats


class Forecast(NamedTuple):
    """A forecast and what it was compared with, each one row."""

    due: Array  # (1,)   tick of the label
    naive: Array  # (1, 2) what the last value and the last season say, as bits: NaN if unknown
    deviation: Array  # (1,) of the forecast, as bits: it may be infinite
    y_hat: Floats  # (1,)
    by_kernel: Floats  # (1, P)
    notes: Floats  # (1, N)

    @property
    def prediction(self) -> Prediction:
        """What was predicted."""
        return Prediction(*(np.asarray(each, dtype=np.float64) for each in self[3:]))


class Forecasts:
    """The forecasts of one learner that wait for their labels, oldest first.

    Parameters
    ----------
    learner : LocalLearner
        Its model has a horizon.
    """

    def __init__(self, learner: LocalLearner) -> None:
        self.learner, self.horizon = learner, learner.model.horizon
        self._waiting: deque[Forecast] = deque()
        self._first: int | None = None  # tick of the first label that there was a forecast for

    def make(self, moment: Moment) -> float | None:
        """Forecast from the inputs of now; None where inputs are missing."""
        if np.isnan(moment.x).any():
            return None
        inputs, prediction = self.learner.look(moment.x)
        deviation = self.learner.deviation_of(inputs)
        due = np.array([moment.tick + self.horizon])
        self._first = int(due[0]) if self._first is None else self._first
        naive = as_bits(np.array([moment.naive]))
        spread = as_bits(np.array([np.nan if deviation is None else deviation]))
        self._waiting.append(Forecast(due, naive, spread, *(each.copy() for each in prediction)))
        return float(prediction.y_hat[0])

    @property
    def newest_deviation(self) -> float | None:
        """Of the forecast that was made last; None if the algorithm has none."""
        found = float(from_bits(self._waiting[-1].deviation)[0])
        return None if np.isnan(found) else found

    def due(self, tick: int) -> Forecast | None:
        """Take the forecast of this tick, if there is one; older ones never get their label."""
        while self._waiting and self._waiting[0].due[0] < tick:
            self._waiting.popleft()
        is_due = bool(self._waiting) and self._waiting[0].due[0] == tick
        return self._waiting.popleft() if is_due else None

    def learn(self, due: Forecast | None, moment: Moment) -> Any:
        """Learn the label that has come; return the message.

        Without a forecast, a label or inputs it is a step without a sample, by which the learner
        follows its neighbors. None if there is no message: before the first label that there was
        a forecast for, and if the algorithm has no such step.
        """
        if self._first is None or moment.tick < self._first:
            return None
        if due is None or np.isnan(moment.then).any():
            return self.learner.idle_step()
        inputs, y = self.learner.inputs(moment.then), np.array([moment.y])
        return self.learner.local_step(inputs, due.prediction, y)[1]

    def saved(self, prefix: str) -> dict[str, Array]:
        """Return what a checkpoint keeps."""
        if self._first is None:
            return {}
        columns = zip(Forecast._fields, zip(*self._waiting, strict=True), strict=False)
        first = {f"{prefix}.first": np.array([self._first])}
        return first | {f"{prefix}.{field}": np.concatenate(each) for field, each in columns}

    def restore(self, prefix: str, arrays: Mapping[str, Array]) -> None:
        """Go on with what `saved` returned."""
        self._waiting.clear()
        first = arrays.get(f"{prefix}.first")
        self._first = None if first is None else int(first[0])
        stored = [arrays[name] for f in Forecast._fields if (name := f"{prefix}.{f}") in arrays]
        if not stored:
            return
        if len({len(each) for each in stored}) != 1 or len(stored) != len(Forecast._fields):
            raise DataError(f"{prefix} must hold whole forecasts")
        made = self.learner.look(np.zeros(self.learner.model.features.n_inputs))[1]
        if stored[-1].shape[1:] != made.notes.shape[1:]:
            raise DataError(
                f"{prefix} must have {made.notes.shape[1]} notes of each forecast,"
                f" got {stored[-1].shape[1]}"
            )
        self._waiting.extend(
            Forecast(*(each[[i]] for each in stored))  # type: ignore[arg-type]
            for i in range(len(stored[0]))
        )


def as_bits(values: Floats) -> Array:
    """Numbers as whole numbers of the same bits: a state that is saved must not hold NaN."""
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64)


def from_bits(bits: Array) -> Floats:
    """What `as_bits` was given.

    Examples
    --------
    >>> from_bits(as_bits(np.array([0.5, np.nan])))
    array([0.5, nan])
    """
    return np.ascontiguousarray(bits, dtype=np.int64).view(np.float64)
