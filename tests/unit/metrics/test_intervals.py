"""Confidence intervals over trials, plain, paired and in groups."""

import numpy as np
import pytest
from scipy import stats

import domkl


def test_intervals_are_students():
    values = np.random.default_rng(0).normal(size=(12, 3))
    found = domkl.interval(values, level=0.9)
    for i in range(3):
        low, high = stats.t.interval(0.9, 11, values[:, i].mean(), stats.sem(values[:, i]))
        np.testing.assert_allclose((found.low[i], found.high[i]), (low, high))


def test_pairing_cancels_what_trials_share():
    rng = np.random.default_rng(0)
    shared, ours = rng.normal(size=40) * 100, rng.normal(size=40)
    found = domkl.paired_interval(shared + ours + 1, shared)
    assert 0 < found.low < 1 < found.high < 2


def test_one_trial_has_no_interval():
    found = domkl.interval([[1.0, 2.0]])
    np.testing.assert_array_equal(found.mean, [1, 2])
    assert np.isnan(found.low).all()


def test_unequal_sides_and_levels():
    with pytest.raises(domkl.DataError, match="equal shapes"):
        domkl.paired_interval([1.0, 2.0], [1.0])
    with pytest.raises(domkl.ParameterError, match=r"level must be in \(0, 1\), got 95"):
        domkl.interval([1.0, 2.0], level=95)


def test_trials_of_two_kinds_are_told_apart():
    """The mean of two fixed halves varies as the halves do, not as they differ."""
    rng = np.random.default_rng(4)
    means = []
    for _ in range(2000):
        values = np.concatenate([rng.normal(0, 1, 10), rng.normal(100, 2, 10)])
        means.append(values.mean())
    found = domkl.interval(values, groups=np.repeat([0, 1], 10))
    half = float(found.high - found.low) / 2
    assert half == pytest.approx(2.1 * np.std(means), rel=0.35)
    assert float(domkl.interval(values).high - values.mean()) > 5 * half
    alone = domkl.interval([1.0, 2.0, 3.0], groups=[0, 0, 1])
    assert np.isnan(alone.low)
