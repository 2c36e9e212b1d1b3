"""Pieces of the compiled hosts: parts of a state or message, and what learners hear, for any law.

States and messages are NamedTuples of arrays. Compiled code cannot loop over fields of different
types, so functions of all fields are written out field by field for each class (`by_class`). The
maps, the sums over neighbors and the pairs of CV are most of the code of a host and the same for
all laws, so they are shared by all hosts (`shared`).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from domkl.algorithms.base import Net
from domkl.algorithms.law import LAWS, MESSAGES, Law
from domkl.core.exchange import DELIVERIES, EDGE, Wires, deliver, fields_that, totals_of
from domkl.core.features import write_features
from domkl.core.jit import inner, shared, sweep
from domkl.core.numba_internals import by_class
from domkl.core.vectors import copied
from domkl.sim.cv import pair_gaps
from domkl.typing import Array, Floats, Ints

map_rows = shared(write_features, 2, 3, 4, 3, 0, 0)
all_pairs = shared(pair_gaps, 1, 1, 3, 2, 3, 1, 0)
_deliver = shared(deliver, 0, 2, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0)
_totals = shared(totals_of, 2, 2, 0, 0, 0)


def _row_slice(kind: type, name: str) -> str:
    """The slice of a field that belongs to learners low..high − 1, whose edges are first..last."""
    law = LAWS.get(kind) or MESSAGES.get(kind)
    if law is None:  # the memory of a speech
        return "low:high"
    is_state = kind is law.state
    by_edge = name in law.by_edge if is_state else DELIVERIES[law.exchange[name]].needs_reverse
    return "first:last" if by_edge else "low:high"


@by_class
def rows(fields: Any, low: int, high: int, first: int, last: int) -> Any:
    """Rows low..high − 1 of every field, of those by edge first..last − 1; None of None."""
    if fields is None:
        return "return None"
    cut = (f"fields.{name}[{_row_slice(fields, name)}]" for name in fields._fields)
    return f"return kind({', '.join(cut)})"


@inner
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
    ends, others, weight, reverse, span = wires
    n = ends[high] - ends[low] if how == EDGE else high - low
    own, before = said[low:], exact[low:]
    _deliver(how, heard[:n], said, own, before, totals, ends, others, weight, reverse, span, low)


@by_class
def hear(
    heard: Any, said: Any, message: Any, totals: Any, wires: Wires, low: int, high: int
) -> Any:
    """Write what learners low..high − 1 hear of every field of what was said of a message."""
    exchange = MESSAGES[heard].exchange
    calls = (
        f"hear_field({DELIVERIES[exchange[name]].code},"
        f" heard.{name}, said.{name}, message.{name}, totals.{name}, wires, low, high)"
        for name in heard._fields
    )
    return "\n    ".join(calls) or "pass"


@inner
def total_field(totals: Array, said: Array, part: int, n_parts: int) -> None:
    """Sum a field over the learners of each trial: one part of its columns."""
    if len(totals):
        length, span = said.size // len(said), len(said) // len(totals)
        _totals(totals, said, span, length * part // n_parts, length * (part + 1) // n_parts)


@by_class
def total(totals: Any, said: Any, part: int, n_parts: int) -> Any:
    """Sum the fields that are delivered as totals over all learners: one part of the columns."""
    names = fields_that(MESSAGES[totals].exchange, lambda how: how.spans_all)
    calls = (f"total_field(totals.{name}, said.{name}, part, n_parts)" for name in names)
    return "\n    ".join(calls) or "pass"


@by_class
def message_of(drafted: Any, said: Any) -> Any:
    """The message before it was said; None stands for what was said, which is then exact."""
    return "return said" if drafted is None else "return drafted"


@by_class
def words_of(drafted: Any, said: Any) -> Any:
    """What was said, for a merge; None where it is exact."""
    return "return None" if drafted is None else "return said"


@by_class
def block(state: Any, said: Any, room: Any, low: int, high: int, first: int, last: int) -> Any:
    """The state of learners low..high − 1 while the exchange of the last round is not merged yet.

    Carried fields are rows of what was said, scratch fields are in ``room``, a state of a few
    learners; all others are rows of the state.
    """
    law = LAWS[state]
    parts = []
    for name in state._fields:
        if name in law.scratch:
            parts.append(f"room.{name}[: high - low]")
        elif name in law.carried:
            parts.append(f"said.{name}[low:high]")
        else:
            parts.append(f"state.{name}[{_row_slice(state, name)}]")
    return f"return kind({', '.join(parts)})"


@inner
def load_field(out: Array, values: Array, low: int, high: int) -> None:
    """Copy rows low..high − 1 of a field to the first rows of another array."""
    for k in range(low, high):
        copied(out[k - low].ravel(), values[k].ravel())


@by_class
def load_scratch(state: Any, room: Any, low: int, high: int) -> Any:
    """Copy the scratch fields of learners low..high − 1 into ``room``."""
    names = LAWS[state].scratch
    calls = (f"load_field(room.{name}, state.{name}, low, high)" for name in names)
    return "\n    ".join(calls) or "pass"


def empty_like(fields: Any, lengths: Iterable[int]) -> Any:
    """Room for so many rows of each field."""
    both = zip(fields, lengths, strict=True)
    return type(fields)(*(np.empty((n, *v.shape[1:]), v.dtype) for v, n in both))


def spare(said: Any, state: Any) -> Any:
    """A second message, for hosts that write new values while neighbors read the old ones.

    A carried field takes the place of a scratch field where there is one like it, which is free
    meanwhile; other fields get arrays of their own.
    """
    law, made = LAWS[type(state)], []
    free = [getattr(state, name) for name in law.scratch]
    for name, values in zip(said._fields, said, strict=True):
        alike = [f for f in free if (f.shape, f.dtype) == (values.shape, values.dtype)]
        taken = alike[0] if name in law.carried and alike else np.empty_like(values)
        free = [f for f in free if f is not taken]
        made.append(taken)
    return type(said)(*made)


def carry(law: Law, said: Any, other: Any) -> Any:
    """Copy the carried fields from another message; give that one with those."""
    for name in law.carried:
        getattr(said, name)[:] = getattr(other, name)
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
