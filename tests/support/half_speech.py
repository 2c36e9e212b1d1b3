"""A speech that rounds every number to the eleven bits of half precision, to prove the seam.

The range is that of the numbers themselves, so that accounts of any size can be said. What is said
fits into float32, in which it travels.
"""

from typing import NamedTuple

import numpy as np

from domkl.core.jit import sweep
from domkl.core.numba_internals import by_class
from domkl.speech.base import Layout, Speech


class HalfMemory(NamedTuple):
    n_said: np.ndarray  # (K,)


@sweep
def rounded(said, message):
    """By Veltkamp's splitting: cx − (cx − x) keeps eleven bits."""
    bits = 42 if message.itemsize == 8 else 13
    factor = message.dtype.type(2.0**bits + 1)
    out, given = said.reshape(said.size), message.reshape(message.size)
    for i in range(out.size):
        large = given[i] * factor
        out[i] = large - (large - given[i])


@by_class
def each_field(said, message):
    calls = (f"rounded(said.{name}, message.{name})" for name in said._fields)
    return "\n    ".join(calls) or "pass"


def utter(memory, message, said):
    each_field(said, message)
    for k in range(len(memory.n_said)):
        memory.n_said[k] += 1


class HalfSpeech(Speech):
    memory = HalfMemory
    utter = staticmethod(utter)

    def remember(self, message):
        return HalfMemory(np.zeros(max((len(values) for values in message), default=0)))

    def layout(self, exchange, message):
        return Layout(exchange, message, dict.fromkeys(message._fields, "float32"))

    def __repr__(self):
        return "HalfSpeech()"


HALF = HalfSpeech()
