"""Back up the folder of a mesh or of a node, while its nodes run; and restore it.

The rules of this file
----------------------
- A backup is consistent: checkpoints are copied before the count of acknowledged samples, and that
  before the log, so that the log has all that the others speak of. A node that drops old
  parts of its log meanwhile is copied again. The copy is opened as a node would open it, before
  it enters the archive.
- Private keys and tokens are in it only if that is asked for.
- Nothing is overwritten: neither an archive, nor any file of a folder that is restored.
- An archive may be a stranger's. Only names that a backup makes are restored, of regular files, and
  what is larger than a backup can be is refused before it is unpacked.
- Numbers of published predictions are not in it: what a restored node learns may have had the same
  numbers before, so its predictions get other ids.
"""

import contextlib
import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import domkl
from domkl.errors import DataError, DomklError, ParameterError
from domkl.mesh.config.certificates import CA, CA_KEY, NODE, NODE_KEY
from domkl.mesh.config.copies import COPIED
from domkl.mesh.config.folder import AUTHORITY, MESH, ROUTER, TOKEN, UI_TOKEN
from domkl.mesh.store.checkpoint import NAMES, Checkpoints
from domkl.mesh.store.folder import DATA
from domkl.mesh.store.recorder import FOLDER as HISTORY
from domkl.mesh.store.recovery import LOG, MARK, open_log
from domkl.mesh.store.wal import Content
from domkl.storage import replacing, write
from domkl.text import from_json

FORMAT, VERSION, MANIFEST = "domkl backup", 1, "backup.json"
SECRETS = (NODE_KEY, TOKEN, CA_KEY, UI_TOKEN)
PLAIN = (MESH, COPIED, CA, NODE)
EPOCH = "epoch"
TRIES = 20
#: bytes of a file and of all, and files: a checkpoint of the largest model, a thousand learners
MAX_FILE, MAX_TOTAL, MAX_FILES = 2**30, 2**36, 100_000
_DATA = (*NAMES, EPOCH, MARK, rf"{LOG}(\.damaged-\d+)?/\d{{16}}\.log",
         rf"{HISTORY}/(steps|samples)-\d+", rf"{HISTORY}/events\.jsonl")  # fmt: skip
#: names of files that a backup has
_NAME = re.compile(
    rf"([a-z0-9][a-z0-9-]*/)?({'|'.join((*PLAIN, *SECRETS))}|{DATA}/({'|'.join(_DATA)}))"
)


class Made(NamedTuple):
    """What a backup holds: by learner, the number of its newest sample."""

    learners: dict[str, int]
    has_keys: bool
    made: str


def back_up(folder: Path, archive: Path, *, with_keys: bool = False) -> Made:
    """Write the folder of a mesh or of a node to an archive, which must not exist."""
    if not (folder / MESH).is_file():
        raise DataError(f"folder must be of a mesh or of a learner, got {folder}: no {MESH}")
    if archive.exists():
        raise ParameterError(f"archive must be a new file, got {archive}, which is there")
    if not archive.absolute().parent.is_dir():
        raise ParameterError(f"archive must be in a folder that is there, got {archive}")
    made = datetime.now(UTC).isoformat(timespec="seconds")
    learners: dict[str, int] = {}
    digests: dict[str, str] = {}
    with (
        replacing(archive, mode=0o600) as file,
        tarfile.open(fileobj=file, mode="w:gz") as tar,
        tempfile.TemporaryDirectory(prefix=".domkl-", dir=archive.absolute().parent) as draft,
    ):
        for prefix, place in _places(folder):
            for name in (*PLAIN, *(SECRETS if with_keys else ())):
                if (place / name).is_file():
                    inner = (PurePosixPath(prefix) / name).as_posix()
                    _add(tar, inner, (place / name).read_bytes(), digests)
            if not (place / DATA).is_dir():
                continue
            copy = Path(draft) / (prefix or "node")
            learners[prefix or folder.absolute().name] = copy_data(place / DATA, copy)
            for path in sorted(copy.rglob("*")):
                inner = (PurePosixPath(prefix) / DATA / path.relative_to(copy)).as_posix()
                if _NAME.fullmatch(inner):
                    _add(tar, inner, path.read_bytes(), digests)
            shutil.rmtree(copy)
        head = {"format": FORMAT, "version": VERSION, "domkl": domkl.__version__, "made": made,
                "has_keys": with_keys, "learners": learners, "files": digests}  # fmt: skip
        _add(tar, MANIFEST, json.dumps(head, indent=1).encode(), {})
    return Made(learners, with_keys, made)


def copy_data(data: Path, copy: Path) -> int:
    """Copy what a node has written, while it may write more; return its newest sample's number."""
    for _ in range(TRIES):
        shutil.rmtree(copy, ignore_errors=True)
        try:
            _copy(data, copy)
            return _opened(copy)
        except (DataError, FileNotFoundError) as error:  # the node has dropped a part meanwhile
            problem = error
            time.sleep(0.05)
    raise DataError(f"{data} must be sound to be backed up; {problem}")


def _copy(data: Path, copy: Path) -> None:
    (copy / LOG).mkdir(parents=True)
    for path in _files(data):
        with contextlib.suppress(FileNotFoundError):
            content, place = path.read_bytes(), copy / path.relative_to(data)
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(content)


def _files(data: Path) -> Iterator[Path]:
    """In the order in which to copy them; the log is listed when the others are copied."""
    yield from (data / name for name in (*NAMES, EPOCH, MARK))
    yield from sorted((data / LOG).glob("*.log"))
    yield from (data / HISTORY).glob("[!.]*")


def _opened(copy: Path) -> int:
    """Open a copy as a node does at its start, which cuts off what was not acknowledged."""
    checkpoints = Checkpoints(copy)
    found = checkpoints.load()
    heads = [Content.of(path.read_bytes()) for path in sorted((copy / LOG).glob("*.log"))]
    widths = [head.width for head in heads if head is not None]
    if not widths:
        return 0 if found is None else found.position
    log = open_log(copy, widths[0], checkpoints).log
    log.close()
    return log.last


def _places(folder: Path) -> list[tuple[str, Path]]:
    """Names and folders: the given one without a name, and those of learners, authority, router."""
    inside = ((path.name, path) for path in sorted(folder.iterdir()) if _is_part(path))
    return [("", folder), *inside]


def _is_part(path: Path) -> bool:
    is_named = _NAME.fullmatch(f"{path.name}/{MESH}")
    is_learner = (path / MESH).is_file() and is_named and not path.is_symlink()
    return path.is_dir() and bool(is_learner or path.name in (AUTHORITY, ROUTER))


def _add(tar: tarfile.TarFile, name: str, data: bytes, digests: dict[str, str]) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(data), 0o600, int(time.time())
    tar.addfile(member, io.BytesIO(data))
    digests[name] = hashlib.sha256(data).hexdigest()


def restore(archive: Path, folder: Path) -> Made:
    """Restore an archive; files that are there already must be the same, and no data may be."""
    try:
        with Unpacked(archive) as file, tarfile.open(fileobj=file, mode="r:") as tar:
            members = _members(tar)
            head = _manifest(tar, members)
            _check_free(folder, head["files"])
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.TemporaryDirectory(prefix=".domkl-", dir=folder) as draft:
                for name, digest in head["files"].items():
                    _extract(tar, members.get(name), Path(draft) / name, digest)
                _place(Path(draft), folder, list(head["files"]))
    except DomklError:
        raise
    except (tarfile.ReadError, gzip.BadGzipFile):
        raise DataError(f"archive must be a backup of domkl, got {archive}: no archive") from None
    except (tarfile.TarError, EOFError, ValueError, zlib.error) as error:
        raise DataError(f"archive must be a backup of domkl, got {archive}: {error}") from None
    except OSError as error:
        raise DataError(f"cannot restore {archive}: {error.strerror or error}") from None
    return Made(dict(head["learners"]), bool(head["has_keys"]), str(head["made"]))


class Unpacked(gzip.GzipFile):
    """An archive that is unpacked as it is read, and never more than a file of it at once."""

    def read(self, size: int | None = -1) -> bytes:
        """Read; what is as large as this was written to fill the memory of its reader."""
        if size is not None and size > MAX_FILE:
            raise ValueError(f"a part of {size} bytes, at most {MAX_FILE} allowed")
        return super().read(size)


def _members(tar: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    """The regular files; ValueError as soon as they are more, or larger, than those of a backup."""
    found, total = {}, 0
    for n, each in enumerate(tar, 1):
        total += each.size
        if each.size > MAX_FILE or total > MAX_TOTAL or n > MAX_FILES:
            raise ValueError(f"{each.name!r} of {each.size} bytes is more than a backup can have")
        if each.type in (tarfile.REGTYPE, tarfile.AREGTYPE):
            found[each.name] = each
    return found


def _manifest(tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo]) -> dict[str, Any]:
    member = members.get(MANIFEST)
    file = None if member is None else tar.extractfile(member)
    try:
        head = from_json(b"" if file is None else file.read())
        is_ours = head["format"] == FORMAT and head["version"] == VERSION
        told = "".join(f"{name}{int(n)}" for name, n in head["learners"].items()) + head["made"]
        sound = is_ours and told.isprintable() and all(map(_NAME.fullmatch, head["files"]))
        given = (
            head["has_keys"] in (True, False),
            *(isinstance(v, str) for v in head["files"].values()),
        )
        sound = sound and all(given)
    except (ValueError, KeyError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise DataError(f"archive must be a whole backup of domkl, version {VERSION}")
    found: dict[str, Any] = head
    return found


def _check_free(folder: Path, digests: dict[str, str]) -> None:
    for name, digest in digests.items():
        path = folder / name
        parts = PurePosixPath(name).parts
        if DATA in parts:
            data = folder.joinpath(*parts[: parts.index(DATA) + 1])
            if data.exists() and any(data.iterdir()):
                raise ParameterError(
                    f"{data} must not exist: it is never overwritten; move it away, or restore to"
                    " another folder"
                )
        elif path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise ParameterError(f"{path} must be as in the backup, and differs; move it away")


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo | None, path: Path, digest: str) -> None:
    file = None if member is None else tar.extractfile(member)
    data = b"" if file is None else file.read()
    if file is None or hashlib.sha256(data).hexdigest() != digest:
        raise DataError(f"{path.name} is missing or damaged in the archive; nothing was restored")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write(path, data, mode=0o600)


def _place(draft: Path, folder: Path, names: list[str]) -> None:
    """Move files to their places, data last."""
    for name in sorted(names, key=lambda name: DATA in PurePosixPath(name).parts):
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            (draft / name).replace(path)
