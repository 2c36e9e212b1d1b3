"""Where labels lie: the quantiles of errors, in deviations, from the errors before.

A row has the ends of the bands that hold 95, 80 and 50 % of the labels, from the lowest level to
the highest. A label outside of a band widens it, one inside narrows it, by factors that cancel when
the band holds as many as it should. So bands are right in the long run whatever the errors are
like, and soon, because a factor reaches any size in a few steps. A label outside also turns the
band a little towards its side: errors need not be symmetric.

Between its levels a row is linear in the logarithm of the tail, as the Laplace distribution is that
it begins with; beyond them it goes on like that.
"""

import math

import numpy as np

from domkl.core.jit import scalar, sweep
from domkl.typing import Floats

#: Levels of a row.
LEVELS = (0.025, 0.1, 0.25, 0.75, 0.9, 0.975)
#: The bands of 95, 80 and 50 % follow labels by these rates, divided by h^DELAYED for labels h
#: steps ahead, which overlap and come late. The sides of a band differ by the share TURN of that.
RATES, DELAYED, TURN = (0.15, 0.2, 0.3), 0.75, 0.1
#: Ends of bands are within these sizes, so that no row of equal labels makes one stay at 0.
LEAST, MOST = 1e-3, 1e3
#: Deviations within which 95 % of labels lie where errors are normal.
NORMAL = 1.96


@scalar
def tail(level: float) -> float:
    """The quantile of the Laplace distribution, ±log(1/2p) where p is the level or its rest."""
    return math.log(2 * level) if level < 0.5 else -math.log(2 * (1 - level))


@scalar
def learn_error(row: Floats, error: float, horizon: float) -> None:
    """Take an error, in deviations, into the bands: multiply by exp(rate · excess) ≈ 1 + that."""
    n, low, high = len(row), LEAST, LEAST
    for j in range(n // 2 - 1, -1, -1):
        rate = RATES[j] / horizon**DELAYED
        is_below, is_above = error < row[j], error > row[n - 1 - j]
        excess = (1.0 if is_below or is_above else 0.0) - 2 * LEVELS[j]
        turn = TURN * ((1.0 if is_above else 0.0) - (1.0 if is_below else 0.0))
        low = min(max(low, -row[j] * math.exp(rate * (excess - turn))), MOST)
        high = min(max(high, row[n - 1 - j] * math.exp(rate * (excess + turn))), MOST)
        row[j], row[n - 1 - j] = -low, high


@scalar
def width(row: Floats) -> float:
    """What to multiply a deviation by so that 95 % of labels lie within NORMAL of it."""
    return float(row[len(row) - 1] - row[0]) / (2 * NORMAL)


@scalar
def position(row: Floats, level: float) -> float:
    """The quantile of any level in (0, 1), in deviations."""
    n, at = len(row), tail(level)
    if level <= LEVELS[0]:
        return float(row[0] * at / tail(LEVELS[0]))
    if level >= LEVELS[n - 1]:
        return float(row[n - 1] * at / tail(LEVELS[n - 1]))
    j = 1
    while level > LEVELS[j]:
        j += 1
    low, high = tail(LEVELS[j - 1]), tail(LEVELS[j])
    return float(row[j - 1] + (row[j] - row[j - 1]) * ((at - low) / (high - low)))


@sweep
def write_positions(out: Floats, rows: Floats, levels: Floats) -> None:
    """Write the quantiles of these levels (J,) for every row, (K, J), in deviations × `width`."""
    for k in range(len(rows)):
        for j in range(len(levels)):
            out[k, j] = position(rows[k], levels[j]) / width(rows[k])


#: The row before any error: Laplace's, with 95 % within NORMAL.
FIRST_ROW = np.array([NORMAL * tail(level) / tail(LEVELS[-1]) for level in LEVELS])
