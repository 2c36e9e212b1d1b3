"""Sums of products in vector registers, in one order, whoever calls them.

A compiler may put a sum into vector registers only if it may reorder it, and once it may, the order
depends on what the function is compiled into: the last digit would differ between hosts. So the
order is written out here, as instructions for LLVM on short vectors. Element i goes to the lane
i mod `WIDE` while that many are left, to i mod `NARROW` after that, and one by one at the end;
lanes are added in halves. Where the machine multiplies and adds in one instruction, so does this.
"""

from domkl.core.jit import scalar
from domkl.core.numba_internals import NARROW as NARROW
from domkl.core.numba_internals import WIDE as WIDE
from domkl.core.numba_internals import dot_block_of, dot_of, fused_of
from domkl.typing import Array, Number


@scalar
def dot(a: Array, b: Array) -> Number:
    """Σ a_i b_i over the size of a, in the type of both."""
    return dot_of(a, b)  # type: ignore[no-any-return]


@scalar
def dot_block(a: Array, b: Array, c: Array, d: Array) -> tuple[Number, Number, Number, Number]:
    """Products (a·c, a·d, b·c, b·d): four sums for four loads."""
    return dot_block_of(a, b, c, d)  # type: ignore[no-any-return]


@scalar
def fused(x: Number, y: Number, z: Number) -> Number:
    """x · y + z, rounded once where the machine has an instruction for it."""
    return fused_of(x, y, z)  # type: ignore[no-any-return]
