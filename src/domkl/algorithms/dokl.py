"""DOKL, Algorithm 1: distributed online learning with one kernel, by online ADMM."""

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
    predict_by_kernel,
)
from domkl.algorithms.consensus import amended, consensus_chain, untied
from domkl.core.laws import Chain, consensus_local, consensus_merge
from domkl.core.losses import Loss, Squared, check_loss
from domkl.typing import Array, Floats


class State(NamedTuple):
    """What a DOKL learner keeps."""

    theta: Array  # (K, 1, D)
    dual: Array  # (K, 1, D)
    center: Array  # (K, 1, D)  the next step's minimiser without its sample, core/admm.py


class Message(NamedTuple):
    """What a DOKL learner says."""

    theta: Array  # (K, 1, D)


@dataclass(frozen=True)
class DOKL(Algorithm):
    """Learn with one kernel: each learner solves (11), hears its neighbors, ascends by (12).

    Parameters
    ----------
    rho : float
        ρ, how strongly neighbors are held together.
    eta_l : float
        η_l, the weight of the proximal term: an inverse step.
    loss : Loss
        Any of domkl's convex losses; the step is exact for each.

    Deviations
    ----------
    The paper's ρ = 100, η_l = 10 belong to features without the factor 1/√M of (5). In the scale
    of (5), with M = 50, the same run has ρ = 2, η_l = 0.2: the defaults.
    """

    rho: float = 2.0
    eta_l: float = 0.2
    loss: Loss = Squared()

    single_kernel = True

    def __post_init__(self) -> None:
        checks.positive("rho", self.rho)
        checks.positive("eta_l", self.eta_l)
        check_loss(self.loss)

    @property
    def exchange(self) -> Mapping[str, Delivery]:
        """θ, as the sum of gaps to the neighbors."""
        return {"theta": "gap"}

    def init(self, sizes: Sizes) -> State:
        """All zero."""
        return State(*(np.zeros(sizes.theta, dtype=sizes.dtype) for _ in State._fields))

    def predict(self, state: State, inputs: Inputs) -> Prediction:
        """θᵀz."""
        f = predict_by_kernel(state.theta, inputs.z)
        return Prediction(f[:, 0].copy(), f)

    def local_step(
        self, state: State, inputs: Inputs, y: Floats, prediction: Prediction, net: Net
    ) -> tuple[State, Message]:
        """Solve (11)."""
        consensus_local(self.chain(state), *inputs[1:], prediction.by_kernel, y, net.degree)
        return state, Message(state.theta)

    def merge(self, state: State, heard: Message, net: Net) -> State:
        """Ascend by (12)."""
        consensus_merge(self.chain(state), heard.theta, net.degree)
        return state

    def idle_step(self, state: State, net: Net) -> tuple[State, Message]:
        """Solve (11) without its loss: step to the center."""
        np.copyto(state.theta, state.center)
        return state, Message(state.theta)

    def amend(self, state: State, gaps: Mapping[str, Array], net: Net) -> State:
        """Let λ have heard these, too."""
        return amended(self, state, gaps["theta"], net)

    def leave(self, state: State) -> State:
        """Without λ, which would push θ on for ever; the center is θ then."""
        return untied(state)

    def function(self, state: State) -> Function:
        """θ, with weight 1."""
        return Function(state.theta, np.ones(state.theta.shape[:2]))

    def chain(self, state: State) -> Chain:
        """DOMKL with one kernel; the account of its losses is not kept."""
        weights = np.ones(state.theta.shape[:2])
        return consensus_chain(self, *state, np.zeros_like(weights), weights, eta_g=1.0)
