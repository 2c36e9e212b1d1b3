"""An edited ``DIR/mesh.toml`` reaches the learners beside it, or is refused.

Each learner's folder has a copy, because it may be on another device. Who edits the mesh's own file
changes none of them, so the digest of what was copied last is kept in ``DIR/mesh.toml.copied``.

The rules of this file
----------------------
- Copies are replaced if the mesh's own file was edited since the last time, and only then: a copy
  that was edited by itself stays as it is.
- If both were edited, none is changed, and the error says which.
- If a learner that has learned here could not go on with the new model, none is changed.
- Folders of earlier versions have no digest: there, a mesh file that is newer than a copy that
  differs was edited.
"""

import hashlib
from pathlib import Path

from domkl.errors import DataError, DomklError, ParameterError
from domkl.mesh.config import MESH
from domkl.mesh.config.file import MeshConfig, read_config
from domkl.storage import write

COPIED = "mesh.toml.copied"


def copy_edited(folder: Path, config: MeshConfig, places: list[str]) -> list[str]:
    """Copy an edited mesh file to the folders of learners and router; return where it was copied.

    ``config`` is what the mesh file says, and ``places`` are the folders that should have it.
    """
    text, known, differ = (folder / MESH).read_bytes(), _known(folder), pending(folder, places)
    for name in differ:
        copy = _text(folder / name / MESH)
        if known and copy is not None and _digest(copy) != known:
            raise ParameterError(
                f"{folder / name / MESH} must be as it was copied, and was edited as"
                f" {folder / MESH} was; copy one of them over the other"
            )
        _check(folder / name, config)
    for name in differ:
        write(folder / name / MESH, text)
    copies = [_text(folder / name / MESH) for name in places if (folder / name).is_dir()]
    if all(copy == text for copy in copies):
        note_copied(folder)
    return differ


def pending(folder: Path, places: list[str]) -> list[str]:
    """The folders whose copy differs from a mesh file that was edited since the last time."""
    text, known = (folder / MESH).read_bytes(), _known(folder)
    here = [name for name in places if (folder / name).is_dir()]
    differ = [name for name in here if _text(folder / name / MESH) != text]
    is_edited = known != _digest(text) if known else _is_newest(folder, differ)
    return differ if is_edited else []


def note_copied(folder: Path) -> None:
    """Note that all learners have the mesh file as it is now."""
    digest = _digest((folder / MESH).read_bytes())
    if _known(folder) != digest:
        write(folder / COPIED, f"{digest}\n".encode())


def _check(learner: Path, config: MeshConfig) -> None:
    """Refuse another model where something is learned: it could not go on."""
    if not any((learner / "data").glob("checkpoint-*")):
        return
    try:
        before = read_config(learner / MESH).models()
    except DomklError:  # the node could not read it either, and compares with its checkpoint
        return
    after = config.models()
    obstacles = [new.obstacle(old.parts) for old, new in zip(before, after, strict=False)]
    if len(before) != len(after):
        obstacles.insert(0, f"{len(before)} horizons there and {len(after)} here")
    for obstacle in filter(None, obstacles):
        raise DataError(
            f"model in {learner.parent / MESH} must be one that {learner.name} can continue with;"
            f" {obstacle}; put it back, or move {learner / 'data'} away to start from scratch"
        )


def _is_newest(folder: Path, names: list[str]) -> bool:
    edited = (folder / MESH).stat().st_mtime_ns
    copies = [folder / name / MESH for name in names]
    return all(not copy.exists() or edited > copy.stat().st_mtime_ns for copy in copies)


def _known(folder: Path) -> str:
    found = _text(folder / COPIED)
    return "" if found is None else found.decode(errors="replace").strip()


def _text(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
