"""Everything of Numba and llvmlite that their manuals do not promise, in one file.

Other modules use documented names only: ``njit``, ``overload``, ``typeof``, ``carray`` and
``types``. What a new release of Numba can break stands here, so `VERSIONS` is the range that the
tests have run with, and importing this module with another version is an error.

- *Binaries on disk*: `StampedCache`, its index, and when a binary is stored (`store_binaries`).
- *Calls*: `machine_code` finds a compiled function's entry without Numba's own dispatch;
  `is_at_hand` and `is_stored` say whether there is one; `noted_compilation` tells the user.
- *Functions by symbol*: `Shared`, and `link`.
- *Parts*: `PART` and `LOOP` are options for functions that compiled code calls, without entries.
- *Types*: `class_of` a NamedTuple's type, `by_class` for functions that depend on such a class.
- *Instructions*: `dot_of`, `dot_block_of`, `fused_of` and `prefetch`, in LLVM's terms. What they
  mean and why they are needed is told in lanes.py and exchange.py, which wrap them.
"""

import contextlib
import functools
import inspect
import math
import sys
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar, cast

import numba

from domkl.errors import VersionError
from domkl.typing import Array, Floats, Ints

F = TypeVar("F", bound=Callable[..., Any])

#: Numba's versions that the tests have run with: from the first on, and below the second
VERSIONS = ((0, 61), (0, 69))


def check_version(version: str) -> None:
    """Raise VersionError for a version of Numba that domkl was not tested with.

    Examples
    --------
    >>> check_version("0.68.1")
    >>> check_version("0.60.0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    domkl.errors.VersionError: numba must be >=0.61,<0.69, got 0.60.0: pip install ...
    """
    found = tuple(int(part) for part in version.split(".")[:2])
    if not VERSIONS[0] <= found < VERSIONS[1]:
        low, high = (".".join(map(str, each)) for each in VERSIONS)
        rule = f">={low},<{high}"
        raise VersionError(f"numba must be {rule}, got {version}: pip install 'numba{rule}'")


check_version(numba.__version__)  # before the imports below, which another version may not have

from llvmlite import binding  # noqa: E402
from numba import types  # noqa: E402
from numba._dispatcher import compute_fingerprint  # noqa: E402
from numba.core import cgutils  # noqa: E402
from numba.core import event as events  # noqa: E402
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache  # noqa: E402
from numba.core.ccallback import CFunc  # noqa: E402
from numba.core.codegen import JITCodeLibrary  # noqa: E402
from numba.core.compiler import CompilerBase  # noqa: E402
from numba.core.compiler import DefaultPassBuilder as PassBuilder  # noqa: E402
from numba.core.errors import NumbaError as NumbaError  # noqa: E402
from numba.extending import intrinsic, overload  # noqa: E402

IS_COMPILING = not getattr(numba.config, "DISABLE_JIT", False)


# Binaries on disk


def store_binaries(dispatcher: Any, stamp: str, suffix: Callable[[Any], str]) -> None:
    """Store a function's binaries on disk, valid for this stamp only.

    They are not stored where there is no folder for them, on a read-only system for example: then
    the function is compiled anew in each process, which is slower to start and never stale.
    """
    dispatcher._cache = _LaterCache(dispatcher.py_func, stamp, suffix)


def cache_folder(dispatcher: Any) -> str | None:
    """Give the folder that holds a function's binaries; None where they cannot be stored."""
    place: str | None = getattr(getattr(dispatcher, "_cache", None), "cache_path", None)
    return place


class _LaterCache:
    """A `StampedCache` that looks for its folder when it is first asked.

    Most of the package's functions are compiled into others, and never asked for by themselves.
    """

    def __init__(self, *given: Any) -> None:
        self._given = given

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copying and pickling ask for, before there is anything
            raise AttributeError(name)
        return getattr(self._made, name)

    @functools.cached_property
    def _made(self) -> Any:
        try:
            return StampedCache(*self._given)
        except RuntimeError:
            return cast(Any, NullCache)()


class StampedCache(FunctionCache):
    """The binaries of one function, with one index for the package and one for each user's law.

    Numba compares the time of the file that holds the function; this class compares a stamp. A
    signature that names a user's classes has a suffix, and an index file of its own.
    """

    def __init__(self, function: Any, stamp: str, suffix: Callable[[Any], str]) -> None:
        begin: Any = super().__init__
        begin(function)
        self._stamp, self._suffix = stamp, suffix
        self._cache_file = self._file("")

    def _file(self, suffix: str) -> "TolerantIndex":
        made: Any = TolerantIndex
        index: TolerantIndex = made(
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
            suffix = self._suffix(sig)
        except OSError:  # a class of an interactive session has no source to digest
            return None
        try:
            self._cache_file = own if not suffix else self._file(suffix)
            return work()
        finally:
            self._cache_file = own


class TolerantIndex(IndexDataCacheFile):
    """An index that counts as empty where it cannot be read: it may name classes that moved."""

    def _load_index(self) -> Any:
        load: Any = super()._load_index
        try:
            return load()
        except Exception:
            return {}


# Calls

_entries: dict[tuple[Any, ...], Callable[..., Any]] = {}


def machine_code(dispatcher: Any, *given: Any) -> Any:
    """Give what to call instead of a compiled function, with NamedTuples of arrays as arguments.

    Numba looks up the type of every field anew at each call, in Python, which takes ten times as
    long as a small step of learning. Here its machine code is found by Numba's own fingerprint of
    the arguments.
    """
    key = _layout(dispatcher, given)
    entry = None if key is None else _entries.get(key)
    if entry is None:
        overloads = getattr(dispatcher, "overloads", None)
        if overloads is None:  # a Python function
            return dispatcher
        found = overloads.get(types_of(given))
        if found is None or key is None:  # to be compiled by this call, or of unknown types
            return dispatcher
        entry = _entries[key] = found.entry_point
    return entry


def _layout(dispatcher: Any, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Give what Numba's types of these arguments follow from; None if it has no short form."""
    # as tuples without names, which take longer than arrays; their classes tell these
    plain = [tuple(each) if isinstance(each, tuple) else each for each in given]
    try:
        return (dispatcher, *map(type, given), compute_fingerprint(tuple(plain)))
    except NotImplementedError:
        return None


def types_of(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numba's types of some arguments."""
    typeof: Any = numba.typeof
    return tuple(typeof(each) for each in given)


def is_at_hand(dispatcher: Any, given: tuple[Any, ...]) -> bool:
    """Whether this process has the binary of a function for arguments of these types."""
    return _layout(dispatcher, given) in _entries or types_of(given) in dispatcher.overloads


def is_stored(dispatcher: Any, given: tuple[Any, ...]) -> bool:
    """Whether the disk has it."""
    has = getattr(dispatcher._cache, "has", None)
    return has is not None and bool(has(types_of(given), dispatcher.targetctx))


COMPILING = "compiling; this takes up to a minute, once"


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


# Functions by symbol

_pointer: Any = types.CPointer
REALS = {"float32": types.float32, "float64": types.float64}


class Shared:
    """A function that compiled code calls by its symbol, once it is linked: a C function.

    Its arguments are annotated, and ``axes`` has the number of axes of each, 0 for a number. An
    array is passed as its address and its sizes. One of two axes stands for any array as rows:
    (K, …) as (K, L).
    """

    def __init__(self, function: Any, axes: tuple[int, ...], stamp: str) -> None:
        python = getattr(function, "py_func", function)
        given = inspect.signature(python).parameters
        self._name, self._stamp = python.__name__, stamp
        self._real = [each.annotation for each in given.values()].index(Array)  # whose type varies
        self._kinds: list[Any] = []
        takes, made, sends = [], [], []
        for (name, each), n in zip(given.items(), axes, strict=True):
            sizes = [f"{name}_{i}" for i in range(n)]
            self._kinds += [each.annotation, *[int] * n]
            takes += [name, *sizes]
            made.append(f"carray({name}, ({', '.join(sizes)},))" if n else name)
            rows = [f"len({name})", f"{name}.size // max(len({name}), 1)"]
            shape = rows[:n] if n < 3 else [f"{name}.shape[{i}]" for i in range(n)]
            sends += [f"{name}.ctypes", *shape] if n else [name]
        carray = numba.carray  # type: ignore[attr-defined]
        scope: dict[str, Any] = {"carray": carray, "function": function}
        scope["__name__"] = python.__module__
        text = f"def {self._name}_by_address({', '.join(takes)}): function({', '.join(made)})"
        # the file names the folder of its binaries
        exec(compile(text, python.__code__.co_filename, "exec"), scope)
        self._function: Any = scope[f"{self._name}_by_address"]
        self._call = f"def call({', '.join(given)}): external({', '.join(sends)})"
        self._linked: dict[str, Any] = {}  # what keeps the code of each type alive
        _shared.append(self)

        def called(*given: Any) -> None:  # without the compiler
            both = zip(given, axes, strict=True)
            function(*(v.reshape(len(v), math.prod(v.shape[1:])) if n == 2 else v for v, n in both))

        #: what to call in compiled code
        self.called = called
        compiled_as(called)(lambda *given: self._caller(given))

    def _symbol(self, real: str) -> str:
        return f"domkl_{self._name}_{real}_{self._stamp[:16]}"

    def _types(self, real: str) -> list[Any]:
        numbers = {int: types.int64, bool: types.boolean, Ints: _pointer(types.int64)}
        arrays = {Floats: _pointer(types.float64), Array: _pointer(REALS[real])}
        return [(numbers | arrays)[kind] for kind in self._kinds]

    def _caller(self, given: tuple[Any, ...]) -> Any:
        """What compiled code calls, for arguments of these types."""
        real = given[self._real].dtype.name
        made: Any = types.ExternalFunction
        external = made(self._symbol(real), types.void(*self._types(real)))
        scope: dict[str, Any] = {"external": external}
        exec(self._call, scope)
        return scope["call"]

    def link(self, real: str) -> None:
        """Compile it for a type of real numbers, or read it from disk, once."""
        if real in self._linked:
            return
        options = {"nopython": True, "error_model": "numpy", "fastmath": False}
        c_function: Any = CFunc
        compiled = c_function(self._function, (self._types(real), types.void), {}, options)
        with contextlib.suppress(RuntimeError):  # where there is no folder to store binaries in
            compiled._cache = StampedCache(self._function, self._stamp, lambda sig: "")
        compiled.compile()
        binding.add_symbol(self._symbol(real), compiled.address)
        self._linked[real] = compiled


_shared: list[Shared] = []
_link_lock = threading.Lock()


def link(dtype: str) -> None:
    """Link the shared functions for states of this type.

    A second set under the same symbols would leave hosts with addresses of code that is gone, so
    threads that come here together wait for each other.
    """
    with _link_lock:
        for real in {dtype, "float64"} if IS_COMPILING else ():
            for each in _shared:
                each.link(real)


# Types


def class_of(kind: Any) -> Any:
    """Give the NamedTuple class of a type of Numba's; None if it is none, such as that of None."""
    return getattr(kind, "instance_class", None)


def classes_in(given: Any) -> Iterator[type]:
    """The NamedTuple classes in a signature or a type."""
    parts = given if isinstance(given, tuple) else getattr(given, "types", ())
    if isinstance(given, (types.NamedTuple, types.NamedUniTuple)):
        yield given.instance_class
    if isinstance(given, types.UniTuple):  # also NamedUniTuple: one type for all members
        parts = (given.dtype,)
    for part in parts:
        yield from classes_in(part)


class _PartLibrary(JITCodeLibrary):
    """The code of a function that is a part of others, which optimise it and have machine code."""

    def _optimize_final_module(self) -> None:
        """Leave it to the whole."""

    def _finalize_final_module(self) -> None:
        library: Any = self
        library._finalize_dynamic_globals()
        library._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Give 0, Numba's sign that a function has no entry."""
        ready: Any = self._ensure_finalized
        ready()
        return 0

    def serialize_using_object_code(self) -> Any:
        """Give what is stored: the code that other functions are made of."""
        made: Any = self.serialize_using_bitcode
        return made()

    @property
    def codegen(self) -> Any:
        """Whom Numba asks to `set_env`."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: an environment belongs to machine code."""


class _PartCompiler(CompilerBase):
    """Compiles a function that is a part of others."""

    def define_pipelines(self) -> list[Any]:
        """Give Numba's own passes, with a `_PartLibrary` for their result."""
        state, library, builder = (cast(Any, x) for x in (self.state, _PartLibrary, PassBuilder))
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        passes = builder.define_nopython_pipeline(state)
        passes.finalize()
        return [passes]


#: of an inner loop as a part of others: no entry from Python or C, whose code costs most to
#: compile. It is optimised and made machine code by itself: LLVM's last passes, which belong to
#: that, improve the loop where it stands alone, and do less for it inside of a host (13 % slower)
LOOP: Any = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
#: of any other part
PART: Any = LOOP | {"pipeline_class": _PartCompiler}


def call_in_compiled_code(dispatcher: Any, part: Any) -> None:
    """Let compiled code that calls a function take another form of it."""
    dispatcher.get_call_template = part.get_call_template
    dispatcher.get_overload = part.get_overload


def compiled_as(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Give a Python function a compiled form, made for the types of its arguments.

    This is Numba's `overload`, without its demand that annotations be equal. Callers call it: to
    copy it into them (``inline="always"``) took a sixth more time to compile.
    """
    made: Any = overload(function, jit_options=PART | {"fastmath": False}, strict=False)
    return made  # type: ignore[no-any-return]


def by_class(make: F) -> F:
    """Make a function that has another form for each class of its first argument.

    The decorated function names the arguments. It is called with the class in place of the first
    one, None if that is None, and gives the form: a function of the same arguments, or the text of
    a body, one statement or several lines, which may use the class as ``kind`` and all that the
    module defines. A text can name the fields of a NamedTuple, which compiled code cannot loop
    over, because they differ in type. Python and compiled code call the same form.
    """
    name, arguments = make.__name__, ", ".join(inspect.signature(make).parameters)

    @functools.cache
    def form(kind: Any) -> Any:
        made = make(kind, *[None] * arguments.count(","))
        if isinstance(made, FunctionType):
            return made
        body = made if isinstance(made, str) else f"return call({arguments})"
        scope = {**make.__globals__, "kind": kind, "call": made}
        exec(f"def {name}({arguments}):\n    {body}\n", scope)
        return scope[name]

    @functools.wraps(make)
    def called(first: Any, *rest: Any) -> Any:
        kind: Any = None if first is None else type(first)
        return form(kind)(first, *rest)

    compiled_as(called)(lambda first, *rest: form(class_of(first)))
    return called  # type: ignore[return-value]


# Instructions

#: bytes of each sum that are added at a time, while there are enough, and for the rest
WIDE, NARROW = 128, 32


def instruction(interpreted: Callable[..., Any]) -> Callable[[Any], Any]:
    """Make a function that writes LLVM's instructions; another one stands for it in Python.

    Instructions exist in compiled code only, so without the compiler the other one is called.
    """
    return intrinsic if IS_COMPILING else lambda generate: interpreted


_LLVM: Any = cgutils  # Numba's code generator, which has no types
ir = _LLVM.ir


def _fused(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """x · y + z, of numbers or vectors."""
    kind = z.type
    is_vector = isinstance(kind, ir.VectorType)
    suffix = f"v{kind.count}{kind.element.intrinsic_name}" if is_vector else kind.intrinsic_name
    form = ir.FunctionType(kind, [kind] * 3)
    name = f"llvm.fmuladd.{suffix}"
    return builder.call(_LLVM.get_or_insert_function(builder.module, form, name), [x, y, z])


def _halves_added(builder: Any, vector: Any, lanes: int) -> Any:
    """Add the upper half of a vector to the lower one until so many lanes are left."""
    while vector.type.count > lanes:
        half = vector.type.count // 2
        form = ir.VectorType(cgutils.int32_t, half)
        parts = [
            builder.shuffle_vector(
                vector, vector, ir.Constant(form, list(range(start, start + half)))
            )
            for start in (0, half)
        ]
        vector = builder.fadd(*parts)
    return vector


class _Sums:
    """Writes the instructions for Σ a_i b_i of some pairs of arrays of one size."""

    def __init__(self, builder: Any, pairs: list[tuple[Any, Any]], size: Any, bytes_each: int):
        self._builder, self._pairs, self._size = builder, pairs, size
        self._element, self._bytes = pairs[0][0].type.pointee, bytes_each

    def _number(self, value: int) -> Any:
        return ir.Constant(self._size.type, value)

    def _load(self, start: Any, i: Any, form: Any) -> Any:
        place = self._builder.gep(start, [i])
        return self._builder.load(
            self._builder.bitcast(place, form.as_pointer()), align=self._bytes
        )

    def _room(self, form: Any) -> list[Any]:
        """A zero for each pair."""
        zero = ir.Constant(form, None if isinstance(form, ir.VectorType) else 0.0)
        room = [_LLVM.alloca_once(self._builder, form) for _ in self._pairs]
        for place in room:
            self._builder.store(zero, place)
        return room

    def _add(self, room: list[Any], form: Any, start: Any, stop: Any) -> None:
        """Add the products from start to stop, as many at a time as the form has lanes."""
        builder, step = self._builder, getattr(form, "count", 1)
        with _LLVM.for_range_slice(builder, start, stop, self._number(step)) as (i, _):
            found = {array: self._load(array, i, form) for pair in self._pairs for array in pair}
            for (a, b), place in zip(self._pairs, room, strict=True):
                builder.store(_fused(builder, found[a], found[b], builder.load(place)), place)

    def write(self, wide: int) -> list[Any]:
        """The sums, ``wide`` bytes of each at a time."""
        builder, size = self._builder, self._size
        many, few = (ir.VectorType(self._element, n // self._bytes) for n in (wide, NARROW))
        ends = [builder.and_(size, self._number(-form.count)) for form in (many, few)]
        totals = self._room(self._element)
        with builder.if_then(builder.icmp_signed(">", ends[1], self._number(0))):
            narrow = self._room(few)
            with builder.if_then(builder.icmp_signed(">", ends[0], self._number(0))):
                lanes = self._room(many)
                self._add(lanes, many, self._number(0), ends[0])
                for place, to in zip(lanes, narrow, strict=True):
                    builder.store(_halves_added(builder, builder.load(place), few.count), to)
            self._add(narrow, few, *ends)
            for place, to in zip(narrow, totals, strict=True):
                last = _halves_added(builder, builder.load(place), 1)
                builder.store(builder.extract_element(last, cgutils.int32_t(0)), to)
        self._add(totals, self._element, ends[1], size)
        return [builder.load(place) for place in totals]


def _arrays(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    return [
        context.make_array(kind)(context, builder, value)
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def _is_row(kind: Any) -> bool:
    """Whether a type is that of contiguous rows of real numbers."""
    is_array = isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout == "C"
    return is_array and isinstance(kind.dtype, types.Float)


@instruction(lambda a, b: float((a * b[: a.size]).sum()))
def dot_of(typing_context: Any, a: Any, b: Any) -> Any:
    """Σ a_i b_i over the size of a; both are rows of one type."""
    if not (_is_row(a) and _is_row(b) and a.dtype == b.dtype):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right = _arrays(context, builder, signature, arguments)
        pairs = [(left.data, right.data)]
        return _Sums(builder, pairs, left.nitems, a.dtype.bitwidth // 8).write(WIDE)[0]

    return a.dtype(a, b), generate


@instruction(lambda a, b, c, d: tuple(dot_of(x, y) for x in (a, b) for y in (c, d)))
def dot_block_of(typing_context: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """(a·c, a·d, b·c, b·d) over the size of a; all are rows of one type."""
    if not all(_is_row(kind) and kind.dtype == a.dtype for kind in (a, b, c, d)):
        return None
    tuple_of: Any = types.UniTuple
    four = tuple_of(a.dtype, 4)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = _arrays(context, builder, signature, arguments)
        left, right = [row.data for row in rows[:2]], [row.data for row in rows[2:]]
        pairs = [(x, y) for x in left for y in right]
        sums = _Sums(builder, pairs, rows[0].nitems, a.dtype.bitwidth // 8).write(WIDE // 2)
        return context.make_tuple(builder, four, sums)

    return four(a, b, c, d), generate


@instruction(lambda x, y, z: x * y + z)
def fused_of(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
    """x · y + z, rounded once where the machine has an instruction for it."""
    if not all(isinstance(kind, types.Float) for kind in (x, y, z)):
        return None
    kind = max((x, y, z), key=lambda each: each.bitwidth)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _fused(builder, *arguments)

    return kind(kind, kind, kind), generate


READ, KEEP_IN_SECOND_LEVEL, DATA = 0, 2, 1  # as LLVM numbers them


@instruction(lambda values, i: None)
def prefetch(typing_context: Any, values: Any, i: Any) -> Any:
    """Ask for the cache line that holds values[i]; a hint, without effect on any result."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), cgutils.voidptr_t)
        number = cgutils.int32_t
        form = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [place.type], form)
        flags = [number(flag) for flag in (READ, KEEP_IN_SECOND_LEVEL, DATA)]
        builder.call(hint, [place, *flags])
        return context.get_dummy_value()

    return types.void(values, i), generate
