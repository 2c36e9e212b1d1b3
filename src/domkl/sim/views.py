"""Pieces of the compiled hosts: parts of a state or message, and what learners hear, for any law.

States and messages are NamedTuples of arrays. Compiled code cannot loop over fields of different
types, so each function here is written out field by field when a host is compiled (`_written`), and
looks at the fields one after the other where the compiler is switched off.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from domkl.algorithms.base import Net
from domkl.algorithms.law import LAWS, MESSAGES, Law
from domkl.core.exchange import DELIVERIES, Wires
from domkl.core.jit import sweep
from domkl.core.numba_internals import by_source
from domkl.core.vectors import copied
from domkl.sim.shared import hear_field, total_field
from domkl.typing import Floats, Ints


def _written(function: Callable[..., Any], arguments: str) -> Callable[[Any], Any]:
    """Compile a function by source text, for the NamedTuple class of its first argument."""
    names = {"np": np, "copied": copied, "hear_field": hear_field, "total_field": total_field}
    return by_source(function, arguments, names)


def _row_slice(kind: type, name: str) -> str:
    """The slice of a field that belongs to learners low..high − 1, whose edges are first..last."""
    law = LAWS.get(kind) or MESSAGES[kind]
    is_state = kind is law.state
    by_edge = name in law.by_edge if is_state else law.exchange[name] == "edge"
    return "first:last" if by_edge else "low:high"


def rows(fields: Any, low: int, high: int, first: int, last: int) -> Any:
    """Rows low..high − 1 of every field; of those by edge, rows first..last − 1."""
    given = {"low:high": slice(low, high), "first:last": slice(first, last)}
    kind: Any = type(fields)
    return kind(*(v[given[_row_slice(kind, n)]] for n, v in zip(kind._fields, fields, strict=True)))


@_written(rows, "fields, low, high, first, last")
def _rows(kind: Any) -> str:
    cut = (f"fields.{name}[{_row_slice(kind, name)}]" for name in kind._fields)
    return f"return kind({', '.join(cut)})"


def hear(heard: Any, said: Any, totals: Any, wires: Wires, low: int, high: int) -> None:
    """Write what learners low..high − 1 hear of every field of a message."""
    kind = type(said)
    for i, name in enumerate(kind._fields):
        how = DELIVERIES.index(MESSAGES[kind].exchange[name])
        hear_field(how, heard[i], said[i], totals[i], wires, low, high)


@_written(hear, "heard, said, totals, wires, low, high")
def _hear(kind: Any) -> str:
    exchange = MESSAGES[kind].exchange
    calls = (
        f"hear_field({DELIVERIES.index(exchange[name])},"
        f" heard.{name}, said.{name}, totals.{name}, wires, low, high)"
        for name in kind._fields
    )
    return "\n    ".join(calls) or "pass"


def total(totals: Any, said: Any, part: int, n_parts: int) -> None:
    """Sum the fields that are delivered as totals over all learners: one part of the columns."""
    for name in _totalled(type(said)):
        total_field(getattr(totals, name), getattr(said, name), part, n_parts)


@_written(total, "totals, said, part, n_parts")
def _total(kind: Any) -> str:
    names = _totalled(kind)
    calls = (f"total_field(totals.{name}, said.{name}, part, n_parts)" for name in names)
    return "\n    ".join(calls) or "pass"


def _totalled(kind: Any) -> list[str]:
    exchange = MESSAGES[kind].exchange
    return [name for name in kind._fields if exchange[name] == "total"]


def block(state: Any, said: Any, room: Any, low: int, high: int, first: int, last: int) -> Any:
    """The state of learners low..high − 1 while the exchange of the last round is not merged yet.

    Carried fields are rows of what was said, scratch fields are in ``room``, a state of a few
    learners; all others are rows of the state.
    """
    law, fields = LAWS[type(state)], rows(state, low, high, first, last)
    given = {name: getattr(room, name)[: high - low] for name in law.scratch}
    given |= {name: getattr(said, name)[low:high] for name in law.carried}
    return fields._replace(**given)


@_written(block, "state, said, room, low, high, first, last")
def _block(kind: Any) -> str:
    law: Any = LAWS[kind]
    parts = []
    for name in kind._fields:
        if name in law.scratch:
            parts.append(f"room.{name}[: high - low]")
        elif name in law.carried:
            parts.append(f"said.{name}[low:high]")
        else:
            parts.append(f"state.{name}[{_row_slice(kind, name)}]")
    return f"return kind({', '.join(parts)})"


def load_scratch(state: Any, room: Any, low: int, high: int) -> None:
    """Copy the scratch fields of learners low..high − 1 into ``room``."""
    for name in LAWS[type(state)].scratch:
        getattr(room, name)[: high - low] = getattr(state, name)[low:high]


@_written(load_scratch, "state, room, low, high")
def _load_scratch(kind: Any) -> str:
    loops = (
        f"for k in range(low, high):\n"
        f"        copied(room.{name}[k - low].ravel(), state.{name}[k].ravel())"
        for name in LAWS[kind].scratch
    )
    return "\n    ".join(loops) or "pass"


def spare(said: Any, state: Any) -> Any:
    """A second message, for hosts that write new values while neighbors read the old ones.

    A carried field takes the place of a scratch field where there is one like it, which is free
    meanwhile; other fields get arrays of their own.
    """
    free = [getattr(state, name) for name in LAWS[type(state)].scratch]
    made = []
    law = LAWS[type(state)]
    for name, values in zip(said._fields, said, strict=True):
        alike = [f for f in free if (f.shape, f.dtype) == (values.shape, values.dtype)]
        taken = alike[0] if name in law.carried and alike else np.empty_like(values)
        free = [f for f in free if f is not taken]
        made.append(taken)
    return type(said)(*made)


def carry(law: Law, said: Any, other: Any, low: int, high: int) -> Any:
    """Copy carried fields of learners low..high − 1 from another message; give it with those."""
    for name in law.carried:
        getattr(said, name)[low:high] = getattr(other, name)[low:high]
    return other._replace(**{name: getattr(said, name) for name in law.carried})


def kernels(fields: Any, first: int, n_kernels: int) -> Any:
    """A copy of some kernels of every field, to stand together in cache: (K, P, …) as (K, n, …)."""
    some = slice(first, first + n_kernels)
    return type(fields)(*(values[:, some].copy() for values in fields))


def put_kernels(fields: Any, part: Any, first: int) -> None:
    """Copy kernels back, of fields that have features: (K, P, D)."""
    for values, some in zip(fields, part, strict=True):
        if values.ndim == 3:
            values[:, first : first + some.shape[1]] = some


def featureless(fields: Any) -> Any:
    """The fields without any features: those of shape (K, P, D) are empty, the others shared."""
    return type(fields)(
        *(v if v.ndim < 3 else np.empty((*v.shape[:2], 0), v.dtype) for v in fields)
    )


@sweep
def net_rows(degree: Floats, size: Floats, indptr: Ints, ends: Ints, low: int, high: int) -> Net:
    """What learners low..high − 1 know of the network; their edges are counted from 0, in ends."""
    for k in range(low, high + 1):
        ends[k - low] = indptr[k] - indptr[low]
    return Net(degree[low:high], size[low:high], ends[: high - low + 1])
