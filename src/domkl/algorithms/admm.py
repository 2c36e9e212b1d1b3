"""The ADMM family: DOKL (Algorithm 1) and DOMKL (Algorithm 2) of the paper.

Learner k solves (11) for every kernel, hears its neighbors, and ascends its dual λ by (12):

    θ⁺ = argmin_θ ℓ(θᵀz, y) + λᵀθ + η_l/2 ‖θ − θ_k‖² + ρ/2 Σ_{ℓ∈N_k} ‖θ − (θ_k + θ_ℓ)/2‖²    (11)
    λ⁺ = λ + ρ/2 Σ_{ℓ∈N_k} (θ⁺ − θ_ℓ⁺)                                                      (12)

All of (11) but the sample is known as soon as the neighbors are heard. With

    b₀ = η_l θ + ρ Σ_{ℓ∈N_k} (θ + θ_ℓ)/2 − λ,   c = η_l + ρ |N_k|,

b₀/c is the minimiser of (11) without its loss: the *center*. So the work is split where the network
splits it: `dual_step` takes in what was heard and leaves the new center, `primal_step` moves from
the center along z. A learner without a sample steps to the center itself.

DOMKL weighs its kernels by a Hedge over their accumulated losses, (16), or by message passing on
graphs without cycles, (19)-(22). With one kernel DOMKL is DOKL.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from domkl import checks
from domkl.algorithms.base import Inputs, KernelAlgorithm, Net, Prediction
from domkl.algorithms.law import Law
from domkl.core.hedge import combined_predictions, hedge_weights, pass_messages, single_predictions
from domkl.core.jit import row, sweep
from domkl.core.lanes import dot, fused
from domkl.core.losses import Loss, Squared, add_losses, pull
from domkl.core.vectors import copied, lines, shifted
from domkl.typing import Array, Floats, Number


class SingleState(NamedTuple):
    """What a DOKL learner keeps."""

    theta: Array  # (K, 1, D)
    dual: Array  # (K, 1, D)
    center: Array  # (K, 1, D)  the next step's minimiser without its sample


class SingleMessage(NamedTuple):
    """What a DOKL learner says."""

    theta: Array  # (K, 1, D)


class State(NamedTuple):
    """What a DOMKL learner keeps."""

    theta: Array  # (K, P, D)
    dual: Array  # (K, P, D)
    center: Array  # (K, P, D)  the next step's minimiser without its sample
    loss: Floats  # (K, P)      own losses, summed over rounds
    weights: Floats  # (K, P)
    inbox: Floats  # (0, P)     of message passing; empty, and there for files of version 0.1


class MessagePassingState(State):
    """The same of one that weighs kernels by message passing: inbox (E, P) has each neighbor's."""


class Message(NamedTuple):
    """What a DOMKL learner says."""

    theta: Array  # (K, P, D)
    loss: Floats  # (K, P)


class PassedMessage(Message):
    """The same of one that weighs kernels by message passing: loss (E, P), a row per neighbor."""


@sweep
def primal_step(
    theta: Array,
    center: Array,
    z: Array,
    energy: Floats,
    y: Floats,
    degree: Floats,
    eta_l: float,
    rho: float,
    loss: Any,
) -> None:
    """Solve every learner's subproblem (11) exactly, for any convex loss, in O(D) a kernel.

    θ⁺ = center − g/c · z with the one number g of core/losses.py. For the squared loss that is
    center + 2(y − zᵀcenter)/(c + 2‖z‖²) · z: Remark 1 without its D×D inverse.

    Parameters
    ----------
    theta, center, z : (K, P, D)
        ``theta`` is written.
    energy : (K, P)
        ‖z‖².
    y, degree : (K,)
        Without a label, NaN, a learner steps to its center.
    """
    n_learners, n_kernels, _ = theta.shape
    factor = np.empty(n_kernels)
    for k in range(n_learners):
        stiffness = eta_l + rho * degree[k]
        if math.isnan(y[k]):
            for p in range(n_kernels):
                copied(theta[k, p], center[k, p])
            continue
        for p in range(n_kernels):
            factor[p] = dot(center[k, p], z[k, p])
        for p in range(n_kernels):
            tau = energy[k, p] / stiffness
            factor[p] = -pull(loss, factor[p], y[k], tau) / stiffness
        for p in range(n_kernels):
            shifted(theta[k, p], center[k, p], z[k, p], theta.dtype.type(factor[p]))


@sweep
def dual_step(
    dual: Array, center: Array, theta: Array, gap: Array, degree: Floats, eta_l: float, rho: float
) -> None:
    """Ascend the duals, eq. (12), and leave the center of the next primal step.

    λ⁺ = λ + ρ/2 Σ_{ℓ∈N_k} (θ − θ_ℓ),   center = b₀/c = θ + (ρ/2 Σ_{ℓ∈N_k} (θ_ℓ − θ) − λ⁺)/c

    Parameters
    ----------
    dual, center, theta, gap : (K, P, D)
        ``dual`` and ``center`` are written; ``gap`` is Σ_{ℓ∈N_k} (θ_ℓ − θ).
    degree : (K,)
    """
    dual, center, theta, gap = lines(dual), lines(center), lines(theta), lines(gap)
    real = theta.dtype.type
    for k in range(len(theta)):
        compliance = real(1 / (eta_l + rho * degree[k]))
        _ascend(dual[k], center[k], theta[k], gap[k], real(rho / 2), compliance)


@sweep
def recenter(
    center: Array, theta: Array, said: Array, degree: Floats, eta_l: float, rho: float
) -> None:
    """Complete `dual_step` where messages are not exact: ``said`` is θ̂, as neighbors decode it.

    λ⁺ = λ + ρ/2 Σ (θ̂ − θ̂_ℓ),   center = θ − ρ|N_k|/c (θ − θ̂) + (ρ/2 Σ (θ̂_ℓ − θ̂) − λ⁺)/c

    The gap was Σ (θ̂_ℓ − θ̂). With θ in place of θ̂ in the center, ADMM diverges at few bits.
    """
    center, theta, said = lines(center), lines(theta), lines(said)
    for k in range(len(theta)):
        share = theta.dtype.type(rho * degree[k] / (eta_l + rho * degree[k]))
        for i in range(center.shape[1]):
            center[k, i] -= share * (theta[k, i] - said[k, i])


@row
def _ascend(
    dual: Array, center: Array, theta: Array, gap: Array, half_rho: Number, compliance: Number
) -> None:
    for i in range(theta.size):
        pulled = half_rho * gap[i]
        risen = dual[i] - pulled
        dual[i] = risen
        center[i] = fused(compliance, pulled - risen, theta[i])


@sweep
def dual_amendment(
    dual: Array, center: Array, gap: Array, degree: Floats, eta_l: float, rho: float
) -> None:
    """Change the duals, and the centers with them, as if this gap had been heard in the past, too.

    λ⁺ = λ − ρ/2 gap. A host calls it where an exchange was completed late, or is to be undone.
    ``dual`` and ``center`` (K, P, D) are written; ``gap`` (K, P, D), ``degree`` (K,).
    """
    dual, center, gap = lines(dual), lines(center), lines(gap)
    real = dual.dtype.type
    for k in range(len(dual)):
        compliance = real(1 / (eta_l + rho * degree[k]))
        shifted(dual[k], dual[k], gap[k], real(-rho / 2))
        shifted(center[k], center[k], gap[k], real(rho / 2) * compliance)


@sweep
def single_predict(state: SingleState, rates: Any, inputs: Inputs, prediction: Prediction) -> None:
    """θᵀz."""
    single_predictions(prediction.y_hat, prediction.by_kernel, state.theta, inputs.z)


@sweep
def solve(
    state: Any,
    rates: Any,
    inputs: Inputs,
    y: Floats,
    prediction: Prediction,
    net: Net,
    message: Any,
) -> None:
    """Solve (11)."""
    z, energy, eta_l, rho = inputs.z, inputs.energy, rates.eta_l, rates.rho
    primal_step(message.theta, state.center, z, energy, y, net.degree, eta_l, rho, rates.loss)


@sweep
def ascend(state: Any, rates: Any, heard: Any, net: Net, said: Any) -> None:
    """Ascend by (12)."""
    center, theta, eta_l, rho = state.center, state.theta, rates.eta_l, rates.rho
    dual_step(state.dual, center, theta, heard.theta, net.degree, eta_l, rho)
    if said is not None:
        recenter(center, theta, said.theta, net.degree, eta_l, rho)


@sweep
def single_function(state: SingleState) -> tuple[Array, Floats]:
    """θ, with weight 1."""
    return state.theta, np.ones((len(state.theta), 1))


@sweep
def predict(state: Any, rates: Any, inputs: Inputs, prediction: Prediction) -> None:
    """Σ_p q_p θ_pᵀz_p, eq. (14)."""
    y_hat, f = prediction.y_hat, prediction.by_kernel
    combined_predictions(y_hat, f, state.theta, state.weights, inputs.z)


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
    """Add each kernel's loss to its account (15), and solve (11)."""
    add_losses(message.loss, state.loss, prediction.by_kernel, y, rates.loss)
    solve(state, rates, inputs, y, prediction, net, message)


@sweep
def merge(state: State, rates: Any, heard: Message, net: Net, said: Any) -> None:
    """Ascend by (12), and weigh by own and neighbors' losses, (16)."""
    ascend(state, rates, heard, net, said)
    hedge_weights(state.weights, state.loss, heard.loss, rates.eta_g)


@sweep
def passing_local_step(
    state: MessagePassingState,
    rates: Any,
    inputs: Inputs,
    y: Floats,
    prediction: Prediction,
    net: Net,
    message: PassedMessage,
) -> None:
    """Add each kernel's loss to its account (15), solve (11), and pass messages on."""
    add_losses(state.loss, state.loss, prediction.by_kernel, y, rates.loss)
    solve(state, rates, inputs, y, prediction, net, message)
    pass_on(state, rates.eta_g, net, message)


@sweep
def pass_on(state: MessagePassingState, eta_g: float, net: Net, message: PassedMessage) -> None:
    """Tell each neighbor the losses of this side of the edge, (19), and weigh by all, (20)."""
    heard = np.empty_like(state.loss)
    pass_messages(message.loss, heard, state.loss, state.inbox, net.indptr)
    hedge_weights(state.weights, state.loss, heard, eta_g)


@sweep
def passing_merge(
    state: MessagePassingState, rates: Any, heard: PassedMessage, net: Net, said: Any
) -> None:
    """Ascend by (12), and keep the messages for the next round."""
    ascend(state, rates, heard, net, said)
    for edge in range(len(state.inbox)):
        copied(state.inbox[edge], heard.loss[edge])


@sweep
def function(state: Any) -> tuple[Array, Floats]:
    """θ and q."""
    return state.theta, state.weights


NEIGHBORS = Law(
    State,
    Message,
    predict,
    local_step,
    merge,
    function,
    exchange={"theta": "gap", "loss": "sum"},
    carried=("theta", "loss"),
    scratch=("center",),
    is_separable=True,
)
MESSAGE_PASSING = Law(
    MessagePassingState,
    PassedMessage,
    predict,
    passing_local_step,
    passing_merge,
    function,
    exchange={"theta": "gap", "loss": "edge"},
    carried=("theta",),
    by_edge=("inbox",),
    room={"loss": "inbox"},
    scratch=("center",),
    is_separable=True,
)


@dataclass(frozen=True)
class DOKL(KernelAlgorithm):
    """Learn with one kernel: each learner solves (11), hears its neighbors, ascends by (12).

    Parameters
    ----------
    rho : float
        ρ, how strongly neighbors are held together.
    eta_l : float
        η_l, the weight of the proximal term: an inverse step.
    loss : Loss
        Any of domkl's convex losses or one's own; the step is exact for each.

    Deviations
    ----------
    The paper's ρ = 100, η_l = 10 belong to features without the factor 1/√M of (5). In the scale
    of (5), with M = 50, the same run has ρ = 2, η_l = 0.2: the defaults.
    """

    rho: float = 2.0
    eta_l: float = 0.2
    loss: Loss = Squared()

    single_kernel = True
    law = Law(
        SingleState,
        SingleMessage,
        single_predict,
        solve,
        ascend,
        single_function,
        exchange={"theta": "gap"},
        carried=("theta",),
        scratch=("center",),
        is_separable=True,
    )

    def idle_step(self, state: Any, net: Net) -> tuple[Any, Any]:
        """Solve (11) without its loss: step to the center."""
        np.copyto(state.theta, state.center)
        return state, self.message(state)

    def amend(self, state: Any, gaps: Mapping[str, Array], net: Net) -> Any:
        """Change λ as if these gaps had been heard, too."""
        rates = float(self.eta_l), float(self.rho)
        dual_amendment(state.dual, state.center, gaps["theta"], net.degree, *rates)
        return state

    def leave(self, state: Any) -> Any:
        """Reset the dual, which would go on pushing θ, and recentre on θ."""
        return state._replace(dual=np.zeros_like(state.dual), center=state.theta.copy())


@dataclass(frozen=True)
class DOMKL(KernelAlgorithm):
    """Learn with many kernels: each by (11) and (12), combined by the weights (16).

    Parameters
    ----------
    rho, eta_l, loss : as in `DOKL`
    eta_g : float
        η_g, the temperature of the kernel weights; a large value chooses slowly.
    weights : "neighbors" or "message-passing"
        Weight kernels by the losses of the learner and its neighbors, (16), or, on graphs without
        cycles, by those of the whole component, which travel one edge per round, (19)-(22).

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
        super().__post_init__()
        checks.choice("weights", self.weights, ("neighbors", "message-passing"))

    @property
    def law(self) -> Law:  # type: ignore[override]
        """That of its weights."""
        return MESSAGE_PASSING if self.needs_acyclic else NEIGHBORS

    @property
    def needs_acyclic(self) -> bool:  # type: ignore[override]
        """Message passing counts a loss twice on a cycle."""
        return self.weights == "message-passing"

    def idle_step(self, state: Any, net: Net) -> tuple[Any, Any]:
        """Solve (11) without its loss, for every kernel."""
        np.copyto(state.theta, state.center)
        message = self.message(state)
        if self.needs_acyclic:
            pass_on(state, self.eta_g, net, message)
        return state, message

    amend = DOKL.amend
    leave = DOKL.leave
