"""Results on disk, each under a key that is a digest of everything the results depend on.

Two calculations have the same key only if they give the same results: the key covers the samples,
the parameters, the seed, the code of domkl, the versions of the numerical libraries and, for an
algorithm of the user's own, the files that define it. So stored results are never stale and never
overwritten, and several runs can share a folder. A file appears complete or not at all.
"""

import hashlib
import inspect
import json
import sys
import tempfile
import zipfile
import zlib
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import domkl
from domkl import storage
from domkl.algorithms.base import Algorithm
from domkl.core.jit import source_digest
from domkl.errors import ParameterError

#: what a calculation gives: names and arrays
Results = dict[str, Any]

PACKAGE = Path(domkl.__file__).parent
#: folders of the package that no results depend on
NOT_DIGESTED = ("mesh", "cli")
LIBRARIES = ("numpy", "scipy", "numba")


@cache
def code_digest() -> str:
    """Digest of the code that results depend on: domkl and the numerical libraries."""
    words = [package_digest(PACKAGE), *(f"{name} {version(name)}" for name in LIBRARIES)]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def package_digest(root: Path) -> str:
    """Digest of the names and contents of all Python files and of the catalog of data sets.

    Folders in `NOT_DIGESTED` are left out.
    """
    places = [path for path in sorted(root.iterdir()) if path.name not in NOT_DIGESTED]
    code = [path for path in places if path.is_dir() or path.suffix == ".py"]
    return source_digest(*code, *sorted(root.glob("data/*.toml")))


def algorithm_digest(algorithm: Algorithm) -> str:
    """Digest of an algorithm: its class and parameters, and the user's files that define them."""
    words = _description(algorithm) + source_digest(*_users_files(algorithm))
    return hashlib.sha256(words.encode()).hexdigest()


def code_of(algorithm: Algorithm) -> str:
    """Digest of all code that its results depend on: domkl, the libraries, the user's files."""
    return f"{code_digest()} {algorithm_digest(algorithm)}"


def _description(algorithm: Algorithm) -> str:
    if hasattr(algorithm, "__dataclass_fields__"):
        return repr(algorithm)
    kind = type(algorithm)
    return f"{kind.__module__}:{kind.__qualname__} {sorted(vars(algorithm).items())!r}"


def _users_files(value: Any) -> list[Path]:
    """The files outside domkl that define a function, or an algorithm and its parameters."""
    found: set[Path] = set()
    for kind in (value,) if inspect.isfunction(value) else type(value).__mro__:
        module = kind.__module__
        if module.partition(".")[0] not in {*sys.stdlib_module_names, "domkl", *LIBRARIES}:
            try:
                found.add(Path(inspect.getfile(kind)).resolve())
            except (TypeError, OSError):
                raise ParameterError(
                    f"{module}:{kind.__qualname__} must be defined in a file, so that results of"
                    " an older version of it are not used again"
                ) from None
    if isinstance(value, Algorithm):
        for parameter in vars(value).values():
            found |= set(_users_files(parameter))
    return sorted(found)


def key_of(parts: dict[str, Any]) -> str:
    """The key of results that depend on these parts and on our code."""
    text = json.dumps({"code": code_digest(), **parts}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def described(value: Any) -> Any:
    """What a value is, for `key_of`: arrays and algorithms by their digests.

    Of a dataclass, the fields that are compared: the others change no result.
    """
    if isinstance(value, np.ndarray):
        return digest_of(value)
    if isinstance(value, Algorithm):
        return algorithm_digest(value)
    if inspect.isfunction(value):
        return f"{value.__qualname__} {source_digest(*_users_files(value))}"
    if is_dataclass(value):
        return {f.name: described(getattr(value, f.name)) for f in fields(value) if f.compare}
    return value


def digest_of(*arrays: np.ndarray[Any, Any]) -> str:
    """Digest of the bytes and shapes of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype.str}".encode() + array.tobytes())
    return digest.hexdigest()


def path_of(folder: Path, key: str) -> Path:
    """The file for this key in a folder."""
    return folder / f"{key}.npz"


class Store:
    """A folder of results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise ParameterError(
                f"out must be a folder that can be written, got {folder}: {error.strerror}"
            ) from None

    def get(self, key: str) -> Results | None:
        """Read results; None if there are none, or if the file is damaged (it is then removed)."""
        path = path_of(self.folder, key)
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
            path.unlink(missing_ok=True)
            return None

    def has(self, key: str) -> bool:
        """Whether there are results for this key."""
        return path_of(self.folder, key).is_file()

    def put(self, key: str, results: Results) -> None:
        """Write results."""
        self.folder.mkdir(parents=True, exist_ok=True)  # a run that failed may have removed it
        with storage.replacing(path_of(self.folder, key)) as file:
            np.savez_compressed(file, **results)
