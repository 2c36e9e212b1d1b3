"""scikit-learn's own checks, and life in its pipelines."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import domkl
from domkl.estimators.sklearn import (
    EXPECTED_FAILED_CHECKS,
    OnlineKernelClassifier,
    OnlineKernelRegressor,
)

CHECKS = [
    pytest.param(model, check, id=f"{type(model).__name__}-{check.func.__name__}-{i}")
    for model in (OnlineKernelRegressor(), OnlineKernelClassifier())
    for i, (_, check) in enumerate(estimator_checks_generator(model))
]


@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_scikit_learns_own_checks(model, check):
    """All that `check_estimator` runs. The one for array API skips itself without its setting."""
    if check.func.__name__ in EXPECTED_FAILED_CHECKS:
        with pytest.raises(AssertionError, match="is not equivalent to fitting with removed"):
            check(clone(model))
        return
    check(clone(model))


def samples(n=600, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


def test_it_learns_in_a_pipeline_and_a_search():
    X, y = samples()
    pipeline = make_pipeline(StandardScaler(), OnlineKernelRegressor())
    search = GridSearchCV(
        pipeline,
        {
            "onlinekernelregressor__n_frequencies": [5, 30],
            "onlinekernelregressor__algorithm": [None, domkl.DOMKL(eta_g=1.0)],
        },
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.5


def test_fit_begins_anew_and_partial_fit_goes_on():
    X, y = samples()
    once = OnlineKernelRegressor().fit(X, y)
    again = OnlineKernelRegressor().fit(X[::-1], -y).fit(X, y)
    parts = OnlineKernelRegressor().partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(once.predict(X), again.predict(X))
    np.testing.assert_array_equal(once.predict(X), parts.predict(X))


def test_names_of_the_inputs_are_kept_and_compared():
    X, y = samples()
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = OnlineKernelRegressor().fit(table, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(table[["b", "a", "c"]], y)


BAD = {
    "nan": (lambda X, y: (np.where(X > 0.9, np.nan, X), y), "NaN"),
    "infinity": (lambda X, y: (np.where(X > 0.9, np.inf, X), y), "infinity"),
    "columns": (lambda X, y: (X[:, :2], y), "features"),
    "strings": (lambda X, y: (np.full(X.shape, "x"), y), "convert string to float"),
    "empty": (lambda X, y: (X[:0], y[:0]), "minimum of 1"),
    "huge": (lambda X, y: (1e200 * X, y), "within"),
}


@pytest.mark.parametrize("cls", [OnlineKernelRegressor, OnlineKernelClassifier])
@pytest.mark.parametrize("name", BAD)
def test_a_failed_call_changes_nothing(name, cls):
    spoil, message = BAD[name]
    X, y = samples(100)
    y = np.sign(y) if cls is OnlineKernelClassifier else y
    model = cls().fit(X, y)
    before = pickle.dumps(model)
    for call in (model.partial_fit, model.fit):
        if call == model.fit and name == "columns":
            continue
        with pytest.raises(ValueError, match=message):
            call(*spoil(X, y))
        assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match=message):
        model.predict(spoil(X, y)[0])
    if name != "columns":
        fresh = cls()
        with pytest.raises(ValueError, match=message):
            fresh.fit(*spoil(X, y))
        assert vars(fresh) == vars(cls())


def test_constant_targets():
    X, _ = samples(50)
    np.testing.assert_array_equal(OnlineKernelRegressor().fit(X, np.full(50, 3.0)).predict(X), 3.0)


class WithDeviation(domkl.LinearRLS):
    def deviation(self, state, inputs, prediction):
        return np.full(1, 0.5)


def test_standard_deviations_on_request():
    X, y = samples()
    model = OnlineKernelRegressor(WithDeviation()).fit(X, y)
    y_hat, std = model.predict(X, return_std=True)
    np.testing.assert_array_equal(y_hat, model.predict(X))
    np.testing.assert_allclose(std, 0.5 * y.std())


def test_the_classifier_gives_probabilities():
    X, y = samples(1500)
    labels = np.where(y > 0, "up", "down")
    model = OnlineKernelClassifier().fit(X[:1000], labels[:1000])
    assert model.classes_.tolist() == ["down", "up"]
    assert model.score(X[1000:], labels[1000:]) > 0.8
    chances = model.predict_proba(X[1000:])
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_array_equal(model.decision_function(X[1000:]) > 0, chances[:, 1] > 0.5)


def test_the_classifier_wants_classes_named_once():
    X, y = samples(60)
    labels = np.sign(y)
    with pytest.raises(ValueError, match="classes must be passed"):
        OnlineKernelClassifier().partial_fit(X, labels)
    model = OnlineKernelClassifier().partial_fit(X[:1], labels[:1], classes=[-1, 1])
    model.partial_fit(X, labels)
    with pytest.raises(ValueError, match="as before"):
        model.partial_fit(X, labels, classes=[0, 1])
    with pytest.raises(ValueError, match="one of the classes"):
        model.partial_fit(X, 2 * labels)
    with pytest.raises(ValueError, match="one class"):
        OnlineKernelClassifier().fit(X, np.ones(60))


def test_algorithms_must_suit_the_task():
    X, y = samples(20)
    with pytest.raises(ValueError, match="algorithm must learn by"):
        OnlineKernelRegressor(domkl.DOMKL(loss=domkl.Logistic())).fit(X, y)
    with pytest.raises(ValueError, match="algorithm must learn by"):
        OnlineKernelClassifier(domkl.DOMKL()).fit(X, np.sign(y))


def test_random_states():
    X, y = samples(50)
    fits = [OnlineKernelRegressor(random_state=s).fit(X, y).predict(X) for s in (0, 0, 1, None)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])
    assert not np.array_equal(fits[0], fits[3])


def test_a_network_gives_an_estimator():
    X, y = samples(500)
    model = OnlineKernelRegressor().fit(X, y)
    learner, graph = model.learner_, domkl.Graph.ring(5)
    rounds = learner.scaled(X.reshape(100, 5, 3), y.reshape(100, 5))
    state = learner.state_for(graph)
    run = domkl.simulate(learner.algorithm, *rounds, graph, learner.features, state=state)
    out = model.from_run(run, 2)
    assert out.score(X, y) > 0.5
    assert not np.array_equal(out.predict(X), model.predict(X))


def test_nothing_is_saved_before_it_is_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        OnlineKernelRegressor().save(tmp_path / "model.npz")


@pytest.mark.parametrize("library", ["sklearn", "river"])
def test_a_missing_library_is_named_with_its_extra(library):
    code = f"import sys; sys.modules['{library}'] = None; import domkl.estimators.{library}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"pip install 'domkl[{library}]'" in done.stderr


def test_several_classes_have_probabilities_that_add_up_to_1():
    X, y = samples(900)
    labels = np.digitize(y, [-0.5, 0.5])
    model = OnlineKernelClassifier(n_frequencies=20).fit(X[:600], labels[:600])
    chances = model.predict_proba(X[600:])
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert chances.shape == model.decision_function(X[600:]).shape == (300, 3)
    np.testing.assert_array_equal(chances.argmax(axis=1), model.predict(X[600:]))
    assert model.score(X[600:], labels[600:]) > 0.75


def test_several_outputs_are_as_many_models():
    X, y = samples(200)
    both = np.column_stack([y, np.cos(X[:, 0])])
    model = OnlineKernelRegressor(n_frequencies=10).fit(X, both)
    alone = [OnlineKernelRegressor(n_frequencies=10).fit(X, column) for column in both.T]
    found, std = model.predict(X, return_std=True)
    for k in range(2):
        expected = alone[k].predict(X, return_std=True)
        np.testing.assert_allclose(found[:, k], expected[0], rtol=1e-9)
        np.testing.assert_allclose(std[:, k], expected[1], rtol=1e-9)
    with pytest.raises(ValueError, match="2 columns, got 1"):
        model.partial_fit(X, y)


def test_weights_count_as_so_many_rows_and_0_as_none():
    X, y = samples(300)
    weights = np.arange(300) % 2 * 1.0
    left_out = OnlineKernelRegressor().fit(X[1::2], y[1::2])
    weighted = OnlineKernelRegressor().fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(weighted.predict(X), left_out.predict(X))
    ones = OnlineKernelRegressor().fit(X, y, sample_weight=np.ones(300))
    np.testing.assert_array_equal(ones.predict(X), OnlineKernelRegressor().fit(X, y).predict(X))


def test_weights_tell_which_labels_are_noisy():
    """Half of the labels have a deviation of 3: by their weights they do not spoil the fit."""
    X, y = samples(800)
    noise = np.where(np.arange(500) % 2, 3.0, 0.1)
    spoiled = y[:500] + noise * np.random.default_rng(1).normal(size=500)
    plain = OnlineKernelRegressor().fit(X[:500], spoiled)
    weighted = OnlineKernelRegressor().fit(X[:500], spoiled, sample_weight=0.01 / noise**2)
    assert weighted.score(X[500:], y[500:]) > 0.9 > plain.score(X[500:], y[500:])
    labels = np.where(np.arange(500) % 2, y[:500] < 0, y[:500] > 0)  # every second one is wrong
    weights = np.where(np.arange(500) % 2, 0.1, 1.0)
    model = OnlineKernelClassifier().fit(X[:500], labels, sample_weight=weights)
    assert model.score(X[500:], y[500:] > 0) > 0.85


def test_weights_that_are_none():
    X, y = samples(50)
    for bad in (-np.ones(50), np.full(50, np.nan), np.full(50, 1e9), np.ones(49)):
        with pytest.raises(ValueError):
            OnlineKernelRegressor().fit(X, y, sample_weight=bad)
    with pytest.raises(ValueError, match="0 or 1 for DOMKL"):
        OnlineKernelRegressor(domkl.DOMKL()).fit(X, y, sample_weight=np.full(50, 2.0))


def test_what_can_be_tuned_is_a_parameter():
    X, y = samples(200)
    grid = {"forget": [0.9, 1.0], "ridge": [1e-3, 1.0], "n_frequencies": [5, None]}
    search = GridSearchCV(OnlineKernelRegressor(), grid, cv=2).fit(X, y)
    assert search.best_params_["ridge"] == 1e-3
    model = OnlineKernelRegressor(forget=0.9, ridge=0.1, steps_ahead=3).fit(X, y)
    assert model.learner_.algorithm == domkl.DOMKRLS(forget=0.9, ridge=0.1, steps_ahead=3)
    with pytest.raises(ValueError, match="forget must be None where algorithm is given"):
        OnlineKernelRegressor(domkl.DOMKRLS(), forget=0.9).fit(X, y)


def test_the_newest_lag_is_compared_with_the_target():
    """A random walk with drift: the change is learned, in the target's units."""
    steps = np.random.default_rng(3).normal(size=801)
    other = np.random.default_rng(4).normal(size=800)
    series = 1e3 + 5 * np.cumsum(steps)
    table = pd.DataFrame({"other": other, "now": series[:-1]})
    target = series[1:] + 20 * other
    model = OnlineKernelRegressor(newest_lag="now").fit(table[:700], target[:700])
    errors = model.predict(table[700:]) - target[700:]
    assert np.sqrt(np.mean(errors**2)) < 2 * 5  # rows after the first do not know the last label
    same = OnlineKernelRegressor(newest_lag=1).fit(table[:700], target[:700])
    np.testing.assert_array_equal(same.predict(table), model.predict(table))
    with pytest.raises(ValueError, match="newest_lag must be one of the columns"):
        OnlineKernelRegressor(newest_lag="then").fit(table, target)


def test_the_number_of_frequencies_follows_that_of_inputs():
    generator = np.random.default_rng(0)
    for d, expected in ((1, 50), (4, 80), (30, 200)):
        model = OnlineKernelRegressor().fit(generator.uniform(size=(5, d)), np.arange(5.0))
        assert model.learner_.features.n_frequencies == expected


def test_intervals_on_request():
    X, y = samples()
    model = OnlineKernelRegressor(WithDeviation()).fit(X, y)
    low, high = model.predict_interval(X)
    np.testing.assert_allclose(high - low, 2 * 1.96 * 0.5 * y.std(), rtol=1e-4)
    np.testing.assert_allclose((low + high) / 2, model.predict(X))
    ours = OnlineKernelRegressor().fit(X, y)
    quartiles, (low, high) = ours.predict_quantiles(X), ours.predict_interval(X, 0.5)
    np.testing.assert_array_equal(quartiles[:, [0, 2]], np.stack([low, high], axis=1))
    wide = ours.predict_interval(X, level=0.99)
    assert (wide[0] < low).all()
    assert (wide[1] > high).all()
    with pytest.raises(domkl.ParameterError, match=r"level must be in \(0, 1\), got 95"):
        ours.predict_interval(X, 95)
    both = OnlineKernelRegressor().fit(X, np.stack([y, 2 * y], axis=1))
    assert both.predict_interval(X)[0].shape == (len(X), 2)
