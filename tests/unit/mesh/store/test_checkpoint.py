"""One of the two files is always whole, and the other is passed over."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domkl.errors import DataError
from domkl.mesh.config.file import MeshConfig
from domkl.mesh.config.settings import members_at
from domkl.mesh.protocol.events import Checkpoint, Predicted, Sample, Tick
from domkl.mesh.protocol.model import Range
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.store.checkpoint import NAMES, Checkpoints, Saved, next_epoch
from domkl.storage import Parts


def saved(position):
    state = Parts({"learned": position}, {"theta": np.full(3, position, dtype=np.float32)})
    return Saved(position, state, np.arange(2.0), {"a": 5}, {"outside": 1})


def test_what_is_saved_comes_back(tmp_path):
    Checkpoints(tmp_path).save(saved(7))
    found = Checkpoints(tmp_path).load()
    assert (found.position, found.rows, found.counts) == (7, {"a": 5}, {"outside": 1})
    assert found.state.header == {"learned": 7}
    assert found.state.arrays["theta"].dtype == np.float32
    np.testing.assert_array_equal(found.state.arrays["theta"], np.full(3, 7))
    np.testing.assert_array_equal(found.lags, [0.0, 1.0])


def test_there_may_be_none(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.load() is None
    assert checkpoints.oldest == 0


def test_the_newest_is_taken_and_the_one_before_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for position in (1, 5, 9):
        checkpoints.save(saved(position))
    assert checkpoints.oldest == 5
    again = Checkpoints(tmp_path)
    assert again.load().position == 9
    assert again.oldest == 5
    again.save(saved(11))
    assert again.oldest == 9
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES)


@settings(max_examples=60)
@given(st.data())
def test_a_damaged_newest_falls_back_to_the_one_before(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("checkpoints")
    checkpoints = Checkpoints(folder)
    checkpoints.save(saved(5))
    checkpoints.save(saved(9))
    path = folder / NAMES[1]
    path.write_bytes(path.read_bytes()[: data.draw(st.integers(0, path.stat().st_size - 1))])
    again = Checkpoints(folder)
    assert again.load().position == 5
    assert again.damaged == [path]
    assert again.oldest == 0
    again.save(saved(10))
    last = Checkpoints(folder)
    assert last.load().position == 10
    assert last.oldest == 5


def test_a_save_that_fails_changes_nothing(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(saved(5))
    checkpoints.save(saved(9))

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            checkpoints.save(saved(12))
    assert checkpoints.oldest == 5
    again = Checkpoints(tmp_path)
    assert again.load().position == 9
    assert again.oldest == 5


def test_epochs_ascend_whatever_the_clock_says(tmp_path):
    path = tmp_path / "epoch"
    assert next_epoch(path, 1000) == 1000
    assert next_epoch(path, 500) == 1001
    assert next_epoch(path, 1001) == 1002
    assert next_epoch(path, 5000) == 5000
    path.write_text("spoiled")
    with pytest.raises(DataError, match="must hold a number"):
        next_epoch(path, 1)


def test_nothing_is_learned_between_a_checkpoint_and_its_snapshot():
    config = MeshConfig(
        members_at("ab", ["127.0.0.1"]), (("a", "b"),), Range("y", 0.0, 1.0), lags=1,
        kernels=(1.0,), n_frequencies=2,
    )  # fmt: skip
    protocol = Protocol("a", config.model(), ("b",), incarnation=1, checkpoint_every=2)
    for number in range(1, 6):  # they wait for the neighbor, who never comes
        protocol.handle(Sample(number, np.zeros(1), 0.5), 0.0)
    learned, saved = [], []
    for tick in range(5):
        effects = protocol.handle(Tick(), 20.0 + tick)
        learned += [each.number for each in effects if isinstance(each, Predicted)]
        for effect in effects:
            if isinstance(effect, Checkpoint):
                saved.append((effect.number, protocol.snapshot().header["learned"], learned[-1]))
    assert learned == [1, 2, 3, 4, 5]
    assert saved == [(2, 2, 2), (4, 4, 4)]
