"""The polynomials of sine and cosine."""

import numpy as np
import pytest

from domkl.core.features import sincos_double, sincos_single


@pytest.mark.parametrize(
    ("sincos", "dtype", "budget"),
    [(sincos_single, np.float32, 1e-6), (sincos_double, np.float64, 2e-15)],
)
def test_error_over_a_period_and_far_from_it(sincos, dtype, budget):
    turns = np.concatenate([np.linspace(-1, 1, 200_001), 1000 + np.linspace(-1, 1, 1001)])
    sine, cosine = np.empty(turns.size, dtype), np.empty(turns.size, dtype)
    sincos(turns, sine, cosine, dtype(1))
    angle = 2 * np.pi * (turns - np.rint(turns)).astype(np.longdouble)
    far = 4 * np.spacing(np.abs(turns))  # what the given turns themselves leave open
    assert (np.abs(sine - np.sin(angle)) < budget + far).all()
    assert (np.abs(cosine - np.cos(angle)) < budget + far).all()
