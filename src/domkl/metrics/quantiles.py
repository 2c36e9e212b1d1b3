"""How good predicted quantiles are: the share of labels that a band holds, and the pinball loss."""

import numpy as np
from numpy.typing import ArrayLike

from domkl.typing import Floats


def coverage(y: ArrayLike, low: ArrayLike, high: ArrayLike) -> float:
    """The share of labels y within [low, high]; NaN without any. Labels of NaN are left out.

    Examples
    --------
    >>> coverage([1.0, 2.0, np.nan, 4.0], 0.0, [2.0, 1.0, 1.0, 5.0])
    0.6666666666666666
    """
    labels, bottom, top = np.broadcast_arrays(np.asarray(y, dtype=np.float64), low, high)
    is_known = ~np.isnan(labels)
    is_inside = (bottom <= labels) & (labels <= top)
    return float(is_inside[is_known].mean()) if is_known.any() else np.nan


def pinball_loss(y: ArrayLike, quantiles: ArrayLike, levels: ArrayLike) -> Floats:
    """The pinball loss (…, J) of quantiles (…, J) of levels (J,), for labels y (…).

    max(α(y − q), (α − 1)(y − q)): the quantile of level α has the smallest mean of it. Twice the
    mean over evenly spaced levels approximates the CRPS. NaN without a label, or where a quantile
    is infinite because nothing was known yet.

    Examples
    --------
    >>> pinball_loss([1.0, 3.0], [[0.0, 2.0], [0.0, 2.0]], [0.1, 0.9])
    array([[0.1, 0.1],
           [0.3, 0.9]])
    """
    alpha, given = np.asarray(levels, dtype=np.float64), np.asarray(quantiles, dtype=np.float64)
    gap = np.asarray(y, dtype=np.float64)[..., None] - np.where(np.isfinite(given), given, np.nan)
    return np.maximum(alpha * gap, (alpha - 1) * gap)
