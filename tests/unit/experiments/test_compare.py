import numpy as np

from domkl.experiments.compare import Outcome


def test_a_trial_diverges_with_a_thousand_times_its_first_error_or_none():
    mse = np.array([[0.1, 0.05], [0.1, 99.0], [0.1, 102.0], [0.1, np.inf], [0.1, np.nan]])
    outcome = Outcome("x", {}, (), mse, np.zeros_like(mse), "exact", 0.0)
    assert outcome.n_diverged == 3
