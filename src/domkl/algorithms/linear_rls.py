"""Linear least squares of the learner's own samples: what any kernel method must beat."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from domkl import checks
from domkl.algorithms.base import Algorithm, Delivery, Inputs, Net, Prediction, Sizes
from domkl.core.rls import first_factors, rls_step
from domkl.typing import Floats


class State(NamedTuple):
    """What a LinearRLS learner keeps."""

    theta: Floats  # (K, d + 1)  of the inputs and a constant
    factor: Floats  # (K, d(d + 1)/2)  U of C = U D Uᵀ, core/rls.py
    diagonal: Floats  # (K, d + 1)     D


class Message(NamedTuple):
    """What a LinearRLS learner says: nothing."""


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

    def init(self, sizes: Sizes) -> State:
        """θ = 0, C = I/ridge."""
        n = sizes.n_inputs + 1
        factors = first_factors((n,) * sizes.n_learners, n, self.ridge)
        return State(np.zeros((sizes.n_learners, n)), *factors)

    def predict(self, state: State, inputs: Inputs) -> Prediction:
        """θᵀ(x, 1)."""
        y_hat = np.einsum("kd,kd->k", state.theta[:, :-1], inputs.x) + state.theta[:, -1]
        return Prediction(y_hat, y_hat[:, None])

    def local_step(
        self, state: State, inputs: Inputs, y: Floats, prediction: Prediction, net: Net
    ) -> tuple[State, Message]:
        """Take the sample into the fit."""
        z = np.column_stack([inputs.x, np.ones(len(y))])
        rls_step(*state, z, y - prediction.y_hat, float(self.ridge))
        return state, Message()

    def merge(self, state: State, heard: Message, net: Net) -> State:
        """Hear nothing."""
        return state
