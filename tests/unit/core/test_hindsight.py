"""The best parameter in hindsight: known minimisers, and that no neighbor of it is better."""

import numpy as np
import pytest

import domkl

ONES = np.ones((5, 1))
Y = np.array([0.0, 0.0, 1.0, 2.0, 7.0])


@pytest.mark.parametrize(
    ("loss", "best"),
    [
        (domkl.Squared(), 2.0),  # the mean
        (domkl.Absolute(), 1.0),  # the median
        (domkl.Pinball(0.7), 2.0),  # the quantile
        (domkl.Huber(100.0), 2.0),  # a parabola as far as the data reach
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_constant_is_fitted_by_the_location_that_belongs_to_the_loss(loss, best):
    assert domkl.best_in_hindsight(ONES, Y, loss) == pytest.approx([best], abs=1e-5)


def test_the_logistic_fit_has_the_frequencies_of_the_labels():
    y = np.array([1.0, 1.0, 1.0, -1.0])
    (theta,) = domkl.best_in_hindsight(np.ones((4, 1)), y, domkl.Logistic())
    assert 1 / (1 + np.exp(-theta)) == pytest.approx(0.75, abs=1e-5)


def test_least_squares_are_of_smallest_norm_where_several_fit():
    z = np.array([[1.0, 1.0]])
    np.testing.assert_allclose(domkl.best_in_hindsight(z, [2.0]), [1.0, 1.0])


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_scaling_the_labels_scales_the_fit(scale):
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    for loss in (domkl.Squared(), domkl.Absolute(), domkl.Pinball(0.2)):
        one, other = (domkl.best_in_hindsight(z, c * y, loss) for c in (1.0, scale))
        np.testing.assert_allclose(other, scale * one, rtol=1e-6, atol=1e-9 * scale)


def test_samples_without_a_label_are_refused():
    with pytest.raises(domkl.DataError, match="equal length, got 5 and 4"):
        domkl.best_in_hindsight(ONES, Y[:4])
