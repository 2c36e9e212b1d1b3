"""DOMKRLS: least squares at each learner, a mean of all fits between neighbors, no rate to set.

What a learner says is what a DOMKL learner says: θ and the accumulated losses of its kernels.
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
from domkl.core.laws import LEAST_SQUARES, Chain, Fits
from domkl.core.least_squares import deviations, least_squares_local, least_squares_merge
from domkl.core.losses import Logistic, Loss, Squared
from domkl.core.rls import first_factors
from domkl.errors import ParameterError
from domkl.typing import Array, Floats


class State(NamedTuple):
    """What a DOMKRLS learner keeps."""

    theta: Array  # (K, P, D)            tracks the mean of all learners' fits
    combined: Array  # (K, P, D)         what predicts: a mixture of θ and the own fit
    loss: Floats  # (K, P)               of the θs, mean over learners as far as it is heard
    weights: Floats  # (K, P)
    own: Array  # (K, P, D)              φ, the fit of the learner's own samples
    diagonal: Array  # (K, P, D)         of its C = U D Uᵀ, core/rls.py
    factor: Array  # (K, P, D(D − 1)/2)  and U
    own_loss: Floats  # (K, P)           of the φs
    score: Floats  # (K, 2)              losses of all θs together, and of all φs
    rounds: Floats  # (K,)               number of rounds in each of the accounts
    prior: Floats  # (K, P)              weights before any loss


class Message(NamedTuple):
    """What a DOMKRLS learner says."""

    theta: Array  # (K, P, D)
    loss: Floats  # (K, P)


@dataclass(frozen=True)
class DOMKRLS(Algorithm):
    """Learn with many kernels by recursive least squares, and no rate to choose.

    φ_k⁺ = φ_k + C_k z (y − φ_kᵀz)/(1 + zᵀC_k z),   θ_k⁺ = Σ_ℓ a_kℓ (θ_ℓ + φ_ℓ⁺ − φ_ℓ)

    with Metropolis weights a: every θ tracks the mean of all fits φ. Kernels are weighed by
    prior · exp(−loss/2s²), s² the mean loss of the best, and so are θ and φ against each other:
    where neighbors are no help a learner turns to its own fit. core/least_squares.py has the rest.

    Parameters
    ----------
    forget : float
        What a sample's weight is multiplied by each round; below 1 to follow drift. Kernels are
        then weighed with fixed share 1 − forget.
    ridge : float
        Weight of ‖φ‖² beside the squared errors; ten times that for every second kernel with a
        spectrum, so that a dictionary with neighbors much alike tries two.
    loss : Loss
        Squared() or Logistic(). With the latter predictions are log-odds, and 2s² = 1.
    """

    forget: float = 1.0
    ridge: float = 1e-3
    loss: Loss = Squared()

    relative_cost = 6.0  # as benchmarks/bench_domkrls.py measures it

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
        """All zero, C = I/ridge; the linear kernel has half of the prior."""
        prior, ridges = uniform(sizes), np.full(sizes.n_kernels, float(self.ridge))
        ridges[1 : sizes.n_kernels - sizes.linear : 2] *= 10
        if sizes.linear:
            prior[:] = 0.5 / (sizes.n_kernels - 1)
            prior[:, -1] = 0.5
        factor, diagonal = (
            np.tile(each.astype(sizes.dtype), (sizes.n_learners, 1, 1))
            for each in first_factors(sizes.lengths, sizes.n_features, ridges)
        )
        theta, combined, own = (np.zeros(sizes.theta, dtype=sizes.dtype) for _ in range(3))
        loss, own_loss = np.zeros(sizes.weights), np.zeros(sizes.weights)
        score, rounds = np.zeros((sizes.n_learners, 2)), np.zeros(sizes.n_learners)
        learned = (theta, combined, loss, prior.copy())
        return State(*learned, own, diagonal, factor, own_loss, score, rounds, prior)

    def predict(self, state: State, inputs: Inputs) -> Prediction:
        """The mixture of θ and φ, for all kernels."""
        return predict_combined(state.combined, state.weights, inputs.z)

    def deviation(self, state: State, inputs: Inputs) -> Floats:
        """√ Σ_p q_p [s² (1 + z_pᵀC_p z_p) + (f_p − f)²]; of log-odds, without the noise."""
        out = np.empty(len(state.theta))
        deviations(out, self.chain(state), inputs.z, *self.predict(state, inputs))
        return out

    def local_step(
        self, state: State, inputs: Inputs, y: Floats, prediction: Prediction, net: Net
    ) -> tuple[State, Message]:
        """Take the sample into every kernel's fit, and the losses into the accounts."""
        least_squares_local(self.chain(state), inputs.z, y)
        return state, Message(state.theta, state.loss)

    def merge(self, state: State, heard: Message, net: Net) -> State:
        """Keep the means, and weigh."""
        least_squares_merge(self.chain(state), heard.theta, heard.loss)
        return state

    def idle_step(self, state: State, net: Net) -> tuple[State, Message]:
        """Say again what the means are."""
        return state, Message(state.theta, state.loss)

    def function(self, state: State) -> Function:
        """What predicts."""
        return Function(state.combined, state.weights)

    def bank(self) -> Dictionary:
        """With the linear kernel."""
        return default_bank()

    def chain(self, state: State) -> Chain:
        """The least-squares family."""
        empty = np.empty((0, 0, 0), dtype=state.theta.dtype)
        arrays = (state.theta, state.combined, empty, state.loss, state.weights)
        fits = Fits(*state[4:], ridge=float(self.ridge), forget=float(self.forget))
        return Chain(LEAST_SQUARES, *arrays, *(0.0,) * 4, self.loss.kind, 0.0, fits)
