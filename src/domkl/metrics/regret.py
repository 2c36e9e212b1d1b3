"""The two cumulative regrets of Theorems 1 and 2, per learner and summed over the network."""

from typing import NamedTuple

import numpy as np

from domkl.typing import Floats


class Regret(NamedTuple):
    """Regrets after T rounds.

    Attributes
    ----------
    accuracy : (K,)
        regret_a of each learner, as printed: its losses, minus the smallest over p of *its own*
        losses under θ*_p of (26). With one kernel this is Theorem 1's, with several Theorem 2's.
    discrepancy : (K,)
        regret_d of each learner, as printed: Σ_t [Σ_{ℓ∈N_k} f_k(x_k) − f_ℓ(x_k)]².
    network_accuracy : float
        All learners' losses minus the smallest over p of *all learners'* losses under θ*_p: the
        network against the best single kernel for the network. Never above ``accuracy.sum()``,
        whose learners may each pick another kernel to be compared with.
    network_discrepancy : float
        ``discrepancy.sum()``.
    best_kernel : int
        The p that the network is compared with.
    """

    accuracy: Floats
    discrepancy: Floats
    network_accuracy: float
    network_discrepancy: float
    best_kernel: int


def cumulative_regret(loss: Floats, best_loss: Floats, discrepancy: Floats) -> Regret:
    """Regrets from losses (T, K), losses of θ*_p (P, T, K), and squared discrepancies (T, K).

    Examples
    --------
    Two learners that disagree about the best of two kernels:

    >>> loss = np.ones((1, 2))
    >>> best = np.array([[[0.0, 3.0]], [[2.0, 0.0]]])
    >>> regret = cumulative_regret(loss, best, np.zeros((1, 2)))
    >>> regret.accuracy, float(regret.network_accuracy), regret.best_kernel
    (array([1., 1.]), 0.0, 1)
    """
    per_learner = best_loss.sum(axis=1)  # (P, K)
    best_kernel = int(np.argmin(per_learner.sum(axis=1)))
    own = loss.sum(axis=0)
    gaps = discrepancy.sum(axis=0)
    return Regret(
        accuracy=own - per_learner.min(axis=0),
        discrepancy=gaps,
        network_accuracy=float(own.sum() - per_learner[best_kernel].sum()),
        network_discrepancy=float(gaps.sum()),
        best_kernel=best_kernel,
    )
