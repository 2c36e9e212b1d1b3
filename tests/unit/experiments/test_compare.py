"""What a comparison counts, and what an algorithm is told of the data."""

import numpy as np

import domkl
from domkl.data.forecast import Prepared
from domkl.experiments.compare import Outcome, suited_to


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
