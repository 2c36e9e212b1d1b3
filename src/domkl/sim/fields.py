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
from domkl.core.exchange import DELIVERIES, Wires, fields_that
from domkl.core.jit import compiled_as, sweep
from domkl.core.numba_internals import by_source, class_of
from domkl.core.vectors import copied
from domkl.sim.linked import hear_field, total_field
from domkl.speech.base import utter
from domkl.typing import Floats, Ints


def _written(function: Callable[..., Any], arguments: str) -> Callable[[Any], Any]:
    """Compile a function by source text, for the NamedTuple class of its first argument."""
    names = {"np": np, "copied": copied, "hear_field": hear_field, "total_field": total_field}
    return by_source(function, arguments, names)


def _row_slice(kind: type, name: str) -> str:
    """The slice of a field that belongs to learners low..high − 1, whose edges are first..last."""
    law = LAWS.get(kind) or MESSAGES.get(kind)
    if law is None:  # the memory of a speech
        return "low:high"
    is_state = kind is law.state
    by_edge = name in law.by_edge if is_state else DELIVERIES[law.exchange[name]].needs_reverse
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


def hear(
    heard: Any, said: Any, message: Any, totals: Any, wires: Wires, low: int, high: int
) -> None:
    """Write what learners low..high − 1 hear of every field of what was said of a message."""
    kind = type(said)
    for i, name in enumerate(kind._fields):
        how = DELIVERIES[MESSAGES[kind].exchange[name]].code
        hear_field(how, heard[i], said[i], message[i], totals[i], wires, low, high)


@_written(hear, "heard, said, message, totals, wires, low, high")
def _hear(kind: Any) -> str:
    exchange = MESSAGES[kind].exchange
    calls = (
        f"hear_field({DELIVERIES[exchange[name]].code},"
        f" heard.{name}, said.{name}, message.{name}, totals.{name}, wires, low, high)"
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
    return fields_that(MESSAGES[kind].exchange, lambda how: how.spans_all)


def message_of(drafted: Any, said: Any) -> Any:
    """The message before it was said; None stands for what was said, which is then exact."""
    return said if drafted is None else drafted


@compiled_as(message_of)
def _message_of(drafted: Any, said: Any) -> Any:
    if class_of(drafted) is None:
        return lambda drafted, said: said
    return lambda drafted, said: drafted


def words_of(drafted: Any, said: Any) -> Any:
    """What was said, for a merge; None where it is exact."""
    return None if drafted is None else said


@compiled_as(words_of)
def _words_of(drafted: Any, said: Any) -> Any:
    if class_of(drafted) is None:
        return lambda drafted, said: None
    return lambda drafted, said: said


def words_of_rows(drafted: Any, said: Any, low: int, high: int, first: int, last: int) -> Any:
    """The same of learners low..high − 1, whose edges are first..last − 1."""
    return None if drafted is None else rows(said, low, high, first, last)


@compiled_as(words_of_rows)
def _words_of_rows(drafted: Any, said: Any, low: Any, high: Any, first: Any, last: Any) -> Any:
    if class_of(drafted) is None:
        return lambda drafted, said, low, high, first, last: None
    return lambda drafted, said, low, high, first, last: rows(said, low, high, first, last)


def utter_rows(
    memory: Any, drafted: Any, said: Any, low: int, high: int, first: int, last: int
) -> None:
    """Say the messages of learners low..high − 1; nothing is to be done where speech is exact."""
    if memory is not None:
        some = (low, high, first, last)
        utter(rows(memory, *some), rows(drafted, *some), rows(said, *some))


@compiled_as(utter_rows)
def _utter_rows(
    memory: Any, drafted: Any, said: Any, low: Any, high: Any, first: Any, last: Any
) -> Any:
    if class_of(memory) is None:
        return lambda memory, drafted, said, low, high, first, last: None

    def implementation(memory, drafted, said, low, high, first, last):  # type: ignore[no-untyped-def]
        message = rows(drafted, low, high, first, last)
        words = rows(said, low, high, first, last)
        utter(rows(memory, low, high, first, last), message, words)

    return implementation


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
