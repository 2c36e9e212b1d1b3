"""River's own checks, and life in its pipelines, with inputs that come and go."""

import itertools
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from river import checks, compose, datasets, ensemble, evaluate, metrics, preprocessing, stream

import domkl
from domkl.estimators.river import OnlineKernelClassifier, OnlineKernelRegressor

MODELS = (OnlineKernelRegressor, OnlineKernelClassifier)
CHECKS = [
    pytest.param(cls, i, id=f"{cls.__name__}-{check.__name__}-{i}")
    for cls in MODELS
    for i, check in enumerate(checks.yield_checks(cls()))
]


@pytest.mark.parametrize(("cls", "i"), CHECKS)
def test_rivers_own_checks(cls, i):
    """All that `check_estimator` runs, and none is skipped."""
    model = cls()
    assert model._unit_test_skips() == set()
    check = next(itertools.islice(checks.yield_checks(model), i, None))
    check(model.clone())


def numbers(n=200, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    return [dict(zip("abc", row, strict=True)) for row in X.tolist()], y.tolist()


def label(cls, y):
    return y if cls is OnlineKernelRegressor else y > 0


def test_it_works_in_pipelines_and_evaluation():
    model = preprocessing.StandardScaler() | OnlineKernelRegressor()
    found = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    assert found.get() < 1
    model = compose.Select("age_of_domain", "ip_in_url") | OnlineKernelClassifier()
    found = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    assert found.get() > 0.5
    bagged = ensemble.BaggingRegressor(OnlineKernelRegressor(), n_models=2, seed=1)
    for x, y in zip(*numbers(20), strict=True):
        bagged.learn_one(x, y)


def test_cold_it_predicts_0_and_even_odds():
    assert OnlineKernelRegressor().predict_one({"a": 1.0}) == 0.0
    assert OnlineKernelClassifier().predict_proba_one({}) == {False: 0.5, True: 0.5}
    distribution = OnlineKernelRegressor().predict_one({"a": 1.0}, with_dist=True)
    assert math.isinf(distribution.sigma)


def test_mini_batches_are_samples_in_order():
    xs, ys = numbers()
    one, many = OnlineKernelRegressor(), OnlineKernelRegressor()
    for x, y in zip(xs, ys, strict=True):
        one.learn_one(x, y)
    X, y = pd.DataFrame(xs, index=range(7, 207)), pd.Series(ys)
    many.learn_many(X[:150], y[:150])
    many.learn_many(X[150:], y[150:])
    predictions = many.predict_many(X)
    assert predictions.index.tolist() == X.index.tolist()
    assert predictions.tolist() == [one.predict_one(x) for x in xs]
    many.learn_many(X[:0], y[:0])  # River's convention: nothing to learn
    assert many.predict_many(X[:0]).tolist() == []


def test_a_late_input_keeps_what_was_learned():
    xs, ys = numbers()
    narrow, wide = OnlineKernelRegressor(), OnlineKernelRegressor()
    for x, y in zip(xs, ys, strict=True):
        narrow.learn_one(x, y)
        wide.learn_one(x, y)
    wide.learn_one({**xs[0], "new": 1e5}, ys[0])
    narrow.learn_one(xs[0], ys[0])
    for x in xs:  # without it, and at its mean, nothing has changed
        assert wide.predict_one(x) == pytest.approx(narrow.predict_one(x), abs=1e-9)
        assert wide.predict_one({**x, "new": 1e5}) == pytest.approx(wide.predict_one(x), abs=1e-9)
    assert wide.learner.names == ("a", "b", "c", "new")
    np.testing.assert_array_equal(
        wide.learner.features.frequencies[:, :, :3], narrow.learner.features.frequencies
    )


def test_inputs_are_told_apart_by_name_alone():
    """In whatever order they come; frequencies belong to the name."""
    xs, ys = numbers(50)
    plain, late = OnlineKernelRegressor(), OnlineKernelRegressor()
    late.learn_one({"c": 0.0}, 0.0)
    for x, y in zip(xs, ys, strict=True):
        plain.learn_one(x, y)
        late.learn_one(dict(reversed(x.items())), y)
    assert late.learner.names == ("c", "a", "b")
    ours, theirs = plain.learner.features.frequencies, late.learner.features.frequencies
    np.testing.assert_array_equal(ours, theirs[:, :, [1, 2, 0]])


def test_names_of_any_kind():
    model = OnlineKernelRegressor()
    for y, x in enumerate([{1: 0.5}, {"1": 0.5, 2.5: 1}, {("t", 1): True, None: 3}, {}]):
        model.learn_one(x, y)
    assert len(model.learner.names) == 5
    frequencies = model.learner.features.frequencies
    assert not np.array_equal(frequencies[:, :, 0], frequencies[:, :, 1])  # 1 is not "1"
    empty = OnlineKernelRegressor()
    empty.learn_one({}, 3.0)
    empty.learn_one({"a": 1}, 3.0)
    assert empty.predict_one({}) == 3.0


BAD = {
    "nan": {"a": math.nan},
    "infinity": {"a": math.inf},
    "huge": {"a": 10**400},
    "string": {"a": "1.0"},
    "none": {"b": 1.0, "a": None},
    "array": {"a": [1.0, 2.0]},
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("cls", MODELS)
def test_a_failed_call_changes_nothing(cls, name):
    xs, ys = numbers(20)
    model = cls()
    for x, y in zip(xs, ys, strict=True):
        model.learn_one(x, label(cls, y))
    before = pickle.dumps(model)
    with pytest.raises(domkl.DataError, match=r"x\['a'\] must be"):
        model.learn_one(BAD[name], label(cls, 1.0))
    with pytest.raises(domkl.DataError, match=r"x\['a'\] must be"):
        model.learn_one({**xs[0], **BAD[name], "new": 1.0}, label(cls, 1.0))
    with pytest.raises(domkl.DataError, match=r"x\['a'\] must be"):
        model.predict_one(BAD[name])
    if name not in ("array", "huge"):
        frame = pd.DataFrame([{"b": 1.0, "a": 1.0}, BAD[name]])
        with pytest.raises(domkl.DataError, match=r"X\['[ab]'\]\[[01]\] must be"):
            model.learn_many(frame, pd.Series([label(cls, 1.0)] * 2))
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("y", [math.nan, math.inf, "high", None])
def test_bad_targets_change_nothing(y):
    model = OnlineKernelRegressor()
    before = pickle.dumps(model)
    with pytest.raises(domkl.DataError, match="y must be"):
        model.learn_one({"a": 1.0}, y)
    with pytest.raises(domkl.DataError, match=r"y\[0\] must be"):
        model.learn_many(pd.DataFrame([{"a": 1.0}]), pd.Series([y]))
    assert pickle.dumps(model) == before


def test_bad_labels_and_lengths():
    model = OnlineKernelClassifier()
    for y in ("yes", 2, None, -1, math.nan, pd.NA):
        with pytest.raises(domkl.DataError, match="True or False"):
            model.learn_one({"a": 1.0}, y)
    with pytest.raises(domkl.DataError, match="values as X has rows"):
        model.learn_many(pd.DataFrame([{"a": 1.0}]), pd.Series([True, False]))
    twice = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    with pytest.raises(domkl.DataError, match="different names"):
        model.learn_many(twice, pd.Series([True]))
    assert model.learner.n_seen == 0
    model.learn_one({"a": 1.0}, np.True_)
    model.learn_one({"a": 1.0}, 1)


def test_constant_targets():
    model = OnlineKernelRegressor()
    for x, _ in stream.iter_array(np.random.default_rng(0).normal(size=(30, 2))):
        model.learn_one(x, 0.1)
        assert model.predict_one(x) == 0.1


class WithDeviation(domkl.LinearRLS):
    def deviation(self, state, inputs):
        return np.full(1, 0.5)


def test_distributions_on_request():
    model = OnlineKernelRegressor(WithDeviation())
    xs, ys = numbers(50)
    for x, y in zip(xs, ys, strict=True):
        model.learn_one(x, y)
    found = model.predict_one(xs[0], with_dist=True)
    assert found.mu == model.predict_one(xs[0])
    assert found.sigma == pytest.approx(0.5 * np.std(ys))


def test_no_seed_is_a_new_one_each_time():
    a, b = OnlineKernelRegressor(seed=None), OnlineKernelRegressor(seed=None)
    assert a.learner.columns.seed != b.learner.columns.seed


def test_a_network_gives_a_model():
    xs, ys = numbers(500)
    model = OnlineKernelRegressor()
    model.learn_many(pd.DataFrame(xs), pd.Series(ys))
    learner, graph = model.learner, domkl.Graph.ring(5)
    X = np.array([list(x.values()) for x in xs]).reshape(100, 5, 3)
    rounds, state = learner.scaled(X, np.reshape(ys, (100, 5))), learner.state_for(graph)
    run = domkl.simulate(learner.algorithm, *rounds, graph, learner.features, state=state)
    out = model.from_run(run, 2)
    out.learn_one({**xs[0], "new": 1.0}, ys[0])
    assert np.isfinite(out.predict_one(xs[0]))
