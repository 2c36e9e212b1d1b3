"""What was acknowledged is there after any accident; what is there was handed over."""

import errno
import os
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domkl.errors import DataError, MeshError
from domkl.mesh.store import recovery
from domkl.mesh.store import wal as module
from domkl.mesh.store.checkpoint import Checkpoints
from domkl.mesh.store.wal import MARK, DiskFullError, Entry, WriteAheadLog


def entry(k, name=""):
    return Entry(np.array([k, -k], dtype=float), name)


def filled(folder, *sizes):
    """A log with these frames; the files' bytes after each."""
    log, k, states = WriteAheadLog(folder, 2), 0, []
    for size in sizes:
        log.append([entry(k + i) for i in range(size)])
        k += size
        states.append({path.name: path.read_bytes() for path in folder.iterdir()})
    log.close()
    return states


def numbers(folder):
    log = WriteAheadLog(folder, 2)
    found = [(n, values.tolist()) for n, values in log.after(0)]
    log.close()
    return found


def first(n):
    return [(k + 1, [k, -k]) for k in range(n)]


def test_numbers_ascend_across_restarts_and_files(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SEGMENT", 200)
    filled(tmp_path, 3, 1, 5)
    log = WriteAheadLog(tmp_path, 2)
    assert log.last == 9
    assert log.append([entry(9), entry(10)]) == 10
    assert [n for n, _ in log.after(7)] == [8, 9, 10, 11]
    log.close()
    assert len(list(tmp_path.iterdir())) > 1
    assert numbers(tmp_path) == first(11)


@settings(max_examples=150)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_a_cut_at_any_byte_leaves_whole_frames(tmp_path_factory, sizes, data):
    """A kill during a write leaves a prefix: all frames before it are there, and none in part."""
    folder = tmp_path_factory.mktemp("log")
    states = filled(folder, *sizes)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    kept = sum(size for size, s in zip(sizes, states, strict=True) if len(s[path.name]) <= cut)
    assert numbers(folder) == first(kept)
    log = WriteAheadLog(folder, 2)
    assert log.append([entry(kept)]) == kept + 1
    log.close()
    assert numbers(folder) == first(kept + 1)
    shutil.rmtree(folder)


@settings(max_examples=150)
@given(st.data())
def test_damage_before_sound_frames_is_an_error(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("log")
    states = filled(folder, 2, 3, 2)
    (path,) = folder.iterdir()
    spoiled = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(states[1][path.name]) - 1))
    spoiled[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(spoiled)
    with pytest.raises(DataError, match="restore it from a backup"):
        WriteAheadLog(folder, 2)
    assert path.read_bytes() == spoiled
    shutil.rmtree(folder)


def test_a_torn_frame_may_hold_what_looks_like_a_frame(tmp_path):
    """Values are the client's: they cannot make a torn tail look like damage."""
    filled(tmp_path, 1)
    (path,) = tmp_path.iterdir()
    inner = path.read_bytes()[path.read_bytes().index(MARK) :]
    log = WriteAheadLog(tmp_path / "other", len(inner) // 8 + 1)
    hidden = np.frombuffer(inner.ljust(8 * log.width, b"\0"), "<f8")
    log.append([Entry(hidden)])
    log.close()
    (path,) = (tmp_path / "other").iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    assert WriteAheadLog(tmp_path / "other", log.width).last == 0


def test_the_nodes_log_calls_it_the_write_ahead_log(tmp_path, caplog):
    filled(tmp_path / recovery.LOG, 1, 1)
    (path,) = (tmp_path / recovery.LOG).iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    with caplog.at_level("INFO"):
        opened = recovery.open_log(tmp_path, 2, Checkpoints(tmp_path))
    opened.log.close()
    assert opened.log.last == 1
    (record,) = caplog.records
    assert record.message == "write-ahead log"
    assert record.facts["text"].startswith("the end of the write-ahead log was cut off")


def test_a_lost_file_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SEGMENT", 100)
    filled(tmp_path, 5, 5, 5)
    _, middle, _ = sorted(tmp_path.iterdir())
    middle.unlink()
    with pytest.raises(DataError, match=r"000011\.log must begin with sample 6,.* got 11"):
        WriteAheadLog(tmp_path, 2)


def test_another_number_of_values_is_an_error(tmp_path):
    filled(tmp_path, 1)
    with pytest.raises(DataError, match=r"samples of 2 values, and mesh\.toml says 3"):
        WriteAheadLog(tmp_path, 3)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("written", [0, 1, 30])
def test_a_full_disk_accepts_nothing_and_stays_sound(tmp_path, monkeypatch, code, written):
    filled(tmp_path, 2)
    before = next(tmp_path.iterdir()).read_bytes()
    log, real = WriteAheadLog(tmp_path, 2), os.pwrite

    def full(handle, view, place):
        if written and place == len(before):
            return real(handle, view[:written], place)
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(DiskFullError, match="make room"):
            log.append([entry(2)])
    assert next(tmp_path.iterdir()).read_bytes() == before
    assert log.append([entry(2)]) == 3
    log.close()
    assert numbers(tmp_path) == first(3)


def test_a_full_disk_when_a_file_is_begun(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "full")

    log = WriteAheadLog(tmp_path, 2)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", full)
        with pytest.raises(DiskFullError):
            log.append([entry(0)])
    assert list(tmp_path.iterdir()) == []
    assert log.append([entry(0)]) == 1


def test_after_an_error_of_the_disk_nothing_more_is_accepted(tmp_path, monkeypatch):
    """What a disk holds after a failed sync is not known: a second try may lie."""

    def broken(handle):
        raise OSError(errno.EIO, "Input/output error")

    filled(tmp_path, 2)
    log = WriteAheadLog(tmp_path, 2)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", broken)
        with pytest.raises(MeshError, match="Input/output error"):
            log.append([entry(2)])
    with pytest.raises(MeshError, match="cannot be written"):
        log.append([entry(2)])
    log.close()
    assert numbers(tmp_path) == first(2)


def test_room_is_kept_for_checkpoints(tmp_path):
    log = WriteAheadLog(tmp_path, 2)
    log.reserve = 2**62
    with pytest.raises(DiskFullError, match="bytes free for checkpoints"):
        log.append([entry(0)])
    log.reserve = 1
    assert log.append([entry(0)]) == 1


def test_files_are_forgotten_when_all_of_them_is_learned(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SEGMENT", 100)
    filled(tmp_path, 5, 5, 5)
    log = WriteAheadLog(tmp_path, 2)
    log.drop(9)
    assert [n for n, _ in log.after(5)] == list(range(6, 16))
    assert len(list(tmp_path.iterdir())) == 2
    log.drop(15)
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(DataError, match="begins with sample 11, and the checkpoint ends with 4"):
        list(log.after(4))
    log.close()
    assert WriteAheadLog(tmp_path, 2).last == 15


def test_ids_are_remembered_across_restarts_and_for_so_long(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SEGMENT", 100)
    monkeypatch.setattr(module, "REMEMBERED", 10)
    log = WriteAheadLog(tmp_path, 2)
    log.append([entry(0, "one"), entry(1), entry(2, "two")])
    for k in range(3, 9):
        log.append([entry(k)])
    log.drop(9)
    log.close()
    log = WriteAheadLog(tmp_path, 2)
    assert log.ids == {"one": 1, "two": 3}
    for k in range(9, 12):
        log.append([entry(k)])
    assert log.ids == {"two": 3}
    log.append([entry(12)])
    assert log.ids == {}
    n_files = len(list(tmp_path.iterdir()))
    log.drop(13)
    assert len(list(tmp_path.iterdir())) < n_files


def test_the_newest_row_of_each_file_is_known(tmp_path):
    log = WriteAheadLog(tmp_path, 2)
    rows = [Entry(np.zeros(2), name, is_row=True) for name in ("a:1", "b:7", "a:2")]
    log.append(rows)
    log.close()
    log = WriteAheadLog(tmp_path, 2)
    assert log.rows == {"a": 2, "b": 7}
    assert log.ids == {}


def test_an_empty_log_goes_on_behind_its_checkpoint(tmp_path):
    log = WriteAheadLog(tmp_path, 2)
    log.skip_to(41)
    assert log.append([entry(0)]) == 42
    with pytest.raises(DataError, match="ends with sample 42, before the checkpoint's 50"):
        log.skip_to(50)


def test_a_sync_comes_before_the_acknowledgement(tmp_path, monkeypatch):
    synced = []
    real = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda handle: synced.append(1) or real(handle))
    log = WriteAheadLog(tmp_path, 2)
    for k in range(3):
        before = len(synced)
        log.append([entry(k)])
        assert len(synced) > before
