"""RFF-DOMKL, Remark 4: RFF-DOKL for each kernel, and the Hedge of DOMKL over the kernels."""

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
from domkl.algorithms.rff_dokl import gradient_chain
from domkl.core.laws import DIFFUSION, Chain, diffusion_local, diffusion_merge, weigh
from domkl.core.losses import Loss, Squared, check_loss
from domkl.typing import Array, Floats


class State(NamedTuple):
    """What an RFF-DOMKL learner keeps."""

    theta: Array  # (K, P, D)
    combined: Array  # (K, P, D)  ψ, the weighted mean of own and neighbors' θ
    loss: Floats  # (K, P)        own losses, summed over rounds
    weights: Floats  # (K, P)


class Message(NamedTuple):
    """What an RFF-DOMKL learner says."""

    theta: Array  # (K, P, D)
    loss: Floats  # (K, P)


@dataclass(frozen=True)
class RFFDOMKL(Algorithm):
    """Learn with many kernels: each by diffusion, combined by the weights (16).

    Parameters
    ----------
    step, loss
        As in `RFFDOKL`.
    eta_g : float
        η_g, as in `DOMKL`.
    """

    step: float = 0.5
    eta_g: float = 10.0
    loss: Loss = Squared()

    def __post_init__(self) -> None:
        checks.positive("step", self.step)
        checks.positive("eta_g", self.eta_g)
        check_loss(self.loss)

    @property
    def exchange(self) -> Mapping[str, Delivery]:
        """θ averaged with Metropolis weights, losses summed."""
        return {"theta": "metropolis", "loss": "sum"}

    def init(self, sizes: Sizes) -> State:
        """All zero, and equal weights."""
        theta, combined = (np.zeros(sizes.theta, dtype=sizes.dtype) for _ in range(2))
        return State(theta, combined, np.zeros(sizes.weights), uniform(sizes))

    def predict(self, state: State, inputs: Inputs) -> Prediction:
        """Σ_p q_p ψ_pᵀz_p."""
        return predict_combined(state.combined, state.weights, inputs.z)

    def local_step(
        self, state: State, inputs: Inputs, y: Floats, prediction: Prediction, net: Net
    ) -> tuple[State, Message]:
        """Adapt every kernel and add its loss to the account (15)."""
        diffusion_local(self.chain(state), inputs.z, prediction.by_kernel, y)
        return state, Message(state.theta, state.loss)

    def merge(self, state: State, heard: Message, net: Net) -> State:
        """Combine, and weigh by (16)."""
        chain = self.chain(state)
        diffusion_merge(chain, heard.theta)
        weigh(chain, heard.loss)
        return state

    def idle_step(self, state: State, net: Net) -> tuple[State, Message]:
        """θ = ψ."""
        np.copyto(state.theta, state.combined)
        return state, Message(state.theta, state.loss)

    def function(self, state: State) -> Function:
        """ψ and q."""
        return Function(state.combined, state.weights)

    def chain(self, state: State) -> Chain:
        """The diffusion family."""
        return gradient_chain(DIFFUSION, self, *state, eta_g=self.eta_g)
