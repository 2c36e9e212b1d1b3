"""The folder of a node says who it is, and belongs to one process at a time."""

import pytest
from mesh_node import mesh_config, solo_folder

from domkl.errors import DataError, MeshError
from domkl.mesh.config import certificates
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.store.folder import Lock, open_folder


def test_a_folder_knows_its_name(tmp_path):
    folder = solo_folder(tmp_path)
    assert open_folder(folder).name == "solo"
    certificates.create_authority(tmp_path / "authority", "mesh")
    certificates.issue(tmp_path / "authority", "other", folder)
    with pytest.raises(DataError, match=r"must be of solo, as its folder is, got other's"):
        open_folder(folder)
    with pytest.raises(DataError, match="no folder"):
        open_folder(tmp_path / "nothing")
    init_mesh(tmp_path / "mesh", mesh_config(("north", "south"), (("north", "south"),)))
    moved = (tmp_path / "mesh" / "north").rename(tmp_path / "etc")
    assert open_folder(moved).name == "north"
    (moved / "node.pem").unlink()
    moved = moved.rename(tmp_path / "north")
    with pytest.raises(DataError, match="cannot speak with its neighbors"):
        open_folder(moved)
    (tmp_path / "mesh" / "south" / "mesh.toml").unlink()
    assert open_folder(tmp_path / "mesh" / "south").mesh_file == tmp_path / "mesh" / "mesh.toml"


def test_one_process_at_a_time(tmp_path):
    lock = Lock(tmp_path)
    with pytest.raises(MeshError, match="one node at a time"):
        Lock(tmp_path)
    lock.release()
    Lock(tmp_path).release()
