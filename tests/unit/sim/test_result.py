"""Curves of a run against their definitions, by loops over what it keeps."""

import numpy as np
import pytest

import domkl

T, K = 6, 5
GRAPH = domkl.Graph.from_edges(K, [(0, 1), (1, 2), (3, 4)])  # two components


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(2)
    X, y = rng.random((T, K, 2)), rng.random((T, K))
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 1.0]), 2, 3, seed=0)
    return X, y, features, domkl.simulate(domkl.DOMKL(), X, y, GRAPH, features)


def averages(values):
    """Means over rounds up to t, (T, …)."""
    return [np.mean(values[: t + 1], axis=0) for t in range(len(values))]


def test_errors_of_learners_components_and_the_network(case):
    _, y, _, run = case
    errors = np.array(
        [[(run.predictions[t, k] - y[t, k]) ** 2 for k in range(K)] for t in range(T)]
    )
    np.testing.assert_allclose(run.squared_errors, errors)
    np.testing.assert_allclose(run.mse, [row.mean() for row in averages(errors)])
    np.testing.assert_allclose(run.learner_mse, averages(errors))
    by_component = np.stack([errors[:, :3].mean(axis=1), errors[:, 3:].mean(axis=1)], axis=1)
    np.testing.assert_allclose(run.component_mse, averages(by_component))


def test_consensus_violation_at_the_end_of_one_round(case):
    """Of functions before the first sample all are 0; after it they are those of the state."""
    X, y, features, _ = case
    first = domkl.simulate(domkl.DOMKL(), X[:1], y[:1], GRAPH, features)
    assert first.cv[0] == 0
    run = domkl.simulate(domkl.DOMKL(), X[1:2], y[1:2], GRAPH, features, state=first.state)
    theta = first.theta * first.weights[..., None]
    f = np.array([[np.sum(theta[j] * features(X[1, k])) for j in range(K)] for k in range(K)])
    gaps = np.array([[(f[k, k] - f[k, j]) ** 2 for j in range(K)] for k in range(K)])
    np.testing.assert_allclose(run.learner_cv[0], gaps.sum(axis=1) / (K - 1))
    np.testing.assert_allclose(run.cv[0], gaps.sum() / (K * (K - 1)))
    inner = gaps[:3, :3].sum() / (3 * 2), gaps[3:, 3:].sum() / (2 * 1)
    np.testing.assert_allclose(run.component_cv[0], inner)


def test_trials_have_the_leading_axis_and_are_those_of_one_by_one(case):
    X, y, features, run = case
    other = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 1.0]), 2, 3, seed=9)
    both = domkl.simulate(domkl.DOMKL(), X, y, GRAPH, [features, other])
    assert both.predictions.shape == (2, T, K)
    assert both.learner_mse.shape == (2, T, K)
    assert both.component_mse.shape == (2, T, 2)
    for name in ("mse", "cv", "predictions", "theta", "weights", "learner_cv", "component_cv"):
        np.testing.assert_array_equal(getattr(both, name)[0], getattr(run, name), err_msg=name)


def test_what_is_not_kept_is_none(case):
    X, y, features, _ = case
    rounds = zip(X, y, strict=True)
    run = domkl.simulate(domkl.DOMKL(), rounds, None, GRAPH, features)
    curves = run.predictions, run.squared_errors, run.learner_mse, run.learner_cv, run.component_cv
    assert curves == (None,) * 5
    assert run.mse.shape == (T,)


def test_it_tells_of_itself_in_one_line(case):
    run = case[-1]
    assert repr(run) == f"Run({T} rounds, mse={run.mse[-1]:.4g}, cv={run.cv[-1]:.4g})"
