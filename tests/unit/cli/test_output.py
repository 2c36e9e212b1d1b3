"""Results appear complete, under new names, or not at all."""

import pytest

from domkl.cli.interrupts import Interrupts
from domkl.cli.output import outbox, remove_empty
from domkl.errors import ParameterError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def publish(folder, *suffixes):
    with outbox(folder) as box:
        for suffix in suffixes:
            box.add(suffix, lambda path: path.write_text("content"))
        return [path.name for path in box.publish("run", Interrupts())]


def test_numbers_go_up_and_files_stay_together(tmp_path):
    assert publish(tmp_path, ".csv", ".json") == ["run-001.csv", "run-001.json"]
    (tmp_path / "run-002.json").write_text("mine")
    assert publish(tmp_path, ".csv", ".json") == ["run-003.csv", "run-003.json"]
    assert (tmp_path / "run-002.json").read_text() == "mine"
    assert len(names(tmp_path)) == 5


def test_a_failure_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), outbox(tmp_path / "a" / "b") as box:
        box.add(".csv", lambda path: 1 / 0)
    assert names(tmp_path) == []


def test_a_folder_appears_when_it_is_complete(tmp_path):
    def write(folder):
        folder.mkdir()
        (folder / "file").write_text("content")

    (tmp_path / "run-001").mkdir()
    with outbox(tmp_path) as box:
        box.add("", write)
        assert not (tmp_path / "run-002").exists()
        assert box.publish("run", Interrupts()) == [tmp_path / "run-002"]
    assert names(tmp_path) == ["run-001", "run-002"]
    assert (tmp_path / "run-002" / "file").read_text() == "content"
    with outbox(tmp_path) as box:
        box.add("", write)  # never published
    assert names(tmp_path) == ["run-001", "run-002"]


def test_only_empty_folders_are_removed(tmp_path):
    full, empty = tmp_path / "full", tmp_path / "empty"
    (full / "a").mkdir(parents=True)
    empty.mkdir()
    remove_empty([full, empty, tmp_path / "gone"])
    assert (full.exists(), empty.exists()) == (True, False)


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ParameterError, match="out must be a folder that can be written"),
        outbox(tmp_path / "file"),
    ):
        pass
