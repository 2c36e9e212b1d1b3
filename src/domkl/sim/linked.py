"""Work that all compiled hosts share, compiled once and called by name: features, CV, delivery.

Numba copies whatever a function calls into that function's own module and optimises all of it
again, for every law and type. The maps, the sums over neighbors and the pairs of CV are most of the
code of a host and the same for all laws. So they are C functions here, compiled once for float32
and once for float64, and a host refers to them by symbol. `link` must be called before a host runs.
"""

import threading
from typing import Any

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]

from domkl.core.exchange import EDGE, Wires, deliver, rows_of, totals_of
from domkl.core.features import fourier_features, linear_features
from domkl.core.jit import IS_COMPILING, STAMP, c_function, compiled_as, scalar
from domkl.core.numba_internals import external
from domkl.sim.cv import pair_gaps
from domkl.typing import Array, Floats, Ints

REALS = {"float32": types.float32, "float64": types.float64}
_pointer: Any = types.CPointer
INT, NUMBERS, INDICES = types.int64, _pointer(types.float64), _pointer(types.int64)


def _map(x, turns, z, energy, n, n_inputs, n_angles, n_rows, n_kernels, n_features, m, linear):  # type: ignore[no-untyped-def]
    inputs, maps = carray(x, (n, n_inputs)), carray(turns, (1, n_inputs, n_angles))
    out = carray(z, (1, n_rows, n_kernels, n_features))
    fourier_features(inputs, maps, out, m)
    if linear:
        linear_features(inputs, out, carray(energy, (1, n_rows, n_kernels)))


def _pairs(spread, inside, theta, weights, z, component, n, n_kernels, n_features):  # type: ignore[no-untyped-def]
    shape = (n, n_kernels, n_features)
    pair_gaps(
        carray(spread, n),
        carray(inside, n),
        carray(theta, shape),
        carray(weights, (n, n_kernels)),
        carray(z, shape),
        carray(component, n),
        n,
    )


def _deliver(  # type: ignore[no-untyped-def]
    how, out, values, own, exact, totals, length, n_out, n_values, n_own, n_totals,
    indptr, indices, weight, reverse, degree, n_learners, n_edges, n_weights, n_reverse, span, low,
):  # fmt: skip
    wires = Wires(
        carray(indptr, n_learners + 1),
        carray(indices, n_edges),
        carray(weight, n_weights),
        carray(reverse, n_reverse),
        carray(degree, n_learners),
        span,
    )
    deliver(
        how,
        carray(out, (n_out, length)),
        carray(values, (n_values, length)),
        carray(own, (n_own, length)),
        carray(exact, (n_own, length)),
        carray(totals, (n_totals, length)),
        wires,
        low,
    )


def _totals(totals, values, n_totals, n_values, length, span, start, stop):  # type: ignore[no-untyped-def]
    out, rows = carray(totals, (n_totals, length)), carray(values, (n_values, length))
    totals_of(out, rows, span, start, stop)


def _signatures(real: Any) -> dict[Any, Any]:
    reals = _pointer(real)
    return {
        _map: (NUMBERS, NUMBERS, reals, NUMBERS, *(INT,) * 7, types.boolean),
        _pairs: (NUMBERS, NUMBERS, reals, NUMBERS, reals, INDICES, *(INT,) * 3),
        _deliver: (
            INT, reals, reals, reals, reals, reals, *(INT,) * 5,
            INDICES, INDICES, NUMBERS, INDICES, NUMBERS, *(INT,) * 6,
        ),
        _totals: (reals, reals, *(INT,) * 6),
    }  # fmt: skip


def _symbol(function: Any, real: str) -> str:
    return f"domkl{function.__name__}_{real}_{STAMP[:16]}"


def _external(function: Any) -> dict[Any, Any]:
    """What a host calls, by the type of the numbers."""
    return {
        real: external(_symbol(function, name), _signatures(real)[function])
        for name, real in REALS.items()
    }


_linked: dict[str, list[Any]] = {}  # the functions by type: what keeps them alive
_lock = threading.Lock()


def link(dtype: Any) -> None:
    """Compile the shared functions for states of this type, or read them from disk, once.

    A second set under the same symbols would leave hosts with addresses of code that is gone, so
    threads that come here together wait for each other.
    """
    with _lock:
        for name in {np.dtype(dtype).name, "float64"} if IS_COMPILING else ():
            if name not in _linked:
                _linked[name] = [
                    c_function(function, arguments, _symbol(function, name))
                    for function, arguments in _signatures(REALS[name]).items()
                ]


_MAP, _PAIRS, _DELIVER, _TOTALS = (_external(each) for each in (_map, _pairs, _deliver, _totals))


def map_rows(x: Floats, turns: Floats, z: Array, energy: Floats, m: int, linear: bool) -> None:
    """Write the features of x (n, d) to z (1, N, P, D) and ‖z‖² to energy (1, N, P)."""
    fourier_features(x, turns, z, m)
    if linear:
        linear_features(x, z, energy)


@compiled_as(map_rows)
def _map_rows(x: Any, turns: Any, z: Any, energy: Any, m: Any, linear: Any) -> Any:
    external = _MAP[z.dtype]

    def call(x, turns, z, energy, m, linear):  # type: ignore[no-untyped-def]
        external(
            x.ctypes, turns.ctypes, z.ctypes, energy.ctypes,
            x.shape[0], x.shape[1], turns.shape[2], z.shape[1], z.shape[2], z.shape[3], m, linear,
        )  # fmt: skip

    return call


def all_pairs(
    spread: Floats, inside: Floats, theta: Array, weights: Floats, z: Array, component: Ints
) -> None:
    """Write what `pair_gaps` does, for one trial."""
    pair_gaps(spread, inside, theta, weights, z, component, len(z))


@compiled_as(all_pairs)
def _all_pairs(spread: Any, inside: Any, theta: Any, weights: Any, z: Any, component: Any) -> Any:
    external = _PAIRS[z.dtype]

    def call(spread, inside, theta, weights, z, component):  # type: ignore[no-untyped-def]
        external(
            spread.ctypes, inside.ctypes, theta.ctypes, weights.ctypes, z.ctypes, component.ctypes,
            z.shape[0], z.shape[1], z.shape[2],
        )  # fmt: skip

    return call


@scalar
def _n_heard(how: int, indptr: Ints, low: int, high: int) -> int:
    """Rows that learners low..high − 1 hear: one each, or one per edge."""
    return int(indptr[high] - indptr[low] if how == EDGE else high - low)


def hear_field(
    how: int,
    heard: Array,
    said: Array,
    exact: Array,
    totals: Array,
    wires: Wires,
    low: int,
    high: int,
) -> None:
    """Write what learners low..high − 1 hear of one field of the message: (n, …), (N, …)."""
    n = _n_heard(how, wires.indptr, low, high)
    values, before = rows_of(said), rows_of(exact)[low:high]
    out = rows_of(heard[:n])
    deliver(how, out, values, values[low:high], before, rows_of(totals), wires, low)


@compiled_as(hear_field)
def _hear_field(
    how: Any, heard: Any, said: Any, exact: Any, totals: Any, wires: Any, low: Any, high: Any
) -> Any:
    external = _DELIVER[said.dtype]

    def call(how, heard, said, exact, totals, wires, low, high):  # type: ignore[no-untyped-def]
        n = _n_heard(how, wires.indptr, low, high)
        length = said.size // max(len(said), 1)
        external(
            how, heard.ctypes, said.ctypes, said[low:].ctypes, exact[low:].ctypes, totals.ctypes,
            length,
            n, len(said), len(said) - low, len(totals),
            wires.indptr.ctypes, wires.indices.ctypes, wires.weight.ctypes, wires.reverse.ctypes,
            wires.degree.ctypes, len(wires.degree), len(wires.indices), len(wires.weight),
            len(wires.reverse), wires.span, low,
        )  # fmt: skip

    return call


def total_field(totals: Array, said: Array, part: int, n_parts: int) -> None:
    """Sum a field over the learners of each trial: one part of its columns."""
    if len(totals):
        out, values = rows_of(totals), rows_of(said)
        start, stop = (values.shape[1] * p // n_parts for p in (part, part + 1))
        totals_of(out, values, len(said) // len(totals), start, stop)


@compiled_as(total_field)
def _total_field(totals: Any, said: Any, part: Any, n_parts: Any) -> Any:
    external = _TOTALS[said.dtype]

    def call(totals, said, part, n_parts):  # type: ignore[no-untyped-def]
        if len(totals):
            length, span = said.size // len(said), len(said) // len(totals)
            start, stop = length * part // n_parts, length * (part + 1) // n_parts
            external(totals.ctypes, said.ctypes, len(totals), len(said), length, span, start, stop)

    return call
