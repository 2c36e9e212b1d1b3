"""Forecasts that wait for their labels: made on time, learned and scored when the label comes.

A learner of horizon h is told of each moment: the label of now, and the inputs of now. It first
learns the label, with the inputs of h ticks ago and the forecast that was made then, and when that
step has ended it forecasts from the inputs of now. This is the order of `simulate` with a delay of
h − 1, cut at another place, so without faults both agree to the bit.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from domkl.algorithms.base import Prediction
from domkl.learner.late import LateLabels
from domkl.learner.local import TOLD, LocalLearner, Words
from domkl.mesh.protocol.events import Moment
from domkl.typing import Array, Floats


class WaitingForecast(NamedTuple):
    """A forecast and what it was compared with, each one row."""

    due: Array  # (1,)   tick of the label
    naive: Array  # (1, 2) what the last value and the last season say, as bits: NaN if unknown
    deviation: Array  # (1,) of the forecast, as bits: it may be infinite
    y_hat: Floats  # (1,)
    by_kernel: Floats  # (1, P)
    notes: Floats  # (1, N)
    quantiles: Array  # (1, J) of the label, as bits; NaN if the algorithm has none
    given: Floats  # (1,) what was given out as the forecast

    @property
    def prediction(self) -> Prediction:
        """What was predicted."""
        return Prediction(*(np.asarray(each, dtype=np.float64) for each in self[3:6]))


class Forecasts:
    """The forecasts of one learner that wait for their labels, oldest first.

    Parameters
    ----------
    learner : LocalLearner
    horizon : int
        Ticks from the inputs to the label.
    """

    def __init__(self, learner: LocalLearner, horizon: int) -> None:
        self.learner, self.horizon = learner, horizon
        self._waiting = LateLabels(WaitingForecast)
        self.newest_quantiles: tuple[float, ...] | None = None  # of the forecast that was made last
        self._first: int | None = None  # tick of the first label that there was a forecast for

    def make(
        self, moment: Moment, given: Callable[[Prediction], float] | None = None
    ) -> float | None:
        """Forecast from the inputs of now; None where inputs are missing.

        ``given`` makes of the prediction what is given out, by default the same.
        """
        if self._first is None and not np.isnan(moment.x).any():
            self._first = moment.tick + self.horizon
        if self._first is not None:  # before the first label, the clock stands at its step
            self.learner.at(max(moment.tick + 1, self._first) - self.horizon)
        if np.isnan(moment.x).any():
            return None
        inputs, prediction = self.learner.look(moment.x)
        deviation = self.learner.deviation(inputs, prediction)
        self.newest_quantiles = self.learner.quantiles(inputs, prediction)
        y_hat = float(prediction.y_hat[0]) if given is None else given(prediction)
        made = self._entry(moment.tick + self.horizon, moment.naive, deviation, prediction, y_hat)
        self._waiting.add(made)
        return y_hat

    def _entry(
        self, due: int, naive: Any, deviation: float | None, prediction: Prediction, given: float
    ) -> WaitingForecast:
        spread = np.nan if deviation is None else deviation
        bits = as_bits(np.array([naive])), as_bits(np.array([spread]))
        told = as_bits(np.array([self.newest_quantiles or (np.nan,) * len(TOLD)]))
        y_hat, by_kernel, notes = (each.copy() for each in prediction)
        given_out = np.array([given])
        return WaitingForecast(np.array([due]), *bits, y_hat, by_kernel, notes, told, given_out)

    @property
    def newest_deviation(self) -> float | None:
        """Of the forecast that was made last; None if the algorithm has none."""
        found = float(from_bits(self._waiting.newest.deviation)[0])
        return None if np.isnan(found) else found

    def due(self, tick: int) -> WaitingForecast | None:
        """Take the forecast of this tick, if there is one; older ones never get their label."""
        while (oldest := self._waiting.oldest) is not None and oldest.due[0] <= tick:
            self._waiting.take(0)
            if oldest.due[0] == tick:
                return oldest
        return None

    def learn(self, due: WaitingForecast | None, moment: Moment) -> Words | None:
        """Learn the label that has come; return what is said.

        Without a forecast, a label or inputs it is a step without a sample, by which the learner
        follows its neighbors. None if nothing is said: before the first label that there was a
        forecast for, and if the algorithm has no such step.
        """
        if self._first is None or moment.tick < self._first:
            return None
        self.learner.at(moment.tick - self.horizon)
        if due is None or np.isnan(moment.then).any():
            return self.learner.idle_step()
        inputs, y = self.learner.inputs(moment.then), np.array([moment.y])
        return self.learner.local_step(inputs, due.prediction, y)

    def saved(self, prefix: str) -> dict[str, Array]:
        """Return what a checkpoint keeps."""
        if self._first is None:
            return {}
        return {f"{prefix}.first": np.array([self._first])} | self._waiting.saved(prefix)

    def restore(self, prefix: str, arrays: Mapping[str, Array]) -> None:
        """Go on with what `saved` returned."""
        first = arrays.get(f"{prefix}.first")
        self._first = None if first is None else int(first[0])
        made = self.learner.look(np.zeros(self.learner.features.n_inputs))[1]
        like = self._entry(0, (np.nan, np.nan), None, made, 0.0)
        if f"{prefix}.due" in arrays:  # files of 0.1 to 0.4 have no quantiles
            unknown = np.repeat(like.quantiles, len(arrays[f"{prefix}.due"]), axis=0)
            given = arrays[f"{prefix}.y_hat"]  # those of 0.5 not what was given out
            arrays = {f"{prefix}.quantiles": unknown, f"{prefix}.given": given, **arrays}
        self._waiting.restore(prefix, arrays, like, self.horizon)


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
