"""Rounds on a clock."""

import numpy as np
import pytest

import domkl
from domkl.sim.timing import timing_of

K = 3
FEATURES = domkl.RandomFeatures.draw(domkl.default_bank(), 2, 5, seed=0)


def stream(n_rounds=60):
    generator = np.random.default_rng(0)
    X = generator.random((n_rounds, K, 2))
    return X, X[..., 0] + np.sin(np.arange(n_rounds) * np.pi / 6)[:, None]


def run(X, y, **given):
    return domkl.simulate(domkl.DOMKRLS(), X, y, domkl.Graph.ring(K), FEATURES, **given)


def hours(n, start="2024-01-01T05"):
    return np.datetime64(start) + np.arange(n).astype("timedelta64[h]")


def test_dates_give_the_day_as_period_and_the_hour_as_step():
    timing = timing_of(hours(48), None, 48)
    assert timing.period == 24
    assert timing.start % 24 == 5
    assert timing.steps is None
    assert timing_of(hours(48), 12, 48).period == 12


def test_whole_days_have_the_week_as_period():
    days = np.datetime64("2024-01-01") + np.arange(10)
    assert timing_of(days, None, 10).period == 7


def test_rounds_that_are_missing_pass_without_samples():
    X, y = stream()
    is_there = np.ones(60, dtype=bool)
    is_there[20:35] = False
    full = run(np.where(is_there[:, None, None], X, np.nan), y, period=12)
    times, kept = np.flatnonzero(is_there), {"deviation": True, "quantiles": (0.1, 0.9)}
    some = run(X[is_there], y[is_there], period=12, times=times, **kept)
    np.testing.assert_array_equal(some.predictions, full.predictions[is_there])
    np.testing.assert_array_equal(some.mse, full.mse[is_there])
    assert some.deviation.shape == some.targets.shape == (45, K)
    assert some.quantiles.shape == (45, K, 2)


def test_labels_that_are_late_take_no_gaps():
    """A label six rounds ahead is of the next day if a night is missing between."""
    X, y = stream()
    times = np.arange(60) + 5 * (np.arange(60) > 20)
    with pytest.raises(domkl.DataError, match="times must have no gaps where labels come 2 rounds"):
        run(X, y, times=times, delay=2)
    assert run(X, y, times=np.arange(7, 67), delay=2).predictions.shape == (60, K)


@pytest.mark.parametrize(
    ("times", "why"),
    [
        (np.arange(59), "times must be 60"),
        (np.arange(60) / 2, "times must be 60 dates"),
        (np.arange(60)[::-1], "times must ascend"),
        (np.zeros(60, int), "times must ascend"),
    ],
)
def test_wrong_times_are_refused(times, why):
    X, y = stream()
    with pytest.raises(domkl.DataError, match=why):
        run(X, y, times=times)
