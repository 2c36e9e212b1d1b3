"""How functions are compiled, and why a stale binary is never run.

Kinds of compiled function:

- ``row``: an inner loop over contiguous 1-D rows, element by element, in the order written. A
  product and the sum it stands in may be fused, so each sum has one product, and each product one
  use: then there is one way to fuse them. Otherwise `lanes.fused` says what is meant.
- ``sweep``: calls rows for many learners, and releases the interpreter's lock meanwhile.
- ``inner``: a part of sweeps that only compiled code calls.
- ``scalar``: a function of a few numbers.
- ``generic``: a piece of a host that is compiled into its caller, for each type of state.

Each of them has two forms, compiled when they are first needed. Python calls one, which has an
entry that unpacks arguments. Compiled code takes the other, the *part*, which has none; a part that
is not an inner loop is neither optimised nor turned into machine code by itself, because the
function that is made of it will be. This halves the time to compile a host.

The arithmetic of each is stated. Where the option is left out, Numba takes that of whichever caller
compiles the function first; where it leaves a choice, such as the order of a sum, LLVM chooses by
what the function is compiled into. Hosts would differ in the last digit, from run to run, by which
process compiled what. Sums in vector registers are in lanes.py, with their order written out.

Numba stores binaries on disk. It compares only the time of the file that holds the function, not of
the files it calls into, and the index of a function's binaries names the classes of its arguments.
Two things would go wrong: a changed callee runs stale, and an index that names a user's class
cannot be read by a process without that class. So every binary of the package carries the digest of
all compiled folders, and binaries for a user's classes go to files of their own, named by the
digest of the user's source (numba_internals.py).
"""

import hashlib
import inspect
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numba

from domkl.core.numba_internals import IS_COMPILING as IS_COMPILING
from domkl.core.numba_internals import (
    LOOP,
    PART,
    Shared,
    call_in_compiled_code,
    classes_in,
    store_binaries,
)
from domkl.core.numba_internals import compiled_as as compiled_as
from domkl.core.numba_internals import noted_compilation as noted_compilation

F = TypeVar("F", bound=Callable[..., Any])

FUSED = {"contract"}
AS_WRITTEN = False  # fast-math flags: none
PACKAGE = Path(__file__).parents[1]
#: folders whose code ends up in binaries
COMPILED = ("core", "algorithms", "speech", "sim", "estimators")


def source_digest(*places: Path) -> str:
    """Digest Python files, and all those of folders with the folders in them, names included."""
    digest = hashlib.sha256()
    for place in places:
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            name = path.relative_to(place.parent).as_posix()
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


STAMP = source_digest(*(PACKAGE / folder for folder in COMPILED))


def row(function: F) -> F:
    """Compile an inner loop over 1-D rows."""
    return _compiled(function, LOOP, fastmath=FUSED)


def sweep(function: F) -> F:
    """Compile a loop over learners that calls rows, without the interpreter's lock."""
    return _compiled(function, PART, nogil=True, fastmath=AS_WRITTEN)


def inner(function: F) -> F:
    """Compile a part of sweeps that only compiled code calls: a call from Python ends the process.

    Without the compiler it is the function itself.
    """
    return _part(function, PART, nogil=True, fastmath=AS_WRITTEN)


def scalar(function: F) -> F:
    """Compile a function of a few numbers."""
    return _compiled(function, LOOP, fastmath=AS_WRITTEN)


def generic(function: F) -> F:
    """Compile a piece of a host into its caller; it has no binary of its own."""
    made: Any = numba.njit(inline="always", fastmath=AS_WRITTEN, **PART)(function)
    return made  # type: ignore[no-any-return]


def _compiled(function: F, form: Any, **options: Any) -> F:
    njit: Any = numba.njit  # whose annotations know fewer options
    dispatcher = njit(error_model="numpy", no_cfunc_wrapper=True, **options)(function)
    if dispatcher is not function:  # it is, under NUMBA_DISABLE_JIT
        stamp_cache(dispatcher, STAMP)
        call_in_compiled_code(dispatcher, _part(function, form, **options))
    return dispatcher  # type: ignore[no-any-return]


def _part(function: F, form: Any, **options: Any) -> F:
    """Give the form of a function that compiled code takes."""
    njit: Any = numba.njit
    part = njit(**form, **options)(function)
    if part is not function:
        store_binaries(part, STAMP, lambda sig: f"-part{foreign_suffix(sig)}")
    return part  # type: ignore[no-any-return]


def stamp_cache(dispatcher: Any, stamp: str) -> None:
    """Store a function's binaries on disk, valid for this stamp only."""
    store_binaries(dispatcher, stamp, foreign_suffix)


def shared(function: F, *axes: int) -> F:
    """Compile a function once for each type of real numbers; compiled code calls it by symbol.

    Numba copies whatever a function calls into that function's own module and optimises all of it
    again, for every law and type. What is large in a host and the same for all laws is compiled
    by itself instead. `link` must be called before a host runs; `Shared` describes ``axes``.
    """
    return Shared(function, axes, STAMP).called  # type: ignore[return-value]


#: classes of users whose instances are passed to compiled code, and the functions behind each
FOREIGN: dict[type, tuple[Callable[..., Any], ...]] = {}


def foreign_suffix(sig: Any) -> str:
    """Name the user's classes in a signature by a digest of their source; empty without any.

    Raises OSError for a class whose source cannot be found again by another process.
    """
    found = {cls for cls in classes_in(sig) if not cls.__module__.startswith("domkl.")}
    if not found:
        return ""
    digest = hashlib.sha256()
    for cls in sorted(found, key=lambda cls: (cls.__module__, cls.__qualname__)):
        if cls.__module__ == "__main__":
            raise OSError(f"{cls.__qualname__} is not in a module")
        digest.update(f"{cls.__module__}.{cls.__qualname__}".encode())
        for part in sorted(set(_sources(FOREIGN.get(cls, ())))):
            digest.update(part)
    return f"-{digest.hexdigest()[:16]}"


def _sources(functions: tuple[Any, ...]) -> Iterator[bytes]:
    """Digests of the files that functions stand in, and of what they use, outside of the package.

    Compiled code holds the values of global constants, so their values count as source.
    """
    seen: set[Any] = set()
    todo = [getattr(function, "py_func", function) for function in functions]
    while todo:
        function = todo.pop()
        if function in seen or function.__module__.startswith("domkl."):
            continue
        seen.add(function)
        yield source_digest(Path(inspect.getfile(function))).encode()
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, (bool, int, float, str, tuple)):
                yield f"{name} = {value!r}".encode()
            inner = getattr(value, "py_func", value)
            if inspect.isfunction(inner):
                todo.append(inner)


def name_apart(kind: Any) -> None:
    """Let a NamedTuple class go by its full name, module and all.

    Numba's names of binaries hold the ``__name__`` of such classes and the types of their fields,
    and no module. Binaries of namesakes that two processes have stored would be taken for each
    other in a third one.
    """
    kind.__name__ = f"{kind.__module__}.{kind.__qualname__}"


class Parameters:
    """Base of dataclasses whose fields are passed to compiled code, as a NamedTuple of the fields.

    Fields whose default is text are left out. The NamedTuple's class is an attribute of the
    dataclass from its definition on, so that stored binaries find it again by name.
    """

    Tuple: ClassVar[type]

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        names = [
            name
            for base in reversed(cls.__mro__)
            if base is cls or "__dataclass_fields__" in vars(base)
            for name, kind in _annotations(base).items()
            if "ClassVar" not in str(kind) and not isinstance(getattr(cls, name, None), str)
        ]
        made = namedtuple("Tuple", dict.fromkeys(names))  # type: ignore[misc]
        made.__module__, made.__qualname__ = cls.__module__, f"{cls.__qualname__}.Tuple"
        name_apart(made)
        cls.Tuple = made

    def as_tuple(self) -> Any:
        """The fields as compiled code takes them: numbers as float, losses in compiled form."""
        kind: Any = self.Tuple
        return kind(*(_plain(getattr(self, name)) for name in kind._fields))


def _annotations(cls: type) -> dict[str, Any]:
    """Those of the class itself; from Python 3.14 on they are evaluated when asked for."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        return get_annotations(cls, format=Format.STRING)
    found: dict[str, Any] = vars(cls).get("__annotations__", {})
    return found


def _plain(value: Any) -> Any:
    compiled = getattr(value, "compiled", None)
    if compiled is not None:
        return compiled
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else value
