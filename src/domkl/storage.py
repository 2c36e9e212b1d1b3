"""The one atomic write of the package, and objects as bytes without pickle.

An object is stored as a JSON header and arrays in one .npz archive. Any bytes load or raise
DataError, and none of them can name code to run. Archives are not compressed, so that reading a
file takes no more memory than its size.
"""

import contextlib
import io
import json
import os
import threading
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from domkl.errors import DataError

VERSION = 1
#: exceptions that reading hostile bytes can raise in NumPy, zipfile and json
BROKEN = (
    ValueError, KeyError, TypeError, AttributeError, IndexError, EOFError, OverflowError,
    MemoryError, RecursionError, NotImplementedError, RuntimeError, OSError, zipfile.BadZipFile,
    SyntaxError, TokenError,
)  # fmt: skip

Arrays = Mapping[str, NDArray[Any]]


class Parts(NamedTuple):
    """What is stored of an object: a header and arrays."""

    header: dict[str, Any]  # ready for JSON
    arrays: Arrays


def pack(kind: str, parts: Parts) -> bytes:
    """Turn the parts of an object of this kind into bytes."""
    header = {"format": "domkl", "version": VERSION, "kind": kind, **parts.header}
    text = json.dumps(header, allow_nan=False, sort_keys=True).encode()
    with io.BytesIO() as file:
        np.savez(file, header=np.frombuffer(text, dtype=np.uint8), **parts.arrays)  # type: ignore[arg-type]
        return file.getvalue()


def unpack(kind: str, data: bytes) -> Parts:
    """Turn bytes that `pack` made for this kind back into parts."""
    with sound(kind), io.BytesIO(data) as file:
        with zipfile.ZipFile(file) as archive:
            if any(item.compress_type != zipfile.ZIP_STORED for item in archive.infolist()):
                raise DataError("its archive is compressed")
        with np.load(file, allow_pickle=False) as stored:
            arrays = dict(stored)
        header = json.loads(arrays.pop("header").tobytes())
        found = tuple(header.pop(name) for name in ("format", "version", "kind"))
        if found != ("domkl", VERSION, kind):
            raise DataError(f"it is {found}")
        return Parts(header, arrays)


@contextlib.contextmanager
def sound(kind: str) -> Iterator[None]:
    """Turn any exception that damaged bytes cause into DataError."""
    try:
        yield
    except BROKEN as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise DataError(f"file must hold a {kind} of domkl, version {VERSION}; {what}") from None


def write(path: str | Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file atomically; its content and its name are on disk when this returns."""
    with replacing(path, mode=mode) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: str | Path, *, mode: int = 0o644) -> Iterator[BinaryIO]:
    """Open a file that replaces ``path`` in one step when the block ends without an exception.

    All atomic writes of the package go through this function. The block writes to a temporary file
    in the same folder, which never has wider permissions than ``mode`` and is removed if the block
    raises.
    """
    path = Path(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    draft.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def opened_privately(path: str | Path, mode: str) -> IO[Any]:
    """Open a file as `open` does; one that is made by it can be read by its owner alone."""
    coding = None if "b" in mode else "utf-8"
    return open(path, mode, encoding=coding, opener=lambda name, flags: os.open(name, flags, 0o600))


def sync_folder(folder: Path) -> None:
    """Write the entries of a folder to disk after files were created, renamed or removed."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
