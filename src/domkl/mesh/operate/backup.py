"""Back up the folder of a mesh or of a node, while its nodes run; and restore it.

The rules of this file
----------------------
- A backup is consistent: checkpoints are copied before the count of acknowledged samples, and that
  before the log, so that the log has all that the others speak of. A node that drops old
  parts of its log meanwhile is copied again. The copy is opened as a node would open it, before
  it enters the archive.
- Private keys and tokens are in it only if that is asked for.
- Nothing is overwritten: neither an archive, nor any file of a folder that is restored.
- Numbers of published predictions are not in it: what a restored node learns may have had the same
  numbers before, so its predictions get other ids.
"""

import contextlib
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import domkl
from domkl.errors import DataError, ParameterError
from domkl.mesh.config.certificates import CA, CA_KEY, NODE, NODE_KEY
from domkl.mesh.config.copies import COPIED
from domkl.mesh.config.folder import AUTHORITY, MESH, ROUTER, TOKEN
from domkl.mesh.store.checkpoint import NAMES, Checkpoints
from domkl.mesh.store.folder import DATA
from domkl.mesh.store.recorder import FOLDER as HISTORY
from domkl.mesh.store.recovery import LOG, MARK, open_log
from domkl.mesh.store.wal import Content
from domkl.storage import replacing, write
from domkl.text import from_json

FORMAT, VERSION, MANIFEST = "domkl backup", 1, "backup.json"
SECRETS = (NODE_KEY, TOKEN, CA_KEY, "ui-token")
PLAIN = (MESH, COPIED, CA, NODE)
EPOCH = "epoch"
TRIES = 20
MAX_MANIFEST = 2**24  # bytes


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
            for path in sorted(each for each in copy.rglob("*") if each.is_file()):
                inner = (PurePosixPath(prefix) / DATA / path.relative_to(copy)).as_posix()
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
    is_learner = (path / MESH).is_file() and not path.is_symlink()
    return path.is_dir() and (is_learner or path.name in (AUTHORITY, ROUTER))


def _add(tar: tarfile.TarFile, name: str, data: bytes, digests: dict[str, str]) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(data), 0o600, int(time.time())
    tar.addfile(member, io.BytesIO(data))
    digests[name] = hashlib.sha256(data).hexdigest()


def restore(archive: Path, folder: Path) -> Made:
    """Restore an archive; files that are there already must be the same, and no data may be."""
    try:
        with tarfile.open(archive) as tar:
            members = {each.name: each for each in tar if each.isfile()}
            head = _manifest(tar, members)
            _check_free(folder, head["files"])
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.TemporaryDirectory(prefix=".domkl-", dir=folder) as draft:
                for name, digest in head["files"].items():
                    _extract(tar, members.get(name), Path(draft) / name, digest)
                _place(Path(draft), folder, list(head["files"]))
    except tarfile.ReadError:
        raise DataError(f"archive must be a backup of domkl, got {archive}: no archive") from None
    except (tarfile.TarError, EOFError) as error:
        raise DataError(f"archive must be a backup of domkl, got {archive}: {error}") from None
    except OSError as error:
        raise DataError(f"cannot restore {archive}: {error.strerror or error}") from None
    return Made(dict(head["learners"]), bool(head["has_keys"]), str(head["made"]))


def _manifest(tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo]) -> dict[str, Any]:
    member = members.get(MANIFEST)
    file = None if member is None else tar.extractfile(member)
    try:
        head = from_json(b"" if file is None else file.read(MAX_MANIFEST))
        is_ours = head["format"] == FORMAT and head["version"] == VERSION
        sound = is_ours and all(_is_inside(name) for name in head["files"])
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise DataError(f"archive must be a whole backup of domkl, version {VERSION}")
    found: dict[str, Any] = head
    return found


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts


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
