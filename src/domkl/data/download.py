"""Download a file, and find a data set's table in what was downloaded.

`download` keeps the file in memory: the largest that we know has 33 MB. It goes on after a lost
connection if the server confirms that the file has not changed, and it is complete only if its size
is the one that the server announced.

`find_table` looks into zip, tar and gzip files, nested ones included. It writes nothing to disk,
refuses archives with absolute paths or paths that contain "..", and never unpacks a file beyond
`MAX_UNPACKED` bytes.
"""

import gzip
import hashlib
import http.client
import io
import re
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple

from domkl.data.catalog import DataSet, Edition
from domkl.data.cells import MAX_UNPACKED
from domkl.errors import DataError, ParameterError

#: called with the bytes received so far and the total if it is known; may raise to stop
Progress = Callable[[int, int | None], None]

#: seconds to wait for an answer of the server
TIMEOUT = 30.0
#: largest size of a download, in bytes; the largest we know has some 33 million
MAX_DOWNLOAD = 1 << 29
#: connections that are opened for a file, if each brings some of it
ATTEMPTS = 5
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


def download(address: str, progress: Progress) -> bytes:
    """Download the file at this address into memory.

    If the connection is lost, asks for the rest of the file, by a Range request with If-Range; the
    file is taken from the start where the server does not support that or has another file by now.
    Raises DataError when the file cannot be downloaded completely in `ATTEMPTS` connections.
    """
    body, validator, lost = bytearray(), "", ""
    for _ in range(ATTEMPTS):
        have = len(body) if validator else 0
        try:
            with _open(address, have, validator) as response:
                validator = _validator(response)
                if response.status != 206 or _first(response) != have:
                    body.clear()
                _receive(response, address, body, progress)
                return bytes(body)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416 and have:  # the file has become shorter
                validator = ""
                continue
            raise DataError(f"{address} answered {error.code} {error.reason}; {_REMEDY}") from None
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, OSError) as error:
            lost = str(getattr(error, "reason", None) or error)
            if len(body) == have:  # nothing came: there is no connection
                break
    raise DataError(f"cannot download {address}: {lost}; {_REMEDY}")


_REMEDY = (
    "run it again, or download it by other means and give the file or another address with --from"
)


def _open(address: str, have: int, validator: str) -> Any:
    headers = {"User-Agent": "domkl", "Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    opener = urllib.request.OpenerDirector()  # without file: and ftp:, redirects included
    for handler in (
        urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler,
        urllib.request.HTTPRedirectHandler, urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor, urllib.request.UnknownHandler,
    ):  # fmt: skip
        opener.add_handler(handler())
    return opener.open(urllib.request.Request(address, headers=headers), timeout=TIMEOUT)


def _validator(response: Any) -> str:
    """What tells this file from another of its name; '' if the server says nothing reliable."""
    tag = response.headers.get("ETag", "")
    is_strong = tag and not tag.startswith("W/")  # a weak tag does not promise equal bytes
    return str(tag if is_strong else response.headers.get("Last-Modified", ""))


def _first(response: Any) -> int:
    """Where a part starts in the file; -1 if the server does not tell."""
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(found[1]) if found else -1


def _receive(response: Any, address: str, body: bytearray, progress: Progress) -> None:
    """Add what comes to the body; an error if it is less than the server announced."""
    length = response.headers.get("Content-Length", "")
    total = len(body) + int(length) if length.isdigit() else None
    progress(len(body), total)
    while chunk := response.read(_CHUNK):
        body += chunk
        if max(len(body), total or 0) > MAX_DOWNLOAD:
            size = total or "more"
            raise DataError(f"{address} must have at most {MAX_DOWNLOAD} bytes, got {size}")
        progress(len(body), total)
    if total is not None and len(body) != total:
        raise ConnectionError(f"the file has {total} bytes, got {len(body)}")


_NESTED = (".zip", ".tar", ".tar.gz", ".tgz", ".gz")
_DEPTH = 5  # levels of nesting: a table in a gzip in a tar in a gzip in a zip
_BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, RuntimeError,
    NotImplementedError,
)  # fmt: skip


class Unpacked(NamedTuple):
    """A table that was found: its edition, its bytes, and its name in the archive."""

    edition: Edition
    content: bytes
    name: str


def find_table(raw: bytes, name: str, data: DataSet) -> Unpacked:
    """Find the data set's table in the bytes of a file called ``name``."""
    try:
        found = _find(raw, name, data, _DEPTH)
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
    """The table in a file, or in an archive within it; ``is_given`` if the user named the file."""
    if depth == 0:
        raise DataError(f"{name} must not have archives so deep within archives")
    if raw[:2] == b"\x1f\x8b":
        inner = _capped(gzip.GzipFile(fileobj=io.BytesIO(raw)), name)
        plain = name.removesuffix(".gz").removesuffix(".tgz")
        return _find(inner, plain, data, depth - 1, is_given)
    members = _members(raw)
    if members is None:
        edition = _edition_of(raw, name, data, is_given)
        return None if edition is None else Unpacked(edition, raw, name)
    wanted = [base for e in data.editions for base in (e.file, f"{e.file}.gz")]
    nested = [base for base in members if base.endswith(_NESTED)]
    for base in wanted + nested:
        if base in members:
            found = _find(_capped(members[base](), base), base, data, depth - 1, is_given=False)
            if found is not None:
                return found
    return None


def _members(raw: bytes) -> dict[str, Callable[[], Any]] | None:
    """What opens each file of a zip or tar archive, by its name; None for any other file."""
    found: list[tuple[str, int, Callable[[], Any] | None]]
    if raw[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        archive = zipfile.ZipFile(io.BytesIO(raw))
        found = [
            (info.filename, info.file_size, None if info.is_dir() else partial(archive.open, info))
            for info in archive.infolist()
        ]
    elif raw[257:262] == b"ustar":
        tar = tarfile.open(fileobj=io.BytesIO(raw))  # noqa: SIM115  it holds no file
        found = [
            (info.name, info.size, partial(tar.extractfile, info) if info.isfile() else None)
            for info in tar
        ]
    else:
        return None
    for name, size, opens in found:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or set(name) & set("\\:\0"):
            raise DataError(f"an archive must have plain relative paths, got {name!r}")
        if opens is not None:
            _check_size(name, size)
    return {PurePosixPath(name).name: opens for name, _, opens in found if opens is not None}


def _edition_of(raw: bytes, name: str, data: DataSet, is_given: bool) -> Edition | None:
    """The edition of a table, by its checksum or by its name.

    A table that the user gave and that has neither is taken for UCI's.
    """
    sha256, base = hashlib.sha256(raw).hexdigest(), PurePosixPath(name).name
    same = [edition for edition in data.editions if edition.sha256 == sha256]
    named = [edition for edition in data.editions if edition.file == base]
    other = [edition for edition in data.editions if edition.is_in_archive and is_given]
    return next(iter(same + named + other), None)


def _capped(file: IO[bytes] | gzip.GzipFile, name: str) -> bytes:
    """All bytes of an open file; an error if there are more than `MAX_UNPACKED`."""
    with file as stream:
        content = stream.read(MAX_UNPACKED + 1)
    _check_size(name, len(content))
    return content


def _check_size(name: str, size: int) -> None:
    if size > MAX_UNPACKED:
        raise DataError(f"{name} must unpack to at most {MAX_UNPACKED} bytes, got {size} or more")
