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
MOST = 2**62  # numbers of samples are below

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
        self.path, self._magic, self._n_tag = path, magic, n_tag
        self._handle: int | None = None
        known: tuple[bytes, int | None] = self._read() or (bytes(n_tag), None)
        self.tag, self.number = known

    def begin(self, number: int) -> None:
        """Have a file with this number; OSError if that is impossible."""
        known = self._read()
        if known is None or known[0] != self.tag:
            write(self.path, self._record(self.tag, number), mode=0o600)
        self._handle = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        self.set(number)

    def set(self, number: int) -> None:
        """Write the number, without syncing it."""
        self.number = number
        if self._handle is not None:
            with contextlib.suppress(OSError):  # an older number is right, too
                os.pwrite(self._handle, self._record(self.tag, number), 0)

    def sync(self, number: int) -> None:
        """Have the number on disk when this returns; OSError, and the older one, if it cannot."""
        assert self._handle is not None
        os.pwrite(self._handle, self._record(self.tag, number), 0)
        os.fdatasync(self._handle)
        self.number = number

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _read(self) -> tuple[bytes, int] | None:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        tag, number = data[12:-8], int.from_bytes(data[-8:], "little")
        is_sound = len(tag) == self._n_tag and data == self._record(tag, number)
        return (tag, number) if is_sound else None

    def _record(self, tag: bytes, number: int) -> bytes:
        body = tag + number.to_bytes(8, "little")
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
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
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

    def after(self, number: int) -> Iterator[tuple[int, Floats]]:
        """Numbers and values of all samples after this one, in order."""
        if self._segments and number + 1 < self.first:
            raise DamagedError(
                f"{self} begins with sample {self.first}, and the checkpoint ends"
                f" with {number}; restore both from one backup"
            )
        for segment in self._segments:
            if segment.last > number:
                yield from ((n, entry.values) for n, entry in segment.read() if n > number)

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
        segment = Segment(self.folder / f"{first:016d}.log", secrets.randbits(32), first, 0)
        try:
            segment.open(os.O_CREAT | os.O_TRUNC)
            segment.write(_head(segment.salt, self.width, first))
            sync_folder(self.folder)
        except OSError as error:
            with contextlib.suppress(OSError):
                segment.delete()
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
        torn, headless = None, None
        for path in (paths := sorted(self.folder.glob("*.log"))):
            found = self._read(path, is_last=path == paths[-1])
            if found is None:
                headless = path
            else:
                torn = found.torn
                self._add(Segment(path, found.salt, found.first, found.end), found)
        self._check_end(saved, torn)
        if headless is not None:
            headless.unlink()
        if self._segments:
            self._segments[-1].open()
        if torn is not None:
            self._segments[-1].truncate()
            self.n_cut = torn.n_samples

    def _read(self, path: Path, is_last: bool) -> "Content | None":
        """Check a file; None for a file without a whole head, as a kill may leave the last one."""
        data = path.read_bytes()
        found = Content.of(data)
        if found is None:
            if len(data) <= _HEAD.size and is_last:
                return None
            raise DamagedError(f"{path} must be a log of domkl; restore it from a backup")
        if found.width != self.width:
            raise DataError(
                f"{path} has samples of {found.width} values, and mesh.toml says {self.width};"
                " restore mesh.toml, or delete the data folder to start from scratch"
            )
        if found.is_broken or (found.torn is not None and not is_last):
            raise DamagedError(
                f"{path} is damaged, or not in order, at byte {found.end}, and samples that were"
                " acknowledged follow; restore it from a backup"
            )
        return found

    def _add(self, segment: "Segment", found: "Content") -> None:
        if self._segments and segment.first != self.last + 1:
            raise DamagedError(
                f"{segment.path} must begin with sample {self.last + 1}, after the file before it,"
                f" got {segment.first}; restore it from a backup"
            )
        self.last = segment.last
        self._segments.append(segment)
        for number, entry in found.entries():
            self._note(segment, number, entry)

    def _check_end(self, saved: int, torn: "Torn | None") -> None:
        """Raise DamagedError if the log ends before the last acknowledged sample, or may do so."""
        known = None if self.mark is None else self.mark.number
        is_short = known is not None and max(self.last, saved) < known
        is_doubtful = known is None and torn is not None and torn.is_whole
        if is_short or is_doubtful:
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


class Segment:
    """One file of the log; the newest one is open."""

    def __init__(self, path: Path, salt: int, first: int, size: int) -> None:
        self.path, self.salt, self.first, self.size = path, salt, first, size
        self.last, self.n_ids = first - 1, 0
        self._handle: int | None = None

    def open(self, flags: int = 0) -> None:
        """Open the file to append to it."""
        self._handle = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC | flags, 0o600)

    def read(self) -> Iterator[tuple[int, Entry]]:
        """Numbers and samples, in order."""
        found = Content.of(self.path.read_bytes()[: self.size])
        return iter(()) if found is None else found.entries()

    def write(self, data: bytes) -> None:
        """Append bytes and sync them to disk."""
        assert self._handle is not None
        view, offset = memoryview(data), self.size
        while view:
            n = os.pwrite(self._handle, view, offset)
            view, offset = view[n:], offset + n
        os.fdatasync(self._handle)
        self.size = offset

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


class LogFrame(NamedTuple):
    """A whole frame with a correct checksum, whose samples can be read."""

    offset: int
    end: int  # offset of the byte after it
    first: int  # number of its first sample
    entries: list[Entry]

    @classmethod
    def at(cls, data: bytes, offset: int, salt: int, width: int) -> "LogFrame | None":
        """The frame that begins at this offset, or None."""
        start = offset + _FRAME.size
        if start > len(data) or not data.startswith(MARK, offset):
            return None
        _, checksum, length, first, count = _FRAME.unpack_from(data, offset)
        body = data[start : start + length]
        if zlib.crc32(data[start - 12 : start] + body, salt) != checksum or len(body) != length:
            return None
        entries = _entries(body, count, width) if 0 < first < MOST else None
        return None if entries is None else cls(offset, start + length, first, entries)


def _entries(body: bytes, count: int, width: int) -> list[Entry] | None:
    """The samples of a frame; None if its bytes are none, which no checksum excludes."""
    found, offset = [], 0
    try:
        for _ in range(count):
            is_row, length = _ID.unpack_from(body, offset)
            offset += _ID.size + length
            entry = Entry(
                np.frombuffer(body, "<f8", width, offset).astype(np.float64),
                body[offset - length : offset].decode(),
                bool(is_row),
            )
            if is_row:
                int(entry.id.rpartition(":")[2])
            found.append(entry)
            offset += 8 * width
    except (struct.error, ValueError):
        return None
    return found if offset == len(body) else None


class Torn(NamedTuple):
    """What follows the last sound frame of a file."""

    n_samples: int  # as its head says
    is_whole: bool  # as long as its head says: a kill does not leave this, damage does


class Content(NamedTuple):
    """What can be read of a file of the log."""

    salt: int
    width: int
    first: int
    frames: list[LogFrame]  # all that are sound
    end: int  # offset up to which there is no damage, and numbers ascend by one
    is_broken: bool  # whether sound frames follow damage, or come in another order
    torn: Torn | None

    @classmethod
    def of(cls, data: bytes) -> "Content | None":
        """Read all sound frames; None if the head of the file is not whole."""
        if len(data) < _HEAD.size:
            return None
        _, _, salt, width, first = _HEAD.unpack_from(data)
        if data[: _HEAD.size] != _head(salt, width, first):
            return None
        frames: list[LogFrame] = []
        offset = end = last = _HEAD.size
        number = first
        while offset >= 0:
            frame = LogFrame.at(data, offset, salt, width)
            if frame is None:
                offset = data.find(MARK, offset + 1)
            else:
                frames.append(frame)
                if offset == end and frame.first == number:
                    end, number = frame.end, number + len(frame.entries)
                offset = last = frame.end
        torn = _torn(data, last) if last < len(data) else None
        return cls(salt, width, first, frames, end, end < last, torn)

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """Numbers and samples, in order."""
        for frame in self.frames:
            yield from enumerate(frame.entries, frame.first)


def _head(salt: int, width: int, first: int) -> bytes:
    numbers = struct.pack("<IIQ", salt, width, first)
    return _HEAD.pack(MAGIC, zlib.crc32(numbers), salt, width, first)


def _frame(salt: int, first: int, entries: Sequence[Entry]) -> bytes:
    """Samples as bytes, with their checksum."""
    body = bytearray()
    for entry in entries:
        name = entry.id.encode()
        values = np.asarray(entry.values, "<f8").tobytes()
        body += _ID.pack(entry.is_row, len(name)) + name + values
    tail = struct.pack("<QI", first, len(entries))
    return _FRAME.pack(MARK, zlib.crc32(tail + body, salt), len(body), first, len(entries)) + body


def _torn(data: bytes, end: int) -> Torn:
    n_bytes = len(data) - end
    if n_bytes < _FRAME.size:
        return Torn(0, False)
    mark, _, length, _, count = _FRAME.unpack_from(data, end)
    is_frame = mark == MARK and count * _ID.size <= length
    is_whole = n_bytes >= _FRAME.size + length if is_frame else True
    return Torn(count if is_frame else 0, is_whole)
