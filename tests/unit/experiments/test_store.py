"""Results on disk: complete, under a key of all that they depend on, never computed twice."""

import importlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import domkl
from domkl.errors import ParameterError
from domkl.experiments import store as store_module
from domkl.experiments.options import Setting
from domkl.experiments.reproduce.session import Session
from domkl.experiments.reproduce.tasks import Task
from domkl.experiments.store import (
    Store,
    algorithm_digest,
    code_digest,
    described,
    digest_of,
    key_of,
    package_digest,
)

DONE = []


def count(report, value):
    """Keep a list of what was done."""
    DONE.append(value)
    report(0.5)
    return {"value": np.array(value)}


def counting(value):
    return Task(count, {"value": value}, "counting", 1.0)


@pytest.fixture
def session(tmp_path):
    return Session(Setting(n_trials=1), Store(tmp_path / "units"))


def silent(label, done, total):
    pass


def test_an_outcome_comes_back_as_it_was(tmp_path):
    store = Store(tmp_path)
    store.put("key", {"a": np.arange(3.0), "b": np.array(2)})
    assert store.has("key")
    found = store.get("key")
    np.testing.assert_array_equal(found["a"], np.arange(3.0))
    assert store.get("other") is None


def test_a_folder_that_another_run_has_removed_is_made_again(tmp_path):
    store = Store(tmp_path / "units")
    store.folder.rmdir()
    store.put("a" * 32, {"x": np.arange(3)})
    np.testing.assert_array_equal(store.get("a" * 32)["x"], np.arange(3))


def test_a_torn_file_is_as_good_as_none(tmp_path):
    store = Store(tmp_path)
    store.put("key", {"a": np.arange(1000.0)})
    path = tmp_path / "key.npz"
    path.write_bytes(path.read_bytes()[:100])
    assert store.get("key") is None
    assert not store.has("key")


def test_a_damaged_file_is_as_good_as_none(tmp_path):
    store = Store(tmp_path)
    store.put("key", {"a": np.random.default_rng(0).random(1000)})
    path = tmp_path / "key.npz"
    content = bytearray(path.read_bytes())
    content[200:600] = bytes(255 - byte for byte in content[200:600])
    path.write_bytes(content)
    assert store.get("key") is None


def test_a_failed_write_leaves_nothing(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="no array"):
        store.put("key", {"a": Unwritable()})
    assert list(tmp_path.iterdir()) == []


class Unwritable:
    def __array__(self, dtype=None, copy=None):
        raise ValueError("no array")


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="out must be a folder that can be written"):
        Store(tmp_path / "file" / "units")


def test_a_name_says_all_that_went_in(monkeypatch):
    parts = {"stream": digest_of(np.arange(3.0)), "seed": 1}
    name = key_of(parts)
    assert key_of(dict(reversed(parts.items()))) == name
    assert key_of({**parts, "seed": 2}) != name
    assert key_of({**parts, "stream": digest_of(np.arange(3.0)[:, None])}) != name
    monkeypatch.setattr(store_module, "code_digest", lambda: "other code")
    assert key_of(parts) != name


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    root = tmp_path_factory.mktemp("copy") / "domkl"
    shutil.copytree(PACKAGE, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


PACKAGE = Path(domkl.__file__).parent
FOLDERS = sorted({path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")})
RESULTS_DEPEND_ON = [folder for folder in FOLDERS if folder.parts[:1] not in (("mesh",), ("cli",))]


def test_the_digest_is_that_of_the_package(copied):
    assert package_digest(copied) == package_digest(PACKAGE)
    assert package_digest(PACKAGE) != code_digest()  # which has the libraries too


@pytest.mark.parametrize("folder", RESULTS_DEPEND_ON, ids=str)
def test_a_change_of_the_code_changes_the_digest(copied, folder):
    """In every folder, those to come included: change a file, add one, move one, remove one."""
    before = package_digest(copied)
    assert before == package_digest(PACKAGE)
    path = next(path for path in sorted((copied / folder).glob("*.py")))
    text, new, moved = path.read_text(), copied / folder / "new.py", copied / folder / "moved.py"
    path.write_text(text + "\n# changed\n")
    found = [package_digest(copied)]
    path.write_text(text)
    new.write_text("")
    found.append(package_digest(copied))
    new.unlink()
    path.rename(moved)
    found.append(package_digest(copied))
    moved.rename(copied / folder / "sub.txt")
    found.append(package_digest(copied))
    (copied / folder / "sub.txt").rename(path)
    assert len({before, *found}) == 5
    assert package_digest(copied) == before


def test_a_change_of_the_catalog_changes_the_digest(copied):
    before, path = package_digest(copied), copied / "data" / "catalog.toml"
    text = path.read_text()
    path.write_text(text + "\n# changed\n")
    assert package_digest(copied) != before
    path.write_text(text)


def test_a_file_that_moves_to_another_folder_changes_the_digest(copied):
    before = package_digest(copied)
    (copied / "rng.py").rename(copied / "core" / "rng.py")
    assert package_digest(copied) != before
    (copied / "core" / "rng.py").rename(copied / "rng.py")


@pytest.mark.parametrize("folder", ["mesh", "cli"])
def test_results_do_not_depend_on_mesh_and_command_line(copied, folder):
    before = package_digest(copied)
    (copied / folder / "new.py").write_text("")
    assert package_digest(copied) == before
    (copied / folder / "new.py").unlink()


OWN = """
from dataclasses import dataclass
from domkl import LastValue
from {base} import Base

class {name}(Base):
    pass
"""


def own(monkeypatch, tmp_path, name="Own", tail=""):
    """An algorithm of the user's own, and its base class, each in a file."""
    for module in ("digest_own", "digest_base"):
        sys.modules.pop(module, None)
    monkeypatch.syspath_prepend(tmp_path)
    base = tmp_path / "digest_base.py"
    if not base.exists():
        base.write_text("from domkl import LastValue\nclass Base(LastValue):\n    pass\n")
    text = OWN.format(base="digest_base", name=name) + tail
    (tmp_path / "digest_own.py").write_text(text)
    importlib.invalidate_caches()
    return getattr(importlib.import_module("digest_own"), name)()


def test_the_users_files_are_part_of_the_digest(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    first = algorithm_digest(own(monkeypatch, tmp_path))
    assert algorithm_digest(own(monkeypatch, tmp_path)) == first
    changed = algorithm_digest(own(monkeypatch, tmp_path, tail="# changed\n"))
    renamed = algorithm_digest(own(monkeypatch, tmp_path, name="Other"))
    (tmp_path / "digest_base.py").write_text(
        "from domkl import LastValue\nclass Base(LastValue):\n    relative_cost = 2.0\n"
    )
    rebased = algorithm_digest(own(monkeypatch, tmp_path))
    inside = algorithm_digest(domkl.Alone(own(monkeypatch, tmp_path)))
    before = algorithm_digest(domkl.Alone(own(monkeypatch, tmp_path, tail="# changed\n")))
    assert len({first, changed, renamed, rebased, inside, before}) == 6


def test_the_file_of_a_function_is_part_of_its_description(monkeypatch, tmp_path):
    """A case study's task is not of domkl's own code."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for tail in ("", "# changed\n"):
        sys.modules.pop("digest_task", None)
        (tmp_path / "digest_task.py").write_text("def task(report):\n    return {}\n" + tail)
        importlib.invalidate_caches()
        found.append(described(importlib.import_module("digest_task").task))
    assert found[0] != found[1]
    assert described(key_of) == described(key_of)


def test_parameters_are_part_of_the_digest():
    ours = algorithm_digest(domkl.DOMKL())
    assert algorithm_digest(domkl.DOMKL(rho=2.0)) == ours
    assert algorithm_digest(domkl.DOMKL(rho=3.0)) != ours
    assert algorithm_digest(domkl.DOMKL(loss=domkl.Huber(0.1))) != ours


def test_an_algorithm_without_a_file_is_refused():
    made = {"__name__": "typed_at_a_prompt"}
    exec("import domkl\nclass Own(domkl.LastValue):\n    pass\n", made)
    with pytest.raises(ParameterError, match="typed_at_a_prompt:Own must be defined in a file"):
        algorithm_digest(made["Own"]())


def test_work_is_done_once(session, tmp_path):
    DONE.clear()
    session.do([counting(1), counting(1)], silent)
    assert DONE == [1]
    again, other = counting(1), counting(2)
    later = Session(session.setting, Store(tmp_path / "units"))
    later.do([again, other], silent)
    assert DONE == [1, 2]
    assert float(later[again]["value"]) == 1
    assert float(later[again]["seconds"]) >= 0


def test_an_interrupted_run_keeps_what_it_finished(session):
    tasks = [counting(n) for n in range(3)]

    def stop(label, done, total):
        if done == 1.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.do(tasks, stop)
    assert [session.store.has(task.key) for task in tasks] == [True, False, False]


def test_progress_ends_at_the_total(session):
    seen = []
    session.do([counting(n) for n in range(3)], lambda *values: seen.append(values))
    assert seen[-1][1:] == (3.0, 3.0)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
