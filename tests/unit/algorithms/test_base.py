"""How Python calls the functions of a law."""

from typing import NamedTuple

import numpy as np

from domkl.algorithms.base import call
from domkl.core.jit import sweep


class Pair(NamedTuple):
    left: np.ndarray
    right: float


@sweep
def _scaled(out, pair):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = pair.right * pair.left[i, j]


def test_a_call_finds_the_code_for_each_layout():
    values = np.arange(12.0).reshape(3, 4)
    for left in (values, values, values.T, values[:, ::2], values.astype("float32"), values[:0]):
        out = np.zeros(left.shape)
        call(_scaled, out, Pair(left, 2.0))
        np.testing.assert_array_equal(out, 2 * left)
        call(_scaled, out, Pair(left, 3))
        np.testing.assert_array_equal(out, 3 * left)


def test_a_call_of_a_plain_function():
    assert [call(max, 1, each) for each in (2, 3)] == [2, 3]
