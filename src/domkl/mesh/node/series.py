"""Lags made by the node: single values of a time series in, samples out."""

from collections import deque
from collections.abc import Iterable

import numpy as np

from domkl import checks
from domkl.typing import Floats


class Series:
    """The newest values of a series, scaled already.

    Parameters
    ----------
    n_lags : int
    position : int
        Number of the newest value; values are numbered from 1.
    values : iterable of float
        The newest ones up to there, oldest first: ``n_lags`` of them, or all where there are fewer.

    Examples
    --------
    >>> series = Series(2)
    >>> [series.sample(value) for value in (0.1, 0.2, 0.3)]
    [None, None, array([0.2, 0.1])]
    >>> series.lags
    array([0.3, 0.2])
    """

    def __init__(self, n_lags: int, position: int = 0, values: Iterable[float] = ()) -> None:
        self.n_lags = checks.whole("lags", n_lags, 1)
        self.position = position
        self._values = deque(float(value) for value in values)

    @property
    def lags(self) -> Floats | None:
        """Inputs of the next value, newest first; None before there are enough."""
        if len(self._values) < self.n_lags:
            return None
        return np.array([self._values[-k] for k in range(1, self.n_lags + 1)])

    def sample(self, value: float) -> Floats | None:
        """Take the next value; give the inputs that go with it, where there are enough."""
        x = self.lags
        self._values.append(float(value))
        self.position += 1
        return x

    def before(self, position: int) -> Floats:
        """What a checkpoint needs of the values up to this one, oldest first."""
        end = len(self._values) - (self.position - position)
        return np.array([self._values[i] for i in range(max(0, end - self.n_lags), end)])

    def forget(self, position: int) -> None:
        """Keep what `before` needs for this position and later ones."""
        while len(self._values) - (self.position - position) > self.n_lags:
            self._values.popleft()
