"""Bring a data set into the user's cache: download, unpack, check, and only then keep.

The rules of this file: under the name of a data file there is a whole, checked file or none; what
is kept has its checksum in the manifest; only a part of a download outlives a failure, and not one
whose content turned out to be wrong.
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from domkl import storage
from domkl.data.content import check_content
from domkl.data.download import Progress, discard, download, is_address
from domkl.data.records import DataSet
from domkl.data.store import MANIFEST, cache_folder, digest, read_manifest
from domkl.data.unpack import Unpacked, unpack
from domkl.errors import DataError


class Fetched(NamedTuple):
    """A file in the cache, and what was found to hold."""

    name: str  # of the set
    edition: str
    path: Path
    sha256: str
    size: int
    origin: str  # address, or name of the file given
    checked: list[str]


def fetch(
    data: DataSet, source: str | None = None, progress: Progress = lambda done, total: None
) -> Fetched:
    """Put a set's file into the cache, from UCI, from another address, or from a file.

    Raises DataError when it cannot be had or is not what it should be; the cache then holds what it
    held before, and perhaps the part of a download to go on with.
    """
    if data.is_shipped:
        raise DataError(f"{data.name} ships with domkl; there is nothing to fetch")
    origin = data.origin.archive if source is None else source
    with _writable(cache_folder()) as folder:
        if not is_address(origin):
            path = Path(origin)
            return _keep(folder, data, _read(path), path.name)
        part = folder / f"{data.name}.part"
        download(origin, part, progress)
        name = origin.split("?")[0].rstrip("/").rsplit("/", 1)[-1]
        try:
            kept = _keep(folder, data, part.read_bytes(), name, origin)
        except DataError:
            discard(part)
            raise
        discard(part)
        return kept


def _keep(folder: Path, data: DataSet, raw: bytes, name: str, origin: str | None = None) -> Fetched:
    """Unpack, check, and move into the cache."""
    found = unpack(raw, name, data)
    where = f"{found.name} of {name}" if found.name != name else name
    checked = check_content(found.content, data, found.edition, where)
    sha256 = digest(found.content)
    checked.append(_against_catalog(found, sha256))
    path = folder / found.edition.file
    kept = Fetched(
        data.name, found.edition.name, path, sha256, len(found.content), origin or name, checked
    )
    _store(folder, kept, found.content)
    return kept


def _against_catalog(found: Unpacked, sha256: str) -> str:
    if found.edition.sha256 is None:
        return "sha256 recorded; the catalog has none"
    if found.edition.sha256 == sha256:
        return "sha256 as in the catalog"
    return "sha256 recorded; the catalog has another"


def _store(folder: Path, kept: Fetched, content: bytes) -> None:
    """Write the file beside its place, note it in the manifest, and give it its name."""
    known = read_manifest(folder)
    known[kept.path.name] = {
        "set": kept.name,
        "edition": kept.edition,
        "file": kept.path.name,
        "sha256": kept.sha256,
        "size": kept.size,
        "origin": kept.origin,
        "checked": kept.checked,
    }
    manifest = json.dumps({"version": 1, "files": known}, indent=1).encode()
    with storage.replacing(kept.path) as file:
        file.write(content)
        storage.write(folder / MANIFEST, manifest)  # the file takes its name after this


@contextmanager
def _writable(folder: Path) -> Iterator[Path]:
    """The folder, made if need be, for one process at a time; its failures as DataError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise DataError(
            f"the cache must be a folder that can be written, got {folder}:"
            f" {error.strerror or error}"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"another domkl is fetching into {folder}; wait for it") from None
        except OSError:
            pass  # a file system without locks
        try:
            for draft in folder.glob(".*.part"):  # of a process that was killed
                draft.unlink()
            yield folder
        except OSError as error:
            raise DataError(f"cannot write into {folder}: {error.strerror or error}") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def cached(data: DataSet) -> Fetched | None:
    """The set's file in the cache, if it is there and has the checksum it was fetched with."""
    folder = cache_folder()
    for name, facts in read_manifest(folder).items():
        path = folder / name
        if facts.get("set") == data.name and path.is_file():
            content = _read(path)
            if digest(content) == facts.get("sha256"):
                given = (str(facts.get(key)) for key in ("edition", "sha256", "origin"))
                edition, sha256, origin = given
                checked = [str(each) for each in facts.get("checked", ())]
                return Fetched(data.name, edition, path, sha256, len(content), origin, checked)
    return None
