"""Each check accepts what its rule says, and names parameter, rule and value of the rest."""

import math

import numpy as np
import pytest

from domkl import checks
from domkl.errors import DataError, ParameterError

NUMBERS = [
    (checks.positive, (), [1e-300, 3, np.float32(2)], [0, -1, math.nan, math.inf, "1", True]),
    (checks.fraction, (), [1, 0.5], [0, 1.1, math.nan]),
    (checks.between, (0, 1), [0.5], [0, 1, math.nan]),
    (checks.positive, (), [10**15], [10**400]),
    (checks.whole, (2,), [2, np.int64(5)], [1, 2.0, True, "2"]),
    (checks.whole, (2, 3), [2, 3], [4]),
    (checks.choice, (("a", "b"),), ["a"], ["c", None]),
]


@pytest.mark.parametrize(("check", "rule", "good", "bad"), NUMBERS)
def test_values(check, rule, good, bad):
    for value in good:
        assert check("size", value, *rule) == value
    for value in bad:
        with pytest.raises(ParameterError, match=r"size must be .*, got"):
            check("size", value, *rule)


def test_samples_are_finite_arrays_of_the_named_shape():
    made = checks.samples("X", [[1, 2], [3, 4]], "N d")
    assert made.dtype == np.float64
    assert made.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0], r"X must have shape \(N, d\), got \(1,\)"),
        ([[]], "X must not be empty"),
        ([["a"]], "X must hold numbers"),
        ([[1.0], [1.0, 2.0]], "X must hold numbers"),
        ([[1.0, math.nan]], r"X must be finite, got nan at index \(0, 1\)"),
        (np.ma.masked_array([[1.0]], mask=[[True]]), "X must have no masked values"),
        ([[1j]], "X must hold numbers"),
    ],
)
def test_samples_that_are_refused(values, message):
    with pytest.raises(DataError, match=message):
        checks.samples("X", values, "N d")
