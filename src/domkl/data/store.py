"""Where the files of data sets lie, and whether they are what they should be.

The rules of this file: a file is read whole or not at all; what is returned has a checksum that
the catalog or the cache's manifest knows; whatever else is found is an error, never passed over.
"""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from domkl.data.records import DataSet, Edition
from domkl.errors import DataError

MANIFEST = "manifest.json"


class Found(NamedTuple):
    """A file, read and known."""

    place: str  # the path, or that it is shipped
    file: str  # its name
    edition: Edition
    content: bytes  # uncompressed
    sha256: str


def cache_folder() -> Path:
    """The folder that `domkl data fetch` fills: data in the user's cache of domkl."""
    return Path(platformdirs.user_cache_dir("domkl")) / "data"


def folders(data_dir: str | Path | None = None) -> list[tuple[Path, str]]:
    """Folders where files are looked for, in this order, and why each."""
    named = os.environ.get("DOMKL_DATA")
    if data_dir is not None:
        first = [(Path(data_dir), "the folder given")]
    else:
        first = [(Path(named), "DOMKL_DATA")] if named else []
    return [*first, (cache_folder(), "the cache")]


def locate(data: DataSet, data_dir: str | Path | None = None) -> Path | None:
    """Path of the set's first file, if there is one."""
    return next(candidates(data, data_dir), None)


def candidates(data: DataSet, data_dir: str | Path | None = None) -> Iterator[Path]:
    """Paths of all files of the set, plain or .gz, in the order of folders and editions."""
    for folder, why in folders(data_dir):
        if why != "the cache":
            _check_folder(folder, why)
        for edition in data.editions:
            for name in (edition.file, f"{edition.file}.gz"):
                path = folder / name
                if _exists(path):
                    yield path


def read(data: DataSet, data_dir: str | Path | None = None) -> Found:
    """Find the set's file, read it and make sure of its checksum."""
    if data.is_shipped:
        return _shipped(data)
    path = locate(data, data_dir)
    if path is None:
        raise DataError(not_found(data, data_dir))
    return read_path(data, path)


def read_path(data: DataSet, path: Path) -> Found:
    """Read a file of the set and make sure of its checksum."""
    content = read_content(path)
    sha256 = digest(content)
    return Found(str(path), path.name, _edition(data, path, sha256), content, sha256)


def digest(content: bytes) -> str:
    """SHA-256 of these bytes."""
    return hashlib.sha256(content).hexdigest()


def read_content(path: Path) -> bytes:
    """All bytes of a file, a .gz one unpacked."""
    if path.is_dir():
        raise DataError(f"{path} must be a file, got a folder")
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path} must be a whole gzip file, got one that is cut off or damaged ({error});"
            " copy or fetch it again"
        ) from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def read_manifest(folder: Path) -> dict[str, dict[str, Any]]:
    """What was recorded of each file when it was fetched; empty if nothing was."""
    path = folder / MANIFEST
    try:
        files_ = json.loads(path.read_text())["files"]
        known = {str(name): dict(facts) for name, facts in files_.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            f"{path} must be a manifest of domkl; delete it and fetch the sets again"
        ) from None
    return known


def _check_folder(folder: Path, why: str) -> None:
    if not folder.is_dir():
        raise DataError(f"{why} must be a folder, got {folder}")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise DataError(f"{why} must be a folder that can be read, got {folder}")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        raise DataError(f"cannot look for {path}: permission denied") from None


def _edition(data: DataSet, path: Path, sha256: str) -> Edition:
    """The edition whose checksum this is, by the catalog or by the manifest."""
    for edition in data.editions:
        if edition.sha256 == sha256:
            return edition
    fetched = [f for f in read_manifest(cache_folder()).values() if f.get("set") == data.name]
    for facts in fetched:
        if facts.get("sha256") == sha256:
            return data.edition(str(facts.get("edition")))
    name = path.name.removesuffix(".gz")
    known = [e.sha256 for e in data.editions if e.file == name and e.sha256]
    known += [str(f["sha256"]) for f in fetched if f.get("file") == name]
    expected = " or ".join(known) or "one recorded when the file was fetched"
    raise DataError(
        f"{path} must have sha256 {expected}, got {sha256}; if you trust it,"
        f" domkl data fetch {data.name} --from {path} checks its content and takes it in"
    )


def _shipped(data: DataSet) -> Found:
    edition = data.editions[0]
    resource = files("domkl.data") / "files" / f"{edition.file}.gz"
    content = gzip.decompress(resource.read_bytes())
    sha256 = digest(content)
    if sha256 != edition.sha256:
        raise DataError(
            f"{edition.file} of domkl must have sha256 {edition.sha256}, got {sha256};"
            " install domkl again"
        )
    return Found("shipped with domkl", edition.file, edition, content, sha256)


def not_found(data: DataSet, data_dir: str | Path | None) -> str:
    """Say where a file was looked for, and how to get it."""
    names = ", ".join(edition.file for edition in data.editions)
    places = "; ".join(f"{folder} ({why})" for folder, why in folders(data_dir))
    return (
        f"no file of the data set {data.name} ({names}; plain or .gz) in {places};"
        f" run domkl data fetch {data.name}, or set DOMKL_DATA to the folder that has it"
    )
