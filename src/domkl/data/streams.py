"""Rows to rounds: scaling, lags, and dealing samples to learners."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks
from domkl.errors import DataError
from domkl.typing import Floats

SCALES = ("minmax", "authors", "none")
PARTITIONS = ("interleaved", "blocks")


class Scaled(NamedTuple):
    """Values after (v − offset)/divisor, per column."""

    values: Floats
    offset: Floats
    divisor: Floats


def scaled(values: ArrayLike, rule: str) -> Scaled:
    """Scale each column by its own smallest and largest value.

    ``"minmax"`` is (v − min)/(max − min). ``"authors"`` is (v − min)/max, what the paper's authors
    did: it does not fill [0, 1] unless min is 0. A column that would be divided by 0 is only
    shifted. Both look at the whole stream, which no learner could while it runs.

    Examples
    --------
    >>> scaled([10.0, 15.0, 20.0], "minmax").values
    array([0. , 0.5, 1. ])
    >>> scaled([10.0, 15.0, 20.0], "authors").values
    array([0.  , 0.25, 0.5 ])
    """
    checks.choice("scale", rule, SCALES)
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise DataError("values must not be empty")
    low, high = array.min(axis=0), array.max(axis=0)
    if rule == "none":
        low, divisor = np.zeros_like(low), np.ones_like(high)
    else:
        divisor = high - low if rule == "minmax" else high
        divisor = np.where(divisor == 0, 1.0, divisor)
    return Scaled((array - low) / divisor, np.asarray(low), np.asarray(divisor))


def embed(series: ArrayLike, n_lags: int) -> tuple[Floats, Floats]:
    """Predict each value from the ``n_lags`` before it, eq. (44): X (N, s) newest first, y (N,).

    Examples
    --------
    >>> X, y = embed([1.0, 2.0, 3.0, 4.0], 2)
    >>> X.tolist(), y.tolist()
    ([[2.0, 1.0], [3.0, 2.0]], [3.0, 4.0])
    """
    values = checks.samples("series", series, "N")
    n_lags = checks.whole("lags", n_lags, 1)
    if len(values) <= n_lags:
        raise DataError(f"series must be longer than its {n_lags} lags, got {len(values)} values")
    windows = np.lib.stride_tricks.sliding_window_view(values, n_lags + 1)
    return windows[:, -2::-1].copy(), windows[:, -1].copy()


def deal(
    X: ArrayLike, y: ArrayLike, n_learners: int, partition: str = "interleaved"
) -> tuple[Floats, Floats]:
    """Deal samples to learners: X (T, K, d), y (T, K), with T = ⌊N/K⌋; what is over is left out.

    ``"interleaved"``: learner k gets samples k, K + k, 2K + k, …, as the paper deals time series.
    ``"blocks"``: learner k gets the k-th run of T samples.

    Examples
    --------
    >>> deal([[0.0], [1.0], [2.0], [3.0], [4.0]], [0, 1, 2, 3, 4], 2)[1].tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    >>> deal([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 3], 2, "blocks")[1].tolist()
    [[0.0, 2.0], [1.0, 3.0]]
    """
    inputs, targets = checks.samples("X", X, "N d"), checks.samples("y", y, "N")
    n_learners = checks.whole("learners", n_learners, 1)
    checks.choice("partition", partition, PARTITIONS)
    if len(inputs) != len(targets):
        raise DataError(f"X and y must have equal length, got {len(inputs)} and {len(targets)}")
    n_rounds = len(targets) // n_learners
    if n_rounds == 0:
        raise DataError(f"{n_learners} learners need at least as many samples, got {len(targets)}")
    n = n_rounds * n_learners
    if partition == "interleaved":
        shape = (n_rounds, n_learners)
        return inputs[:n].reshape(*shape, -1), targets[:n].reshape(shape)
    shape = (n_learners, n_rounds)
    dealt = inputs[:n].reshape(*shape, -1).transpose(1, 0, 2)
    return np.ascontiguousarray(dealt), np.ascontiguousarray(targets[:n].reshape(shape).T)
