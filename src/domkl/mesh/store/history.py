"""A node's history: rings of records for steps of a second, ten seconds, five minutes, an hour.

The rules of this file
----------------------
- Only records of a second are made from what happens. A record of a longer step is the sum of those
  of the next shorter one, written when its step is over.
- Errors are sums of squares in scaled units, with the number of samples behind them, so that
  records can be added: the mean over any window is a quotient of two sums.
- What was written is never read into memory as a whole: an answer reads the records that it needs.
- After a restart the newest steps are summed again, so that a kill loses at most the last second.
- The size is bounded: 10 minutes of seconds, a day of ten seconds, 8 days of five minutes, and a
  year of hours.
"""

import contextlib
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Records = NDArray[Any]  # structured, with the fields "index" and "check"

#: (seconds of a step, steps that are kept)
LEVELS = ((1, 600), (10, 8640), (300, 2304), (3600, 8784))
MOST = 2000  # rows of an answer
HEADER = 4096  # bytes at the head of a ring: what the file holds, as JSON
FORMAT = 1
#: names of the shares of trust that are kept
TRUST = ("network", "own", "last value")
WITHIN = 1.96  # deviations; 95 of 100 labels should be within

_OF_HORIZON = [
    ("n", "<u4"), ("n_alone", "<u4"), ("n_bands", "<u4"), ("n_covered", "<u4"),
    ("errors", "<f8"), ("alone", "<f8"), ("last_value", "<f8"), ("spread", "<f8"),
]  # fmt: skip
#: how the fields of several records become one; of the others the last counts
_REDUCED: dict[np.ufunc, tuple[str, ...]] = {
    np.add: ("seconds", "sent", "received", "n_gaps", "gaps"),
    np.maximum: ("queued", "last_number", "last_time"),
    np.minimum: ("n_open",),
}
_LAST = ("n_listed", "weights", "trust")


def record_type(n_horizons: int, n_weights: int) -> np.dtype[Any]:
    """The layout of a record."""
    return np.dtype(
        [
            ("index", "<i8"),  # number of the step: time // seconds of a step
            ("check", "<u4"), ("queued", "<u4"),  # samples, at most
            ("n_open", "<u4"), ("n_listed", "<u4"),  # edges; the fewest that were open
            ("seconds", "<f8"),  # that the node ran in this step
            ("last_number", "<i8"), ("last_time", "<f8"),  # of the newest sample
            ("sent", "<f8"), ("received", "<f8"),  # bytes
            ("n_gaps", "<f8"), ("gaps", "<f8"),  # squared distances to the neighbors' predictions
            ("weights", "<f4", (n_weights,)), ("trust", "<f4", (len(TRUST),)),
            ("by", _OF_HORIZON, (n_horizons,)),
        ]
    )  # fmt: skip


#: a prediction and its label, scaled; ``index`` is the number of the sample
SAMPLE = np.dtype(
    [
        ("index", "<i8"), ("check", "<u4"), ("horizon", "<u4"), ("time", "<f8"), ("y", "<f8"),
        ("y_hat", "<f8"), ("y_last", "<f8"),
        ("y_alone", "<f8"), ("deviation", "<f8"),  # NaN where there is none
    ]
)  # fmt: skip


def sums_of(samples: Records) -> Any:
    """Sums over samples, as a record has them for each horizon."""
    made = np.zeros((), _OF_HORIZON)
    error, deviation = samples["y_hat"] - samples["y"], samples["deviation"]
    has_alone, has_band = ~np.isnan(samples["y_alone"]), ~np.isnan(deviation)
    made["n"], made["n_alone"] = len(samples), has_alone.sum()
    made["errors"] = (error**2).sum()
    made["last_value"] = ((samples["y_last"] - samples["y"]) ** 2).sum()
    made["alone"] = ((samples["y_alone"] - samples["y"])[has_alone] ** 2).sum()
    made["n_bands"] = has_band.sum()
    made["n_covered"] = (np.abs(error[has_band]) <= WITHIN * deviation[has_band]).sum()
    made["spread"] = (deviation[has_band] ** 2).sum()
    return made


def plus(one: Any, other: Any) -> Any:
    """The sum of two such sums."""
    made = np.zeros((), _OF_HORIZON)
    for field, _ in _OF_HORIZON:
        made[field] = one[field] + other[field]
    return made


def combined(records: Records, starts: Sequence[int] | NDArray[np.intp]) -> Records:
    """One record for each run of records; ``starts`` are the first of each run, ascending.

    The result keeps the index of the first of each run; the caller gives it another.
    """
    made = np.zeros(len(starts), records.dtype)
    if not len(records):
        return made
    last = np.append(np.asarray(starts)[1:], len(records)) - 1
    made["index"] = records["index"][starts]
    for how, names in _REDUCED.items():
        for field in names:
            made[field] = how.reduceat(records[field], starts)
    for field in _LAST:
        made[field] = records[field][last]
    for field, _ in _OF_HORIZON:
        made["by"][field] = np.add.reduceat(records["by"][field], starts, axis=0)
    return made


class Ring:
    """The last ``capacity`` records of a kind, on disk: written in place, readable after a kill.

    The record of index i lies in slot ``i % capacity``, so that nothing but the records themselves
    says where the ring begins. A slot is believed if the record in it has the index that was asked
    for and the right checksum; a torn or foreign record is as good as none.

    Parameters
    ----------
    path : Path
    dtype : dtype
        With the fields ``index`` (int64) and ``check`` (uint32); its size is a multiple of 4.
    capacity : int
    meaning : mapping, optional
        What else must be equal for an old file to be continued, such as the seconds of a step.

    A file of another kind is begun anew. Where none can be made the ring is in memory.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], capacity: int, **meaning: Any) -> None:
        self.dtype, self.capacity = dtype, capacity
        facts = {"format": FORMAT, "capacity": capacity, "fields": str(dtype.descr), **meaning}
        header = json.dumps(facts, sort_keys=True).encode()
        assert len(header) < HEADER
        assert dtype.itemsize % 4 == 0
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o600)
        except OSError:  # a full disk: remember until the process ends
            self._file = os.memfd_create(path.name)
        if os.pread(self._file, HEADER, 0).rstrip(b"\0") != header:
            os.ftruncate(self._file, 0)
            with contextlib.suppress(OSError):  # a full disk: later writes will tell
                os.pwrite(self._file, header.ljust(HEADER, b"\0"), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def write(self, records: Records) -> None:
        """Write records to their slots; OSError if the disk refuses."""
        size, sealed = self.dtype.itemsize, np.atleast_1d(records).copy()
        sealed["check"] = _checksum(sealed)
        for record in sealed:
            slot = int(record["index"]) % self.capacity
            os.pwrite(self._file, record.tobytes(), HEADER + slot * size)

    def read(self, first: int, end: int) -> Records:
        """The records with first <= index < end that are there, in ascending order."""
        first = max(first, end - self.capacity, 0)
        if end <= first:
            return np.empty(0, self.dtype)
        start, stop = first % self.capacity, (end - 1) % self.capacity + 1
        parts = [(start, stop)] if start < stop else [(start, self.capacity), (0, stop)]
        found = np.concatenate([self._slots(*part) for part in parts])
        wanted = np.arange(first, end)
        is_sound = found["check"] == _checksum(found)
        kept: Records = found[is_sound & (found["index"] == wanted)]
        return kept

    def newest(self) -> Records:
        """All records that are there, in ascending order."""
        slots = self._slots(0, self.capacity)
        used = np.flatnonzero(slots["check"])  # most are empty at first
        found = slots[used]
        is_sound = found["check"] == _checksum(found)
        kept = found[is_sound & (found["index"] % self.capacity == used)]
        ordered: Records = kept[np.argsort(kept["index"], kind="stable")]
        return ordered

    def _slots(self, start: int, stop: int) -> Records:
        """The content of slots; zeros beyond the end of the file."""
        size = self.dtype.itemsize
        n_bytes = (stop - start) * size
        data = os.pread(self._file, n_bytes, HEADER + start * size).ljust(n_bytes, b"\0")
        return np.frombuffer(data, self.dtype)


def _checksum(records: Records) -> NDArray[np.uint32]:
    """A sum of all words but the checksum; of an empty slot it is not 0, as its field is."""
    blank = records.copy()
    blank["check"] = 0
    words = blank.view(np.uint32).reshape(len(records), records.dtype.itemsize // 4)
    weights = np.arange(1, words.shape[1] + 1, dtype=np.uint64)
    sums: NDArray[np.uint64] = (words.astype(np.uint64) * weights).sum(axis=1)
    return (sums % np.uint64(2**32 - 5) + np.uint64(1)).astype(np.uint32)


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
        self.rings = [
            Ring(folder / f"steps-{step}", self.dtype, capacity, step=step)
            for step, capacity in LEVELS
        ]
        self.last_number, self.last_time, self.first_time = 0, 0.0, math.inf
        self._under_way: list[int | None] = [None] * len(LEVELS)  # step of each level
        self._resume()

    def close(self) -> None:
        """Close the files."""
        for ring in self.rings:
            ring.close()

    def seconds(self, first: int, end: int) -> Records:
        """The records of seconds with first <= index < end that are on disk."""
        return self.rings[0].read(first, end)

    def begun(self, index: int) -> Any:
        """A record to go on with: what is on disk of this second already, or an empty one."""
        newest = self._under_way[0]
        if newest is None or index <= newest:  # another process wrote it, or the clock was set back
            for record in self.seconds(index, index + 1):
                return record.copy()
        record = np.zeros((), self.dtype)
        record["index"] = index
        return record

    def write(self, record: Any) -> None:
        """Write the record of a second that is over, and those of longer steps that are over."""
        second = int(record["index"])
        self.rings[0].write(record)
        self.first_time = min(self.first_time, second)
        for k, (step, _) in enumerate(LEVELS):
            before, now = self._under_way[k], second // step
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
        unit = LEVELS[k][0]
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
            step, under_way = LEVELS[j][0], self._under_way[j]
            end = _first(unwritten, now) // step if under_way is None else under_way
            if j == 0:  # what is not written yet is newer than what is
                unwritten = unwritten[unwritten["index"] >= since]
                end = int(unwritten["index"][0]) if len(unwritten) else math.floor(now) + 1
            found = self.rings[j].read(math.floor(since / step), end)
            starts.append(found["index"] * step)
            parts.append(found)
            since = max(end * step, since)
        starts.append(unwritten["index"])
        return np.concatenate(starts), np.concatenate([*parts, unwritten])

    def _sum_up(self, k: int, index: int) -> None:
        """Write the record of a step as the sum of the shorter ones in it."""
        ratio = LEVELS[k][0] // LEVELS[k - 1][0]
        found = self.rings[k - 1].read(index * ratio, (index + 1) * ratio)
        if len(found):
            made = combined(found, [0])
            made["index"] = index
            self.rings[k].write(made)

    def _resume(self) -> None:
        """Sum up what a kill has left undone; find the newest sample and the first record."""
        for k, (step, _) in enumerate(LEVELS):
            found = self.rings[k].newest()
            if not len(found):
                continue
            self.last_number = max(self.last_number, int(found["last_number"].max()))
            self.last_time = max(self.last_time, float(found["last_time"].max()))
            self.first_time = min(self.first_time, int(found["index"][0]) * step)
            if k + 1 < len(LEVELS):
                newest = int(found["index"][-1]) * step // LEVELS[k + 1][0]
                for index in (newest - 1, newest):
                    with contextlib.suppress(OSError):  # a full disk costs history only
                        self._sum_up(k + 1, index)


def _first(unwritten: Records, now: float) -> int:
    """The first second that may not be on disk yet."""
    return int(unwritten["index"][0]) if len(unwritten) else math.floor(now)
