"""How the primitives are compiled, and why a stale binary is never run.

Kinds of compiled function:

- ``row``: an inner loop over contiguous 1-D rows, element by element, in the order written;
  products and sums may be fused.
- ``reduction``: a row that sums. The sum may be reordered, or it would not run in vector
  registers.
- ``sweep``: calls rows for many learners, and releases the interpreter's lock meanwhile.
- ``scalar``: a function of a few numbers.

Numba stores binaries on disk and compares only the time of the file that holds the function, not
of the files it calls into. Here every binary carries the digest of all of ``core/`` instead.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

FUSED = {"contract"}
REORDERED = {"contract", "reassoc", "nsz"}


def source_digest(folder: Path) -> str:
    """Digest every Python file of a folder, names included."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


_STAMP = source_digest(Path(__file__).parent)


def row(function: F) -> F:
    """Compile an inner loop over 1-D rows."""
    return _compiled(function, fastmath=FUSED)


def reduction(function: F) -> F:
    """Compile an inner loop over 1-D rows that sums."""
    return _compiled(function, fastmath=REORDERED)


def sweep(function: F) -> F:
    """Compile a loop over learners that calls rows, without the interpreter's lock."""
    return _compiled(function, nogil=True, fastmath=FUSED)


def scalar(function: F) -> F:
    """Compile a function of a few numbers, in strict IEEE arithmetic."""
    return _compiled(function)


def _compiled(function: F, **options: Any) -> F:
    try:
        dispatcher = numba.njit(cache=True, error_model="numpy", **options)(function)
    except RuntimeError:  # no folder to store binaries in: a read-only system, say
        return numba.njit(error_model="numpy", **options)(function)  # type: ignore[no-any-return]
    if dispatcher is not function:  # it is, under NUMBA_DISABLE_JIT
        stamp_cache(dispatcher, _STAMP)
    return dispatcher  # type: ignore[no-any-return]


def stamp_cache(dispatcher: Any, stamp: str) -> None:
    """Make a function's stored binaries valid for this stamp only.

    Should a Numba release move what is set here, the function is compiled anew in each process:
    slower to start, never stale.
    """
    index: Any = getattr(dispatcher._cache, "_cache_file", None)
    if hasattr(index, "_source_stamp"):
        index._source_stamp = stamp
    else:
        dispatcher._cache.disable()
