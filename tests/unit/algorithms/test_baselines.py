"""The baselines against their definitions, with labels on time, late and missing."""

import numpy as np
import pytest

import domkl

T, K, D = 60, 4, 3
RNG = np.random.default_rng(0)
X = RNG.random((T, K, D))
Y = X @ [1.0, 2.0, -1.0] + 0.1 * RNG.normal(size=(T, K))
GAPS = np.where(RNG.random((T, K)) < 0.2, np.nan, Y)
FEATURES = domkl.RandomFeatures.draw(domkl.gaussian_bank([1.0]), D, 2, seed=1)
ALL = [
    domkl.LastValue(),
    domkl.LastValue(1),
    domkl.SeasonalNaive(5),
    domkl.LinearRLS(),
    domkl.LinearRLS(forget=0.9),
    domkl.PooledLinearRLS(),
    domkl.PooledLinearRLS(forget=0.9),
]


def predictions(algorithm, y=Y, inputs=X, **options):
    graph = domkl.Graph.ring(K)
    return domkl.simulate(algorithm, inputs, y, graph, FEATURES, cv="off", **options).predictions


def ridge_fit(rows, labels, ridge=1e-3, weights=None):
    z = np.column_stack([rows, np.ones(len(rows))])
    weights = np.ones(len(rows)) if weights is None else weights
    gram = (z * weights[:, None]).T @ z + ridge * np.eye(z.shape[1])
    return np.linalg.solve(gram, (z * weights[:, None]).T @ labels)


def value(theta, x):
    return theta[:-1] @ x + theta[-1]


@pytest.mark.parametrize("delay", [0, 4])
@pytest.mark.parametrize("y", [Y, GAPS], ids=["whole", "gaps"])
def test_a_linear_fit_is_least_squares_of_the_known_samples(y, delay):
    found = predictions(domkl.LinearRLS(), y, delay=delay)
    for t, k in np.ndindex(T, K):
        known = np.flatnonzero(~np.isnan(y[: max(0, t - delay), k]))
        theta = ridge_fit(X[known, k], y[known, k]) if known.size else np.zeros(D + 1)
        assert found[t, k] == pytest.approx(value(theta, X[t, k]), abs=1e-9)


@pytest.mark.parametrize("delay", [0, 4])
@pytest.mark.parametrize("forget", [1.0, 0.9])
@pytest.mark.parametrize("y", [Y, GAPS], ids=["whole", "gaps"])
def test_a_pooled_fit_is_least_squares_of_all_earlier_rounds(y, forget, delay):
    """The honest order: of its own round, no label of any learner."""
    found = predictions(domkl.PooledLinearRLS(forget=forget), y, delay=delay)
    for t in range(T):
        n = max(0, t - delay)
        rounds, learners = np.nonzero(~np.isnan(y[:n]))
        theta = np.zeros(D + 1)
        if n:
            age = forget ** (n - 1.0 - rounds)
            theta = ridge_fit(X[rounds, learners], y[rounds, learners], weights=age)
        for k in range(K):
            assert found[t, k] == pytest.approx(value(theta, X[t, k]), abs=1e-9)


def test_forgetting_weighs_samples_by_age():
    found = predictions(domkl.LinearRLS(ridge=1e-9, forget=0.9))
    for t in range(20, T):
        age = 0.9 ** np.arange(t - 1.0, -1, -1)
        theta = ridge_fit(X[:t, 0], Y[:t, 0], ridge=1e-12, weights=age)
        assert found[t, 0] == pytest.approx(value(theta, X[t, 0]), abs=1e-5)


def test_alone_the_pooled_fit_is_the_learners_own():
    own, pooled = domkl.LinearRLS(), domkl.Alone(domkl.PooledLinearRLS())
    np.testing.assert_allclose(predictions(own), predictions(pooled), atol=1e-9)


@pytest.mark.parametrize("delay", [0, 3])
def test_the_last_value_is_the_newest_known(delay):
    found = predictions(domkl.LastValue(), GAPS, delay=delay)
    for t, k in np.ndindex(T, K):
        seen = GAPS[: max(0, t - delay), k]
        known = seen[~np.isnan(seen)]
        assert found[t, k] == (known[-1] if known.size else 0.0)
    np.testing.assert_array_equal(predictions(domkl.LastValue(2), GAPS), X[..., 2])


@pytest.mark.parametrize("period", [1, 5, 24])
@pytest.mark.parametrize("delay", [0, 3, 7])
def test_last_seasons_value(period, delay):
    """Of the labels known, the newest a whole number of periods ago; else the newest of all."""
    found = predictions(domkl.SeasonalNaive(period), GAPS, delay=delay)
    for t in range(2 * delay + 1, T):  # by then it has seen how late labels come
        for k in range(K):
            known = np.flatnonzero(~np.isnan(GAPS[: t - delay, k]))
            same = known[(t - known) % period == 0]
            chosen = same[-1:] if same.size else known[-1:]
            assert found[t, k] == (GAPS[chosen[0], k] if chosen.size else 0.0)


def test_the_season_goes_on_from_a_state():
    algorithm, graph = domkl.SeasonalNaive(7), domkl.Graph.ring(K)
    whole = predictions(algorithm, delay=3)
    first = domkl.simulate(algorithm, X[:31], Y[:31], graph, FEATURES, cv="off", delay=3)
    second = domkl.simulate(
        algorithm, X[31:], Y[31:], graph, FEATURES, cv="off", delay=3, state=first.state
    )
    both = np.concatenate([first.predictions, second.predictions])
    np.testing.assert_array_equal(both, whole)


@pytest.mark.parametrize("delay", [0, 4])
@pytest.mark.parametrize("algorithm", ALL, ids=repr)
def test_no_prediction_knows_a_label_before_its_time(algorithm, delay):
    """Change all labels of a round: no prediction changes before round t + delay + 1."""
    changed = Y.copy()
    changed[30] += RNG.random(K) + 1
    before, after = (predictions(algorithm, y, delay=delay) for y in (Y, changed))
    np.testing.assert_array_equal(before[: 31 + delay], after[: 31 + delay])
    if algorithm != domkl.LastValue(1):
        assert (before[31 + delay :] != after[31 + delay :]).any()


@pytest.mark.parametrize("algorithm", ALL, ids=repr)
def test_a_learner_without_a_label_and_inputs_learns_nothing(algorithm):
    """A round without samples is as if it had not been, but for the season that goes on."""
    inputs, labels = X.copy(), Y.copy()
    inputs[20], labels[20] = np.nan, np.nan
    found = predictions(algorithm, labels, inputs)
    assert np.isnan(found[20]).all()
    if not isinstance(algorithm, domkl.SeasonalNaive):
        without = predictions(algorithm, np.delete(Y, 20, 0), np.delete(X, 20, 0))
        np.testing.assert_array_equal(np.delete(found, 20, 0), without)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: domkl.SeasonalNaive(0), "period must be an integer >= 1, got 0"),
        (lambda: domkl.SeasonalNaive(2.5), "period must be an integer >= 1, got 2.5"),
        (lambda: domkl.LinearRLS(forget=0.0), r"forget must be in \(0, 1\], got 0.0"),
        (lambda: domkl.LinearRLS(forget=float("nan")), r"forget must be in \(0, 1\], got nan"),
        (lambda: domkl.PooledLinearRLS(forget=1.1), r"forget must be in \(0, 1\], got 1.1"),
        (lambda: domkl.PooledLinearRLS(ridge=0), "ridge must be"),
        (lambda: predictions(domkl.LastValue(3)), "newest_lag must be below the 3 inputs, got 3"),
    ],
)
def test_wrong_parameters(make, message):
    with pytest.raises(domkl.ParameterError, match=message):
        make()
