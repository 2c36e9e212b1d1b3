"""The files of data sets: where they are found, whether they are sound, and how they are fetched.

A file is looked for in the folder that the caller names (or in the folder that the environment
variable ``DOMKL_DATA`` names), then in the user's cache. `fetch` fills the cache. A set of stations
has a file for each of them: all or none. They may stand in a folder with the name of the set, or in
one of that name in a folder ``nodes``.

Invariants:

- A file is read whole or not at all. What `read` returns has a checksum that either the catalog or
  the cache's manifest knows; any other file is an error.
- In the cache, a data file is complete and checked when it appears under its name, and its checksum
  is in the manifest before that.
- After a failed fetch the cache contains what it contained before.
"""

import gzip
import hashlib
import itertools
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from domkl import storage
from domkl.data.catalog import DataSet, Edition
from domkl.data.download import Progress, download, find_table, is_address
from domkl.data.tables import check_content
from domkl.errors import DataError
from domkl.text import from_json

try:
    import fcntl
except ModuleNotFoundError:  # Windows: two fetches at the same time are not kept apart there
    fcntl = None  # type: ignore[assignment]

MANIFEST = "manifest.json"


class Found(NamedTuple):
    """A file that was read and recognised."""

    place: str  # the path, or that it is shipped
    file: str  # its name
    edition: Edition
    content: bytes  # uncompressed
    sha256: str


class Fetched(NamedTuple):
    """A file in the cache, and the checks that it passed."""

    name: str  # of the data set
    edition: str
    path: Path
    sha256: str
    size: int
    origin: str  # the address, or the name of the file given
    checked: list[str]


def cache_folder() -> Path:
    """The folder that `fetch` fills: ``data`` in the user's cache folder of domkl."""
    return Path(platformdirs.user_cache_dir("domkl")) / "data"


def locate(data: DataSet, data_dir: str | Path | None = None) -> Path | None:
    """Path of the data set's first file, if there is one; of stations, if all are there."""
    paths = _paths(data, data_dir)
    return paths[0] if paths else None


def _paths(data: DataSet, data_dir: str | Path | None) -> list[Path]:
    """The file of the data set that is found first, or that of each station; none if one lacks."""
    if not data.stations:
        return list(itertools.islice(candidates(data, data_dir), 1))
    found: dict[str, Path] = {}
    for path in candidates(data, data_dir):
        found.setdefault(path.name.removesuffix(".gz"), path)
    return [found[e.file] for e in data.editions] if len(found) == len(data.editions) else []


def candidates(data: DataSet, data_dir: str | Path | None = None) -> Iterator[Path]:
    """Paths of all files of the data set, plain or .gz, in the order of folders and editions."""
    for folder, why in _folders(data_dir):
        if why != "the cache" and not folder.is_dir():
            raise DataError(f"{why} must be an existing folder, got {folder}")
        if why != "the cache" and not os.access(folder, os.R_OK | os.X_OK):
            raise DataError(f"{why} must be a folder that can be read, got {folder}")
        own = (folder / data.name, folder / "nodes" / data.name) if data.stations else ()
        for place, edition in itertools.product((folder, *own), data.editions):
            for name in (edition.file, f"{edition.file}.gz"):
                path = place / name
                try:
                    if path.exists():
                        yield path
                except PermissionError:
                    raise DataError(f"cannot look for {path}: permission denied") from None


def not_found(data: DataSet, data_dir: str | Path | None) -> str:
    """Say where a file was looked for, and how to get it."""
    names = ", ".join(edition.file for edition in data.editions)
    if data.stations:
        names = f"{len(data.editions)} files such as {data.editions[0].file}"
    places = "; ".join(f"{folder} ({why})" for folder, why in _folders(data_dir))
    what = "not all files" if data.stations else "no file"
    return (
        f"{what} of the data set {data.name} ({names}; plain or .gz) in {places};"
        f" run domkl data fetch {data.name}, or set DOMKL_DATA to the folder that has it"
    )


def read(data: DataSet, data_dir: str | Path | None = None) -> list[Found]:
    """Read the data set's file, or that of each station in the catalog's order, and check them."""
    if data.is_shipped:
        return [_read_shipped(data)]
    paths = _paths(data, data_dir)
    if not paths:
        raise DataError(not_found(data, data_dir))
    found = [read_path(data, path) for path in paths]
    for each, edition in zip(found, data.editions if data.stations else (), strict=False):
        if each.edition.name != edition.name:
            raise DataError(f"{each.place} must be of {edition.name}, got {each.edition.name}")
    return found


def read_path(data: DataSet, path: Path) -> Found:
    """Read a file of the data set and check its checksum."""
    content = _read_content(path)
    sha256 = digest(content)
    return Found(str(path), path.name, _edition_of(data, path, sha256), content, sha256)


def digest(content: bytes) -> str:
    """SHA-256 of these bytes."""
    return hashlib.sha256(content).hexdigest()


def read_manifest(folder: Path) -> dict[str, dict[str, Any]]:
    """What was recorded of each file when it was fetched; empty if nothing was."""
    path = folder / MANIFEST
    try:
        entries = from_json(path.read_text())["files"]
        known = {str(name): dict(facts) for name, facts in entries.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            f"{path} must be a manifest of domkl; delete it and fetch the sets again"
        ) from None
    return known


def _folders(data_dir: str | Path | None = None) -> list[tuple[Path, str]]:
    """Folders where files are looked for, in this order, each with the reason why."""
    named = os.environ.get("DOMKL_DATA")
    if data_dir is not None:
        first = [(Path(data_dir), "data_dir")]
    else:
        first = [(Path(named), "DOMKL_DATA")] if named else []
    return [*first, (cache_folder(), "the cache")]


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def _read_content(path: Path) -> bytes:
    """All bytes of a file; a .gz file is decompressed."""
    if path.is_dir():
        raise DataError(f"{path} must be a file, got a folder")
    raw = _read_bytes(path)
    try:
        return gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path} must be a whole gzip file, got one that is cut off or damaged ({error});"
            " copy or fetch it again"
        ) from None


def _read_shipped(data: DataSet) -> Found:
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


def _edition_of(data: DataSet, path: Path, sha256: str) -> Edition:
    """The edition with this checksum, according to the catalog or the manifest."""
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


def fetch(
    data: DataSet, source: str | None = None, progress: Progress = lambda done, total: None
) -> Fetched:
    """Put a data set's file into the cache, from UCI, from another address, or from a file.

    Raises DataError when the file cannot be obtained or fails a check.
    """
    if data.is_shipped:
        raise DataError(f"{data.name} ships with domkl; there is nothing to fetch")
    origin = data.origin.archive if source is None else source
    with _writable(cache_folder()) as folder:
        if not is_address(origin):
            path = Path(origin)
            return _add(folder, data, [_read_bytes(path)], [path.name], path.name)
        if origin.endswith("/") and data.stations:
            names = [edition.file for edition in data.editions]
            raws = [download(f"{origin}{name}", progress) for name in names]
            return _add(folder, data, raws, names, origin)
        name = origin.split("?")[0].rstrip("/").rsplit("/", 1)[-1]
        return _add(folder, data, [download(origin, progress)], [name], origin)


def cached(data: DataSet) -> Fetched | None:
    """The data set's file in the cache, if it still has the checksum that it was fetched with."""
    found = list(_all_cached(data))
    if not data.stations:
        return next(iter(found), None)
    return _together(data, found) if len(found) == len(data.editions) else None


def _all_cached(data: DataSet) -> Iterator[Fetched]:
    folder = cache_folder()
    for name, facts in read_manifest(folder).items():
        path = folder / name
        if facts.get("set") == data.name and path.is_file():
            content = _read_bytes(path)
            if digest(content) == facts.get("sha256"):
                keys = ("edition", "sha256", "origin", "checked")
                told: Any = {key: facts.get(key, "") for key in keys}
                yield Fetched(data.name, path=path, size=len(content), **told)


def _together(data: DataSet, fetched: list[Fetched]) -> Fetched:
    """The files of a set of stations as one."""
    first, n = fetched[0], len(fetched)
    return Fetched(
        data.name,
        f"{n} stations",
        first.path.parent,
        digest("".join(each.sha256 for each in fetched).encode()),
        sum(each.size for each in fetched),
        first.origin,
        [f"{n} files", *dict.fromkeys(said for each in fetched for said in each.checked)],
    )


def _add(folder: Path, data: DataSet, raws: list[bytes], names: list[str], origin: str) -> Fetched:
    """Unpack the table or those of all stations, check them, and write them into the cache.

    Stations have a file each, or are all in one archive; all of them are written, or none.
    """
    wanted = [data]
    if data.stations:
        wanted = [replace(data, editions=(each,)) for each in data.editions]
        n_each = len(wanted) // len(raws)
        raws, names = raws * n_each, names * n_each
    made = []
    for each, raw, name in zip(wanted, raws, names, strict=True):
        edition, content, inner = find_table(raw, name, each)
        where = f"{inner} of {name}" if inner != name else name
        checked, sha256 = check_content(content, each, edition, where), digest(content)
        known = {None: "recorded; the catalog has none", sha256: "as in the catalog"}
        checked.append(f"sha256 {known.get(edition.sha256, 'recorded; the catalog has another')}")
        path = folder / edition.file
        facts = (data.name, edition.name, path, sha256, len(content), origin, checked)
        made.append((Fetched(*facts), content))
    for fetched, content in made:
        _write(folder, fetched, content)
    return _together(data, [fetched for fetched, _ in made]) if data.stations else made[0][0]


def _write(folder: Path, fetched: Fetched, content: bytes) -> None:
    """Write the file and its entry in the manifest."""
    known, file = read_manifest(folder), fetched.path.name
    facts = fetched._asdict()
    facts |= {"set": facts.pop("name"), "file": facts.pop("path").name}
    manifest = json.dumps({"version": 1, "files": known | {file: facts}}, indent=1).encode()
    with storage.replacing(fetched.path) as draft:
        draft.write(content)
        storage.write(folder / MANIFEST, manifest)  # before the file appears under its name


@contextmanager
def _writable(folder: Path) -> Iterator[Path]:
    """The folder, created if need be and locked for this process; OSError becomes DataError."""
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
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"another domkl is fetching into {folder}; wait for it") from None
        except OSError:
            pass  # a file system without locks
        try:
            for pattern in ("*.part", "*.part.json", ".domkl-*"):  # the latter two by domkl < 0.3
                for draft in folder.glob(pattern):
                    draft.unlink()  # left by a process that was killed
            yield folder
        except OSError as error:
            raise DataError(f"cannot write into {folder}: {error.strerror or error}") from None
