"""What all estimators share: log-odds as probabilities of classes."""

import numpy as np
import pytest
from scipy.special import expit

from domkl.estimators.base import class_probabilities


def test_two_classes_are_the_logistic_function():
    f = np.linspace(-40, 40, 9)[:, None]
    found = class_probabilities(f, 2)
    np.testing.assert_allclose(found, np.column_stack([expit(-f), expit(f)]), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [1, 3, 7])
def test_rows_add_up_to_1(n_classes):
    f = np.random.default_rng(0).normal(scale=8, size=(50, n_classes)) - 300
    found = class_probabilities(f, n_classes)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    assert (found >= 0).all()
    if n_classes > 1:
        np.testing.assert_array_equal(found.argmax(axis=1), f.argmax(axis=1))


def test_several_classes_are_those_against_the_rest_normalised():
    f = np.random.default_rng(1).normal(size=(20, 4))
    chances = expit(f)
    expected = chances / chances.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(class_probabilities(f, 4), expected, rtol=1e-12)
