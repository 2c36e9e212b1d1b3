"""A learner and the same one without neighbors: what to give out of the two.

DOMKRLS has both in its law. For other algorithms a second learner is the one without neighbors, and
the two are weighed here, by the same rules.
"""

from collections.abc import Mapping

import numpy as np

from domkl.algorithms.mixtures import weigh_sides
from domkl.core.belief import N_BOUND, believed, confirm, within_reach
from domkl.core.losses import LOGISTIC, BuiltIn, loss_value
from domkl.typing import Array, Floats

#: logarithm of the evidence by which either side may be behind the other
BEHIND = 6.0
#: a label counts as so many in the prior of the side that is alone: ADMM settles late, and a lie
#: from its first round on does most harm then
SOONER = 4.0


class Sides:
    """Weights of two predictions, from their losses on own labels.

    Parameters
    ----------
    loss : compiled loss
        Of the algorithm; squares unless it is the logistic one.
    horizon : int
    """

    def __init__(self, loss: object, horizon: int) -> None:
        self._is_logistic = isinstance(loss, BuiltIn) and loss.kind == LOGISTIC
        self._horizon = max(horizon, 1)
        self._bound: Floats = np.zeros(N_BOUND)  # core/belief.py
        self._losses: Floats = np.zeros(2)
        self._n: Floats = np.zeros(2)  # labels in the losses, and all
        self.trust: Floats = np.array([1.0, 0.0])

    def given(self, heard: float, alone: float) -> float:
        """Give the mean of both predictions by their weights."""
        near = within_reach(self._bound, alone, heard)
        return float(self.trust[0] * near + self.trust[1] * alone)

    def learn(self, heard: float, alone: float, y: float) -> None:
        """Take a label into account, beside what both predicted; NaN is none."""
        if np.isnan(y):
            return
        near, n = within_reach(self._bound, alone, heard), self._n[0]
        believed(self._bound, alone, y, 1.0)
        confirm(self._bound, alone, near, y)
        keep, both = 2 * n / (2 * n + 1), np.array([near, alone])
        if self._is_logistic:
            losses = np.array([loss_value(BuiltIn(LOGISTIC, 0.0), f, y) for f in both])
        else:
            losses = (both - y) ** 2
        self._losses = keep * self._losses + losses
        self._n[:] = keep * n + 1, self._n[1] + 1
        self._weigh()

    def _weigh(self) -> None:
        mean = 0.5 if self._is_logistic else self._losses.min() / max(self._n[0], 1.0)
        scale = 2 * self._horizon * mean
        self._losses = np.minimum(self._losses, self._losses.min() + BEHIND * scale)
        weigh_sides(self.trust, self._losses, scale, SOONER * self._n[1], np.empty(2))

    def saved(self) -> dict[str, Array]:
        """Return what a checkpoint keeps."""
        return {"sides.bound": self._bound, "sides.losses": self._losses, "sides.n": self._n}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Go on with what `saved` returned; files of before 0.6 have none of it."""
        if "sides.n" in arrays:
            names = ("bound", "losses", "n")
            kept = (np.array(arrays[f"sides.{name}"], np.float64) for name in names)
            self._bound, self._losses, self._n = kept
            self._weigh()
