"""How functions are compiled, and why a stale binary is never run.

Kinds of compiled function:

- ``row``: an inner loop over contiguous 1-D rows, element by element, in the order written. A
  product and the sum it stands in may be fused, so each sum has one product, and each product one
  use: then there is one way to fuse them. Otherwise `lanes.fused` says what is meant.
- ``sweep``: calls rows for many learners, and releases the interpreter's lock meanwhile.
- ``inner``: a part of sweeps that only compiled code calls.
- ``scalar``: a function of a few numbers.
- ``generic``: a piece of a host that is compiled into its caller, for each type of state.

The arithmetic of each is stated. Where the option is left out, Numba takes that of whichever caller
compiles the function first; where it leaves a choice, such as the order of a sum, LLVM chooses by
what the function is compiled into. Hosts would differ in the last digit, from run to run, by which
process compiled what. Sums in vector registers are in lanes.py, with their order written out.

Numba stores binaries on disk. It compares only the time of the file that holds the function, not of
the files it calls into, and the index of a function's binaries names the classes of its arguments.
Two things would go wrong: a changed callee runs stale, and an index that names a user's class
cannot be read by a process without that class. So every binary of the package carries the digest of
all compiled folders, and binaries for a user's classes go to files of their own, named by the
digest of the user's source (`StampedCache`).
"""

import contextlib
import functools
import hashlib
import inspect
import sys
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numba
from numba.core import event as events
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.extending import overload

F = TypeVar("F", bound=Callable[..., Any])

FUSED = {"contract"}
AS_WRITTEN = False  # fast-math flags: none
#: of what only compiled code calls: no entry from Python or C, whose code costs most to compile
INTERNAL: Any = {
    "error_model": "numpy",
    "fastmath": AS_WRITTEN,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
PACKAGE = Path(__file__).parents[1]
#: folders whose code ends up in binaries
COMPILED = ("core", "algorithms", "sim")

COMPILING = "compiling; this takes up to a minute, once"

IS_COMPILING = not getattr(numba.config, "DISABLE_JIT", False)


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
    return _compiled(function, fastmath=FUSED)


def sweep(function: F) -> F:
    """Compile a loop over learners that calls rows, without the interpreter's lock."""
    return _compiled(function, nogil=True, fastmath=AS_WRITTEN)


def inner(function: F) -> F:
    """Compile a part of sweeps that only compiled code calls.

    It has no entry from Python, which for a large state takes longer to compile than the function:
    a call from Python ends the process.
    """
    return _compiled(function, nogil=True, fastmath=AS_WRITTEN, no_cpython_wrapper=True)


def scalar(function: F) -> F:
    """Compile a function of a few numbers."""
    return _compiled(function, fastmath=AS_WRITTEN)


def generic(function: F) -> F:
    """Compile a piece of a host into its caller; it has no binary of its own."""
    made: Any = numba.njit(inline="always", **INTERNAL)(function)
    return made  # type: ignore[no-any-return]


def compiled_as(function: Callable[..., Any]) -> Callable[[F], F]:
    """Give a Python function a compiled form, made for the types of its arguments.

    This is Numba's `overload`, without its demand that annotations be equal. Callers call it: to
    copy it into them (``inline="always"``) took a sixth more time to compile.
    """
    made: Any = overload(function, jit_options=INTERNAL, strict=False)
    return made  # type: ignore[no-any-return]


@functools.cache
def _note_once() -> None:
    print(COMPILING, file=sys.stderr)


class _CompilationNote(events.Listener):
    """Prints a note when compiling has gone on for a while."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timer: threading.Timer | None = None

    def on_start(self, event: Any) -> None:
        """Start to wait with the first function that is compiled."""
        if self._timer is None:
            self._timer = threading.Timer(self._seconds, _note_once)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        """Go on waiting: many functions follow each other."""

    def stop(self) -> None:
        """Print no more."""
        if self._timer is not None:
            self._timer.cancel()


@contextlib.contextmanager
def noted_compilation(seconds: float = 1.0) -> Iterator[None]:
    """Print a note on standard error if the block waits for the compiler longer than this.

    Binaries that are stored on disk are no compilation.
    """
    note, numba_events = _CompilationNote(seconds), cast(Any, events)
    numba_events.register("numba:compile", note)
    try:
        yield
    finally:
        numba_events.unregister("numba:compile", note)
        note.stop()


def _compiled(function: F, **options: Any) -> F:
    njit: Any = numba.njit  # whose annotations know fewer options
    dispatcher = njit(error_model="numpy", no_cfunc_wrapper=True, **options)(function)
    if dispatcher is not function:  # it is, under NUMBA_DISABLE_JIT
        stamp_cache(dispatcher, STAMP)
    return dispatcher  # type: ignore[no-any-return]


def stamp_cache(dispatcher: Any, stamp: str) -> None:
    """Store a function's binaries on disk, valid for this stamp only.

    They are not stored where there is no folder for them, on a read-only system for example, or
    should a Numba release have moved what `StampedCache` builds on: then the function is compiled
    anew in each process, which is slower to start and never stale.
    """
    dispatcher._cache = _LaterCache(dispatcher.py_func, stamp)


class _LaterCache:
    """A `StampedCache` that looks for its folder when it is first asked.

    Of the package's functions most are compiled into others, and never asked for by themselves.
    """

    def __init__(self, function: Any, stamp: str) -> None:
        self._given = function, stamp

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copying and pickling ask for, before there is anything
            raise AttributeError(name)
        return getattr(self._made, name)

    @functools.cached_property
    def _made(self) -> Any:
        try:
            return StampedCache(*self._given)
        except (RuntimeError, AttributeError, TypeError):
            return cast(Any, NullCache)()


class StampedCache(FunctionCache):
    """The binaries of one function, with one index for the package and one for each user's law."""

    def __init__(self, function: Any, stamp: str) -> None:
        begin: Any = super().__init__
        begin(function)
        self._stamp = stamp
        self._cache_file = self._file("")

    def _file(self, suffix: str) -> "_TolerantIndex":
        made: Any = _TolerantIndex
        index: _TolerantIndex = made(
            self._cache_path, self._impl.filename_base + suffix, self._stamp
        )
        return index

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the binary for this signature, where there is one."""
        load: Any = super().load_overload
        return self._at(sig, lambda: load(sig, target_context))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store the binary for this signature."""
        save: Any = super().save_overload
        self._at(sig, lambda: save(sig, data))

    def has(self, sig: Any, target_context: Any) -> bool:
        """Whether there is a binary for this signature."""
        index: Any = self._index_key
        key = index(sig, target_context.codegen())

        def look() -> bool:
            file: Any = self._cache_file
            return key in file._load_index()

        return bool(self._at(sig, look))

    def _at(self, sig: Any, work: Callable[[], Any]) -> Any:
        """Do this with the file that belongs to the classes in a signature."""
        own = self._cache_file
        try:
            suffix = foreign_suffix(sig)
        except OSError:  # a class of an interactive session has no source to digest
            return None
        try:
            self._cache_file = own if not suffix else self._file(suffix)
            return work()
        finally:
            self._cache_file = own


class _TolerantIndex(IndexDataCacheFile):
    """An index that counts as empty where it cannot be read: it may name classes that moved."""

    def _load_index(self) -> Any:
        load: Any = super()._load_index
        try:
            return load()
        except Exception:
            return {}


#: classes of users whose instances are passed to compiled code, and the functions behind each
FOREIGN: dict[type, tuple[Callable[..., Any], ...]] = {}


def foreign_suffix(sig: Any) -> str:
    """Name the user's classes in a signature by a digest of their source; empty without any.

    Raises OSError for a class whose source cannot be found again by another process.
    """
    found = {cls for cls in _classes(sig) if not cls.__module__.startswith("domkl.")}
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


def _classes(given: Any) -> Iterator[type]:
    """The NamedTuple classes in a signature or a type."""
    parts = given if isinstance(given, tuple) else getattr(given, "types", ())
    if isinstance(given, (types.NamedTuple, types.NamedUniTuple)):
        yield given.instance_class
    if isinstance(given, types.UniTuple):  # also NamedUniTuple: one type for all members
        parts = (given.dtype,)
    for part in parts:
        yield from _classes(part)


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
        """The fields as compiled code takes them: numbers, and losses as theirs."""
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
