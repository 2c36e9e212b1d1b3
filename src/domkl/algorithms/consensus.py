"""What DOKL and DOMKL share: parameters of (11) and (12), and what becomes of λ between rounds."""

from typing import Any, Protocol, TypeVar

import numpy as np

from domkl.algorithms.base import Net
from domkl.core.admm import dual_amendment
from domkl.core.laws import ADMM, Chain, no_fits
from domkl.core.losses import Loss
from domkl.typing import Array, Floats

S = TypeVar("S", bound=Any)  # a state with theta, dual and center


class ConsensusParams(Protocol):
    """Parameters of (11) and (12)."""

    @property
    def rho(self) -> float:
        """ρ."""

    @property
    def eta_l(self) -> float:
        """η_l."""

    @property
    def loss(self) -> Loss:
        """ℓ."""


def consensus_chain(
    params: ConsensusParams,
    theta: Array,
    dual: Array,
    center: Array,
    loss: Floats,
    weights: Floats,
    *,
    eta_g: float,
) -> Chain:
    """The ADMM family of core/laws.py."""
    return Chain(
        ADMM,
        theta,
        dual,
        center,
        loss,
        weights,
        rho=float(params.rho),
        eta_l=float(params.eta_l),
        step=0.0,
        eta_g=float(eta_g),
        kind=params.loss.kind,
        shape=float(params.loss.shape),
        fits=no_fits(theta.dtype),
    )


def amended(params: ConsensusParams, state: S, gap: Array, net: Net) -> S:
    """The state as if this gap had been heard in the past, too."""
    rates = float(params.eta_l), float(params.rho)
    dual_amendment(state.dual, state.center, gap, net.degree, *rates)
    return state


def untied(state: S) -> S:
    """The state without λ; the center is θ then."""
    alone: S = state._replace(dual=np.zeros_like(state.dual), center=state.theta.copy())
    return alone
