"""The third host of the laws: one learner, no neighbors, samples as they come.

Short batches are interpreted, as in sim/engine.py; long ones go through `simulate` itself, with
its compiled rounds. Both call the same laws, and agree to the bit.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from domkl.algorithms.base import Algorithm, Inputs
from domkl.core.features import FeatureStack, RandomFeatures
from domkl.graphs.graph import Graph
from domkl.sim.cells import Cell, Network, first_state
from domkl.sim.simulate import simulate
from domkl.typing import Floats

SHORT = 40  # samples; a call of `simulate` costs as much as so many interpreted rounds
MAPPED = 256  # rows whose features are made at once


class Host:
    """Runs an algorithm on the samples of one learner. It holds no state: it is given one."""

    def __init__(self, algorithm: Algorithm, features: RandomFeatures) -> None:
        self.algorithm, self.features = algorithm, features
        self._alone = Graph.empty(1)
        self._network = Network([self._alone], is_alone=algorithm.is_alone)
        self._stack = FeatureStack([features])
        self._room = features.empty(1, 1, np.float64)

    def first_state(self) -> Any:
        """The state before the first sample."""
        return first_state(Cell([self._alone], [self.features]), self.algorithm, np.float64)

    def predict(self, state: Any, x: Floats) -> Floats:
        """Predict for inputs x (n, d), each by itself."""
        return np.array([self.algorithm.predict(state, row).y_hat[0] for row in self._inputs(x)])

    def deviation(self, state: Any, x: Floats) -> Floats | None:
        """Standard deviation of each prediction; None where the algorithm gives none."""
        found = [self.algorithm.deviation(state, row) for row in self._inputs(x)]
        known = [float(each[0]) for each in found if each is not None]
        return np.array(known) if known else None

    def learn(self, state: Any, x: Floats, y: Floats) -> Any:
        """Learn x (n, d), y (n,) in order; give the next state.

        One sample is learned in place. Of several, none is in the state given: should a later one
        fail, that is as it was.
        """
        if len(y) > SHORT:
            samples = (self.algorithm, x[:, None], y[:, None], self._alone, self.features)
            return simulate(*samples, cv="off", keep_predictions=False, state=state).state
        if len(y) > 1:
            state = copied(state)
        for t, row in enumerate(self._inputs(x)):
            state = self._round(state, row, y[t : t + 1])
        return state

    def _round(self, state: Any, row: Inputs, y: Floats) -> Any:
        algorithm, network = self.algorithm, self._network
        prediction = algorithm.predict(state, row)
        state, message = algorithm.local_step(state, row, y, prediction, network.net)
        return algorithm.merge(state, network.deliver(algorithm, message), network.net)

    def _inputs(self, x: Floats) -> Iterator[Inputs]:
        """Each row's inputs, for one learner; good until the next."""
        for start in range(0, len(x), MAPPED):
            part = x[start : start + MAPPED]
            z, energy = self._room if len(x) == 1 else self.features.empty(1, len(part), np.float64)
            if self.algorithm.uses_features:
                self._stack.write(part, z, energy)
            for i in range(len(part)):
                yield Inputs(part[i : i + 1], z[0, i : i + 1], energy[0, i : i + 1])


def copied(state: Any) -> Any:
    """A state with arrays of its own."""
    return type(state)(*(np.array(values) for values in state))
