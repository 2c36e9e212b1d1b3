"""Running scaling of a learner's samples, to the widths that dictionaries are made for."""

import math
from typing import NamedTuple, Self

import numpy as np

from domkl.core.scaling import look_at_rows, take_rows
from domkl.typing import Floats

#: deviation of an input that is uniform on [0, 1], as min-max scaling makes them
INPUT_WIDTH = 1 / math.sqrt(12)
TARGET_WIDTH = 1.0


class Early(NamedTuple):
    """The first samples, while they are few: they are learned anew as the scaling becomes known."""

    x: Floats  # (n, d), NaN where absent
    y: Floats  # (n,)

    @classmethod
    def empty(cls) -> Self:
        """Before the first sample."""
        return cls(np.zeros((0, 0)), np.zeros(0))

    def with_more(self, x: Floats, y: Floats) -> Self:
        """And these; inputs that were not known before are absent."""
        room = np.full((len(self.y), x.shape[1]), np.nan)
        room[:, : self.x.shape[1]] = self.x
        return type(self)(np.concatenate([room, x]), np.concatenate([self.y, y]))


class Statistics(NamedTuple):
    """Of the values of each column that were there."""

    n: Floats  # (d,)
    mean: Floats  # (d,)
    square: Floats  # (d,)  Σ (v − mean)²

    @classmethod
    def empty(cls, n_columns: int) -> Self:
        """Before the first value."""
        return cls(*(np.zeros(n_columns) for _ in cls._fields))

    def copy(self) -> Self:
        """Arrays of its own."""
        return type(self)(*(values.copy() for values in self))

    def widened(self, n_columns: int) -> Self:
        """With room for more columns."""
        missing = n_columns - len(self.n)
        return type(self)(*(np.concatenate([values, np.zeros(missing)]) for values in self))

    def take(self, rows: Floats, width: float) -> Floats:
        """Count rows (n, d) in, one after the other; give them scaled."""
        out = np.empty_like(rows)
        take_rows(out, rows, *self, width)
        return out

    def look(self, rows: Floats, width: float) -> Floats:
        """Give each row scaled as if it were the next one."""
        out = np.empty_like(rows)
        look_at_rows(out, rows, *self, width)
        return out

    def scaled(self, rows: Floats, width: float) -> Floats:
        """Scale rows (…, d) by the statistics as they are; what is absent becomes 0."""
        return np.nan_to_num(width * (rows - self.mean) / self.deviation)

    @property
    def deviation(self) -> Floats:
        """Of each column; 1 where it is 0 or nothing was seen."""
        deviation = np.sqrt(self.square / np.maximum(self.n, 1))
        return np.where(deviation > 0, deviation, 1.0)
