"""Labels that come late: samples that were predicted wait until their labels are known.

With a delay of n, a label is seen n rounds after its round. A sample is predicted on time; then it
waits, together with what was predicted. What is learned n rounds later is that sample, and accounts
of losses are fed with the prediction that was made then.
"""

from typing import Any, NamedTuple

import numpy as np

from domkl.algorithms.base import Algorithm, n_notes
from domkl.errors import ParameterError
from domkl.learner.late import LateLabels, Sample
from domkl.learner.restore import notes_of_now
from domkl.typing import Floats


class Waiting(NamedTuple):
    """Rounds that were predicted and whose labels are not known yet, oldest first."""

    x: Floats  # (n, K, d)
    y: Floats  # (n, K)
    y_hat: Floats  # (n, B·K)         what was predicted, in every trial
    by_kernel: Floats  # (n, B·K, P)
    notes: Floats  # (n, B·K, N)


class Delayed(NamedTuple):
    """The state of a run with a delay: that of its learners, and what waits."""

    state: Any
    waiting: Waiting


def late_arrays(x: Floats, y: Floats, delay: int, waiting: Waiting | None) -> tuple[Floats, Floats]:
    """What is learned at the end of each round: x (T, K, d), y (T, K), NaN where nothing is."""
    earlier = ([], []) if waiting is None else ([waiting.x], [waiting.y])
    missing = delay - sum(len(each) for each in earlier[1])
    first_x, first_y = np.zeros((missing, *x.shape[1:])), np.full((missing, *y.shape[1:]), np.nan)
    all_x = np.concatenate([first_x, *earlier[0], x])
    all_y = np.concatenate([first_y, *earlier[1], y])
    return all_x[: len(x)], all_y[: len(y)]


def last_samples(
    x: Floats, y: Floats, delay: int, waiting: Waiting | None
) -> tuple[Floats, Floats]:
    """The samples that wait after all rounds: x (n, K, d), y (n, K)."""
    if waiting is not None and len(y) < delay:
        x, y = np.concatenate([waiting.x, x]), np.concatenate([waiting.y, y])
    start = max(0, len(y) - delay)
    return x[start:].copy(), y[start:].copy()


def queue_of(waiting: Waiting | None) -> LateLabels[Sample]:
    """What waits, round by round."""
    queue = LateLabels(Sample)
    for row in zip(*(waiting or ()), strict=True):
        queue.add(Sample(*row))
    return queue


def waiting_of(queue: LateLabels[Sample]) -> Waiting | None:
    """What waits, in arrays."""
    if not len(queue):
        return None
    return Waiting(*(np.stack(each) for each in zip(*queue, strict=True)))


def waiting_of_now(waiting: Waiting | None, algorithm: Algorithm, state: Any) -> Waiting | None:
    """What waits, as this version notes it for learners of this state."""
    if waiting is None or algorithm.law is None:
        return waiting
    n = n_notes(algorithm.law, state)
    return waiting._replace(notes=notes_of_now(waiting.notes, waiting.y_hat, n))


def split_waiting(state: Any, delay: int, n_rows: list[int]) -> tuple[Any, list[Waiting | None]]:
    """The learners' state, and what waits cut into the cells' own, with so many rows each."""
    if not isinstance(state, Delayed):
        if delay:
            raise ParameterError(
                f"state must come from a run with delay={delay}, got one without a delay"
            )
        return state, [None] * len(n_rows)
    waiting = state.waiting
    if not delay or len(waiting.y) > delay:
        raise ParameterError(
            f"delay must be that of the run the state comes from, where {len(waiting.y)} rounds"
            f" wait, got {delay}"
        )
    if waiting.y_hat.shape[1] != sum(n_rows):
        raise ParameterError(
            f"state must come from a run of {sum(n_rows)} learners, got"
            f" {waiting.y_hat.shape[1]} in what waits"
        )
    cuts = np.cumsum(n_rows)[:-1]
    parts = (np.split(each, cuts, axis=1) for each in waiting[2:])
    cells = [Waiting(waiting.x, waiting.y, *part) for part in zip(*parts, strict=True)]
    return state.state, list(cells)


def joined_waiting(parts: list[Waiting]) -> Waiting:
    """What waits in all trials."""
    predicted = (np.concatenate(each, axis=1) for each in zip(*(p[2:] for p in parts), strict=True))
    return Waiting(parts[0].x, parts[0].y, *predicted)
