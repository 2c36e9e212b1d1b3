"""The atomic write: complete files or none, on disk, no wider permissions; and archives."""

import errno
import os
import stat
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from domkl import storage
from domkl.errors import DataError


def test_what_is_packed_comes_back():
    parts = storage.Parts({"a": [1, None]}, {"b": np.arange(3.0)})
    again = storage.unpack("thing", storage.pack("thing", parts))
    assert again.header == parts.header
    np.testing.assert_array_equal(again.arrays["b"], parts.arrays["b"])


def test_content_is_on_disk_before_the_name_and_the_name_before_the_return(tmp_path, monkeypatch):
    calls = []
    real_sync, real_replace = os.fsync, os.replace

    def sync(handle):
        name = str(Path(f"/proc/self/fd/{handle}").readlink())
        calls.append(name.removeprefix(str(tmp_path)))
        real_sync(handle)

    def replace(old, new):
        calls.append("replace")
        real_replace(old, new)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    storage.write(tmp_path / "file", b"content")
    draft, *rest = calls
    assert draft.startswith("/.file.")
    assert rest == ["replace", ""]
    assert (tmp_path / "file").read_bytes() == b"content"


def test_a_write_that_fails_leaves_the_old_file_and_no_trace(tmp_path, monkeypatch):
    storage.write(tmp_path / "file", b"old")

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        storage.write(tmp_path / "file", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_permissions_are_never_wider_than_asked_for(tmp_path, open_umask, mode):
    path = tmp_path / "key"
    path.write_bytes(b"old")
    path.chmod(0o666)
    with storage.replacing(path, mode=mode) as file:
        assert mode_of(only(tmp_path)) == mode
        file.write(b"secret")
    assert mode_of(path) == mode


def only(folder):
    """The draft in a folder."""
    (draft,) = folder.glob(".*.part")
    return draft


def test_a_draft_of_a_dead_process_lends_no_permissions(tmp_path, open_umask):
    path = tmp_path / "key"
    with storage.replacing(path) as file:
        name = only(tmp_path)
        file.write(b"x")
    name.write_bytes(b"left behind by a process with the same number")
    name.chmod(0o666)
    with storage.replacing(path, mode=0o600) as file:
        assert mode_of(name) == 0o600
        file.write(b"secret")
    assert (path.read_bytes(), mode_of(path)) == (b"secret", 0o600)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_block_that_raises_leaves_the_old_file_and_no_trace(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(error), storage.replacing(path) as file:  # noqa: PT012
        file.write(b"half")
        raise error
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_a_folder_is_not_replaced_and_nothing_is_left(tmp_path):
    (tmp_path / "file" / "inner").mkdir(parents=True)
    with pytest.raises(OSError, match="file"):
        storage.write(tmp_path / "file", b"content")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        storage.write(tmp_path / "none" / "file", b"content")


def test_readers_see_the_old_file_until_the_block_ends(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with storage.replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_threads_that_write_one_file_leave_one_whole_file(tmp_path):
    path, start = tmp_path / "file", threading.Barrier(4)

    def write(number):
        start.wait()
        for _ in range(20):
            storage.write(path, bytes([number]) * 5000)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert len(path.read_bytes()) == 5000
    assert len(set(path.read_bytes())) == 1


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"\x00" * 100, storage.pack("other", storage.Parts({}, {}))]
)
def test_other_bytes_are_refused(data):
    with pytest.raises(DataError, match="file must hold a thing of domkl"):
        storage.unpack("thing", data)


def test_a_compressed_archive_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "file", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", b"")
    with pytest.raises(DataError, match="compressed"):
        storage.unpack("thing", (tmp_path / "file").read_bytes())


def test_a_header_with_nan_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        storage.pack("thing", storage.Parts({"a": float("nan")}, {}))
