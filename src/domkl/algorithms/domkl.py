"""DOMKL, Algorithm 2: DOKL for each kernel, and a distributed Hedge over the kernels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

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
from domkl.algorithms.consensus import amended, consensus_chain, untied
from domkl.core.hedge import pass_messages
from domkl.core.laws import Chain, consensus_local, consensus_merge, weigh
from domkl.core.losses import Loss, Squared, check_loss
from domkl.typing import Array, Floats


class State(NamedTuple):
    """What a DOMKL learner keeps."""

    theta: Array  # (K, P, D)
    dual: Array  # (K, P, D)
    center: Array  # (K, P, D)  the next step's minimiser without its sample, core/admm.py
    loss: Floats  # (K, P)      own losses, summed over rounds
    weights: Floats  # (K, P)
    inbox: Floats  # (E, P)     message passing only: what each neighbor said last


class Message(NamedTuple):
    """What a DOMKL learner says."""

    theta: Array  # (K, P, D)
    loss: Floats  # (K, P), or (E, P) with message passing: one row per neighbor


@dataclass(frozen=True)
class DOMKL(Algorithm):
    """Learn with many kernels: each by (11) and (12), combined by the weights (16).

    Parameters
    ----------
    rho, eta_l, loss : as in `DOKL`
    eta_g : float
        η_g, the temperature of the Hedge: large is slow to choose.
    weights : "neighbors" or "message-passing"
        Weigh kernels by the losses of oneself and one's neighbors, (16), or, on graphs without
        cycles, by those of the whole component, an edge a round, (19)-(22).

    Deviations
    ----------
    Accumulated losses are sent and kept instead of the weights ŵ = exp(−loss/η_g) of (15), which
    underflow; the weights (16) are the same. About ρ and η_l see `DOKL`.
    """

    rho: float = 2.0
    eta_l: float = 0.2
    eta_g: float = 10.0
    loss: Loss = Squared()
    weights: Literal["neighbors", "message-passing"] = "neighbors"

    def __post_init__(self) -> None:
        checks.positive("rho", self.rho)
        checks.positive("eta_l", self.eta_l)
        checks.positive("eta_g", self.eta_g)
        checks.choice("weights", self.weights, ("neighbors", "message-passing"))
        check_loss(self.loss)

    @property
    def needs_acyclic(self) -> bool:  # type: ignore[override]
        """Message passing counts a loss twice on a cycle."""
        return self.weights == "message-passing"

    @property
    def by_edge(self) -> tuple[str, ...]:  # type: ignore[override]
        """What each neighbor said last."""
        return ("inbox",) if self.needs_acyclic else ()

    @property
    def exchange(self) -> Mapping[str, Delivery]:
        """θ as the sum of gaps to the neighbors, losses summed; messages go by edge."""
        return {"theta": "gap", "loss": "edge" if self.needs_acyclic else "sum"}

    def init(self, sizes: Sizes) -> State:
        """All zero, and equal weights."""
        theta, dual, center = (np.zeros(sizes.theta, dtype=sizes.dtype) for _ in range(3))
        inbox = np.zeros((sizes.n_edges if self.needs_acyclic else 0, sizes.n_kernels))
        return State(theta, dual, center, np.zeros(sizes.weights), uniform(sizes), inbox)

    def predict(self, state: State, inputs: Inputs) -> Prediction:
        """Σ_p q_p θ_pᵀz_p, eq. (14)."""
        return predict_combined(state.theta, state.weights, inputs.z)

    def local_step(
        self, state: State, inputs: Inputs, y: Floats, prediction: Prediction, net: Net
    ) -> tuple[State, Message]:
        """Solve (11) for every kernel and add its loss to the account (15)."""
        consensus_local(self._chain(state), *inputs[1:], prediction.by_kernel, y, net.degree)
        return self._said(state, net)

    def _said(self, state: State, net: Net) -> tuple[State, Message]:
        if not self.needs_acyclic:
            return state, Message(state.theta, state.loss)
        outbox, heard = (np.empty_like(values) for values in (state.inbox, state.loss))
        pass_messages(outbox, heard, state.loss, state.inbox, net.indptr)
        weigh(self._chain(state), heard)
        return state, Message(state.theta, outbox)

    def merge(self, state: State, heard: Message, net: Net) -> State:
        """Ascend by (12); weigh by (16), or keep the messages for the next round."""
        chain = self._chain(state)
        consensus_merge(chain, heard.theta, net.degree)
        if self.needs_acyclic:
            np.copyto(state.inbox, heard.loss)
        else:
            weigh(chain, heard.loss)
        return state

    def idle_step(self, state: State, net: Net) -> tuple[State, Message]:
        """Solve (11) without its loss, for every kernel."""
        np.copyto(state.theta, state.center)
        return self._said(state, net)

    def amend(self, state: State, gaps: Mapping[str, Array], net: Net) -> State:
        """Let λ have heard these, too."""
        return amended(self, state, gaps["theta"], net)

    def leave(self, state: State) -> State:
        """Without λ, which would push θ on for ever; the center is θ then."""
        return untied(state)

    def function(self, state: State) -> Function:
        """θ and q."""
        return Function(state.theta, state.weights)

    def chain(self, state: State) -> Chain | None:
        """The ADMM family; not with message passing, whose messages go by edge."""
        return None if self.needs_acyclic else self._chain(state)

    def _chain(self, state: State) -> Chain:
        return consensus_chain(self, *state[:5], eta_g=self.eta_g)
