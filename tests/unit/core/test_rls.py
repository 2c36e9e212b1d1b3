"""Recursive least squares against the normal equations, and what rounding may not do to it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import domkl
from domkl.core.jit import sweep
from domkl.core.lanes import dot
from domkl.core.rls import first_factors, shrink, variance
from domkl.core.vectors import shifted


def inverse(factor, diagonal):
    """U D Uᵀ of one row, in float64."""
    n = len(diagonal)
    unit = np.eye(n)
    for j in range(n):
        unit[:j, j] = factor[j * (j - 1) // 2 : j * (j + 1) // 2]
    return unit @ np.diag(diagonal.astype(np.float64)) @ unit.T


def fitted(z, y, ridge, dtype=np.float64, lengths=None):
    """θ, U and D after samples z (T, N, D), y (T, N)."""
    _, n_rows, n_features = z.shape
    factors = first_factors(lengths or (n_features,) * n_rows, n_features, ridge)
    factor, diagonal = (each.astype(dtype) for each in factors)
    theta, gain = np.zeros((n_rows, n_features), dtype), np.empty(n_features, dtype)
    for z_t, y_t in zip(z.astype(dtype), y, strict=True):
        for n, error in enumerate(y_t - np.sum(theta * z_t, axis=1)):
            spread = shrink(factor[n], diagonal[n], z_t[n], gain, 1.0, 1.0, ridge)
            theta[n] += dtype(error) / spread * gain
    return theta, factor, diagonal


@pytest.mark.parametrize(("dtype", "budget"), [(np.float64, 1e-9), (np.float32, 2e-4)])
def test_the_fit_is_the_ridge_solution(dtype, budget):
    rng = np.random.default_rng(2)
    z, y, ridge = rng.normal(size=(300, 2, 7)), rng.normal(size=(300, 2)), 0.3
    theta, factor, diagonal = fitted(z, y, ridge, dtype)
    for n in range(2):
        gram = z[:, n].T @ z[:, n] + ridge * np.eye(7)
        solution = np.linalg.solve(gram, z[:, n].T @ y[:, n])
        np.testing.assert_allclose(theta[n], solution, rtol=budget, atol=budget * 0.1)
        found, expected = inverse(factor[n], diagonal[n]), np.linalg.inv(gram)
        np.testing.assert_allclose(found, expected, rtol=0, atol=budget * np.abs(expected).max())


@given(st.integers(0, 10**6), st.sampled_from([0.6, 0.95, 1.0]), st.sampled_from([0.1, 1.0, 30.0]))
def test_one_sample_is_the_rank_one_change(seed, forget, noise):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    factor, diagonal = rng.normal(size=n * (n - 1) // 2), rng.exponential(size=n)
    z, gain = rng.normal(size=n), np.empty(n)
    before = inverse(factor, diagonal)
    reach = variance(factor, diagonal, z)
    spread = shrink(factor, diagonal, z, gain, noise, forget, 1e-12)
    assert reach == pytest.approx(z @ before @ z)
    assert spread == pytest.approx(forget * noise + z @ before @ z)
    np.testing.assert_allclose(gain, before @ z, atol=1e-9)
    after = (before - np.outer(gain, gain) / spread) / forget
    np.testing.assert_allclose(inverse(factor, diagonal), after, rtol=1e-7, atol=1e-7)


def test_padding_is_left_alone():
    rng = np.random.default_rng(4)
    z, y = rng.normal(size=(50, 1, 6)), rng.normal(size=(50, 1))
    theta, factor, diagonal = fitted(z, y, 0.1, lengths=(4,))
    short, short_factor, short_diagonal = fitted(z[:, :, :4].copy(), y, 0.1)
    np.testing.assert_array_equal(diagonal[0, 4:], 0)
    np.testing.assert_array_equal(diagonal[0, :4], short_diagonal[0])
    np.testing.assert_array_equal(factor[0, :6], short_factor[0])
    np.testing.assert_array_equal(factor[0, 6:], 0)
    np.testing.assert_array_equal(theta[0, 4:], 0)
    # 4 of 6 features are used, whatever stands in the others
    assert theta[0, :4] != pytest.approx(0)
    assert short.shape == (1, 4)


@sweep
def _many(theta, factor, diagonal, z, y, n_steps, forget, ridge):
    gain = np.empty(z.shape[1], theta.dtype)
    for t in range(n_steps):
        row = z[t % len(z)]
        error = theta.dtype.type(y[t % len(z)]) - dot(theta, row)
        spread = shrink(factor, diagonal, row, gain, 1.0, forget, ridge)
        shifted(theta, theta, gain, error / spread)


INPUTS = {
    "constant": lambda rng: np.tile(rng.random(12), (1, 1)),
    "duplicate": lambda rng: np.repeat(rng.random((50, 6)), 2, axis=1),
    "collinear": lambda rng: rng.random((50, 2)) @ rng.random((2, 12)),
    "zero": lambda rng: np.zeros((1, 12)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("forget", [1.0, 0.99])
@pytest.mark.parametrize("kind", INPUTS)
def test_a_million_steps_leave_it_finite_and_positive(kind, forget, dtype):
    rng = np.random.default_rng(5)
    z = INPUTS[kind](rng).astype(dtype)
    y = (z @ np.ones(12) + rng.normal(size=len(z))).astype(np.float64)
    factor, diagonal = (each[0].astype(dtype) for each in first_factors((12,), 12, 1e-3))
    theta = np.zeros(12, dtype)
    _many(theta, factor, diagonal, z, y, 1_000_000, forget, 1e-3)
    for values in (theta, factor, diagonal):
        assert np.isfinite(values).all()
    assert (diagonal > 0).all()
    assert diagonal.max() <= 1001
    assert np.abs(factor).max() < 1e3
    assert np.abs(z @ theta - y).max() < 10


@pytest.mark.parametrize("n_learners", [1, 3])
def test_every_prediction_is_that_of_the_fit_so_far(n_learners):
    rng = np.random.default_rng(3)
    X, y = rng.random((25, n_learners, 4)), rng.random((25, n_learners))
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([1.0]), 4, 3, seed=0)
    graph = domkl.Graph.complete(n_learners)
    run = domkl.simulate(domkl.LinearRLS(ridge=0.1), X, y, graph, features)
    for t in range(25):
        for k in range(n_learners):
            rows = np.column_stack([X[:t, k], np.ones(t)])
            gram = rows.T @ rows + 0.1 * np.eye(5)
            fit = np.linalg.solve(gram, rows.T @ y[:t, k])
            assert run.predictions[t, k] == pytest.approx(np.append(X[t, k], 1) @ fit, abs=1e-9)
