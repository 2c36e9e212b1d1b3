"""Files that are written whole, and are on disk by then."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from domkl import storage


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
