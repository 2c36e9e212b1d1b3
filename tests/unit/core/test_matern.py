import numpy as np
import pytest
from scipy.special import gamma, kv

import domkl


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5, 4.0])
def test_matern_is_its_formula(smoothness):
    distance = np.array([0.1, 0.7, 2.0])
    found = domkl.Matern(0.25, smoothness)(distance[:, None], 0.0)
    r = np.sqrt(2 * smoothness) * distance / 0.5
    expected = 2 ** (1 - smoothness) / gamma(smoothness) * r**smoothness * kv(smoothness, r)
    np.testing.assert_allclose(found, expected)


def test_matern_of_a_point_with_itself_and_very_near():
    kernel = domkl.Matern(1.0, smoothness=50.0)
    np.testing.assert_allclose(kernel([[0.0], [1e-6], [1e-9]], [0.0]), 1, atol=1e-6)
