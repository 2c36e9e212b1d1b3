"""Running standardisation: each value by the mean and deviation of its column up to itself.

The value at hand counts among those it is scaled by: so the first is 0, none of the first n is
larger than √n deviations, and a column that has been constant so far is 0. NaN stands for a value
that is absent: it becomes 0, the mean, and changes nothing. A value of weight w counts as w do.
"""

import math

from domkl.core.jit import scalar, sweep
from domkl.typing import Floats


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
