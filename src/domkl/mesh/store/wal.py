"""The write-ahead log of a node: samples that it has accepted, on disk before they are learned.

What is in the log survives SIGKILL and power cuts. Its files lie in ``data/journal``, each about a
megabyte: a head, then frames. A frame holds the samples of one sync, with one checksum.

The rules of this file
----------------------
- A sample counts as accepted when `WriteAheadLog.append` has returned, and only then: by that time
  it is on disk.
- The next frame is written after the one before is on disk, so at most the last one can be torn. A
  torn frame was never acknowledged; it is cut off when the log is opened.
- What was acknowledged is written down outside of the log (`Mark`), so that a torn frame and an
  acknowledged one that was damaged later can be told apart. Where acknowledged samples are missing
  or damaged, the log does not open (`DamagedError`) and nothing is changed; see recovery.py.
- A frame that cannot be written is removed again before `append` raises. Where that fails too, or
  the disk reports an error, the log accepts nothing more.
- Numbers of samples ascend by one from 1, across all files.
"""

import contextlib
import errno
import os
import secrets
import struct
import threading
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from domkl.errors import DataError, MeshError
from domkl.storage import sync_folder, write
from domkl.typing import Floats

SEGMENT = 2**20  # bytes of a file, after which the next one is begun
REMEMBERED = 10_000  # newest samples whose ids are looked up when a sample is sent again
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
BUSY = (errno.EMFILE, errno.ENFILE)
MAGIC = b"DOMKLJ1\n"
MARK = b"\xd0\x4b\x4c\x46"
MARK_MAGIC = b"DOMKLA1\n"

_HEAD = struct.Struct("<8sIIIQ")  # magic, checksum, salt of the frames, values, first number
_FRAME = struct.Struct("<4sIIQI")  # mark, checksum, bytes, first number, samples
_ID = struct.Struct("<BH")  # whether the id is a row of a file, length of the id


class DiskFullError(MeshError):
    """The disk has no room: nothing was accepted, nothing is lost."""


class BusyError(MeshError):
    """The process has no file descriptor left: nothing was accepted; try again later."""


class DamagedError(DataError):
    """Samples that may have been acknowledged are missing or cannot be read."""


class Entry(NamedTuple):
    """A sample as it was given, in its own units."""

    values: Floats  # inputs and label, or one value of a series
    id: str = ""  # the client's, or file:row for a row of a file
    is_row: bool = False


class Mark:
    """A number in a small file outside of the log, such as that of the newest acknowledged sample.

    It is written in place. Unless it is synced, it is exact after a kill, and after a power cut it
    may be too low by what was written within the last seconds, but it is never too high.

    Parameters
    ----------
    path : Path
    magic : bytes
        The kind of file.
    n_tag : int
        Bytes before the number.

    Attributes
    ----------
    number : int or None
        None if the file does not exist or is damaged.
    tag : bytes
        What stands before the number.
    """

    def __init__(self, path: Path, magic: bytes = MARK_MAGIC, n_tag: int = 0) -> None:
        self.path, self.tag, self._magic = path, bytes(n_tag), magic
        self._handle: int | None = None
        self.number = self._read()

    def begin(self, number: int) -> None:
        """Have a file with this number; OSError if that is impossible."""
        tag = self.tag
        if self._read() is None or self.tag != tag:
            self.tag = tag
            write(self.path, self._record(number), mode=0o600)
        self._handle = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        self.set(number)

    def set(self, number: int) -> None:
        """Write the number, without syncing it."""
        self.number = number
        if self._handle is not None:
            with contextlib.suppress(OSError):  # an older number is right, too
                os.pwrite(self._handle, self._record(number), 0)

    def sync(self, number: int) -> None:
        """Have the number on disk when this returns; OSError, and the older one, if it cannot."""
        assert self._handle is not None
        os.pwrite(self._handle, self._record(number), 0)
        os.fdatasync(self._handle)
        self.number = number

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _read(self) -> int | None:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        if len(data) != len(self._record(0)):
            return None
        number = int.from_bytes(data[-8:], "little")
        tag, self.tag = self.tag, data[12:-8]
        if data == self._record(number):
            return number
        self.tag = tag
        return None

    def _record(self, number: int) -> bytes:
        body = self.tag + number.to_bytes(8, "little")
        return self._magic + zlib.crc32(body).to_bytes(4, "little") + body


class WriteAheadLog:
    """An append-only log of samples.

    Parameters
    ----------
    folder : Path
        Created if it does not exist.
    width : int
        Values per sample.
    mark : Mark, optional
        Where acknowledged samples are counted, too. Without a number in it, a damaged end that is
        as long as it says is taken for acknowledged.
    saved : int
        Number of the last sample that a checkpoint has: the log need not have it.

    Attributes
    ----------
    last : int
        Number of the newest sample, or 0.
    n_cut : int
        Samples of a torn frame, never acknowledged, that was cut off when the log was opened.
    ids : dict
        Clients' ids of the newest 10,000 samples, and the numbers of these samples.
    rows : dict
        The newest row of each file that was replayed.
    reserve : int
        Bytes that must stay free on the disk, for checkpoints; with less nothing is accepted.
    """

    def __init__(self, folder: Path, width: int, mark: Mark | None = None, saved: int = 0) -> None:
        self.folder, self.width, self.mark = folder, width, mark
        self.last, self.reserve, self.n_cut = 0, 0, 0
        self.ids: dict[str, int] = {}
        self.rows: dict[str, int] = {}
        self._recent: deque[tuple[int, str]] = deque()
        self._segments: list[Segment] = []
        self._failure: str | None = None
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self._open(saved)

    def __str__(self) -> str:
        return f"write-ahead log in {self.folder}"

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(each.size for each in tuple(self._segments))

    @property
    def first(self) -> int:
        """Number of the oldest sample in the log; that of the next one if it is empty."""
        return self._segments[0].first if self._segments else self.last + 1

    def append(self, entries: Sequence[Entry]) -> int:
        """Accept all samples or none; return the number of the first when all are on disk."""
        with self._lock:
            return self._append(entries)

    def after(self, number: int) -> Iterator[tuple[int, Floats]]:
        """Numbers and values of all samples after this one, in order."""
        if self._segments and number + 1 < self.first:
            raise DamagedError(
                f"{self} begins with sample {self.first}, and the checkpoint ends"
                f" with {number}; restore both from one backup"
            )
        for segment in self._segments:
            if segment.last > number:
                for n, entry in segment.read(self.width):
                    if n > number:
                        yield n, entry.values

    def drop(self, number: int) -> None:
        """Delete files that hold only samples up to this one, and no id that must be remembered."""
        with self._lock:
            while len(self._segments) > 1 and self._is_over(self._segments[0], number):
                self._segments.pop(0).delete()

    def skip_to(self, number: int) -> None:
        """Let an empty log, whose checkpoint is of this number, begin after it."""
        if number > self.last:
            if self._segments and self._segments[-1].last:
                raise DamagedError(
                    f"{self} ends with sample {self.last}, before the"
                    f" checkpoint's {number}; restore both from one backup"
                )
            self.last = number

    def close(self) -> None:
        """Close the files."""
        for segment in self._segments:
            segment.close()
        if self.mark is not None:
            self.mark.close()

    def _append(self, entries: Sequence[Entry]) -> int:
        if self._failure is not None:
            raise MeshError(self._failure)
        check_room(self.folder, self.reserve)
        first = self.last + 1
        if not self._segments or self._segments[-1].size >= SEGMENT:
            self._begin(first)
        segment = self._segments[-1]
        self._write(segment, _frame(segment.salt, first, entries))
        for number, entry in enumerate(entries, first):
            self._note(segment, number, entry)
        if self.mark is not None:
            self.mark.set(self.last)
        return first

    def _is_over(self, segment: "Segment", number: int) -> bool:
        is_remembered = segment.n_ids and segment.last > self.last - REMEMBERED
        return segment.last <= number and not is_remembered

    def _note(self, segment: "Segment", number: int, entry: Entry) -> None:
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

    def _begin(self, first: int) -> None:
        path = self.folder / f"{first:016d}.log"
        try:
            segment = Segment.create(path, self.width, first)
        except OSError as error:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            raise _refusal(error, self) from None
        if self._segments:
            self._segments[-1].close()
        self._segments.append(segment)

    def _write(self, segment: "Segment", frame: bytes) -> None:
        try:
            segment.write(frame)
        except OSError as error:
            try:
                segment.truncate()
            except OSError:
                self._failure = f"{self} cannot be repaired; restart the node"
            if error.errno not in FULL:  # nobody knows what the disk holds now
                self._failure = f"{self} cannot be written: {error.strerror}"
            raise _refusal(error, self) from None

    def _open(self, saved: int) -> None:
        """Read all files; change them only when it is certain that nothing is missing."""
        paths = sorted(self.folder.glob("*.log"))
        headless = []
        for path in paths:
            segment = Segment.open(path, self.width, is_last=path == paths[-1])
            if segment is None:
                headless.append(path)
            else:
                self._add(segment)
        self._check_end(saved)
        for path in headless:
            path.unlink()
        if self._segments:
            self.n_cut = self._segments[-1].cut()
        for segment in self._segments[:-1]:
            segment.close()

    def _add(self, segment: "Segment") -> None:
        if self._segments and segment.first != self.last + 1:
            segment.close()
            raise DamagedError(
                f"{self} lacks samples {self.last + 1} to {segment.first - 1};"
                " restore it from a backup"
            )
        self.last = segment.last = segment.first - 1
        self._segments.append(segment)
        for number, entry in segment.read(self.width):
            self._note(segment, number, entry)

    def _check_end(self, saved: int) -> None:
        """Raise DamagedError if the log ends before the last acknowledged sample, or may do so."""
        known = None if self.mark is None else self.mark.number
        torn = self._segments[-1].torn if self._segments else None
        is_short = known is not None and max(self.last, saved) < known
        is_doubtful = known is None and torn is not None and torn.is_whole
        if is_short or is_doubtful:
            self.close()
            missing = f"{self.last + 1} to {known}" if is_short else f"from {self.last + 1} on"
            raise DamagedError(
                f"{self} lacks samples {missing}, and they were acknowledged or"
                " may have been; restore it from a backup"
            )


def check_room(folder: Path, reserve: int) -> None:
    """Raise DiskFullError if the disk of a folder has fewer bytes free than must stay free."""
    if reserve:
        found = os.statvfs(folder)
        n_free = found.f_bavail * found.f_frsize
        if n_free < reserve:
            raise DiskFullError(
                f"disk must keep {reserve} bytes free for checkpoints, got {n_free}; make room"
            )


def _refusal(error: OSError, log: WriteAheadLog) -> MeshError:
    if error.errno in FULL:
        return DiskFullError(f"disk of {log.folder} is full: {error.strerror}; make room")
    if error.errno in BUSY:
        return BusyError(f"{log} cannot be opened: {error.strerror}; try again")
    return MeshError(f"{log} cannot be written: {error.strerror}")


class Torn(NamedTuple):
    """What follows the last sound frame of a file."""

    n_bytes: int
    n_samples: int  # as its head says
    is_whole: bool  # as long as its head says: a kill does not leave this, damage does


class Segment:
    """One file of the log."""

    def __init__(self, path: Path, handle: int, salt: int, first: int, size: int) -> None:
        self.path, self.salt, self.first, self.size = path, salt, first, size
        self.last, self.n_ids = first - 1, 0
        self.torn: Torn | None = None
        self._handle: int | None = handle

    @classmethod
    def create(cls, path: Path, width: int, first: int) -> "Segment":
        """Create a file without samples."""
        salt = secrets.randbits(32)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        made = cls(path, handle, salt, first, 0)
        try:
            made.write(_head(salt, width, first))
            sync_folder(path.parent)
        except OSError:
            made.close()
            raise
        return made

    @classmethod
    def open(cls, path: Path, width: int, is_last: bool) -> "Segment | None":
        """Check a file; None for a file without a whole head, as a kill may leave the last one."""
        data = path.read_bytes()
        head = read_head(data)
        if head is None:
            if len(data) <= _HEAD.size and is_last:
                return None
            raise DamagedError(f"{path} must be a log of domkl; restore it from a backup")
        salt, found, first = head
        if found != width:
            raise DataError(
                f"{path} has samples of {found} values, and mesh.toml says {width}; restore"
                " mesh.toml, or delete the data folder to start from scratch"
            )
        end = _sound_end(path, data, salt, is_last)
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        made = cls(path, handle, salt, first, end)
        if end < len(data):
            made.torn = _torn(data, end)
        return made

    def read(self, width: int) -> Iterator[tuple[int, Entry]]:
        """Numbers and samples, in order."""
        data = self.path.read_bytes()[: self.size]
        offset = _HEAD.size
        while offset < len(data):
            _, _, length, first, count = _FRAME.unpack_from(data, offset)
            offset += _FRAME.size
            yield from enumerate(entries_of(data[offset : offset + length], count, width), first)
            offset += length

    def write(self, data: bytes) -> None:
        """Append bytes and sync them to disk."""
        assert self._handle is not None
        view, offset = memoryview(data), self.size
        while view:
            n = os.pwrite(self._handle, view, offset)
            view, offset = view[n:], offset + n
        os.fdatasync(self._handle)
        self.size = offset

    def cut(self) -> int:
        """Remove a torn end; return how many samples it held."""
        torn, self.torn = self.torn, None
        if torn is None:
            return 0
        self.truncate()
        return torn.n_samples

    def truncate(self) -> None:
        """Remove everything after the last whole frame."""
        assert self._handle is not None
        os.ftruncate(self._handle, self.size)
        os.fsync(self._handle)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def delete(self) -> None:
        """Remove the file."""
        self.close()
        self.path.unlink(missing_ok=True)


def _head(salt: int, width: int, first: int) -> bytes:
    numbers = struct.pack("<IIQ", salt, width, first)
    return _HEAD.pack(MAGIC, zlib.crc32(numbers), salt, width, first)


def read_head(data: bytes) -> tuple[int, int, int] | None:
    """Salt, values per sample and first number; None if the head is not whole."""
    if len(data) < _HEAD.size:
        return None
    _, _, salt, width, first = _HEAD.unpack_from(data)
    is_sound = data[: _HEAD.size] == _head(salt, width, first)
    return (salt, width, first) if is_sound else None


def _frame(salt: int, first: int, entries: Sequence[Entry]) -> bytes:
    """Samples as bytes, with their checksum."""
    parts = []
    for entry in entries:
        name = entry.id.encode()
        parts += [
            _ID.pack(entry.is_row, len(name)),
            name,
            np.asarray(entry.values, "<f8").tobytes(),
        ]
    body = b"".join(parts)
    tail = struct.pack("<QI", first, len(entries))
    return _FRAME.pack(MARK, zlib.crc32(tail + body, salt), len(body), first, len(entries)) + body


def entries_of(body: bytes, count: int, width: int) -> Iterator[Entry]:
    """The samples of a frame."""
    offset = 0
    for _ in range(count):
        is_row, length = _ID.unpack_from(body, offset)
        offset += _ID.size
        values = np.frombuffer(body, "<f8", width, offset + length).astype(np.float64)
        yield Entry(values, body[offset : offset + length].decode(), bool(is_row))
        offset += length + 8 * width


def sound_frames(data: bytes, salt: int) -> Iterator[tuple[int, int, int, bytes]]:
    """All sound frames of a file: offset, first number, samples, content."""
    offset = _HEAD.size
    while offset >= 0:
        if _is_sound_at(data, offset, salt):
            _, _, length, first, count = _FRAME.unpack_from(data, offset)
            start = offset + _FRAME.size
            yield offset, first, count, data[start : start + length]
            offset = start + length
        else:
            offset = data.find(MARK, offset + 1)


def _sound_end(path: Path, data: bytes, salt: int, is_last: bool) -> int:
    """Offset of the end of the last sound frame; DamagedError if a sound frame follows damage."""
    end, is_broken = _HEAD.size, False
    for offset, _, _, content in sound_frames(data, salt):
        is_broken = is_broken or offset != end
        if not is_broken:
            end = offset + _FRAME.size + len(content)
    if is_broken or (end < len(data) and not is_last):
        raise DamagedError(
            f"{path} is damaged at byte {end}, and samples that were acknowledged follow; restore"
            " it from a backup"
        )
    return end


def torn_end(data: bytes, salt: int) -> Torn | None:
    """What follows the last sound frame of a file, if anything does."""
    end = _HEAD.size
    for offset, _, _, content in sound_frames(data, salt):
        end = offset + _FRAME.size + len(content)
    return _torn(data, end) if end < len(data) else None


def _torn(data: bytes, end: int) -> Torn:
    n_bytes = len(data) - end
    if n_bytes < _FRAME.size:
        return Torn(n_bytes, 0, False)
    mark, _, length, _, count = _FRAME.unpack_from(data, end)
    is_frame = mark == MARK and count * _ID.size <= length
    is_whole = n_bytes >= _FRAME.size + length if is_frame else True
    return Torn(n_bytes, count if is_frame else 0, is_whole)


def _is_sound_at(data: bytes, offset: int, salt: int) -> bool:
    """Whether a whole frame with a correct checksum begins at this offset."""
    if offset + _FRAME.size > len(data):
        return False
    mark, checksum, length, _, _ = _FRAME.unpack_from(data, offset)
    start = offset + _FRAME.size
    if mark != MARK or start + length > len(data):
        return False
    tail = data[start - 12 : start]
    return bool(zlib.crc32(tail + data[start : start + length], salt) == checksum)
