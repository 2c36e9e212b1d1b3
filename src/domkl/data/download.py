"""Download a file, and find a data set's table in what was downloaded.

`download` resumes an interrupted download. What has arrived so far is in a part file; a note beside
it records the address, the total size and the server's validator (ETag or date). The part is
resumed only if the server confirms that the file has not changed, and it is complete only if its
size is the one that the server announced.

`find_table` looks into zip, tar and gzip files, nested ones included. It writes nothing to disk,
refuses archives with absolute paths or paths that contain "..", and never unpacks a file beyond
`MAX_UNPACKED` bytes.
"""

import gzip
import hashlib
import http.client
import io
import json
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from domkl.data.catalog import DataSet, Edition
from domkl.errors import DataError, ParameterError

#: called with the bytes received so far and the total if it is known; may raise to stop
Progress = Callable[[int, int | None], None]

#: seconds to wait for an answer of the server
TIMEOUT = 30.0
#: largest size of a download, in bytes; the largest we know has some 33 million
MAX_DOWNLOAD = 1 << 29
_CHUNK = 1 << 16


def is_address(source: str) -> bool:
    """Whether this is an http(s) address rather than a file name; other schemes are refused.

    Examples
    --------
    >>> is_address("https://example.org/a.zip"), is_address("downloads/a.zip")
    (True, False)
    """
    if source.lower().startswith(("http://", "https://")):
        return True
    if "://" in source:
        raise ParameterError(f"from must be a file or an http(s) address, got {source}")
    return False


def download(address: str, part: Path, progress: Progress) -> None:
    """Download the file at this address into the part file.

    Resumes an earlier download by a Range request with If-Range, and starts again when the server
    does not support that or has another file by now. Raises DataError when the file cannot be
    downloaded completely; the part file then stays for the next attempt.
    """
    note = _read_note(part, address)
    have = part.stat().st_size if note and part.exists() else 0
    if have and have == note["total"]:  # complete; only unpacking was interrupted
        progress(have, have)
        return
    try:
        with _open(address, have, note) as response:
            _receive(response, address, part, note, progress)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and have:  # the part is as long as the file, or the file has changed
            discard(part)
            download(address, part, progress)
            return
        raise DataError(f"{address} answered {error.code} {error.reason}; {_REMEDY}") from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(f"cannot download {address}: {reason}; {_REMEDY}") from None


_REMEDY = (
    "run it again to go on, or download it by other means and give the file or another address"
    " with --from"
)


def discard(part: Path) -> None:
    """Remove a part file and its note."""
    part.unlink(missing_ok=True)
    _note(part).unlink(missing_ok=True)


def _open(address: str, have: int, note: dict[str, Any]) -> Any:
    headers = {"User-Agent": "domkl", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if note.get("validator"):
            headers["If-Range"] = note["validator"]
    opener = urllib.request.OpenerDirector()  # without file: and ftp:, redirects included
    for handler in (
        urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler,
        urllib.request.HTTPRedirectHandler, urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor, urllib.request.UnknownHandler,
    ):  # fmt: skip
        opener.add_handler(handler())
    return opener.open(urllib.request.Request(address, headers=headers), timeout=TIMEOUT)


def _receive(
    response: Any, address: str, part: Path, note: dict[str, Any], progress: Progress
) -> None:
    start, total = _span(response)
    is_continued = start > 0 and start == part.stat().st_size and total == note.get("total")
    if start and not is_continued:
        discard(part)
        raise DataError(f"{address} sent another part than was asked for; run it again")
    if total is not None and total > MAX_DOWNLOAD:
        raise DataError(f"{address} must have at most {MAX_DOWNLOAD} bytes, got {total}")
    if not start:
        _write_note(part, address, response, total)
    done = start
    with part.open("ab" if start else "wb") as file:
        progress(done, total)
        while chunk := response.read(_CHUNK):
            file.write(chunk)
            done += len(chunk)
            if done > MAX_DOWNLOAD:
                raise DataError(f"{address} must have at most {MAX_DOWNLOAD} bytes, got more")
            progress(done, total)
    if total is not None and done != total:
        raise DataError(f"{address} must have {total} bytes, got {done}; {_REMEDY}")


def _span(response: Any) -> tuple[int, int | None]:
    """Where the body starts in the file, and the file's size if the server tells it."""
    if response.status == 206:
        span = response.headers.get("Content-Range", "")  # bytes 5-9/10
        try:
            first, total = span.removeprefix("bytes ").split("-")[0], span.split("/")[1]
            return int(first), int(total)
        except (IndexError, ValueError):
            raise DataError(f"the server sent a part without saying which: {span!r}") from None
    length = response.headers.get("Content-Length")
    return 0, int(length) if length and length.isdigit() else None


def _note(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _read_note(part: Path, address: str) -> dict[str, Any]:
    """The note of a part file; empty if there is none, or if it is about another address."""
    try:
        note = json.loads(_note(part).read_text())
    except (FileNotFoundError, ValueError):
        return {}
    is_ours = isinstance(note, dict) and note.get("address") == address and note.get("total")
    return note if is_ours else {}


def _write_note(part: Path, address: str, response: Any, total: int | None) -> None:
    tag = response.headers.get("ETag", "")
    is_strong = tag and not tag.startswith("W/")  # a weak tag does not promise equal bytes
    validator = tag if is_strong else response.headers.get("Last-Modified")
    part.unlink(missing_ok=True)  # so that an old part never gets a new note
    text = json.dumps({"address": address, "validator": validator, "total": total})
    _note(part).write_text(text)


#: largest size of an unpacked file, in bytes; the largest we know has some 180 million
MAX_UNPACKED = 1 << 30
_NESTED = (".zip", ".tar", ".tar.gz", ".tgz", ".gz")
_DEPTH = 5  # levels of nesting: a table in a gzip in a tar in a gzip in a zip
_BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, RuntimeError,
    NotImplementedError,
)  # fmt: skip


class Member(NamedTuple):
    """A file in an archive."""

    name: str
    read: Callable[[], bytes]


class Unpacked(NamedTuple):
    """A table that was found: its edition, its bytes, and its name in the archive."""

    edition: Edition
    content: bytes
    name: str


def find_table(raw: bytes, name: str, data: DataSet) -> Unpacked:
    """Find the data set's table in the bytes of a file called ``name``."""
    try:
        found = _find(raw, name, data, _DEPTH)
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


def _find(
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
        return _find(inner, plain, data, depth - 1, is_given)
    if raw[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            return _choose(_tar_members(tar), data, depth)
    edition = _edition_of(raw, name, data, is_given)
    return None if edition is None else Unpacked(edition, raw, name)


def _edition_of(raw: bytes, name: str, data: DataSet, is_given: bool) -> Edition | None:
    """The edition of a table, by its checksum or by its name.

    A table that the user gave and that has neither is taken for UCI's.
    """
    sha256, base = hashlib.sha256(raw).hexdigest(), PurePosixPath(name).name
    same = [edition for edition in data.editions if edition.sha256 == sha256]
    named = [edition for edition in data.editions if edition.file == base]
    other = [edition for edition in data.editions if edition.is_in_archive and is_given]
    return next(iter(same + named + other), None)


def _choose(members: Iterable[Member], data: DataSet, depth: int) -> Unpacked | None:
    """The member that is a file of the data set, or that is in an archive within this one."""
    by_base = {PurePosixPath(member.name).name: member for member in members}
    wanted = [base for e in data.editions for base in (e.file, f"{e.file}.gz")]
    nested = [base for base in by_base if base.endswith(_NESTED)]
    for base in wanted + nested:
        if base in by_base:
            found = _find(by_base[base].read(), base, data, depth - 1, is_given=False)
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
    """All bytes of an open file; an error if there are more than `MAX_UNPACKED`."""
    with file as stream:
        content = stream.read(MAX_UNPACKED + 1)
    _check_size(name, len(content))
    return content


def _check_size(name: str, size: int) -> None:
    if size > MAX_UNPACKED:
        raise DataError(f"{name} must unpack to at most {MAX_UNPACKED} bytes, got {size} or more")


def _check_path(name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name:
        raise DataError(f"an archive must have plain relative paths, got {name!r}")
