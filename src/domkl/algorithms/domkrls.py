"""DOMKRLS: recursive least squares for each kernel, diffusion between neighbors, no rate to set.

Each learner keeps the curvature of its own samples, and steps by it. What it says is what a DOMKL
learner says: θ and the accumulated losses. Both are averaged with Metropolis weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

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
    predict_combined,
    uniform,
)
from domkl.core.kernels import Dictionary, default_bank
from domkl.core.laws import (
    LEAST_SQUARES,
    Chain,
    deviations,
    least_squares_local,
    least_squares_merge,
)
from domkl.core.losses import Logistic, Loss, Squared
from domkl.core.rls import first_factors
from domkl.errors import ParameterError
from domkl.typing import Array, Floats


class State(NamedTuple):
    """What a DOMKRLS learner keeps."""

    theta: Array  # (K, P, D)
    diagonal: Array  # (K, P, D)         of its own C = U D Uᵀ, core/rls.py
    factor: Array  # (K, P, D(D − 1)/2)  and U
    loss: Floats  # (K, P)               mean over the network, as far as it is heard
    weights: Floats  # (K, P)
    rounds: Floats  # (K,)               number in the account, forgotten like it
    prior: Floats  # (K, P)              weights before any loss


class Message(NamedTuple):
    """What a DOMKRLS learner says."""

    theta: Array  # (K, P, D)
    loss: Floats  # (K, P)


@dataclass(frozen=True)
class DOMKRLS(Algorithm):
    """Learn with many kernels by least squares, each learner by its own curvature.

    ψ_k = θ_k + C_k z (y − θ_kᵀz)/(1 + zᵀC_k z),   θ_k⁺ = Σ_ℓ a_kℓ ψ_ℓ

    with Metropolis weights a, the losses L averaged like θ, and the kernels weighed by
    prior · exp(−L/2s²), s² the mean loss of the best. Losses beyond (5s)² grow like the logarithm
    only. `domkl.default_bank` is made for it; the linear kernel has half of the prior.

    Parameters
    ----------
    forget : float
        What a sample's weight is multiplied by each round; below 1 to follow drift. Then the
        kernels are weighed with fixed share 1 − forget.
    ridge : float
        Weight of ‖θ‖² beside the squared errors.
    loss : Loss
        Squared() or Logistic(). For the latter a step solves
        argmin ℓ(θᵀz, y) + ½ (θ − θ_k)ᵀC⁻¹(θ − θ_k), predictions are log-odds, and 2s² = 1.
    """

    forget: float = 1.0
    ridge: float = 1e-3
    loss: Loss = Squared()

    def __post_init__(self) -> None:
        checks.fraction("forget", self.forget)
        checks.positive("ridge", self.ridge)
        if not isinstance(self.loss, (Squared, Logistic)):
            raise ParameterError(f"loss must be Squared() or Logistic(), got {self.loss!r}")

    @property
    def exchange(self) -> Mapping[str, Delivery]:
        """θ and losses, averaged with Metropolis weights."""
        return {"theta": "metropolis", "loss": "metropolis"}

    def init(self, sizes: Sizes) -> State:
        """θ = 0, C = I/ridge, weights the prior."""
        prior = uniform(sizes)
        if sizes.linear:
            prior[:] = 0.5 / (sizes.n_kernels - 1)
            prior[:, -1] = 0.5
        factor, diagonal = (
            np.tile(each.astype(sizes.dtype), (sizes.n_learners, 1, 1))
            for each in first_factors(sizes.lengths, sizes.n_features, self.ridge)
        )
        theta, loss = np.zeros(sizes.theta, dtype=sizes.dtype), np.zeros(sizes.weights)
        rounds = np.zeros(sizes.n_learners)
        return State(theta, diagonal, factor, loss, prior.copy(), rounds, prior)

    def predict(self, state: State, inputs: Inputs) -> Prediction:
        """Σ_p q_p θ_pᵀz_p."""
        return predict_combined(state.theta, state.weights, inputs.z)

    def deviation(self, state: State, inputs: Inputs) -> Floats:
        """√ Σ_p q_p [s² (1 + z_pᵀC_p z_p) + (f_p − f)²]; of log-odds, without the noise."""
        out = np.empty(len(state.theta))
        deviations(out, self.chain(state), inputs.z, *self.predict(state, inputs))
        return out

    def local_step(
        self, state: State, inputs: Inputs, y: Floats, prediction: Prediction, net: Net
    ) -> tuple[State, Message]:
        """Take the sample into every kernel's fit, and its loss into the account."""
        least_squares_local(self.chain(state), inputs.z, prediction.by_kernel, y)
        return state, Message(state.theta, state.loss)

    def merge(self, state: State, heard: Message, net: Net) -> State:
        """Keep the means, and weigh the kernels."""
        least_squares_merge(self.chain(state), heard.theta, heard.loss)
        return state

    def function(self, state: State) -> Function:
        """θ and q."""
        return Function(state.theta, state.weights)

    def bank(self) -> Dictionary:
        """With the linear kernel."""
        return default_bank()

    def chain(self, state: State) -> Chain:
        """The least-squares family."""
        arrays, unused = state[:5], (0.0,) * 4
        kind, numbers = self.loss.kind, (float(self.ridge), float(self.forget))
        return Chain(LEAST_SQUARES, *arrays, *unused, kind, 0.0, *numbers, *state[5:])
