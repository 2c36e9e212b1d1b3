"""Seasons: what the fits are shown, and what is found in past labels."""

import numpy as np
import pytest

import domkl
from domkl.core import seasons
from domkl.core.seasons import LOOKED, N_PAST, N_SEASON, PERIOD, REMEMBERED, STEP


def looked(values, n_looks=2):
    """The period that looks at these labels find; NaN is no label."""
    past, season = np.zeros((REMEMBERED, N_PAST)), np.zeros(N_SEASON)
    for step, value in enumerate(values):
        if not np.isnan(value):
            past[step % REMEMBERED] = value, 0.0, 0.0, seasons.stamp(step)
    season[STEP] = len(values)
    for _ in range(n_looks):
        seasons.find_period(past, season)
    return season


def two_peaks(n, period=24):
    hour = np.arange(n) % period
    return np.exp(-(((hour - 7) / 2) ** 2)) + 0.7 * np.exp(-(((hour - 18) / 2) ** 2))


@pytest.mark.parametrize("period", [5, 24, 48])
def test_a_season_is_found_in_noise_and_with_gaps(period):
    generator = np.random.default_rng(0)
    values = np.sin(2 * np.pi * np.arange(300) / period) + 0.1 * generator.normal(size=300)
    values[generator.random(300) < 0.2] = np.nan
    assert looked(values)[PERIOD] == period


def test_two_peaks_a_day_are_one_season_of_a_day():
    assert looked(two_peaks(200))[PERIOD] == 24


def test_one_look_is_not_enough():
    season = looked(two_peaks(200), n_looks=1)
    assert season[PERIOD] == 0
    assert season[LOOKED] == 24


def test_noise_has_no_season_and_few_walks_seem_to():
    """A walk that turns back looks like a season: in 1 of 5 at most, binomial, chance 1e-4."""
    generator = np.random.default_rng(1)
    assert not any(looked(generator.normal(size=336))[PERIOD] for _ in range(20))
    found = [looked(np.cumsum(generator.normal(size=336)))[PERIOD] for _ in range(100)]
    assert np.count_nonzero(found) <= 20


@pytest.mark.parametrize("horizon", [1, 6, 24, 25])
def test_a_season_ago_is_known_by_then(horizon):
    """What is predicted at a step may use labels of steps up to a horizon before."""
    past = np.zeros((REMEMBERED, N_PAST))
    step = 200
    for known in range(step - horizon + 1):
        past[known % REMEMBERED] = known, 0.0, 0.0, seasons.stamp(known)
    season = np.array([step - horizon + 1.0, horizon - 1.0, 24.0, 24.0, 24.0])
    assert seasons.target(season) == step
    place = seasons.season_ago(past, season)
    assert past[place, 0] == step - (24 if horizon <= 24 else 48)
    past[place, 3] = 0.0
    assert seasons.season_ago(past, season) == -1
    season[PERIOD] = 0.0
    assert seasons.season_ago(past, season) == -1


def made_stream(horizon, n_rounds=900, n_learners=4, seed=2):
    generator = np.random.default_rng(seed)
    size = 1 + generator.random(n_learners)
    noise = 0.1 * generator.normal(size=(n_rounds + horizon, n_learners))
    values = two_peaks(n_rounds + horizon)[:, None] * size + noise
    X = values[:n_rounds, :, None]
    return X, values[horizon:]


@pytest.mark.parametrize("horizon", [1, 6])
def test_a_period_nearly_halves_the_errors_of_two_peaks(horizon):
    X, y = made_stream(horizon)
    features = domkl.RandomFeatures.draw(domkl.default_bank(), 1, 20, seed=0)
    errors = {}
    for period in (0, None, 24):
        learner = domkl.DOMKRLS(newest_lag=0, period=period)
        run = domkl.simulate(
            learner, X, y, domkl.Graph.ring(4), features, delay=horizon - 1, cv="off"
        )
        errors[period] = np.sqrt(np.mean((run.predictions - y)[300:] ** 2))
    assert errors[24] < 0.55 * errors[0]
    assert errors[None] < 0.75 * errors[0]


def test_a_season_that_is_not_there_costs_little():
    generator = np.random.default_rng(3)
    X = generator.random((600, 4, 3))
    y = np.sin(4 * X[..., 0]) + X[..., 1] + 0.1 * generator.normal(size=(600, 4))
    features = domkl.RandomFeatures.draw(domkl.default_bank(), 3, 20, seed=0)
    runs = [
        domkl.simulate(domkl.DOMKRLS(period=p), X, y, domkl.Graph.ring(4), features, cv="off")
        for p in (0, 24)
    ]
    assert runs[1].mse[-1] < 1.02 * runs[0].mse[-1]


@pytest.mark.parametrize("period", [1, -3, 2.5, "day"])
def test_wrong_periods_are_refused(period):
    with pytest.raises(domkl.ParameterError, match="period must be"):
        domkl.DOMKRLS(period=period)
