"""An edited mesh file reaches the learners beside it, or is refused.

Each learner's folder has a copy of the mesh file, because it may be on another device. Who edits
`DIR/mesh.toml` by hand changes none of these copies; `domkl mesh up` and its reload do it then.
"""

from pathlib import Path

from domkl.errors import DataError, DomklError
from domkl.mesh.config.file import MeshConfig, read_config
from domkl.mesh.config.folder import MESH, read_mesh
from domkl.storage import write


def read_and_spread(folder: Path) -> MeshConfig:
    """Read the mesh file of a mesh's folder, and copy it to learners whose own differs.

    DataError, and no copy is changed, if one of them has learned with another model.
    """
    config = read_mesh(folder)
    text = (folder / MESH).read_bytes()
    paths = [folder / name / MESH for name in config.names if (folder / name).is_dir()]
    stale = [path for path in paths if not path.is_file() or path.read_bytes() != text]
    for path in stale:
        _check(path, config)
    for path in stale:
        write(path, text)
    return config


def _check(path: Path, config: MeshConfig) -> None:
    """Refuse another model where something is learned: nobody could read it again."""
    learner = path.parent
    if not any((learner / "data").glob("checkpoint-*")):
        return
    try:
        before = read_config(path)
    except DomklError:  # the node could not read it either, and compares with its checkpoint
        return
    difference = before.model().difference(config.model().parts)
    if difference:
        raise DataError(
            f"model in {learner.parent / MESH} must be the one that {learner.name} has learned"
            f" with; {difference}; put it back, or move {learner / 'data'} away to begin anew"
        )
