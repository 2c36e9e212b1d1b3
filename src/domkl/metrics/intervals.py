"""Confidence intervals over trials."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from domkl import checks
from domkl.errors import DataError
from domkl.typing import Floats


class Interval(NamedTuple):
    """A mean over trials with its confidence interval."""

    mean: Floats
    low: Floats
    high: Floats


def interval(
    values: ArrayLike, level: float = 0.95, *, groups: ArrayLike | None = None
) -> Interval:
    """Student's interval for the mean over the first axis, the trials.

    With one trial the spread is unknown, and low and high are NaN. If there are several kinds of
    trials in fixed numbers, ``groups`` (B,) says the kind of each trial; the spread between kinds
    then does not widen the interval.

    Examples
    --------
    >>> found = interval([1.0, 2.0, 3.0])
    >>> round(float(found.mean), 2), round(float(found.low), 2), round(float(found.high), 2)
    (2.0, -0.48, 4.48)
    """
    checks.between("level", level, 0, 1)
    values = np.asarray(values, dtype=np.float64)
    if values.ndim == 0 or len(values) == 0:
        raise DataError(f"values must have at least one trial, got shape {values.shape}")
    kinds = np.zeros(len(values)) if groups is None else np.asarray(groups)
    parts = [values[kinds == kind] for kind in np.unique(kinds)]
    n_trials, mean = len(values), values.mean(axis=0)
    if min(len(part) for part in parts) == 1:
        return Interval(mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan))
    squares = sum(len(part) * part.var(axis=0, ddof=1) for part in parts)
    reach = np.sqrt(squares) / n_trials * special.stdtrit(n_trials - len(parts), (1 + level) / 2)
    return Interval(mean, mean - reach, mean + reach)


def paired_interval(ours: ArrayLike, theirs: ArrayLike, level: float = 0.95) -> Interval:
    """Student's interval for the mean difference ours − theirs, trial by trial.

    Both sides must come from the same trials, with the same graph, features and stream in each;
    variation that the trials share then cancels.

    Examples
    --------
    >>> found = paired_interval([1.0, 2.0, 3.0], [0.5, 1.6, 2.4])
    >>> bool(found.low > 0)
    True
    """
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    if a.shape != b.shape or a.ndim == 0:
        raise DataError(f"ours and theirs must have equal shapes, got {a.shape} and {b.shape}")
    return interval(a - b, level)
