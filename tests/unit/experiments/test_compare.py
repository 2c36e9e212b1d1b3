"""What a comparison counts, and what an algorithm is told of the data."""

import numpy as np

import domkl
from domkl.data.forecast import Prepared
from domkl.experiments.compare import Outcome, compare, draw_graphs, judge, score, suited_to
from domkl.experiments.options import Setting


def test_a_trial_diverges_with_a_thousand_times_its_first_error_or_none():
    mse = np.array([[0.1, 0.05], [0.1, 99.0], [0.1, 102.0], [0.1, np.inf], [0.1, np.nan]])
    outcome = Outcome("x", {}, (), mse, np.zeros_like(mse), "exact", 0.0)
    assert outcome.n_diverged == 3


def test_an_algorithm_is_told_of_the_newest_lag_unless_it_is_set():
    series, table = (
        Prepared("x", np.zeros((1, 1)), np.zeros(1), newest == 0, ("a",), {}, "", newest_lag=newest)
        for newest in (0, None)
    )
    assert suited_to(series, domkl.LastValue()).newest_lag == 0
    assert suited_to(series, domkl.LastValue(2)).newest_lag == 2
    assert suited_to(table, domkl.LastValue()).newest_lag is None
    assert suited_to(series, domkl.DOMKL()) == domkl.DOMKL()


def test_scores_are_in_the_targets_units_and_leave_out_what_is_missing():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(50, 3))
    f = y + rng.normal(size=(2, 50, 3)) / 3
    y[4, 1], f[:, 7, 2] = np.nan, np.nan
    found = score(f, y, 10.0)
    known = ~np.isnan(f[0] - y)
    for b in range(2):
        gaps, truth = 10 * (f[b] - y)[known], 10 * y[known]
        np.testing.assert_allclose(found.rmse[b], np.sqrt(np.mean(gaps**2)))
        np.testing.assert_allclose(found.mae[b], np.mean(np.abs(gaps)))
        np.testing.assert_allclose(found.r2[b], 1 - np.mean(gaps**2) / truth.var())
        np.testing.assert_allclose(found.wrong[b], np.mean((f[b] > 0)[known] != (truth > 0)))
        np.testing.assert_allclose(
            found.node_rmse[b, 0], 10 * np.sqrt(np.mean((f[b, :, 0] - y[:, 0]) ** 2))
        )


def run_of(quantiles):
    rng = np.random.default_rng(0)
    X = rng.random((80, 2, 1))
    features = domkl.RandomFeatures.draw(domkl.default_bank(), 1, 4, seed=1)
    y = X[..., 0] + rng.normal(size=(80, 2)) / 9
    y[5, 1] = np.nan
    return domkl.simulate(
        domkl.DOMKRLS(), X, y, [domkl.Graph.ring(2)] * 2, [features] * 2, quantiles=quantiles
    )


def test_quantiles_are_judged_in_the_targets_units_where_something_is_known():
    levels = (0.05, 0.2, 0.5, 0.8, 0.9)
    run = run_of(levels)
    found = judge(run, levels, 10.0)
    np.testing.assert_allclose(found.pinball, 10 * run.pinball.mean())
    low, high, y = run.quantiles[..., 1], run.quantiles[..., 3], run.targets
    is_known = np.isfinite(low) & np.isfinite(high) & np.isfinite(y)
    assert not is_known.all(axis=(0, 2))[0]  # before the first label
    inside = ((low <= y) & (y <= high))[is_known]
    assert found.held == {0.6: inside.mean()}  # 0.05 and 0.9 are the ends of no central band


def test_without_quantiles_there_is_nothing_to_judge():
    found = judge(run_of(None), (0.1, 0.9), 1.0)
    assert np.isnan([found.pinball, found.held[0.8]]).all()


def test_one_round_has_nothing_known():
    """Neither a number nor a warning."""
    setting = Setting(n_learners=2, n_trials=1, n_frequencies=4, quantiles=(0.1, 0.9))
    given = (np.zeros((1, 2, 1)), np.zeros((1, 2)), draw_graphs(setting), setting)
    named = {"domkrls": domkl.DOMKRLS(), "last": domkl.LastValue()}
    for outcome in compare(named, *given):
        assert np.isnan([outcome.bands.pinball, outcome.bands.held[0.8]]).all()
