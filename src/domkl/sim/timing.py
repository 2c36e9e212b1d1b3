"""Rounds on a clock: which are missing between those that are given, and the season of dates."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from domkl.data.clock import clock_of
from domkl.data.streams import labels
from domkl.errors import DataError
from domkl.typing import Ints


class Timing(NamedTuple):
    """The steps of rounds."""

    start: int = 0  # step of the first round
    steps: Ints | None = None  # of each round, from the first; None where none is missing
    period: int | None = None

    def filled(self, values: Any) -> Any:
        """Samples of the given rounds, with NaN in those between them."""
        if self.steps is None:
            return values
        made = np.full((self.steps[-1] + 1, *np.shape(values)[1:]), np.nan)
        made[self.steps] = values
        return labels(made, getattr(values, "horizon", 1), getattr(values, "delay", 0))


def timing_of(times: ArrayLike | None, period: int | None, n_rounds: int | None) -> Timing:
    """Find the steps of dates, or take those that are given."""
    if times is None:
        return Timing(period=period)
    given = np.asarray(times)
    is_dated = np.issubdtype(given.dtype, np.datetime64)
    if given.shape != (n_rounds,) or not (is_dated or np.issubdtype(given.dtype, np.integer)):
        raise DataError(
            f"times must be {n_rounds} dates (datetime64) or whole numbers, one for each round of"
            f" X, got shape {given.shape} of {given.dtype}"
        )
    ticks = given.astype("datetime64[ms]").astype(np.int64) if is_dated else given.astype(np.int64)
    if len(ticks) > 1 and is_dated:
        clock = clock_of([ticks])
        day = clock._replace(start=0)  # steps since 1970: a day begins at a multiple of its steps
        ticks, period = day.ticks(ticks), clock.period if period is None else period
    if (np.diff(ticks) < 1).any():
        raise DataError("times must ascend by at least one step from round to round")
    steps = ticks - ticks[0]
    has_gaps = bool(steps[-1] + 1 > len(steps))
    return Timing(int(ticks[0]), steps if has_gaps else None, period)
