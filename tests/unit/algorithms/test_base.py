"""How Python calls the functions of a law."""

from typing import NamedTuple

import numba
import numpy as np

from domkl.algorithms import base
from domkl.algorithms.base import machine_code
from domkl.core.jit import sweep


def run(*given):
    machine_code(_scaled, *given)(*given)


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
        run(out, Pair(left, 2.0))
        np.testing.assert_array_equal(out, 2 * left)
        run(out, Pair(left, 3))
        np.testing.assert_array_equal(out, 3 * left)


def test_a_call_of_a_plain_function():
    assert [machine_code(max, 1, each)(1, each) for each in (2, 3)] == [2, 3]


def test_small_work_is_not_compiled_until_patience_is_used_up(monkeypatch):
    @numba.njit
    def twice(a):
        return 2 * a

    monkeypatch.setattr(base, "PATIENCE", 1.0)
    assert not base.is_worth_compiling(twice, (1.0,), 0.6)
    assert base.is_worth_compiling(twice, (1.0,), 0.6)
    assert not base.is_worth_compiling(twice, (1,), 0.6)  # another type
    twice(1)
    assert base.is_worth_compiling(twice, (1,), 0.0)
