"""Baselines: the same learner without neighbors, the last value, and linear least squares.

Every comparison carries them. Any kernel method over a network must beat all three.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from domkl import checks
from domkl.algorithms.base import (
    Algorithm,
    Function,
    Inputs,
    Net,
    Prediction,
    Sizes,
)
from domkl.algorithms.law import Law
from domkl.core.exchange import Delivery
from domkl.core.kernels import Dictionary
from domkl.core.losses import Loss
from domkl.core.rls import first_factors, rls_step
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
    def takes_missing(self) -> bool:  # type: ignore[override]
        """As the algorithm."""
        return self.algorithm.takes_missing

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

    def delayed(self, delay: int) -> "Alone":
        """As the algorithm."""
        return Alone(self.algorithm.delayed(delay))

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

    @property
    def law(self) -> Law | None:  # type: ignore[override]
        """As the algorithm."""
        return self.algorithm.law

    @property
    def by_edge(self) -> tuple[str, ...]:  # type: ignore[override]
        """As the algorithm."""
        return self.algorithm.by_edge

    @property
    def compiled(self) -> Any:
        """As the algorithm."""
        return self.algorithm.compiled


class LastState(NamedTuple):
    """What LastValue keeps."""

    previous: Floats  # (K,)


class Silence(NamedTuple):
    """What learners without neighbors say: nothing."""


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

    def init(self, sizes: Sizes) -> LastState:
        """0."""
        return LastState(np.zeros(sizes.n_learners))

    def predict(self, state: LastState, inputs: Inputs) -> Prediction:
        """The last value."""
        if self.newest_lag is not None and self.newest_lag >= inputs.x.shape[1]:
            n_inputs = inputs.x.shape[1]
            raise ParameterError(
                f"newest_lag must be below the {n_inputs} inputs, got {self.newest_lag}"
            )
        y_hat = state.previous if self.newest_lag is None else inputs.x[:, self.newest_lag]
        return Prediction(y_hat.copy(), y_hat[:, None])

    def local_step(
        self, state: LastState, inputs: Inputs, y: Floats, prediction: Prediction, net: Net
    ) -> tuple[LastState, Silence]:
        """Keep the label."""
        return LastState(y.copy()), Silence()

    def merge(self, state: LastState, heard: Silence, net: Net) -> LastState:
        """Hear nothing."""
        return state


class LinearState(NamedTuple):
    """What a LinearRLS learner keeps."""

    theta: Floats  # (K, d + 1)  of the inputs and a constant
    factor: Floats  # (K, d(d + 1)/2)  U of C = U D Uᵀ, core/rls.py
    diagonal: Floats  # (K, d + 1)     D


@dataclass(frozen=True)
class LinearRLS(Algorithm):
    """Fit the inputs and a constant to the labels by recursive least squares, without neighbors.

    Each prediction is that of the ridge fit of all earlier samples of that learner. Run on one
    learner who gets all streams, it is the pooled fit.

    Parameters
    ----------
    ridge : float
        Weight of ‖θ‖² beside the squared errors.
    """

    ridge: float = 1e-3

    uses_features = False

    def __post_init__(self) -> None:
        checks.positive("ridge", self.ridge)

    @property
    def exchange(self) -> Mapping[str, Delivery]:
        """Nothing is said."""
        return {}

    def init(self, sizes: Sizes) -> LinearState:
        """θ = 0, C = I/ridge."""
        n = sizes.n_inputs + 1
        factors = first_factors((n,) * sizes.n_learners, n, self.ridge)
        return LinearState(np.zeros((sizes.n_learners, n)), *factors)

    def predict(self, state: LinearState, inputs: Inputs) -> Prediction:
        """θᵀ(x, 1)."""
        y_hat = np.einsum("kd,kd->k", state.theta[:, :-1], inputs.x) + state.theta[:, -1]
        return Prediction(y_hat, y_hat[:, None])

    def local_step(
        self, state: LinearState, inputs: Inputs, y: Floats, prediction: Prediction, net: Net
    ) -> tuple[LinearState, Silence]:
        """Take the sample into the fit."""
        z = np.column_stack([inputs.x, np.ones(len(y))])
        rls_step(*state, z, y - prediction.y_hat, float(self.ridge))
        return state, Silence()

    def merge(self, state: LinearState, heard: Silence, net: Net) -> LinearState:
        """Hear nothing."""
        return state
