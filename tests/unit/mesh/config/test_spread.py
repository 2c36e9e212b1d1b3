"""An edited mesh file reaches the learners, or is refused and changes nothing."""

import pytest
from mesh_node import mesh_config

from domkl.errors import DataError
from domkl.mesh.config.file import read_config
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.config.spread import read_and_spread
from domkl.mesh.local.launcher import Launcher

NAMES = ("north", "south")


@pytest.fixture
def folder(tmp_path):
    init_mesh(tmp_path / "mesh", mesh_config(NAMES, (NAMES,), queue=100))
    return tmp_path / "mesh"


def edit(folder, before, after):
    path = folder / "mesh.toml"
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))


def queues(folder):
    return [read_config(folder / name / "mesh.toml").queue for name in NAMES]


def learned(folder, name):
    (folder / name / "data").mkdir()
    (folder / name / "data" / "checkpoint-a.npz").touch()


def test_an_edit_reaches_all_learners_that_are_here(folder):
    learned(folder, "north")
    edit(folder, "queue = 100", "queue = 7  # few")
    assert read_and_spread(folder).queue == 7
    assert queues(folder) == [7, 7]
    assert (folder / "north" / "mesh.toml").read_text() == (folder / "mesh.toml").read_text()


def test_mesh_up_and_its_reload_spread_it(folder):
    edit(folder, "queue = 100", "queue = 7")
    launcher = Launcher(folder)
    assert queues(folder) == [7, 7]
    edit(folder, "queue = 7", "queue = 8")
    launcher.reload()  # nodes that do not run are not told
    assert queues(folder) == [8, 8]


def test_another_model_is_refused_where_something_is_learned(folder):
    edit(folder, "frequencies = 5", "frequencies = 6")
    edit(folder, "queue = 100", "queue = 7")
    learned(folder, "south")
    with pytest.raises(DataError, match=r"that south has learned with; frequencies is 6 there"):
        read_and_spread(folder)
    assert queues(folder) == [100, 100]


def test_another_model_is_fine_before_anything_is_learned(folder):
    edit(folder, "frequencies = 5", "frequencies = 6")
    read_and_spread(folder)
    assert read_config(folder / "north" / "mesh.toml").n_frequencies == 6


def test_a_wrong_file_changes_nothing(folder):
    edit(folder, "queue = 100", "queue = many")
    with pytest.raises(DataError):
        read_and_spread(folder)
    assert queues(folder) == [100, 100]
