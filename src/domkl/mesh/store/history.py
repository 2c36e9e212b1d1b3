"""A node's history: rings of records for steps of a second, ten seconds, five minutes, an hour.

The rules of this file
----------------------
- Only records of a second are made from what happens. A record of a longer step is the sum of those
  of the next shorter one, written when its step is over.
- What was written is never read into memory as a whole: an answer reads the records that it needs.
- After a restart the newest steps are summed again, so that a kill loses at most the last second.
- The size is bounded: 10 minutes of seconds, a day of ten seconds, 8 days of five minutes, and a
  year of hours.
"""

import contextlib
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from domkl.mesh.store.records import combined, record_type
from domkl.mesh.store.ring import Records, Ring

#: (seconds of a step, steps that are kept)
LEVELS = ((1, 600), (10, 8640), (300, 2304), (3600, 8784))
MOST = 2000  # rows of an answer


class Level(NamedTuple):
    """The records of one length of step."""

    step: int
    ring: Ring


class HistoryRows(NamedTuple):
    """Records of equal steps, ascending; ``index`` counts these steps since 1970."""

    step: int
    records: Records


class History:
    """The records of a node, on disk.

    Parameters
    ----------
    folder : Path
        Made if it is missing.
    n_horizons, n_weights : int
        Sizes of a record; with others the history is begun anew.
    """

    def __init__(self, folder: Path, n_horizons: int, n_weights: int) -> None:
        with contextlib.suppress(OSError):  # a full disk: the rings are in memory then
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.dtype = record_type(n_horizons, n_weights)
        self.levels = [
            Level(step, Ring(folder / f"steps-{step}", self.dtype, capacity, step=step))
            for step, capacity in LEVELS
        ]
        self.last_number, self.last_time, self.first_time = 0, 0.0, math.inf
        self._under_way: list[int | None] = [None] * len(self.levels)  # step of each level
        self._resume()

    def close(self) -> None:
        """Close the files."""
        for level in self.levels:
            level.ring.close()

    def empty(self, index: int) -> Any:
        """A record of a second with nothing in it."""
        record = np.zeros((), self.dtype)
        record["index"] = index
        return record

    def write(self, record: Any) -> None:
        """Write the record of a second that is over, and those of longer steps that are over."""
        second = int(record["index"])
        self.levels[0].ring.write(record)
        self.first_time = min(self.first_time, second)
        for k, level in enumerate(self.levels):
            before, now = self._under_way[k], second // level.step
            if k and before is not None and before != now:
                self._sum_up(k, before)
            self._under_way[k] = now  # last: another thread reads sums up to here

    def rows(self, since: float, step: float, now: float, unwritten: Records) -> HistoryRows:
        """The records since a time, summed to steps of at least this length.

        ``unwritten`` are records of seconds that may not be on disk yet, ascending. Steps are
        longer than asked for where shorter ones are not kept so long, or where there would be more
        than 2000.
        """
        since = max(since, min(self.first_time, _first(unwritten, now)))
        step = max(step, (now - since) / MOST)
        k = self._level_for(since, step, now)
        unit = self.levels[k].step
        whole = unit * max(1, math.ceil(step / unit))
        starts, records = self._read(k, math.floor(since / whole) * whole, now, unwritten)
        index = starts // whole
        if not len(index):
            return HistoryRows(whole, records)
        runs = np.flatnonzero(np.diff(index, prepend=index[0] - 1))
        made = combined(records, runs)
        made["index"] = index[runs]
        return HistoryRows(whole, made)

    def total(self, seconds: float, now: float, unwritten: Records) -> Any:
        """The sum over the last seconds, to within a few hundredths of the window."""
        k = self._level_for(now - seconds, seconds / 30, now)
        return combined(self._read(k, now - seconds, now, unwritten)[1], [0])[0]

    def _level_for(self, since: float, step: float, now: float) -> int:
        """The longest steps that are short enough, or the shortest that are kept so long."""
        kept = [k for k, (s, n) in enumerate(LEVELS) if s * n >= now - since]
        if not kept:
            return len(LEVELS) - 1
        fitting = [k for k in kept if LEVELS[k][0] <= step]
        return max(fitting) if fitting else min(kept)

    def _read(
        self, k: int, since: float, now: float, unwritten: Records
    ) -> tuple[NDArray[np.int64], Records]:
        """Records of level k, and of shorter steps for the time that it does not hold yet.

        With the second at which each begins.
        """
        starts, parts = [], []
        for j in range(k, -1, -1):
            step, under_way = self.levels[j].step, self._under_way[j]
            end = _first(unwritten, now) // step if under_way is None else under_way
            if j == 0:  # what is not written yet is newer than what is
                unwritten = unwritten[unwritten["index"] >= since]
                end = int(unwritten["index"][0]) if len(unwritten) else math.floor(now) + 1
            found = self.levels[j].ring.read(math.floor(since / step), end)
            starts.append(found["index"] * step)
            parts.append(found)
            since = max(end * step, since)
        starts.append(unwritten["index"])
        return np.concatenate(starts), np.concatenate([*parts, unwritten])

    def _sum_up(self, k: int, index: int) -> None:
        """Write the record of a step as the sum of the shorter ones in it."""
        level, finer = self.levels[k], self.levels[k - 1]
        ratio = level.step // finer.step
        found = finer.ring.read(index * ratio, (index + 1) * ratio)
        if len(found):
            made = combined(found, [0])
            made["index"] = index
            level.ring.write(made)

    def _resume(self) -> None:
        """Sum up what a kill has left undone; find the newest sample and the first record."""
        for k, level in enumerate(self.levels):
            found = level.ring.newest()
            if not len(found):
                continue
            self.last_number = max(self.last_number, int(found["last_number"].max()))
            self.last_time = max(self.last_time, float(found["last_time"].max()))
            self.first_time = min(self.first_time, int(found["index"][0]) * level.step)
            if k + 1 < len(self.levels):
                ratio = self.levels[k + 1].step // level.step
                newest = int(found["index"][-1]) // ratio
                for index in (newest - 1, newest):
                    with contextlib.suppress(OSError):  # a full disk costs history only
                        self._sum_up(k + 1, index)


def _first(unwritten: Records, now: float) -> int:
    """The first second that may not be on disk yet."""
    return int(unwritten["index"][0]) if len(unwritten) else math.floor(now)
