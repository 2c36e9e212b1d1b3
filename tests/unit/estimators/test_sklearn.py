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
from domkl.estimators.sklearn import OnlineKernelClassifier, OnlineKernelRegressor

CHECKS = [
    pytest.param(model, check, id=f"{type(model).__name__}-{i}")
    for model in (OnlineKernelRegressor(), OnlineKernelClassifier())
    for i, (_, check) in enumerate(estimator_checks_generator(model))
]


@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_scikit_learns_own_checks(model, check):
    """All that `check_estimator` runs. The one for array API skips itself without its setting."""
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
    def deviation(self, state, inputs):
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


def test_the_classifier_wants_two_classes_named_once():
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
    with pytest.raises(ValueError, match="Only binary"):
        OnlineKernelClassifier().fit(X, np.arange(60) % 3)


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
