"""Checks of arguments; the errors name the parameter, its rule and the value it got."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from domkl.errors import DataError, ParameterError
from domkl.typing import Floats


def positive(name: str, value: float) -> float:
    """Accept a finite number above 0."""
    return _number(name, value, "> 0", lambda v: v > 0)


def between(name: str, value: float, low: float, high: float) -> float:
    """Accept a number in the open interval (low, high)."""
    return _number(name, value, f"in ({low:g}, {high:g})", lambda v: low < v < high)


def levels(name: str, values: ArrayLike) -> Floats:
    """Accept ascending numbers in (0, 1), at least one; text has commas between them."""
    words = values.split(",") if isinstance(values, str) else values
    try:
        found = np.atleast_1d(np.asarray(words, dtype=np.float64))
    except (TypeError, ValueError):
        found = np.empty(0)
    is_inside = found.size > 0 and found.ndim == 1 and found[0] > 0 and found[-1] < 1
    if not is_inside or not (np.diff(found) > 0).all():
        raise ParameterError(f"{name} must be ascending levels in (0, 1), got {values!r}")
    return found


def ends(name: str, level: float) -> tuple[float, float]:
    """Accept a share in (0, 1): the levels of the ends of the band in the middle that holds it."""
    outside = (1 - between(name, level, 0, 1)) / 2
    return outside, 1 - outside


def fraction(name: str, value: float) -> float:
    """Accept a number in (0, 1]."""
    return _number(name, value, "in (0, 1]", lambda v: 0 < v <= 1)


def whole(name: str, value: int, minimum: int, maximum: int | None = None) -> int:
    """Accept an integer of at least ``minimum``, and at most ``maximum``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise ParameterError(f"{name} must be an integer >= {minimum}, got {value!r}")
    if maximum is not None and value > maximum:
        raise ParameterError(f"{name} must be at most {maximum}, got {value!r}")
    return int(value)


def choice(name: str, value: Any, options: Iterable[str]) -> Any:
    """Accept one of the named options."""
    known = list(options)
    if value not in known:
        raise ParameterError(f"{name} must be one of {', '.join(known)}, got {value!r}")
    return value


def samples(name: str, values: ArrayLike, shape: str, *, may_miss: bool = False) -> Floats:
    """Accept a finite numeric array whose axes are named by ``shape``, such as "T K d".

    Where values may be missing, NaN and masked values stand for them.
    """
    axes = shape.split()
    if np.ma.is_masked(values):
        if not may_miss:
            raise DataError(f"{name} must have no masked values; fill or drop them")
        values = np.ma.asarray(values, dtype=np.float64).filled(np.nan)
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biufO":
            raise TypeError
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must hold numbers in shape ({', '.join(axes)})") from None
    if array.ndim != len(axes):
        raise DataError(f"{name} must have shape ({', '.join(axes)}), got {array.shape}")
    if array.size == 0:
        raise DataError(f"{name} must not be empty, got shape {array.shape}")
    is_sound = np.isfinite(array) | np.isnan(array) if may_miss else np.isfinite(array)
    if not is_sound.all():
        where = tuple(int(i) for i in np.argwhere(~is_sound)[0])
        raise DataError(f"{name} must be finite, got {array[where]} at index {where}")
    return array


def _number(name: str, value: float, rule: str, holds: Any) -> float:
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    try:
        number = float(value) if is_number and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or not holds(number):
        raise ParameterError(f"{name} must be {rule}, got {value!r}")
    return number
