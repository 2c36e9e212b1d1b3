"""Samples to rows of numbers; those of River are dictionaries and data frames."""

import numbers
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from domkl.errors import DataError
from domkl.typing import Floats

LARGEST = 1e100  # of a value: its square, and sums of such, are finite

Names = tuple[Hashable, ...]
#: name of the one input of a learner whose first sample has none
NOTHING: Names = ("",)


def bounded(name: str, values: Floats) -> Floats:
    """Accept numbers whose squares are finite."""
    largest = np.abs(values).max()
    if largest > LARGEST:
        raise DataError(f"{name} must be within ±{LARGEST:g}, got {largest}")
    return values


def all_names(known: Names, given: Sequence[Hashable] | Mapping[Hashable, Any]) -> Names:
    """Known names, and after them the new ones in an order that is not the caller's."""
    if known and len(given) == len(known) and all(name in given for name in known):
        return known
    old = set(known)
    new = sorted((name for name in given if name not in old), key=lambda n: (str(type(n)), repr(n)))
    return (*known, *new) or NOTHING


def row_of(x: Mapping[Hashable, Any], names: Names) -> Floats:
    """One sample as (1, d), NaN where a name is not in it. Names beyond are left out."""
    try:
        row = np.array([[x[name] for name in names]])
    except (KeyError, ValueError):  # a name is not there; a value is a sequence
        return _row_with_gaps(x, names)
    if row.ndim != 2 or row.dtype.kind not in "fiub" or not (np.abs(row) <= LARGEST).all():
        return _row_with_gaps(x, names)
    return row.astype(np.float64, copy=False)


def _row_with_gaps(x: Mapping[Hashable, Any], names: Names) -> Floats:
    row = [number(f"x[{name!r}]", x[name]) if name in x else np.nan for name in names]
    return np.array([row])


def number(name: str, value: Any) -> float:
    """Accept a finite number."""
    if not isinstance(value, (numbers.Real, np.bool_)):
        raise DataError(f"{name} must be a number, got {value!r}; encode it, or leave it out")
    try:
        found = float(value)
    except OverflowError:
        found = np.inf
    if not abs(found) <= LARGEST:
        raise DataError(f"{name} must be finite and within ±{LARGEST:g}, got {value!r}")
    return found


def rows_of(X: Any, names: Names) -> Floats:
    """A data frame as (n, d), NaN where a name is none of its columns."""
    rows = np.full((len(X), len(names)), np.nan)
    columns = set(X.columns)
    if len(columns) != len(X.columns):
        raise DataError(f"X must have columns of different names, got {list(X.columns)}")
    for j, name in enumerate(names):
        if name in columns:
            rows[:, j] = values_of(f"X[{name!r}]", X[name])
    return rows


def values_of(name: str, column: Any) -> Floats:
    """A column of a frame, or a series, as finite numbers."""
    values = np.asarray(column)
    if values.dtype.kind not in "fiub":
        return np.array([number(f"{name}[{i}]", value) for i, value in enumerate(values)])
    is_good = np.abs(values) <= LARGEST if values.dtype.kind == "f" else np.ones(len(values), bool)
    if not is_good.all():
        return np.array([number(f"{name}[{i}]", value) for i, value in enumerate(values.tolist())])
    return values.astype(np.float64)
