"""Coverage and pinball loss, by hand and by what they are the smallest at."""

import numpy as np

from domkl.metrics.quantiles import coverage, pinball_loss


def test_labels_that_are_missing_are_not_covered_nor_missed():
    assert coverage([1.0, 5.0, np.nan], 0.0, 2.0) == 0.5
    assert np.isnan(coverage([np.nan], 0.0, 2.0))


def test_the_loss_is_smallest_at_the_quantile():
    y, levels = np.random.default_rng(0).exponential(size=5000), [0.1, 0.5, 0.9]
    places = np.linspace(0, 4, 401)
    for level in levels:
        means = [pinball_loss(y, np.full((5000, 1), q), [level]).mean() for q in places]
        assert abs(places[np.argmin(means)] - np.quantile(y, level)) < 0.02


def test_what_is_not_known_has_no_loss():
    found = pinball_loss([1.0, np.nan], [[-np.inf, 2.0], [0.0, 1.0]], [0.1, 0.9])
    assert np.isnan(found).tolist() == [[True, False], [True, True]]
