"""The table inside whatever was downloaded: a zip, a tar or gzip file in it, or the table itself.

The rules of this file: nothing is written; no path of an archive is followed; no file is unpacked
beyond a stated size.
"""

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple

from domkl.data.records import DataSet, Edition
from domkl.data.store import digest
from domkl.errors import DataError

#: bytes that a file may have when unpacked; the largest we know has some 180 million
LIMIT = 1 << 30
_NESTED = (".zip", ".tar", ".tar.gz", ".tgz", ".gz")
_DEPTH = 5  # a table in a gzip in a tar in a gzip in a zip
_BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, RuntimeError,
    NotImplementedError,
)  # fmt: skip


class Member(NamedTuple):
    """A file in an archive."""

    name: str
    read: Callable[[], bytes]


class Unpacked(NamedTuple):
    """A table found: which edition by its name, and its bytes."""

    edition: Edition
    content: bytes
    name: str


def unpack(raw: bytes, name: str, data: DataSet) -> Unpacked:
    """Find the set's table in these bytes, of a file called ``name``."""
    try:
        found = _unpack(raw, name, data, _DEPTH)
    except DataError:
        raise
    except _BROKEN as error:
        raise DataError(
            f"{name} must be a whole archive, got one that is cut off or damaged ({error});"
            " download it again"
        ) from None
    if found is None:
        wanted = " or ".join(edition.file for edition in data.editions)
        raise DataError(f"{name} must have the file {wanted} in it, got none")
    return found


def _unpack(
    raw: bytes, name: str, data: DataSet, depth: int, is_given: bool = True
) -> Unpacked | None:
    if depth == 0:
        raise DataError(f"{name} must not have archives so deep within archives")
    if raw[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return _choose(_zip_members(archive), data, depth)
    if raw[:2] == b"\x1f\x8b":
        inner = _capped(gzip.GzipFile(fileobj=io.BytesIO(raw)), name)
        plain = name.removesuffix(".gz").removesuffix(".tgz")
        return _unpack(inner, plain, data, depth - 1, is_given)
    if raw[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            return _choose(_tar_members(tar), data, depth)
    edition = _edition(raw, name, data, is_given)
    return None if edition is None else Unpacked(edition, raw, name)


def _edition(raw: bytes, name: str, data: DataSet, is_given: bool) -> Edition | None:
    """Edition of a bare table: by its checksum, or its name; one given is else taken for UCI's."""
    sha256, base = digest(raw), PurePosixPath(name).name
    same = [edition for edition in data.editions if edition.sha256 == sha256]
    named = [edition for edition in data.editions if edition.file == base]
    other = [edition for edition in data.editions if edition.is_in_archive and is_given]
    return next(iter(same + named + other), None)


def _choose(members: Iterable[Member], data: DataSet, depth: int) -> Unpacked | None:
    """The member that is a file of the set, or lies in an archive within this one."""
    by_base = {PurePosixPath(member.name).name: member for member in members}
    wanted = [base for e in data.editions for base in (e.file, f"{e.file}.gz")]
    nested = [base for base in by_base if base.endswith(_NESTED)]
    for base in wanted + nested:
        if base in by_base:
            found = _unpack(by_base[base].read(), base, data, depth - 1, is_given=False)
            if found is not None:
                return found
    return None


def _zip_members(archive: zipfile.ZipFile) -> Iterable[Member]:
    for info in archive.infolist():
        _check_path(info.filename)
        if not info.is_dir():
            _check_size(info.filename, info.file_size)
            yield Member(info.filename, partial(_read, archive.open, info))


def _tar_members(archive: tarfile.TarFile) -> Iterable[Member]:
    for info in archive:
        _check_path(info.name)
        if info.isfile():
            _check_size(info.name, info.size)
            yield Member(info.name, partial(_read, archive.extractfile, info))


def _read(opened: Callable[[Any], Any], info: Any) -> bytes:
    return _capped(opened(info), getattr(info, "filename", None) or info.name)


def _capped(file: IO[bytes] | gzip.GzipFile, name: str) -> bytes:
    """All bytes of an open file, unless they are too many."""
    with file as stream:
        content = stream.read(LIMIT + 1)
    _check_size(name, len(content))
    return content


def _check_size(name: str, size: int) -> None:
    if size > LIMIT:
        raise DataError(f"{name} must unpack to at most {LIMIT} bytes, got {size} or more")


def _check_path(name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name:
        raise DataError(f"an archive must have plain relative paths, got {name!r}")
