"""Sums of products in vector registers, in one order, whoever calls them.

A compiler may put a sum into vector registers only if it may reorder it, and once it may, the order
depends on what the function is compiled into: the last digit would differ between hosts. So the
order is written out here, as instructions for LLVM on short vectors. Element i goes to the lane
i mod `WIDE` while that many are left, to i mod `NARROW` after that, and one by one at the end;
lanes are added in halves. Where the machine multiplies and adds in one instruction, so does this.
"""

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

from domkl.core.jit import IS_COMPILING, scalar
from domkl.typing import Array, Number

#: bytes of each sum that are added at a time, while there are enough, and for the rest
WIDE, NARROW = 128, 32

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


@intrinsic
def _dot(typing_context: Any, a: Any, b: Any) -> Any:
    """Σ a_i b_i over the size of a; both are rows of one type."""
    if not (_is_row(a) and _is_row(b) and a.dtype == b.dtype):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right = _arrays(context, builder, signature, arguments)
        pairs = [(left.data, right.data)]
        return _Sums(builder, pairs, left.nitems, a.dtype.bitwidth // 8).write(WIDE)[0]

    return a.dtype(a, b), generate


@intrinsic
def _dot_block(typing_context: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
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


@intrinsic
def _fused_number(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
    if not all(isinstance(kind, types.Float) for kind in (x, y, z)):
        return None
    kind = max((x, y, z), key=lambda each: each.bitwidth)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _fused(builder, *arguments)

    return kind(kind, kind, kind), generate


if IS_COMPILING:

    @scalar
    def dot(a: Array, b: Array) -> Number:
        """Σ a_i b_i over the size of a, in the type of both."""
        return _dot(a, b)  # type: ignore[call-arg]

    @scalar
    def dot_block(a: Array, b: Array, c: Array, d: Array) -> tuple[Number, Number, Number, Number]:
        """Products (a·c, a·d, b·c, b·d): four sums for four loads."""
        return _dot_block(a, b, c, d)  # type: ignore[call-arg]

    @scalar
    def fused(x: Number, y: Number, z: Number) -> Number:
        """x · y + z, rounded once where the machine has an instruction for it."""
        return _fused_number(x, y, z)  # type: ignore[call-arg]

else:  # intrinsics exist in compiled code only

    def dot(a: Array, b: Array) -> Number:
        """Σ a_i b_i over the size of a, in the type of both."""
        return float((a * b[: a.size]).sum())

    def dot_block(a: Array, b: Array, c: Array, d: Array) -> tuple[Number, Number, Number, Number]:
        """Products (a·c, a·d, b·c, b·d)."""
        return dot(a, c), dot(a, d), dot(b, c), dot(b, d)

    def fused(x: Number, y: Number, z: Number) -> Number:
        """x · y + z."""
        return x * y + z
