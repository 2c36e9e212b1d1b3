"""Which samples to believe: a wrong label or input moves a learner no further than it expected.

A label is compared with what the learner alone predicted. Beyond a limit, of so many root mean
squares of its errors before, it counts as far as the limit; far beyond, it does not count at all.
Labels that go on like that are no mistakes but a change of level, and are believed: the second of a
row if it is near the limit, the third otherwise. Heavy tails widen the limit by themselves, because
bounded errors are what it is made of.

An input that is far outside of its range makes a sample useless.
"""

import math

from domkl.core.jit import scalar
from domkl.typing import Floats

#: Root mean squares of errors within which labels are believed.
BELIEVED = 20.0
#: Labels that are so many limits away do not count at all, unless inputs are as large as the error.
HUGE = 5.0
#: They widen the limit nevertheless, as errors of this part of it: if every twentieth label is so,
#: the limit grows until they are believed, and if every hundredth is, it does not.
WIDENED = 3.0
#: Errors of a row are similar in size within this factor; signs may alternate.
SIMILAR = 10.0
#: An input is wild if it is so many times its range away from it. Ranges shrink by a share a label.
WILD, RANGE_FADE = 10.0, 0.01
#: The network's prediction counts within so many root mean squares of the learner's own errors, or
#: within what labels have confirmed, which fades by this share a label.
REACH, CONFIRM_FADE = 12.0, 0.02
#: Numbers in the row of `believed`, the last of them of `confirm`.
N_BOUND = 6


@scalar
def believed(row: Floats, y_hat: float, y: float, size: float) -> float:
    """The label as far as it is believed, NaN if not at all; the row takes it in.

    ρ² = Q/n,  ỹ = ŷ + clip(y − ŷ, ±BELIEVED · ρ),  Q⁺ = 2n/(2n + 1) Q + (ỹ − ŷ)²

    The row has Q, n, the errors beyond the limit in a row, the newest of them, and the number of
    labels that were not believed. Before the first label ρ is the size of the largest input.
    """
    total, n, error = row[0], row[1], y - y_hat
    limit = BELIEVED * (math.sqrt(total / n) if n > 0 else size)
    if abs(error) <= limit or (n > 0 and total == 0):
        row[2] = 0.0
    else:
        before = abs(row[3])
        is_similar = abs(error) <= SIMILAR * before and before <= SIMILAR * abs(error)
        row[2], row[3] = row[2] + 1 if is_similar and row[2] > 0 else 1.0, error
        is_huge = abs(error) > max(HUGE * limit, size)
        if row[2] < (3 if is_huge else 2):
            row[4] += 1
            if is_huge:
                row[0] += (limit / WIDENED) ** 2
                return math.nan
            error = math.copysign(limit, error)
    keep = 2 * n / (2 * n + 1)
    row[0], row[1] = keep * total + error * error, keep * n + 1
    return y_hat + error


@scalar
def within_reach(row: Floats, alone: float, heard: float) -> float:
    """What the network predicts, as far as it is believed beside what the learner alone does.

    alone + clip(heard − alone, ±r),  r² = REACH² Q/n + C; without a label, heard.
    """
    total, n = row[0], row[1]
    if n == 0:
        return heard
    reach = math.sqrt(REACH * REACH * total / n + row[5])
    return alone + min(max(heard - alone, -reach), reach)


@scalar
def confirm(row: Floats, alone: float, heard: float, y: float) -> None:
    """Take into the row how far labels were on the network's side.

    C⁺ = max((1 − CONFIRM_FADE) C, c²)

    c is how far the label was from what the learner alone predicted, towards the network's
    prediction and at most twice as far as that.
    """
    apart = heard - alone
    so_far = min(math.copysign(1.0, apart) * (y - alone), 2 * abs(apart))
    row[5] = max((1 - CONFIRM_FADE) * row[5], max(so_far, 0.0) ** 2)


@scalar
def largest(x: Floats) -> float:
    """The size of the largest input, at least 1."""
    size = 1.0
    for j in range(len(x)):
        size = max(size, abs(x[j]))
    return size


@scalar
def is_wild(x: Floats, low: Floats, high: Floats, gate: float) -> bool:
    """Whether an input is far outside of its range; farther with a wider gate, never with 0."""
    for j in range(len(x)):
        room = gate * WILD * max(high[j] - low[j], abs(low[j]), abs(high[j]), 1.0)
        if gate > 0 and not low[j] - room <= x[j] <= high[j] + room:
            return True
    return False


@scalar
def learn_ranges(x: Floats, low: Floats, high: Floats, gate: float) -> None:
    """Take inputs into their ranges; a gate of 0 means that there are none yet."""
    for j in range(len(x)):
        shrunk = RANGE_FADE * (high[j] - low[j]) / 2
        low[j] = min(low[j] + shrunk, x[j]) if gate > 0 else x[j]
        high[j] = max(high[j] - shrunk, x[j]) if gate > 0 else x[j]
