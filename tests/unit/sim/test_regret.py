"""Regrets, and the best function in hindsight (26), against their definitions."""

import numpy as np
import pytest
from scipy.optimize import minimize

import domkl


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(1)
    X = rng.random((60, 4, 2))
    y = np.sin(5 * X[..., 0]) + 0.1 * rng.normal(size=(60, 4))
    graph = domkl.Graph.path(4)
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 10.0]), 2, 5, seed=1)
    run = domkl.simulate(domkl.DOMKL(), X, y, graph, features, discrepancy=True)
    return X, y, features, run


def test_regrets_are_what_the_theorems_print(case):
    X, y, features, run = case
    found = domkl.regret(run, X, y, features)
    z = features(X)
    theta = [
        np.linalg.lstsq(z[:, :, p].reshape(240, -1), y.ravel(), rcond=None)[0] for p in range(2)
    ]
    for k in range(4):
        own = sum((run.predictions[t, k] - y[t, k]) ** 2 for t in range(60))
        best = min(sum((z[t, k, p] @ theta[p] - y[t, k]) ** 2 for t in range(60)) for p in range(2))
        assert found.accuracy[k] == pytest.approx(own - best)
        assert found.discrepancy[k] == pytest.approx(run.discrepancy[:, k].sum())
    network = [np.sum((z[:, :, p] @ theta[p] - y) ** 2) for p in range(2)]
    total = np.sum((run.predictions - y) ** 2)
    assert found.best_kernel == int(np.argmin(network))
    assert found.network_accuracy == pytest.approx(total - min(network))
    assert found.network_accuracy <= found.accuracy.sum() + 1e-9
    assert found.network_discrepancy == pytest.approx(run.discrepancy.sum())


def test_a_shorter_horizon_has_its_own_comparator(case):
    X, y, features, run = case
    short = domkl.regret(run, X, y, features, n_rounds=20)
    again = domkl.simulate(
        domkl.DOMKL(), X[:20], y[:20], domkl.Graph.path(4), features, discrepancy=True
    )
    alone = domkl.regret(again, X[:20], y[:20], features)
    np.testing.assert_allclose(short.accuracy, alone.accuracy)


def test_two_learners_that_disagree_have_linear_regret_as_printed():
    """Theorem 2(a) does not hold per learner, only for the network: docs/explanation/paper.md."""
    learner, network = [], []
    for n_rounds in (250, 1000):
        rng = np.random.default_rng(0)
        X = rng.random((n_rounds, 2, 1))
        y = np.stack([np.sin(40 * X[:, 0, 0]), np.zeros(n_rounds)], axis=1)
        features = domkl.RandomFeatures.draw(domkl.gaussian_bank([1e-3, 1e3]), 1, 50, seed=0)
        root = np.sqrt(n_rounds)
        algorithm = domkl.DOMKL(rho=root / 50, eta_l=root / 50, eta_g=root)
        run = domkl.simulate(algorithm, X, y, domkl.Graph.path(2), features, discrepancy=True)
        found = domkl.regret(run, X, y, features)
        learner.append(found.accuracy[1] / n_rounds)
        network.append(found.network_accuracy / n_rounds)
    assert learner[1] > 0.9 * learner[0] > 0.1  # linear
    assert network[1] < 0.6 * network[0]  # as √T, which would be 0.5


@pytest.mark.parametrize(
    "loss",
    [domkl.Squared(), domkl.Huber(0.3), domkl.Absolute(), domkl.Pinball(0.3), domkl.Logistic()],
)
def test_the_best_in_hindsight_cannot_be_improved(loss):
    rng = np.random.default_rng(2)
    z, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    y = np.sign(y) if isinstance(loss, domkl.Logistic) else y
    theta = domkl.best_in_hindsight(z, y, loss)

    def total(t):
        return float(loss.value(z @ t, y).sum())

    other = minimize(total, theta, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert total(theta) <= other.fun + 1e-7


def test_the_loss_of_the_run_is_the_loss_of_its_regret(case):
    X, y, features, _ = case
    X, y = X[:15], y[:15]
    graph, loss = domkl.Graph.path(4), domkl.Huber(0.1)
    run = domkl.simulate(domkl.DOMKL(loss=loss), X, y, graph, features, discrepancy=True)
    found, given = domkl.regret(run, X, y, features), domkl.regret(run, X, y, features, loss=loss)
    np.testing.assert_array_equal(found.accuracy, given.accuracy)


def test_wrong_calls(case):
    X, y, features, run = case
    with pytest.raises(domkl.DataError, match=r"X must have shape \(60, 4, 2\)"):
        domkl.regret(run, X[:10], y, features)
    with pytest.raises(domkl.ParameterError, match="n_rounds must be at most 60, got 61"):
        domkl.regret(run, X, y, features, n_rounds=61)
    plain = domkl.simulate(domkl.DOMKL(), X, y, domkl.Graph.path(4), features)
    with pytest.raises(domkl.DataError, match="discrepancy=True"):
        domkl.regret(plain, X, y, features)
    with pytest.raises(domkl.DataError, match=r"y must have shape \(60, 4\)"):
        domkl.regret(run, X[:10], y[:10], features)
    with pytest.raises(domkl.DataError, match="equal length"):
        domkl.best_in_hindsight(np.ones((3, 1)), np.ones(2))
