"""The law of quantiles: bands hold what they should, for any errors, and any level has a place."""

import numpy as np
import pytest

from domkl.core.quantiles import (
    FIRST_ROW,
    LEAST,
    LEVELS,
    MOST,
    learn_error,
    position,
    tail,
    width,
    write_positions,
)

DISTRIBUTIONS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy tails": lambda rng, n: rng.standard_t(2, size=n),
    "skewed": lambda rng, n: rng.exponential(size=n) - 1,
    "uniform": lambda rng, n: rng.uniform(-1, 1, size=n),
    "another size": lambda rng, n: 20 * rng.normal(size=n),
    "mostly nothing": lambda rng, n: rng.normal(size=n) ** 5 / 10,
}


def learned(errors, horizon=1.0):
    row, rows = FIRST_ROW.copy(), []
    for error in errors:
        learn_error(row, error, horizon)
        rows.append(row.copy())
    return np.array(rows)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_bands_hold_what_they_should(name):
    """Within 1.5 points over 20000 errors; the deviation of such a share is below 0.4 points."""
    errors = DISTRIBUTIONS[name](np.random.default_rng(1), 20_000)
    rows = np.vstack([FIRST_ROW, learned(errors)[:-1]])  # of the time before each error
    for j in range(3):
        is_inside = (rows[:, j] <= errors) & (errors <= rows[:, -1 - j])
        assert is_inside[200:].mean() == pytest.approx(1 - 2 * LEVELS[j], abs=0.015)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_quantiles_are_those_of_the_distribution(name):
    """Means of a slow row; one of a fast row is noisy."""
    errors = DISTRIBUTIONS[name](np.random.default_rng(2), 40_000)
    found = learned(errors, horizon=100.0)[10_000:].mean(axis=0)
    spread = np.quantile(errors, 0.75) - np.quantile(errors, 0.25)
    for j, level in enumerate(LEVELS):
        share = (errors < found[j]).mean()
        is_near = abs(found[j] - np.quantile(errors, level)) < 0.1 * spread
        assert is_near or share == pytest.approx(level, abs=0.03)


def test_a_dozen_labels_tell_another_size():
    errors = 5 * np.random.default_rng(3).normal(size=60)
    is_inside = np.abs(errors) <= np.vstack([FIRST_ROW, learned(errors)[:-1]])[:, -1]
    assert is_inside[:10].mean() < 0.5
    assert is_inside[30:].mean() > 0.8


def test_levels_are_in_order_and_any_has_a_place():
    rng = np.random.default_rng(4)
    levels = np.concatenate([np.logspace(-9, -2, 50), np.linspace(0.01, 0.99, 99)])
    levels = np.unique(np.concatenate([levels, 1 - levels]))
    for row in learned(rng.standard_t(2, size=500) * rng.choice([0.01, 1, 50], size=500)):
        places = [position(row, level) for level in levels]
        assert (np.diff(places) >= 0).all()
        assert places[0] < 0 < places[-1]
        assert np.isfinite(places).all()


def test_the_ends_of_bands_are_their_places():
    row = learned(np.random.default_rng(5).normal(size=300))[-1]
    np.testing.assert_allclose([position(row, level) for level in LEVELS], row, rtol=1e-12)


def test_it_begins_with_the_distribution_of_laplace():
    for level in (0.001, 0.2, 0.5, 0.6, 0.999):
        expected = 1.96 * tail(level) / tail(0.975)
        assert position(FIRST_ROW, level) == pytest.approx(expected)
    assert position(FIRST_ROW, 0.5) == 0
    assert width(FIRST_ROW) == pytest.approx(1)


def test_places_are_told_in_deviations_that_hold_95_percent():
    rows = learned(np.random.default_rng(6).normal(size=300))[-2:]
    out = np.empty((2, 2))
    write_positions(out, rows, np.array([0.025, 0.975]))
    np.testing.assert_allclose(out[:, 1] - out[:, 0], 2 * 1.96)


def test_errors_of_zero_leave_a_way_back():
    rows = learned([0.0] * 5000 + [1e9] * 100)
    assert rows[4999, 2] <= -LEAST
    assert rows[4999, 3] >= LEAST
    assert 1.0 < rows[-1, 3] <= MOST
    assert rows[:, -1].max() <= MOST


def test_errors_on_one_side_turn_the_band():
    row = learned(np.random.default_rng(7).exponential(size=2000))[-1]
    assert row[-1] > 2 * -row[0]
