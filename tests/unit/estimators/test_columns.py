"""Frequencies by input: the kernel's spectrum, whichever way inputs come."""

import numpy as np
import pytest

import domkl
from domkl.estimators.columns import Columns


@pytest.mark.parametrize(
    "kernel",
    [domkl.Gaussian(2.0), domkl.Matern(1.0), domkl.Laplacian(4.0), domkl.Cauchy(1.0)],
)
def test_features_approximate_the_kernel(kernel):
    """Mean of 20000 cosines: within 0.05 but for a chance below 1e-6 (Hoeffding)."""
    columns = Columns([kernel], 20_000, seed=3)
    features = domkl.RandomFeatures(columns.draw(["a", "b", "c"], columns.n_frequencies))
    x, other = np.array([0.3, -0.2, 0.5]), np.array([-0.1, 0.4, 0.2])
    assert float(np.sum(features(x) * features(other))) == pytest.approx(kernel(x, other), abs=0.05)


def test_an_input_has_its_frequencies_by_name_and_seed():
    bank = [domkl.Gaussian(1.0), domkl.Matern(1.0)]
    made = Columns(bank, 5, seed=3).draw(["a", "b"], 5)
    np.testing.assert_array_equal(made[:, :, [1]], Columns(bank, 5, seed=3).draw(["b"], 5))
    assert not np.array_equal(made, Columns(bank, 5, seed=4).draw(["a", "b"], 5))


@pytest.mark.parametrize("bank", [[], None, [object()], [domkl.Gaussian(), object(), object()]])
def test_a_bank_needs_spectra(bank):
    with pytest.raises(domkl.ParameterError, match="kernel with a spectrum"):
        Columns(bank, 5, seed=0)
