"""Ask for rows of memory before they are needed.

A neighbor's row stands anywhere. The processor foresees what follows in memory, not what stands
anywhere, and of a large network each such row costs it a wait of some hundred nanoseconds.
"""

from typing import Any

import numba
from numba.core import cgutils, types
from numba.extending import intrinsic

from domkl.core.jit import row
from domkl.typing import Array

LINE = 64  # bytes that come at once
READ, KEEP_IN_SECOND_LEVEL, DATA = 0, 2, 1  # as LLVM numbers them


_LLVM: Any = cgutils  # Numba's code generator, which has no types


@intrinsic
def _prefetch(typing_context: Any, values: Any, i: Any) -> Any:
    """Ask for the line that holds values[i]; a hint, without effect on any result."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), cgutils.voidptr_t)
        number, ir = cgutils.int32_t, _LLVM.ir
        form = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [place.type], form)
        flags = [number(flag) for flag in (READ, KEEP_IN_SECOND_LEVEL, DATA)]
        builder.call(hint, [place, *flags])
        return context.get_dummy_value()

    return types.void(values, i), generate


if getattr(numba.config, "DISABLE_JIT", False):  # intrinsics exist in compiled code only

    def prefetched(values: Array) -> None:
        """Nothing to ask, interpreted."""

else:

    @row
    def prefetched(values: Array) -> None:
        """Ask for a contiguous row."""
        for i in range(0, values.size, LINE // values.itemsize):
            _prefetch(values, i)  # type: ignore[call-arg]
