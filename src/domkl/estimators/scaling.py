"""Scaling of a learner's samples by running statistics, to the widths that dictionaries expect."""

import math
from typing import NamedTuple, Self

import numpy as np

from domkl.core.scaling import look_at_rows, take_rows
from domkl.typing import Floats

#: standard deviation of an input that is uniform on [0, 1], as after min-max scaling
INPUT_WIDTH = 1 / math.sqrt(12)
TARGET_WIDTH = 1.0


class FirstSamples(NamedTuple):
    """The first samples, stored to be learned again when the scaling is known better."""

    x: Floats  # (n, d), NaN where a value is missing
    y: Floats  # (n,)

    @classmethod
    def empty(cls) -> Self:
        """No samples yet."""
        return cls(np.zeros((0, 0)), np.zeros(0))

    def with_more(self, x: Floats, y: Floats) -> Self:
        """Append samples; new inputs are missing in the earlier ones."""
        before = np.full((len(self.y), x.shape[1]), np.nan)
        before[:, : self.x.shape[1]] = self.x
        return type(self)(np.concatenate([before, x]), np.concatenate([self.y, y]))


class Statistics(NamedTuple):
    """Running statistics of the values of each column; missing values are not counted."""

    n: Floats  # (d,)
    mean: Floats  # (d,)
    square: Floats  # (d,)  Σ (v − mean)²

    @classmethod
    def empty(cls, n_columns: int) -> Self:
        """No values yet."""
        return cls(*(np.zeros(n_columns) for _ in cls._fields))

    def copy(self) -> Self:
        """Copy the arrays."""
        return type(self)(*(values.copy() for values in self))

    def widened(self, n_columns: int) -> Self:
        """Add columns without values."""
        missing = n_columns - len(self.n)
        return type(self)(*(np.concatenate([values, np.zeros(missing)]) for values in self))

    def take(self, rows: Floats, width: float) -> Floats:
        """Add rows (n, d) one after the other; return each scaled by the statistics up to it."""
        out = np.empty_like(rows)
        take_rows(out, rows, *self, width)
        return out

    def look(self, rows: Floats, width: float) -> Floats:
        """Return each row scaled as if it were added next; the statistics do not change."""
        out = np.empty_like(rows)
        look_at_rows(out, rows, *self, width)
        return out

    def scaled(self, rows: Floats, width: float) -> Floats:
        """Scale rows (…, d) by the present statistics; missing values become 0."""
        return np.nan_to_num(width * (rows - self.mean) / self.deviation)

    @property
    def deviation(self) -> Floats:
        """Standard deviation of each column; 1 where it would be 0 or there are no values."""
        deviation = np.sqrt(self.square / np.maximum(self.n, 1))
        return np.where(deviation > 0, deviation, 1.0)
