"""Outcomes on disk: whole, named by all they depend on, never computed twice."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import domkl
from domkl.errors import ParameterError
from domkl.experiments import store as store_module
from domkl.experiments.compare import Setting
from domkl.experiments.reproduce.lab import Lab
from domkl.experiments.reproduce.works.base import Work
from domkl.experiments.store import Store, digest_of, key_of, sources_digest


class Counting(Work):
    """Counts how often it was done."""

    label, cost = "counting", 1.0

    def __init__(self, value, is_python=False):
        self.value, self.is_python, self.times = value, is_python, 0

    @property
    def parts(self):
        return {"value": self.value}

    def compute(self, report):
        self.times += 1
        report(0.5)
        return {"value": np.array(self.value)}


@pytest.fixture
def lab(tmp_path):
    return Lab(Setting(n_trials=1), Store(tmp_path / "units"))


def silent(label, done, total):
    pass


def test_an_outcome_comes_back_as_it_was(tmp_path):
    store = Store(tmp_path)
    store.put("key", {"a": np.arange(3.0), "b": np.array(2)})
    assert store.has("key")
    found = store.get("key")
    np.testing.assert_array_equal(found["a"], np.arange(3.0))
    assert store.get("other") is None


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


@pytest.mark.parametrize("file", ["core/admm.py", "data/streams.py", "rng.py", "sim/engine.py"])
def test_a_change_of_the_code_changes_the_name(tmp_path, file):
    root = tmp_path / "domkl"
    shutil.copytree(Path(domkl.__file__).parent, root, ignore=shutil.ignore_patterns("__pycache__"))
    before = sources_digest(root)
    assert before == store_module.code_digest()
    (root / file).write_text((root / file).read_text() + "\n# changed\n")
    assert sources_digest(root) != before


def test_work_is_done_once(lab, tmp_path):
    work, twin = Counting(1), Counting(1)
    lab.do([work, twin], silent)
    assert work.times + twin.times == 1
    again, other = Counting(1), Counting(2)
    later = Lab(lab.setting, Store(tmp_path / "units"))
    later.do([again, other], silent)
    assert (again.times, other.times) == (0, 1)
    assert float(later[again]["value"]) == 1
    assert float(later[again]["seconds"]) >= 0


def test_an_interrupted_run_keeps_what_it_finished(lab):
    works = [Counting(n) for n in range(3)]

    def stop(label, done, total):
        if done == 1.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lab.do(works, stop)
    assert [lab.store.has(work.key) for work in works] == [True, False, False]


def test_progress_ends_at_the_total(lab):
    seen = []
    lab.do([Counting(n) for n in range(3)], lambda *values: seen.append(values))
    assert seen[-1][1:] == (3.0, 3.0)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
