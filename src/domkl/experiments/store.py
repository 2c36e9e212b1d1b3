"""Outcomes of work on disk, under names that say all that went into them.

The rules of this file: a name is the digest of everything an outcome depends on, so an outcome is
never stale, never overwritten, and can be shared between runs. A file appears whole or not at all.
"""

import hashlib
import json
import tempfile
import zipfile
import zlib
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import domkl
from domkl import storage
from domkl.core.jit import source_digest
from domkl.errors import ParameterError

Kept = dict[str, Any]  # names to arrays

#: packages whose code outcomes depend on; and the libraries, by their versions
SOURCES = (
    ".",
    "core",
    "algorithms",
    "sim",
    "graphs",
    "metrics",
    "data",
    "experiments",
    "experiments/reproduce/works",
)
LIBRARIES = ("numpy", "scipy", "numba")


@cache
def code_digest() -> str:
    """Digest the modules that outcomes depend on: results of other code are not ours."""
    return sources_digest(Path(domkl.__file__).parent)


def sources_digest(root: Path) -> str:
    """Digest the packages in ``SOURCES``, and the versions of the libraries."""
    words = [source_digest(root / folder) for folder in SOURCES]
    words += [f"{name} {version(name)}" for name in LIBRARIES]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def file_digest(path: str) -> str:
    """Digest one file, for what depends on that alone."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def key_of(parts: dict[str, Any]) -> str:
    """Name an outcome by what it depends on; our code is part of that unless ``code`` is given."""
    text = json.dumps({"code": code_digest(), **parts}, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def digest_of(*arrays: np.ndarray[Any, Any]) -> str:
    """Digest the bytes and shapes of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype.str}".encode() + array.tobytes())
    return digest.hexdigest()


def path_of(folder: Path, key: str) -> Path:
    """Where an outcome lies in a folder."""
    return folder / f"{key}.npz"


class Store:
    """A folder of outcomes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise ParameterError(
                f"out must be a folder that can be written, got {folder}: {error.strerror}"
            ) from None

    def get(self, key: str) -> Kept | None:
        """Read an outcome; None if it is not there or cannot be read, and must be made anew."""
        path = self._path(key)
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):  # torn or damaged
            path.unlink(missing_ok=True)
            return None

    def has(self, key: str) -> bool:
        """Whether there is such an outcome."""
        return self._path(key).is_file()

    def put(self, key: str, outcome: Kept) -> None:
        """Keep an outcome."""
        with storage.replacing(self._path(key)) as file:
            np.savez_compressed(file, **outcome)

    def _path(self, key: str) -> Path:
        return path_of(self.folder, key)
