"""COMKL, eq. (41): a server learns from every learner's gradient. With K = 1 it is OMKL."""

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
from domkl.core.laws import SERVER, Chain, server_local, server_merge
from domkl.core.losses import Loss, Squared, check_loss
from domkl.typing import Array, Floats


class State(NamedTuple):
    """What the server broadcasts, as each learner holds it."""

    theta: Array  # (K, P, D)
    loss: Floats  # (K, P)  all learners' losses, summed over rounds
    weights: Floats  # (K, P)


class Message(NamedTuple):
    """What a learner tells the server."""

    gradient: Array  # (K, P, D)
    loss: Floats  # (K, P)  this round's


@dataclass(frozen=True)
class COMKL(Algorithm):
    """Learn at a server: the mean of the learners' gradients, and a Hedge over all their losses.

    θ⁺ = θ − step/K Σ_k ∇ℓ(θᵀz_k, y_k), eq. (41)

    Parameters
    ----------
    step : float
        Multiplies the mean gradient; for the squared loss that is 2(f − y)z.
    eta_g : float
        η_g, the temperature of the Hedge, which accumulates the sum of a round's K losses.
    loss : Loss

    Deviations
    ----------
    The paper writes η_l for the step too. Here ``eta_l`` is an inverse step and only in (11).
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
        """Everything goes to the server."""
        return {"gradient": "total", "loss": "total"}

    def init(self, sizes: Sizes) -> State:
        """All zero, and equal weights."""
        theta = np.zeros(sizes.theta, dtype=sizes.dtype)
        return State(theta, np.zeros(sizes.weights), uniform(sizes))

    def predict(self, state: State, inputs: Inputs) -> Prediction:
        """Σ_p q_p θ_pᵀz_p, with the server's θ and q."""
        return predict_combined(state.theta, state.weights, inputs.z)

    def local_step(
        self, state: State, inputs: Inputs, y: Floats, prediction: Prediction, net: Net
    ) -> tuple[State, Message]:
        """Tell the gradient and the loss of every kernel."""
        chain, loss = self.chain(state), np.zeros_like(state.loss)
        server_local(chain, inputs.z, prediction.by_kernel, y, loss)
        return state, Message(chain.second, loss)

    def merge(self, state: State, heard: Message, net: Net) -> State:
        """Descend by (41) and weigh by all losses so far."""
        server_merge(self.chain(state), heard.gradient, heard.loss, float(net.size[0]))
        return state

    def function(self, state: State) -> Function:
        """θ and q."""
        return Function(state.theta, state.weights)

    def chain(self, state: State) -> Chain:
        """The server family, with room for the gradients."""
        room = np.empty_like(state.theta)
        return gradient_chain(
            SERVER, self, state.theta, room, state.loss, state.weights, eta_g=self.eta_g
        )
