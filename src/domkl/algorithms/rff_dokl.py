"""RFF-DOKL: one kernel, gradient steps and diffusion (combine, then adapt)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

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
    predict_by_kernel,
)
from domkl.core.laws import DIFFUSION, Chain, diffusion_local, diffusion_merge, no_fits
from domkl.core.losses import Loss, Squared, check_loss
from domkl.typing import Array, Floats


class State(NamedTuple):
    """What an RFF-DOKL learner keeps."""

    theta: Array  # (K, 1, D)
    combined: Array  # (K, 1, D)  ψ, the weighted mean of own and neighbors' θ


class Message(NamedTuple):
    """What an RFF-DOKL learner says."""

    theta: Array  # (K, 1, D)


@dataclass(frozen=True)
class RFFDOKL(Algorithm):
    """Learn with one kernel by diffusion.

    ψ_k = Σ_ℓ a_kℓ θ_ℓ (Metropolis weights, k included),   f_k = ψ_kᵀz,   θ_k⁺ = ψ_k − step · ∇ℓ

    Parameters
    ----------
    step : float
        Multiplies the gradient; for the squared loss that is 2(f − y)z.
    loss : Loss
    """

    step: float = 0.5
    loss: Loss = Squared()

    single_kernel = True

    def __post_init__(self) -> None:
        checks.positive("step", self.step)
        check_loss(self.loss)

    @property
    def exchange(self) -> Mapping[str, Delivery]:
        """θ, averaged with Metropolis weights."""
        return {"theta": "metropolis"}

    def init(self, sizes: Sizes) -> State:
        """All zero."""
        return State(*(np.zeros(sizes.theta, dtype=sizes.dtype) for _ in State._fields))

    def predict(self, state: State, inputs: Inputs) -> Prediction:
        """ψᵀz."""
        f = predict_by_kernel(state.combined, inputs.z)
        return Prediction(f[:, 0].copy(), f)

    def local_step(
        self, state: State, inputs: Inputs, y: Floats, prediction: Prediction, net: Net
    ) -> tuple[State, Message]:
        """Adapt."""
        diffusion_local(self.chain(state), inputs.z, prediction.by_kernel, y)
        return state, Message(state.theta)

    def merge(self, state: State, heard: Message, net: Net) -> State:
        """Combine."""
        diffusion_merge(self.chain(state), heard.theta)
        return state

    def idle_step(self, state: State, net: Net) -> tuple[State, Message]:
        """θ = ψ."""
        np.copyto(state.theta, state.combined)
        return state, Message(state.theta)

    def function(self, state: State) -> Function:
        """ψ, with weight 1."""
        return Function(state.combined, np.ones(state.combined.shape[:2]))

    def chain(self, state: State) -> Chain:
        """RFF-DOMKL with one kernel; the account of its losses is not kept."""
        weights = np.ones(state.theta.shape[:2])
        return gradient_chain(DIFFUSION, self, *state, np.zeros_like(weights), weights, eta_g=1.0)


class GradientParams(Protocol):
    """Parameters of a gradient step."""

    @property
    def step(self) -> float:
        """Multiplies the gradient."""

    @property
    def loss(self) -> Loss:
        """ℓ."""


def gradient_chain(
    family: int,
    params: GradientParams,
    theta: Array,
    second: Array,
    loss: Floats,
    weights: Floats,
    *,
    eta_g: float,
) -> Chain:
    """The diffusion and the server family of core/laws.py."""
    return Chain(
        family,
        theta,
        second,
        np.empty((0, 0, 0), dtype=theta.dtype),
        loss,
        weights,
        rho=0.0,
        eta_l=0.0,
        step=float(params.step),
        eta_g=float(eta_g),
        kind=params.loss.kind,
        shape=float(params.loss.shape),
        fits=no_fits(theta.dtype),
    )
