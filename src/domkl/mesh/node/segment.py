"""One file of the journal: a head, then frames, each with a checksum."""

import os
import secrets
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from domkl.errors import DataError
from domkl.storage import sync_folder
from domkl.typing import Floats

MAGIC = b"DOMKLJ1\n"
MARK = b"\xd0\x4b\x4c\x46"

_HEAD = struct.Struct("<8sIIIQ")  # magic, checksum, salt of the frames', values, first number
_FRAME = struct.Struct("<4sIIQI")  # mark, checksum, bytes, first number, samples
_ID = struct.Struct("<BH")  # whether it is a place in a file, length


class Entry(NamedTuple):
    """A sample as it was given, in its own units."""

    values: Floats  # inputs and label, or one value of a series
    id: str = ""  # the client's, or file:row where it is a row of a file
    is_row: bool = False


class Segment:
    """One file: a head, then frames."""

    def __init__(self, path: Path, handle: int, salt: int, first: int, size: int) -> None:
        self.path, self.salt, self.first, self.size = path, salt, first, size
        self.last, self.n_ids = first - 1, 0
        self._handle: int | None = handle

    @classmethod
    def create(cls, path: Path, width: int, first: int) -> "Segment":
        """Make a file that has no samples yet."""
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
        """Check a file and cut off what was torn; None (and no file) if that is all of it."""
        data = path.read_bytes()
        head = _read_head(data)
        if head is None:
            if len(data) <= _HEAD.size and is_last:  # killed or cut off while it was made
                path.unlink()
                return None
            raise DataError(f"{path} must be a journal of domkl; restore it from a backup")
        salt, found, first = head
        if found != width:
            raise DataError(
                f"{path} has samples of {found} values, and mesh.toml says {width}; restore"
                " mesh.toml, or delete the data folder to begin anew"
            )
        end = _sound_end(path, data, salt, is_last)
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        made = cls(path, handle, salt, first, end)
        if end < len(data):
            made.truncate()
        return made

    def read(self, width: int) -> Iterator[tuple[int, Entry]]:
        """Numbers and samples, in order."""
        data = self.path.read_bytes()[: self.size]
        place = _HEAD.size
        while place < len(data):
            _, _, length, first, count = _FRAME.unpack_from(data, place)
            place += _FRAME.size
            yield from enumerate(_entries(data[place : place + length], count, width), first)
            place += length

    def write(self, data: bytes) -> None:
        """Have bytes on disk at the end of the file."""
        assert self._handle is not None
        view, place = memoryview(data), self.size
        while view:
            n = os.pwrite(self._handle, view, place)
            view, place = view[n:], place + n
        os.fdatasync(self._handle)
        self.size = place

    def truncate(self) -> None:
        """Remove what is behind the last sound frame."""
        assert self._handle is not None
        os.ftruncate(self._handle, self.size)
        os.fsync(self._handle)

    def close(self) -> None:
        """Give the file back; again is harmless."""
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


def _read_head(data: bytes) -> tuple[int, int, int] | None:
    """Salt, values per sample and first number; None where it is no whole head."""
    if len(data) < _HEAD.size:
        return None
    _, _, salt, width, first = _HEAD.unpack_from(data)
    is_sound = data[: _HEAD.size] == _head(salt, width, first)
    return (salt, width, first) if is_sound else None


def frame(salt: int, first: int, entries: Sequence[Entry]) -> bytes:
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


def _entries(body: bytes, count: int, width: int) -> Iterator[Entry]:
    place = 0
    for _ in range(count):
        is_row, length = _ID.unpack_from(body, place)
        place += _ID.size
        values = np.frombuffer(body, "<f8", width, place + length).astype(np.float64)
        yield Entry(values, body[place : place + length].decode(), bool(is_row))
        place += length + 8 * width


def _sound_end(path: Path, data: bytes, salt: int, is_last: bool) -> int:
    """Where the last sound frame ends, if nothing sound comes later."""
    end = _HEAD.size
    while _is_sound_at(data, end, salt):
        end += _FRAME.size + int(_FRAME.unpack_from(data, end)[2])
    later = data.find(MARK, end + 1)
    while later >= 0 and not _is_sound_at(data, later, salt):
        later = data.find(MARK, later + 1)
    if end < len(data) and (later >= 0 or not is_last):
        raise DataError(
            f"{path} is damaged at byte {end}, and samples that were acknowledged follow; restore"
            " it from a backup, or delete the data folder to begin anew"
        )
    return end


def _is_sound_at(data: bytes, place: int, salt: int) -> bool:
    """Whether a whole frame begins there."""
    if place + _FRAME.size > len(data):
        return False
    mark, checksum, length, _, _ = _FRAME.unpack_from(data, place)
    start = place + _FRAME.size
    if mark != MARK or start + length > len(data):
        return False
    tail = data[start - 12 : start]
    return bool(zlib.crc32(tail + data[start : start + length], salt) == checksum)
