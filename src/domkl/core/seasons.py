"""Seasons: what repeats with a period is shown to the fits, and to the corrector.

A period that is given, with a clock that all learners share, shows the fits where in the season a
sample is. The *waves* are sine and cosine of the first harmonics. They stand among the features of
the linear kernel, and turn those of every eighth kernel: feature m becomes that of vᵀx + w_mᵀwaves,
a product of the kernel with one of the season. The other kernels do not see them, so that the
mixtures may leave the season.

Without a period, one is looked for in the learner's own past labels. It serves the corrector
alone, which is the learner's own: the label and the error of a season ago are clues.
"""

import math
from typing import NamedTuple

import numpy as np

from domkl.core.jit import inner, scalar
from domkl.core.vectors import copied, turned
from domkl.typing import Array, Floats

#: Harmonics of a season: four tell two peaks a day from one.
HARMONICS = 4
N_WAVES = 2 * HARMONICS
#: Size of the waves among the linear kernel's features.
WAVE = 0.1
#: Every eighth kernel sees the season, the seventh one first, a wide one in the default dictionary;
#: and the deviation of w.
FIRST_SEEING, EVERY = 6, 8
SPREAD = 0.1
#: The numbers w are spread over the cube evenly: the fractions of m times these.
RATIOS = 1.0757660660868371 ** -np.arange(1.0, N_WAVES + 1)
#: Steps whose labels are remembered, and the longest period that is looked for: weeks of hours.
REMEMBERED, LONGEST = 336, 168
#: Steps between two looks for a period.
LOOK_EVERY = 64
#: The change over a period is at most this part of the largest over a shorter time, and of that
#: over a shorter period, unless that one is nearly as long.
DIP, BETTER = 0.5, 0.6
#: In a row of the past: the label, the error in the network, that alone, the stamp of the step.
N_PAST = 4
#: Of a learner's season: the number of its steps, how many more until a label of now is learned,
#: the period of the waves, that of the corrector, and what the last look for one found.
STEP, AHEAD, WAVES, PERIOD, LOOKED = range(5)
N_SEASON = 5


class Shown(NamedTuple):
    """What a law needs to show the season to its fits."""

    z: Array  # (P, D)       a learner's features with the season in them
    waves: Floats  # (8,)
    turn: Array  # (2, M)    cosine and sine of w_mᵀwaves, or of its negative
    of: Floats  # (1,)        the step that the last two are of


@inner
def room_for(z: Array, diagonal: Array) -> Shown:
    """Buffers for learners of features z (K, P, D); a 0 of the diagonal marks padding."""
    n = 0
    for i in range(diagonal.size):
        n += 1 if diagonal[i] > 0 else 0
    turn, step = np.empty((2, n // 2), z.dtype), np.full(1, -1.0)
    return Shown(np.empty(z.shape[1:], z.dtype), np.empty(N_WAVES), turn, step)


@inner
def shown(room: Shown, z: Array, place: int, step: float, period: float) -> Array:
    """A learner's features z (P, D) with the season in them; as they are without a period.

    The waves are features of the last kernel from this place on, if there is room.
    """
    if period <= 0:
        return z
    _set_season(room, step, period, 1.0)
    last = len(z) - 1
    for p in range(len(z)):
        copied(room.z[p], z[p])
        if p < last and p % EVERY == FIRST_SEEING:
            _turn(room.z[p], z[p], room.turn)
    if place + N_WAVES <= z.shape[1]:
        for j in range(N_WAVES):
            room.z[last, place + j] = WAVE * room.waves[j]
    return room.z


@inner
def set_aside(room: Shown, theta: Array, place: int, step: float, period: float) -> None:
    """Make θ (P, D) for features with the season one for features without it, in this step."""
    if period <= 0:
        return
    _set_season(room, step, period, -1.0)
    last = len(theta) - 1
    for p in range(FIRST_SEEING, last, EVERY):
        copied(room.z[p], theta[p])
        _turn(theta[p], room.z[p], room.turn)
    if place + N_WAVES <= theta.shape[1]:
        for j in range(N_WAVES):  # to the constant, which stands before them
            theta[last, place - 1] += WAVE * room.waves[j] * theta[last, place + j]
            theta[last, place + j] = 0.0


@inner
def _turn(out: Array, given: Array, turn: Array) -> None:
    """Turn the features of a kernel."""
    m = turn.shape[1]
    turned(out[:m], out[m : 2 * m], given[:m], given[m : 2 * m], turn[0], turn[1])


@inner
def _set_season(room: Shown, step: float, period: float, sign: float) -> None:
    """Write the waves of a step, and how far they turn features; a room has one sign."""
    if room.of[0] == step:
        return
    room.of[0] = step
    for j in range(HARMONICS):
        angle = 2 * math.pi * (j + 1) * (step % period) / period
        room.waves[2 * j], room.waves[2 * j + 1] = math.sin(angle), math.cos(angle)
    for m in range(room.turn.shape[1]):
        angle = 0.0
        for j in range(N_WAVES):
            place = (m + 1) * RATIOS[j]
            angle += math.sqrt(3.0) * (2 * (place - math.floor(place)) - 1) * room.waves[j]
        room.turn[0, m], room.turn[1, m] = math.cos(SPREAD * angle), sign * math.sin(SPREAD * angle)


@scalar
def target(season: Floats) -> float:
    """The step that a prediction of now is of."""
    return float(season[STEP] + season[AHEAD])


@scalar
def season_ago(past: Floats, season: Floats) -> int:
    """The place in the past of the newest step that is whole periods ago and known; -1 if none."""
    period = season[PERIOD]
    if period <= 0:
        return -1
    then = target(season) - period * math.ceil((1 + season[AHEAD]) / period)
    place = int(then) % len(past)
    return place if past[place, 3] == stamp(then) else -1


@scalar
def stamp(step: float) -> float:
    """What a row of the past has for its step, which may be negative; one without label has 0."""
    return 2 * step + 1


@inner
def remember(past: Floats, season: Floats, y: float, errors: Floats) -> None:
    """Keep the label of this step, and the errors of both sides."""
    row = past[int(season[STEP]) % len(past)]
    row[0], row[1], row[2], row[3] = y, errors[0], errors[1], stamp(season[STEP])


@scalar
def find_period(past: Floats, season: Floats) -> None:
    """Look for a period in the past; two looks in a row must find the same one.

    The mean square of the change over p steps falls at a period, and at its multiples.
    """
    n, values = 0, np.empty(REMEMBERED)  # since the oldest label
    for i in range(REMEMBERED):
        step = season[STEP] - REMEMBERED + i
        row = past[int(step) % len(past)]
        is_known = row[3] == stamp(step)
        values[n] = row[0] if is_known else math.nan
        n += 1 if is_known or n > 0 else 0
    highest, before, here, found, least = 0.0, 0.0, 0.0, 0.0, math.inf
    for p in range(1, min(LONGEST, n // 2) + 2):
        after = mean_change(values[:n], p)
        if before > highest:  # not where it is NaN
            highest = before
        is_dip = here < DIP * highest and here < before and here <= after
        limit = least if 2 * p < 3 * found else BETTER * least  # of the same dip, the lowest
        if is_dip and here < limit:
            found, least = p - 1.0, here
        before, here = here, after
    if found == season[LOOKED]:
        season[PERIOD] = found
    season[LOOKED] = found


@scalar
def mean_change(values: Floats, p: int) -> float:
    """The mean square of values[i] − values[i − p]; NaN where most of them are missing."""
    total, n = 0.0, 0
    for i in range(p, len(values)):
        change = values[i] - values[i - p]
        if change == change:
            total += change * change
            n += 1
    return total / n if 2 * n >= len(values) - p else math.nan
