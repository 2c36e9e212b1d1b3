"""What every comparison carries: the same learner without neighbors, and the last value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from domkl import checks
from domkl.algorithms.base import (
    Algorithm,
    Delivery,
    Function,
    Inputs,
    Net,
    Prediction,
    Sizes,
)
from domkl.core.kernels import Dictionary
from domkl.core.laws import Chain
from domkl.core.losses import Loss
from domkl.errors import ParameterError
from domkl.typing import Floats


@dataclass(frozen=True)
class Alone(Algorithm):
    """Run an algorithm without neighbors: the host gives it a network without edges.

    So it may need a graph without cycles and still be alone on one with.
    """

    algorithm: Algorithm

    is_alone = True

    def __post_init__(self) -> None:
        if not isinstance(self.algorithm, Algorithm):
            raise ParameterError(f"algorithm must be an Algorithm, got {self.algorithm!r}")

    @property
    def single_kernel(self) -> bool:  # type: ignore[override]
        """As the algorithm."""
        return self.algorithm.single_kernel

    @property
    def uses_features(self) -> bool:  # type: ignore[override]
        """As the algorithm."""
        return self.algorithm.uses_features

    @property
    def relative_cost(self) -> float:  # type: ignore[override]
        """As the algorithm."""
        return self.algorithm.relative_cost

    def parameters(self) -> dict[str, Any]:
        """Of the algorithm inside."""
        return self.algorithm.parameters()

    def replaced(self, **given: Any) -> "Alone":
        """Set parameters of the algorithm inside."""
        return Alone(self.algorithm.replaced(**given))

    @property
    def loss(self) -> Loss | None:  # type: ignore[override]
        """As the algorithm."""
        return self.algorithm.loss

    @property
    def exchange(self) -> Mapping[str, Delivery]:
        """As the algorithm; there is nobody to hear."""
        return self.algorithm.exchange

    def init(self, sizes: Sizes) -> Any:
        """As the algorithm."""
        return self.algorithm.init(sizes)

    def predict(self, state: Any, inputs: Inputs) -> Prediction:
        """As the algorithm."""
        return self.algorithm.predict(state, inputs)

    def local_step(
        self, state: Any, inputs: Inputs, y: Floats, prediction: Prediction, net: Net
    ) -> tuple[Any, Any]:
        """As the algorithm."""
        return self.algorithm.local_step(state, inputs, y, prediction, net)

    def merge(self, state: Any, heard: Any, net: Net) -> Any:
        """As the algorithm."""
        return self.algorithm.merge(state, heard, net)

    def function(self, state: Any) -> Function | None:
        """As the algorithm."""
        return self.algorithm.function(state)

    def deviation(self, state: Any, inputs: Inputs) -> Floats | None:
        """As the algorithm."""
        return self.algorithm.deviation(state, inputs)

    def bank(self) -> Dictionary:
        """As the algorithm."""
        return self.algorithm.bank()

    def chain(self, state: Any) -> Chain | None:
        """As the algorithm."""
        return self.algorithm.chain(state)


class State(NamedTuple):
    """What LastValue keeps."""

    previous: Floats  # (K,)


class Message(NamedTuple):
    """What LastValue says: nothing."""


@dataclass(frozen=True)
class LastValue(Algorithm):
    """Predict the learner's own previous label; at first, 0.

    Parameters
    ----------
    newest_lag : int, optional
        Where the inputs are lags, the column of the newest: predict that instead.
    """

    newest_lag: int | None = None

    uses_features = False

    def __post_init__(self) -> None:
        if self.newest_lag is not None:
            checks.whole("newest_lag", self.newest_lag, 0)

    @property
    def exchange(self) -> Mapping[str, Delivery]:
        """Nothing is said."""
        return {}

    def init(self, sizes: Sizes) -> State:
        """0."""
        return State(np.zeros(sizes.n_learners))

    def predict(self, state: State, inputs: Inputs) -> Prediction:
        """The last value."""
        if self.newest_lag is not None and self.newest_lag >= inputs.x.shape[1]:
            n_inputs = inputs.x.shape[1]
            raise ParameterError(
                f"newest_lag must be below the {n_inputs} inputs, got {self.newest_lag}"
            )
        y_hat = state.previous if self.newest_lag is None else inputs.x[:, self.newest_lag]
        return Prediction(y_hat.copy(), y_hat[:, None])

    def local_step(
        self, state: State, inputs: Inputs, y: Floats, prediction: Prediction, net: Net
    ) -> tuple[State, Message]:
        """Keep the label."""
        return State(y.copy()), Message()

    def merge(self, state: State, heard: Message, net: Net) -> State:
        """Hear nothing."""
        return state
