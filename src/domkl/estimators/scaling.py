"""Scaling of a learner's samples by running statistics, to the widths that dictionaries expect.

Each value is scaled by the mean and deviation of its column up to itself. The value at hand counts
among those it is scaled by: so the first is 0, none of the first n is larger than √n deviations,
and a column that has been constant so far is 0. NaN stands for a value that is absent: it becomes
0, the mean, and changes nothing. A value of weight w counts as w do.
"""

import math
from typing import NamedTuple, Self

import numpy as np

from domkl.core.jit import scalar, sweep
from domkl.typing import Floats

#: standard deviation of an input that is uniform on [0, 1], as after min-max scaling
INPUT_WIDTH = 1 / math.sqrt(12)
TARGET_WIDTH = 1.0
#: of a category's level: samples of two levels are as far apart as the ends of such an input
LEVEL_WIDTH = 1 / math.sqrt(2)


class FirstSamples(NamedTuple):
    """The first samples, stored to be learned again when the scaling is known better."""

    x: Floats  # (n, d), NaN where a value is missing
    y: Floats  # (n, K), NaN likewise
    weights: Floats  # (n,)

    @classmethod
    def empty(cls, n_outputs: int) -> Self:
        """No samples yet."""
        return cls(np.zeros((0, 0)), np.zeros((0, n_outputs)), np.zeros(0))

    def widened(self, n_columns: int) -> Self:
        """With new inputs, missing in these samples."""
        missing = np.full((len(self.y), n_columns - self.x.shape[1]), np.nan)
        return self._replace(x=np.column_stack([self.x, missing]))

    def with_more(self, x: Floats, y: Floats, weights: Floats) -> Self:
        """Append samples; new inputs are missing in the earlier ones."""
        more, before = (x, y, weights), self.widened(x.shape[1])
        return type(self)(*(np.concatenate(pair) for pair in zip(before, more, strict=True)))


class Statistics(NamedTuple):
    """Running statistics of the values of each column; missing values are not counted."""

    n: Floats  # (d,)
    mean: Floats  # (d,)
    square: Floats  # (d,)  Σ (v − mean)²

    @classmethod
    def empty(cls, n_columns: int) -> Self:
        """No values yet."""
        return cls(*np.zeros((3, n_columns)))

    def copy(self) -> Self:
        """Copy the arrays."""
        return type(self)(*np.array(self))

    def widened(self, n_columns: int) -> Self:
        """Add columns without values."""
        made = self.empty(n_columns)
        for new, old in zip(made, self, strict=True):
            new[: len(old)] = old
        return made

    def take(self, rows: Floats, weights: Floats, width: float) -> Floats:
        """Add rows (n, d) one after the other; return each scaled by the statistics up to it."""
        out = np.empty_like(rows)
        take_rows(out, rows, weights, *self, width)
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


@sweep
def take_rows(
    out: Floats,
    rows: Floats,
    weights: Floats,
    count: Floats,
    mean: Floats,
    square: Floats,
    width: float,
) -> None:
    """Count each row in, in order, and write it scaled: out, rows (n, d), statistics (d,).

    ``square`` is Σ (v − mean)² by Welford's recursion; ``width`` the deviation of what is written.
    """
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            out[i, j], count[j], mean[j], square[j] = _counted(
                rows[i, j], weights[i], count[j], mean[j], square[j], width
            )


@sweep
def look_at_rows(
    out: Floats, rows: Floats, count: Floats, mean: Floats, square: Floats, width: float
) -> None:
    """Write each row scaled as if it were the next one, and count none."""
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            out[i, j], _, _, _ = _counted(rows[i, j], 1.0, count[j], mean[j], square[j], width)


@scalar
def _counted(
    value: float, weight: float, count: float, mean: float, square: float, width: float
) -> tuple[float, float, float, float]:
    if math.isnan(value):
        return 0.0, count, mean, square
    count += weight
    step = value - mean
    mean += weight * step / count
    square += weight * step * (value - mean)
    deviation = math.sqrt(square / count)
    return (width * (value - mean) / deviation if deviation > 0 else 0.0), count, mean, square
