"""Inner loops over contiguous rows. Everything that must run in vector registers stands here.

The rules of this file: a loop index starts at 0, arrays are 1-D and contiguous, no branch stands
inside a loop. Break one and the loop falls back to scalar code, several times slower. Callers use
`copied` and `cleared` instead of assigning to slices, for which Numba compiles code that words an
error message, and takes seconds for it.
"""

from domkl.core.jit import row
from domkl.core.lanes import fused
from domkl.typing import Array, Number


@row
def smallest(a: Array) -> Number:
    """The smallest element; Numba's own takes seconds to compile."""
    found: Number = a[0]
    for i in range(a.size):
        found = min(found, a[i])
    return found


@row
def cleared(out: Array) -> None:
    """Write 0."""
    for i in range(out.size):
        out[i] = 0


@row
def copied(out: Array, a: Array) -> None:
    """Write a."""
    for i in range(out.size):
        out[i] = a[i]


@row
def scaled(out: Array, a: Array, factor: Number) -> None:
    """Write factor · a."""
    for i in range(out.size):
        out[i] = factor * a[i]


@row
def shifted(out: Array, a: Array, b: Array, factor: Number) -> None:
    """Write a + factor · b."""
    for i in range(out.size):
        out[i] = a[i] + factor * b[i]


@row
def added(out: Array, a: Array) -> None:
    """Add a."""
    for i in range(out.size):
        out[i] += a[i]


@row
def difference(out: Array, a: Array, b: Array) -> None:
    """Write a − b."""
    for i in range(out.size):
        out[i] = a[i] - b[i]


@row
def added_difference(out: Array, a: Array, b: Array) -> None:
    """Add a − b."""
    for i in range(out.size):
        out[i] += a[i] - b[i]


@row
def added_share(out: Array, a: Array, b: Array, share: Number) -> None:
    """Add share · (a − b)."""
    for i in range(out.size):
        out[i] += share * (a[i] - b[i])


@row
def bierman_column(column: Array, gain: Array, share: Number, v: Number) -> None:
    """Take share · gain from a column, and add v times the column as it was to the gain."""
    for i in range(column.size):
        before = column[i]
        column[i] = before - share * gain[i]
        gain[i] += v * before


@row
def tracked_sum(
    own: Array,
    out: Array,
    total: Array,
    gain: Array,
    step: Number,
    n: Number,
    more: Number,
    leak: Number,
) -> None:
    """Move own by step · gain; write the total moved as n · own is, then by leak towards it.

    n has grown by ``more``: n own⁺ − (n − more) own = n (own⁺ − own) + more own, which does not
    subtract large numbers from each other.
    """
    for i in range(own.size):
        move = step * gain[i]
        after = fused(n, move, fused(more, own[i], total[i]))
        own[i] += move
        out[i] = fused(leak, fused(n, own[i], -after), after)


@row
def added_scaled(out: Array, a: Array, factor: Number) -> None:
    """Add factor · a."""
    for i in range(out.size):
        out[i] += factor * a[i]


@row
def mixture(out: Array, a: Array, b: Array, share: Number) -> None:
    """Write (1 − share) · a + share · b: at full share b alone, however large a is."""
    rest = out.dtype.type(1) - share
    for i in range(out.size):
        out[i] = fused(share, b[i], rest * a[i])


@row
def turned(
    sine: Array, cosine: Array, s: Array, c: Array, turn_cosine: Array, turn_sine: Array
) -> None:
    """Write sines and cosines of angles with a turn added, from s and c of the angles."""
    for i in range(sine.size):
        sine[i] = fused(s[i], turn_cosine[i], c[i] * turn_sine[i])
        cosine[i] = fused(c[i], turn_cosine[i], -(s[i] * turn_sine[i]))


@row
def lines(values: Array) -> Array:
    """A learner's kernels in one row: (K, P, D) as (K, P·D)."""
    return values.reshape(values.shape[0], values.shape[1] * values.shape[2])
