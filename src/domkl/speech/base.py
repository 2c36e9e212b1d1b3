"""What a speech is, how compiled hosts find one, and how what was said becomes bytes.

The rules of a speech:

- It writes every field of what is said, from the message and from what it remembers.
- What is said has the types and shapes of the message. Its bytes decode to the same numbers.
- Only an exact speech may say the message itself, whose arrays may be the state's own.

Hosts add up what was said, and nothing but that: gaps and sums are of words as the neighbors have
them, and an average adds gaps of words to the exact value. So duals sum to zero and means stay
however roughly learners speak.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from domkl.core.exchange import fields_that
from domkl.core.jit import FOREIGN, IS_COMPILING, name_apart, sweep
from domkl.core.numba_internals import by_class, machine_code
from domkl.typing import Array

#: arrays by the name of a message's field
Fields = dict[str, NDArray[Any]]
#: speeches by the class of what they remember
SPEECHES: dict[type, type["Speech"]] = {}


class Speech(ABC):
    """How learners turn a message into what leaves them.

    A subclass that is not exact names the class of its memory, a NamedTuple of arrays with one row
    per learner, by which compiled hosts find its ``utter``.
    """

    #: whether what is said is the message itself
    is_exact: ClassVar[bool] = False
    #: class of what it remembers; one for each speech
    memory: ClassVar[type | None] = None
    #: utter(memory, message, said), which Numba can compile: write every field of what is said
    utter: ClassVar[Callable[..., None]]

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if cls.memory is not None and cls.memory not in SPEECHES:
            function: Any = cls.utter
            is_ready = hasattr(function, "py_func") or not IS_COMPILING
            cls.utter = staticmethod(function if is_ready else sweep(function))
            name_apart(cls.memory)
            SPEECHES[cls.memory] = cls
            FOREIGN[cls.memory] = (cls.utter,)

    @abstractmethod
    def remember(self, message: Any) -> Any:
        """Give the memory before the first message; None where nothing is remembered."""

    def layout(self, exchange: Mapping[str, str], message: Any) -> "Layout":
        """Give the layout of what is said as bytes."""
        return Layout(exchange, message)


class Voice:
    """A speech and its memory, for hosts that go round by round."""

    def __init__(self, speech: Speech) -> None:
        self.speech = speech
        self._memory: Any = None  # begins with the first message

    def say(self, message: Any) -> Any:
        """Give what the neighbors decode of a message: the message itself if speech is exact."""
        if self.speech.is_exact:
            return message
        if self._memory is None:
            self._memory = self.speech.remember(message)
        exact = type(message)(*map(np.ascontiguousarray, message))
        said = words_for(exact)
        given = (self._memory, exact, said)
        machine_code(self.speech.utter, *given)(*given)
        return said


def words_for(message: Any) -> Any:
    """Arrays for what is said of a message."""
    return type(message)(*(np.zeros_like(values) for values in message))


@by_class
def utter(memory: Any, message: Any, said: Any) -> Any:
    """Call the speech's own; an exact one has no memory, and what it says is the message."""
    return "pass" if memory is None else SPEECHES[memory].utter


class Layout:
    """Where each field of what is said stands in the bytes that one neighbor gets.

    Parameters
    ----------
    exchange : mapping
        How each field is delivered: of one that has a row per edge, each neighbor gets its own.
    message : NamedTuple
        An example, for types and shapes.
    dtypes : mapping, optional
        Types of the numbers as they are sent, where they differ from the message's.
    """

    def __init__(
        self,
        exchange: Mapping[str, str],
        message: Any,
        dtypes: Mapping[str, DTypeLike] | None = None,
    ) -> None:
        fields: Fields = message._asdict()
        self.fields = list(fields)
        self._by_edge = set(fields_that(exchange, lambda kind: kind.needs_reverse))
        self._dtypes = {f: values.dtype for f, values in fields.items()}
        sent: Any = self._dtypes | dict(dtypes or {})
        self._sent = {f: np.dtype(dtype).newbyteorder("<") for f, dtype in sent.items()}
        formats: Any = [(self._sent[f], fields[f].shape[1:]) for f in self.fields]
        ends: list[int] = list(itertools.accumulate(np.dtype(each).itemsize for each in formats))
        self.n_bytes = ends[-1]
        places: Any = {"offsets": [0, *ends[:-1]], "itemsize": self.n_bytes}
        record: Any = {"names": self.fields, "formats": formats} | places
        self._record: Any = np.dtype(record)

    @property
    def is_by_edge(self) -> bool:
        """Whether each neighbor gets words of its own."""
        return bool(self._by_edge)

    def n_rows(self, field: str) -> int:
        """Return the length of a field's first axis after that of learners; 0 without the field."""
        return int(self._record[field].shape[0]) if field in self.fields else 0

    def encode(self, said: Any, edge: int) -> bytes:
        """Return what the neighbor at this position gets."""
        rows = {f: getattr(said, f)[edge if f in self._by_edge else 0] for f in self.fields}
        return self.encode_fields(rows)

    def decode(self, payload: bytes | memoryview) -> Fields:
        """Return what was said, one row of each field."""
        row = np.frombuffer(payload, self._record, 1)
        return {f: row[f].astype(self._dtypes[f], copy=False) for f in self.fields}

    def encode_fields(self, fields: Mapping[str, Array]) -> bytes:
        """Return the bytes that `decode` gives these fields of."""
        sent = (fields[f].astype(self._sent[f], copy=False) for f in self.fields)
        return b"".join(each.tobytes() for each in sent)
