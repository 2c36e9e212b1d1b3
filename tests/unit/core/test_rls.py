"""Recursive least squares against the normal equations."""

import numpy as np
import pytest

import domkl
from domkl.core.rls import rls_step


def test_the_fit_is_the_ridge_solution_and_stays_symmetric():
    rng = np.random.default_rng(2)
    z, y, ridge = rng.normal(size=(300, 2, 7)), rng.normal(size=(300, 2)), 0.3
    theta, covariance = np.zeros((2, 7)), np.tile(np.eye(7) / ridge, (2, 1, 1))
    for z_t, y_t in zip(z, y, strict=True):
        rls_step(theta, covariance, z_t, y_t - np.sum(theta * z_t, axis=1))
    for n in range(2):
        gram = z[:, n].T @ z[:, n] + ridge * np.eye(7)
        np.testing.assert_allclose(theta[n], np.linalg.solve(gram, z[:, n].T @ y[:, n]), rtol=1e-9)
        np.testing.assert_allclose(covariance[n], np.linalg.inv(gram), rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(covariance[n], covariance[n].T)


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
