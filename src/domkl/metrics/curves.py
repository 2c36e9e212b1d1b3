"""MSE(t) and CV(t): running averages over rounds, as the paper's text defines them."""

import numpy as np
from numpy.typing import ArrayLike

from domkl.typing import Floats


def running_average(
    per_round: ArrayLike, axis: int = 0, *, counts: ArrayLike | None = None
) -> Floats:
    """Average of the first t rounds, for every t.

    Rounds are weighed by ``counts``, how many values each is the mean of, where these differ. NaN
    counts for nothing; the average is NaN until there is a value.

    Examples
    --------
    >>> running_average([4.0, 2.0, 0.0])
    array([4., 3., 2.])
    >>> running_average([np.nan, 4.0, 1.0], counts=[0, 1, 2])
    array([nan,  4.,  2.])
    """
    values = np.asarray(per_round, dtype=np.float64)
    weights = np.ones_like(values) if counts is None else np.asarray(counts, dtype=np.float64)
    is_known = ~np.isnan(values)
    if is_known.all() and (np.ptp(weights, axis=axis) == 0).all():
        rounds = np.arange(1, values.shape[axis] + 1)
        shape = [1] * values.ndim
        shape[axis] = -1
        return np.cumsum(values, axis=axis) / rounds.reshape(shape)
    weights = np.where(is_known, weights, 0.0)
    total = np.cumsum(np.where(is_known, values, 0.0) * weights, axis=axis)
    count = np.cumsum(weights, axis=axis)
    return np.where(count > 0, total / np.where(count > 0, count, 1.0), np.nan)


def with_paper_start(curve: ArrayLike) -> Floats:
    """Replace the first round's term by 1: the paper's MSE(1) = CV(1) = 1, over the last axis.

    It adds about 1/T to the final value, more than the whole error on easy data.

    Examples
    --------
    >>> with_paper_start([0.0, 0.0, 0.0, 0.0])
    array([1.        , 0.5       , 0.33333333, 0.25      ])
    """
    values = np.asarray(curve, dtype=np.float64)
    rounds = np.arange(1, values.shape[-1] + 1)
    return values + (1 - values[..., :1]) / rounds
