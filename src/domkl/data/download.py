"""Download a file, go on where an earlier try stopped, and never take half for whole.

The rules of this file: what has come so far lies in a part file, with a note beside it of what it
is a part of; it is continued only if the server says that it is still the same file; it is
complete only if its size is the one announced.
"""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from domkl.errors import DataError, ParameterError

#: called with bytes so far and bytes in all, where known; may raise to stop
Progress = Callable[[int, int | None], None]

#: seconds without any answer
TIMEOUT = 30.0
#: bytes that a download may have; the largest we know has some 33 million
LIMIT = 1 << 29
_CHUNK = 1 << 16


def is_address(source: str) -> bool:
    """Whether this is an http(s) address; any other address is refused, all else is a file.

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
    """Fill the part file with what lies at the address.

    Continues an earlier try by a Range request with If-Range; starts anew when the server does not
    take part in that, or has another file by now. Raises DataError when it cannot be had whole;
    the part file then stays, for the next try.
    """
    note = _read_note(part, address)
    have = part.stat().st_size if note and part.exists() else 0
    if have and have == note["total"]:  # whole, but not yet unpacked
        progress(have, have)
        return
    try:
        with _open(address, have, note) as response:
            _receive(response, address, part, note, progress)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and have:  # nothing left to send, or another file
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
    opener = urllib.request.OpenerDirector()  # no file:, no ftp:, wherever a redirect leads
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
    if total is not None and total > LIMIT:
        raise DataError(f"{address} must have at most {LIMIT} bytes, got {total}")
    if not start:
        _write_note(part, address, response, total)
    done = start
    with part.open("ab" if start else "wb") as file:
        progress(done, total)
        while chunk := response.read(_CHUNK):
            file.write(chunk)
            done += len(chunk)
            if done > LIMIT:
                raise DataError(f"{address} must have at most {LIMIT} bytes, got more")
            progress(done, total)
    if total is not None and done != total:
        raise DataError(f"{address} must have {total} bytes, got {done}; {_REMEDY}")


def _span(response: Any) -> tuple[int, int | None]:
    """Where the body starts in the file, and the file's size if told."""
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
    """What the part is a part of; empty if of something else, or if nobody knows."""
    try:
        note = json.loads(_note(part).read_text())
    except (FileNotFoundError, ValueError):
        return {}
    is_mine = isinstance(note, dict) and note.get("address") == address and note.get("total")
    return note if is_mine else {}


def _write_note(part: Path, address: str, response: Any, total: int | None) -> None:
    tag = response.headers.get("ETag", "")
    is_strong = tag and not tag.startswith("W/")  # a weak one does not vouch for bytes
    validator = tag if is_strong else response.headers.get("Last-Modified")
    part.unlink(missing_ok=True)  # never an old part with a new note
    text = json.dumps({"address": address, "validator": validator, "total": total})
    _note(part).write_text(text)
