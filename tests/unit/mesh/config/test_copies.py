"""An edited mesh file reaches the learners, or is refused and changes nothing."""

import os

import pytest
from mesh_node import mesh_config

import domkl
from domkl.errors import DataError, ParameterError
from domkl.mesh.config.copies import COPIED
from domkl.mesh.config.file import read_config
from domkl.mesh.config.folder import add_learner, apply_mesh, init_mesh
from domkl.mesh.config.settings import next_member
from domkl.mesh.operate.launcher import Launcher

NAMES = ("north", "south")


@pytest.fixture
def folder(tmp_path):
    algorithm = domkl.DOMKRLS(forget=0.999)
    config = mesh_config(NAMES, (NAMES,), queue=100, algorithm=algorithm)
    init_mesh(tmp_path / "mesh", config)
    return tmp_path / "mesh"


def edit(path, before, after):
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))


def queues(folder):
    return [read_config(folder / name / "mesh.toml").queue for name in NAMES]


def learned(folder, name):
    (folder / name / "data").mkdir()
    (folder / name / "data" / "checkpoint-a.npz").touch()


def test_an_edit_reaches_all_learners_and_keeps_its_comments(folder):
    learned(folder, "north")
    edit(folder / "mesh.toml", "queue = 100", "queue = 7  # few")
    config, copied = apply_mesh(folder)
    assert (config.queue, copied) == (7, list(NAMES))
    assert queues(folder) == [7, 7]
    assert (folder / "north" / "mesh.toml").read_text() == (folder / "mesh.toml").read_text()
    assert apply_mesh(folder)[1] == []


def test_a_copy_that_was_edited_by_itself_stays(folder):
    """As where a learner sees its neighbor under another address."""
    edit(folder / "north" / "mesh.toml", "queue = 100", "queue = 9")
    assert apply_mesh(folder)[1] == []
    assert queues(folder) == [9, 100]


def test_if_both_were_edited_nothing_is_changed(folder):
    edit(folder / "north" / "mesh.toml", "queue = 100", "queue = 9")
    edit(folder / "mesh.toml", "queue = 100", "queue = 7")
    with pytest.raises(ParameterError, match=r"north/mesh.toml must be as it was copied"):
        apply_mesh(folder)
    assert queues(folder) == [9, 100]


def test_mesh_up_and_its_reload_copy_it(folder):
    edit(folder / "mesh.toml", "queue = 100", "queue = 7")
    launcher = Launcher(folder)
    assert queues(folder) == [7, 7]
    edit(folder / "mesh.toml", "queue = 7", "queue = 8")
    launcher.reload()  # nodes that do not run are not told
    assert queues(folder) == [8, 8]


def test_adding_a_learner_copies_it_too(folder):
    edit(folder / "mesh.toml", "queue = 100", "queue = 7")
    member = next_member(read_config(folder / "mesh.toml").members, "west", "127.0.0.1")
    add_learner(folder, member, [("west", "north")])
    assert queues(folder) == [7, 7]
    assert apply_mesh(folder)[1] == []


def test_what_was_learned_goes_on_with_another_memory(folder):
    learned(folder, "south")
    edit(folder / "mesh.toml", "forget = 0.999", "forget = 0.99")
    assert apply_mesh(folder)[1] == list(NAMES)
    assert read_config(folder / "south" / "mesh.toml").algorithm.forget == 0.99


def test_another_model_is_refused_where_something_is_learned(folder):
    edit(folder / "mesh.toml", "frequencies = 5", "frequencies = 6")
    edit(folder / "mesh.toml", "queue = 100", "queue = 7")
    learned(folder, "south")
    with pytest.raises(DataError, match=r"that south can continue with; frequencies is 5 there"):
        apply_mesh(folder)
    assert queues(folder) == [100, 100]
    (folder / "south" / "data" / "checkpoint-a.npz").unlink()
    assert apply_mesh(folder)[1] == list(NAMES)


def test_a_wrong_file_changes_nothing(folder):
    edit(folder / "mesh.toml", "queue = 100", "queue = many")
    with pytest.raises(DataError):
        apply_mesh(folder)
    assert queues(folder) == [100, 100]


@pytest.mark.parametrize("is_newer", [True, False])
def test_a_folder_of_an_earlier_version_has_no_digest(folder, is_newer):
    (folder / COPIED).unlink()
    edit(folder / "mesh.toml", "queue = 100", "queue = 7")
    for name in NAMES:
        path = folder / name / "mesh.toml"
        moment = (folder / "mesh.toml").stat().st_mtime_ns + (-1 if is_newer else 1)
        os.utime(path, ns=(moment, moment))
    apply_mesh(folder)
    assert queues(folder) == ([7, 7] if is_newer else [100, 100])
