"""The diffusion family: RFF-DOKL with one kernel, and RFF-DOMKL (Remark 4) with many.

A learner combines its neighbors' estimates with its own, then adapts by a gradient step:

    ψ_k = Σ_ℓ a_kℓ θ_ℓ (Metropolis weights, k included),   f_k = ψ_kᵀz,   θ_k⁺ = ψ_k − step · ∇ℓ

RFF-DOMKL does so for each kernel and weighs the kernels by the Hedge of DOMKL, (16).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from domkl.algorithms.base import Inputs, KernelAlgorithm, Net, Prediction
from domkl.algorithms.law import Law
from domkl.core.hedge import combined_predictions, hedge_weights, single_predictions
from domkl.core.jit import sweep
from domkl.core.losses import Loss, Squared, add_losses, loss_derivative
from domkl.core.vectors import copied, lines, shifted
from domkl.typing import Array, Floats


class SingleState(NamedTuple):
    """What an RFF-DOKL learner keeps."""

    theta: Array  # (K, 1, D)
    combined: Array  # (K, 1, D)  ψ, the weighted mean of own and neighbors' θ


class SingleMessage(NamedTuple):
    """What an RFF-DOKL learner says."""

    theta: Array  # (K, 1, D)


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


@sweep
def gradient_step(
    theta: Array, start: Array, z: Array, f: Floats, y: Floats, step: float, loss: Any
) -> None:
    """Write θ = start − step · ℓ′(f, y) z: theta, start, z (K, P, D), f (K, P), y (K,).

    Without a label, NaN, θ is where the step starts.
    """
    n_learners, n_kernels = f.shape
    for k in range(n_learners):
        is_known = not math.isnan(y[k])
        for p in range(n_kernels):
            slope = loss_derivative(loss, f[k, p], y[k]) if is_known else 0.0
            shifted(theta[k, p], start[k, p], z[k, p], theta.dtype.type(-step * slope))


@sweep
def single_predict(state: SingleState, rates: Any, inputs: Inputs, prediction: Prediction) -> None:
    """ψᵀz."""
    single_predictions(prediction.y_hat, prediction.by_kernel, state.combined, inputs.z)


@sweep
def single_local_step(
    state: Any,
    rates: Any,
    inputs: Inputs,
    y: Floats,
    prediction: Prediction,
    net: Net,
    message: Any,
) -> None:
    """Adapt: step from ψ along the gradient."""
    z, f = inputs.z, prediction.by_kernel
    gradient_step(message.theta, state.combined, z, f, y, rates.step, rates.loss)


@sweep
def single_merge(state: Any, rates: Any, heard: Any, net: Net) -> None:
    """Combine: keep the mean that was heard as ψ."""
    combined, mean = lines(state.combined), lines(heard.theta)
    for k in range(len(mean)):
        copied(combined[k], mean[k])


@sweep
def single_function(state: SingleState) -> tuple[Array, Floats]:
    """ψ, with weight 1."""
    return state.combined, np.ones((len(state.combined), 1))


@sweep
def predict(state: State, rates: Any, inputs: Inputs, prediction: Prediction) -> None:
    """Σ_p q_p ψ_pᵀz_p."""
    y_hat, f = prediction.y_hat, prediction.by_kernel
    combined_predictions(y_hat, f, state.combined, state.weights, inputs.z)


@sweep
def local_step(
    state: State,
    rates: Any,
    inputs: Inputs,
    y: Floats,
    prediction: Prediction,
    net: Net,
    message: Message,
) -> None:
    """Add each kernel's loss to its account (15), and step from ψ along the gradient."""
    add_losses(message.loss, state.loss, prediction.by_kernel, y, rates.loss)
    single_local_step(state, rates, inputs, y, prediction, net, message)


@sweep
def merge(state: State, rates: Any, heard: Message, net: Net) -> None:
    """Combine, and weigh by (16)."""
    single_merge(state, rates, heard, net)
    hedge_weights(state.weights, state.loss, heard.loss, rates.eta_g)


@sweep
def function(state: State) -> tuple[Array, Floats]:
    """ψ and q."""
    return state.combined, state.weights


@dataclass(frozen=True)
class RFFDOKL(KernelAlgorithm):
    """Learn with one kernel by diffusion: combine, then adapt.

    Parameters
    ----------
    step : float
        Multiplies the gradient; for the squared loss that is 2(f − y)z.
    loss : Loss
    """

    step: float = 0.5
    loss: Loss = Squared()

    single_kernel = True
    law = Law(
        SingleState,
        SingleMessage,
        single_predict,
        single_local_step,
        single_merge,
        single_function,
        exchange={"theta": "metropolis"},
        carried=("theta",),
        scratch=("combined",),
        is_separable=True,
    )

    def idle_step(self, state: Any, net: Net) -> tuple[Any, Any]:
        """θ = ψ."""
        np.copyto(state.theta, state.combined)
        return state, self.message(state)


@dataclass(frozen=True)
class RFFDOMKL(KernelAlgorithm):
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

    law = Law(
        State,
        Message,
        predict,
        local_step,
        merge,
        function,
        exchange={"theta": "metropolis", "loss": "sum"},
        carried=("theta", "loss"),
        scratch=("combined",),
        is_separable=True,
    )

    idle_step = RFFDOKL.idle_step
