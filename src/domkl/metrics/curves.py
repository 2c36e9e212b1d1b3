"""MSE(t) and CV(t): running averages over rounds, as the paper's text defines them."""

import numpy as np
from numpy.typing import ArrayLike

from domkl.typing import Floats


def running_average(per_round: ArrayLike, axis: int = 0) -> Floats:
    """Average of the first t rounds, for every t.

    Examples
    --------
    >>> running_average([4.0, 2.0, 0.0])
    array([4., 3., 2.])
    """
    values = np.asarray(per_round, dtype=np.float64)
    rounds = np.arange(1, values.shape[axis] + 1)
    shape = [1] * values.ndim
    shape[axis] = -1
    return np.cumsum(values, axis=axis) / rounds.reshape(shape)


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
