"""The log of accepted samples: what is in it survives SIGKILL and power cuts.

The rules of this file
----------------------
- A sample counts as accepted when `append` has returned, and only then: by that time it is on disk.
- Samples that are accepted together make one frame, with one checksum. The next frame is written
  after the one before is on disk, so at most the last one can be torn: it was never acknowledged,
  and is cut off when the journal is opened. A frame that is damaged before a sound one is an error.
- A frame that cannot be written is removed again before `append` raises. Where that fails too, or
  the disk reports an error, the journal takes nothing more.
- Numbers ascend by one from 1, across all segments.
"""

import contextlib
import errno
import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from domkl.errors import DataError, MeshError
from domkl.mesh.node.segment import Entry, Segment, frame
from domkl.typing import Floats

SEGMENT = 2**20  # bytes, after which a new file is begun
REMEMBERED = 10_000  # samples, among whose ids a repeated one is found
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class JournalFullError(MeshError):
    """The disk has no room: nothing was accepted, nothing is lost."""


class Journal:
    """An append-only log in files of about a megabyte each.

    Parameters
    ----------
    folder : Path
        Made where it is absent.
    width : int
        Values per sample.

    Attributes
    ----------
    last : int
        Number of the newest sample; 0 where there is none.
    ids : dict
        Client's ids among the newest 10,000 samples, and their numbers.
    rows : dict
        The newest row of each file that was replayed.
    reserve : int
        Bytes of free disk space below which nothing more is accepted: room for checkpoints.
    """

    def __init__(self, folder: Path, width: int) -> None:
        self.folder, self.width = folder, width
        self.last, self.reserve = 0, 0
        self.ids: dict[str, int] = {}
        self.rows: dict[str, int] = {}
        self._recent: deque[tuple[int, str]] = deque()
        self._segments: list[Segment] = []
        self._failure: str | None = None
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self._open()

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(each.size for each in tuple(self._segments))

    def append(self, entries: Sequence[Entry]) -> int:
        """Accept samples, all or none; give the number of the first, once all are on disk."""
        with self._lock:
            return self._append(entries)

    def after(self, number: int) -> Iterator[tuple[int, Floats]]:
        """Samples with greater numbers, in order."""
        if self._segments and number + 1 < self._segments[0].first and self._segments[0].first > 1:
            raise DataError(
                f"journal in {self.folder} begins with sample {self._segments[0].first}, and the"
                f" checkpoint ends with {number}; restore both from one backup, or delete"
                " the data folder to begin anew"
            )
        for segment in self._segments:
            if segment.last > number:
                for n, entry in segment.read(self.width):
                    if n > number:
                        yield n, entry.values

    def forget(self, number: int) -> None:
        """Delete files whose samples are all up to this one, and whose ids need no memory."""
        with self._lock:
            while len(self._segments) > 1 and self._is_over(self._segments[0], number):
                self._segments.pop(0).delete()

    def skip_to(self, number: int) -> None:
        """Begin after this number, where an empty journal belongs to a later checkpoint."""
        if number > self.last:
            if self._segments and self._segments[-1].last:
                raise DataError(
                    f"journal in {self.folder} ends with sample {self.last}, before the"
                    f" checkpoint's {number}; restore both from one backup"
                )
            self.last = number

    def close(self) -> None:
        """Close the files; nothing is pending."""
        for segment in self._segments:
            segment.close()

    def _append(self, entries: Sequence[Entry]) -> int:
        if self._failure is not None:
            raise MeshError(self._failure)
        self._check_room()
        first = self.last + 1
        if not self._segments or self._segments[-1].size >= SEGMENT:
            self._begin(first)
        segment = self._segments[-1]
        self._write(segment, frame(segment.salt, first, entries))
        for number, entry in enumerate(entries, first):
            self._note(segment, number, entry)
        return first

    def _is_over(self, segment: Segment, number: int) -> bool:
        is_remembered = segment.n_ids and segment.last > self.last - REMEMBERED
        return segment.last <= number and not is_remembered

    def _note(self, segment: Segment, number: int, entry: Entry) -> None:
        self.last = segment.last = number
        if entry.is_row:
            name, _, row = entry.id.rpartition(":")
            self.rows[name] = int(row)
        elif entry.id:
            segment.n_ids += 1
            self.ids[entry.id] = number
            self._recent.append((number, entry.id))
        while self._recent and self._recent[0][0] <= self.last - REMEMBERED:
            old, name = self._recent.popleft()
            if self.ids.get(name) == old:
                del self.ids[name]

    def _check_room(self) -> None:
        if self.reserve:
            found = os.statvfs(self.folder)
            if found.f_bavail * found.f_frsize < self.reserve:
                raise JournalFullError(
                    f"disk must keep {self.reserve} bytes free for checkpoints,"
                    f" got {found.f_bavail * found.f_frsize}; make room"
                )

    def _begin(self, first: int) -> None:
        path = self.folder / f"{first:016d}.log"
        try:
            segment = Segment.create(path, self.width, first)
        except OSError as error:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            raise _refusal(error, self.folder) from None
        if self._segments:
            self._segments[-1].close()
        self._segments.append(segment)

    def _write(self, segment: Segment, frame: bytes) -> None:
        try:
            segment.write(frame)
        except OSError as error:
            try:
                segment.truncate()
            except OSError:
                self._failure = f"journal in {self.folder} cannot be repaired; restart the node"
            if error.errno not in FULL:  # what the disk holds is not known any more
                self._failure = f"journal in {self.folder} cannot be written: {error.strerror}"
            raise _refusal(error, self.folder) from None

    def _open(self) -> None:
        paths = sorted(self.folder.glob("*.log"))
        for path in paths:
            segment = Segment.open(path, self.width, is_last=path == paths[-1])
            if segment is None:
                continue
            if self._segments and segment.first != self.last + 1:
                raise DataError(
                    f"journal in {self.folder} lacks samples {self.last + 1} to"
                    f" {segment.first - 1}; restore it from a backup"
                )
            self.last = segment.last = segment.first - 1
            self._segments.append(segment)
            for number, entry in segment.read(self.width):
                self._note(segment, number, entry)
        for segment in self._segments[:-1]:
            segment.close()


def _refusal(error: OSError, folder: Path) -> MeshError:
    if error.errno in FULL:
        return JournalFullError(f"disk of {folder} is full: {error.strerror}; make room")
    return MeshError(f"journal in {folder} cannot be written: {error.strerror}")
