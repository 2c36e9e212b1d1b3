"""The laws of the paper's families, for every kernel at once: local step, merge, weights.

ADMM is DOKL and DOMKL, diffusion RFF-DOKL and RFF-DOMKL, server COMKL; the fourth family, least
squares, has a file of its own. With one kernel the Hedge gives weight 1 and changes nothing. The
pages of algorithms/ say what each array means; every host calls these functions, the interpreted
ones through the pages and core/rounds.py directly.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from domkl.core.admm import dual_step, heard_dual_step, primal_step
from domkl.core.gradient import gradient_step, gradients, mean_step
from domkl.core.hedge import hedge_weights
from domkl.core.jit import sweep
from domkl.core.losses import accumulate_loss
from domkl.core.vectors import copied
from domkl.typing import Array, Floats, Ints

ADMM, DIFFUSION, SERVER, LEAST_SQUARES = range(4)


class Fits(NamedTuple):
    """What a least-squares learner keeps beside; empty in the other families."""

    own: Array  # (K, P, D)
    diagonal: Array  # (K, P, D)
    factor: Array  # (K, P, D(D − 1)/2)
    own_loss: Floats  # (K, P)
    score: Floats  # (K, 2)
    rounds: Floats  # (K,)
    prior: Floats  # (K, P)
    ridge: float
    forget: float


def no_fits(dtype: DTypeLike) -> Fits:
    """For the families without."""
    block, table, row = np.empty((0, 0, 0), dtype), np.empty((0, 0)), np.empty(0)
    return Fits(block, block, block, table, table, row, table, ridge=1.0, forget=1.0)


class Chain(NamedTuple):
    """A family's state and parameters, as the compiled functions take them."""

    family: int
    theta: Array  # (K, P, D)
    second: Array  # (K, P, D)  ADMM: the dual; server: room for the gradients; else what predicts
    third: Array  # (K, P, D)   ADMM: the center; else not used, and empty
    loss: Floats  # (K, P)
    weights: Floats  # (K, P)
    rho: float  # ADMM
    eta_l: float  # ADMM
    step: float  # diffusion and server
    eta_g: float
    kind: int  # of the loss
    shape: float
    fits: Fits


@sweep
def consensus_local(
    chain: Chain, z: Array, energy: Floats, f: Floats, y: Floats, degree: Floats
) -> None:
    """Add each kernel's loss to its account (15), and solve (11)."""
    accumulate_loss(chain.loss, f, y, chain.kind, chain.shape)
    primal_step(
        chain.theta,
        chain.third,
        z,
        energy,
        y,
        degree,
        chain.eta_l,
        chain.rho,
        chain.kind,
        chain.shape,
    )


@sweep
def consensus_merge(chain: Chain, gap: Array, degree: Floats) -> None:
    """Ascend by (12)."""
    dual_step(chain.second, chain.third, chain.theta, gap, degree, chain.eta_l, chain.rho)


@sweep
def consensus_exchange(chain: Chain, indptr: Ints, indices: Ints, degree: Floats) -> None:
    """Hear the neighbors and ascend by (12), in one sweep."""
    heard_dual_step(
        chain.second,
        chain.third,
        chain.theta,
        chain.theta,
        indptr,
        indices,
        degree,
        chain.eta_l,
        chain.rho,
    )


@sweep
def weigh(chain: Chain, nbr_loss: Floats) -> None:
    """Weigh the kernels by own and neighbors' losses, (16)."""
    hedge_weights(chain.weights, chain.loss, nbr_loss, chain.eta_g)


@sweep
def diffusion_local(chain: Chain, z: Array, f: Floats, y: Floats) -> None:
    """Add each kernel's loss to its account (15), and step from ψ along the gradient."""
    accumulate_loss(chain.loss, f, y, chain.kind, chain.shape)
    gradient_step(chain.theta, chain.second, z, f, y, chain.step, chain.kind, chain.shape)


@sweep
def diffusion_merge(chain: Chain, combined: Array) -> None:
    """Keep ψ."""
    for k in range(len(combined)):
        for p in range(combined.shape[1]):
            copied(chain.second[k, p], combined[k, p])


@sweep
def server_local(chain: Chain, z: Array, f: Floats, y: Floats, loss: Floats) -> None:
    """Write each learner's gradients, and add its losses of this round to ``loss``."""
    gradients(chain.second, z, f, y, chain.kind, chain.shape)
    accumulate_loss(loss, f, y, chain.kind, chain.shape)


@sweep
def server_merge(chain: Chain, gradient: Array, loss: Floats, size: float) -> None:
    """Descend by (41), add all learners' losses of this round up, and weigh by them."""
    mean_step(chain.theta, gradient, size, chain.step)
    for k in range(len(loss)):
        for p in range(loss.shape[1]):
            chain.loss[k, p] += loss[k, p]
    weigh(chain, np.zeros_like(loss))
