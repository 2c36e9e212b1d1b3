"""The server family: COMKL, eq. (41). With one learner it is OMKL.

Every learner sends its gradients and losses to a server, which descends by their mean and tells
everybody the result. What a learner predicts with the server's θ and q is what a DOMKL learner
predicts with its own, (14). It needs a server, so a mesh cannot run it; it is what decentralised
algorithms are compared with.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from domkl.algorithms.admm import function, predict
from domkl.algorithms.base import Inputs, KernelAlgorithm, Net, Prediction
from domkl.algorithms.law import Law
from domkl.core.hedge import hedge_weights
from domkl.core.jit import sweep
from domkl.core.losses import Loss, Squared, loss_derivative, loss_value
from domkl.core.vectors import added, lines, scaled, shifted
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
    """Tell the gradient ∇ℓ = ℓ′(f, y) z and the loss of every kernel; 0 without a label."""
    z, f, gradient = inputs.z, prediction.by_kernel, message.gradient
    n_learners, n_kernels = f.shape
    for k in range(n_learners):
        is_known = not math.isnan(y[k])
        for p in range(n_kernels):
            slope = loss_derivative(rates.loss, f[k, p], y[k]) if is_known else 0.0
            scaled(gradient[k, p], z[k, p], gradient.dtype.type(slope))
            message.loss[k, p] = loss_value(rates.loss, f[k, p], y[k]) if is_known else 0.0


@sweep
def merge(state: State, rates: Any, heard: Message, net: Net) -> None:
    """Descend by (41), add all learners' losses of this round up, and weigh by them."""
    mean_step(state.theta, heard.gradient, net.size, rates.step)
    for k in range(len(state.loss)):
        added(state.loss[k], heard.loss[k])
    hedge_weights(state.weights, state.loss, np.zeros_like(state.loss), rates.eta_g)


@sweep
def mean_step(theta: Array, total: Array, size: Floats, step: float) -> None:
    """Descend by step times the mean of ``size`` gradients, eq. (41): theta, total (K, P, D)."""
    theta, total = lines(theta), lines(total)
    for k in range(len(theta)):
        shifted(theta[k], theta[k], total[k], theta.dtype.type(-step / size[k]))


@dataclass(frozen=True)
class COMKL(KernelAlgorithm):
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

    law = Law(
        State,
        Message,
        predict,
        local_step,
        merge,
        function,
        exchange={"gradient": "total", "loss": "total"},
        room={"gradient": "theta"},
        is_separable=True,
    )
