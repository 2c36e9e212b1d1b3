"""A ring of records on disk: bounded, written in place, readable after a kill.

The record of index i lies in slot ``i % capacity``, so that nothing but the records themselves says
where the ring begins. A slot is believed if the record in it has the index that was asked for and
the right checksum; a torn or foreign record is as good as none.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Records = NDArray[Any]  # structured, with the fields "index" and "check"

HEADER = 4096  # bytes: what the file holds, as JSON
FORMAT = 1


class Ring:
    """The last ``capacity`` records of a kind.

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
    mixed: NDArray[np.uint64] = (words.astype(np.uint64) * weights).sum(axis=1) % np.uint64(
        2**32 - 5
    ) + np.uint64(1)
    return mixed.astype(np.uint32)
