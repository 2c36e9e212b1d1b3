"""River's own checks, and life in its pipelines, with inputs that come and go."""

import datetime
import itertools
import math
import pickle
import threading

import numpy as np
import pandas as pd
import pytest
from river import checks, compose, datasets, ensemble, evaluate, metrics, preprocessing, stream

import domkl
from domkl.estimators.columns import MAX_LEVELS, Level
from domkl.estimators.river import (
    OnlineKernelClassifier,
    OnlineKernelMultiTargetRegressor,
    OnlineKernelRegressor,
)

MODELS = (OnlineKernelRegressor, OnlineKernelClassifier)
LONG = ("check_bounded_memory_growth", "check_shuffle_features_no_impact")
CHECKS = [
    pytest.param(
        cls,
        i,
        id=f"{cls.__name__}-{check.__name__}-{i}",
        marks=[pytest.mark.slow] if check.__name__ in LONG else [],
    )
    for cls in (*MODELS, OnlineKernelMultiTargetRegressor)
    for i, check in enumerate(checks.yield_checks(cls()))
]


@pytest.mark.parametrize(("cls", "i"), CHECKS)
def test_rivers_own_checks(cls, i):
    """All that `check_estimator` runs, and none is skipped."""
    # several learners in one: the interface does not depend on how large each is
    model = cls() if cls is OnlineKernelRegressor else cls(n_frequencies=10)
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


def test_scaling_before_makes_it_hardly_worse():
    """Its scaler counts each sample between prediction and label: 1.066 if that is not heeded."""
    models = (OnlineKernelRegressor(), preprocessing.StandardScaler() | OnlineKernelRegressor())
    plain, scaled = (
        evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.RMSE()).get()
        for model in models
    )
    assert scaled < 1.05 * plain


def test_cold_it_predicts_0_and_no_class():
    assert OnlineKernelRegressor().predict_one({"a": 1.0}) == 0.0
    assert OnlineKernelClassifier().predict_proba_one({}) == {}
    assert OnlineKernelClassifier().predict_one({}) is None
    assert OnlineKernelMultiTargetRegressor().predict_one({"a": 1.0}) == {}
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
    "infinity": {"a": math.inf},
    "huge": {"a": 10**400},
    "date": {"a": datetime.date(2020, 1, 1)},
    "complex": {"b": 1.0, "a": 1j},
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
        with pytest.raises(domkl.DataError, match=r"must be"):
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
    for y in (None, 0.5, math.nan, pd.NA, ["yes"]):
        with pytest.raises(domkl.DataError, match="truth value, a whole number or a string"):
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
    def deviation(self, state, inputs, prediction):
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


def test_strings_are_levels_of_a_category():
    """The same as inputs of 0 and 1 that are not scaled: a function of the category is learned."""
    xs, ys = numbers(400)
    colors = np.random.default_rng(2).choice(["red", "green", "blue"], size=400).tolist()
    gain = {"red": -2.0, "green": 0.0, "blue": 3.0}
    model, errors = OnlineKernelRegressor(), []
    for x, y, color in zip(xs, ys, colors, strict=True):
        x, y = {**x, "color": color}, y + gain[color]
        errors.append(model.predict_one(x) - y)
        model.learn_one(x, y)
    assert np.mean(np.square(errors[200:])) < 0.1
    assert {Level("color", value) for value in gain} < set(model.learner.names)
    unknown = [model.predict_one({**xs[0], "color": value}) for value in ("mauve", None)]
    assert np.isfinite(unknown).all()


def test_levels_are_bounded():
    model = OnlineKernelRegressor(n_frequencies=5)
    for i in range(MAX_LEVELS + 30):
        model.learn_one({"id": f"user {i}"}, float(i))
    assert len(model.learner.names) == MAX_LEVELS + 1
    assert Level("id", None) in model.learner.names
    assert np.isfinite(model.predict_one({"id": "nobody"}))


def test_a_new_level_keeps_what_was_learned():
    xs, ys = numbers()
    narrow, wide = OnlineKernelRegressor(), OnlineKernelRegressor()
    for x, y in zip(xs, ys, strict=True):
        narrow.learn_one({**x, "kind": "a"}, y)
        wide.learn_one({**x, "kind": "a"}, y)
    wide.learner._know((*wide.learner.names, Level("kind", "b")))
    for x in xs:
        ours, theirs = (model.predict_one({**x, "kind": "a"}) for model in (wide, narrow))
        assert ours == pytest.approx(theirs, abs=1e-9)


def test_none_and_nan_are_missing():
    xs, ys = numbers(100)
    absent, none, nan = (OnlineKernelRegressor() for _ in range(3))
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        part = {name: value for name, value in x.items() if name != "b"} if i % 3 else x
        absent.learn_one(part, y)
        none.learn_one({**part, **({"b": None} if i % 3 else {})}, y)
        nan.learn_one({**part, **({"b": math.nan} if i % 3 else {})}, y)
        assert absent.predict_one(part) == none.predict_one({**part, "c": part["c"]})
    assert absent.predict_one({}) == none.predict_one({"a": None}) == nan.predict_one({"a": pd.NA})


def test_classes_come_as_they_are_seen():
    X = np.random.default_rng(0).uniform(-1, 1, size=(700, 2))
    names = np.array(["low", "mid", "high"])
    labels = names[np.digitize(X[:, 0], [-0.4, 0.4])].tolist()
    order = np.argsort([label == "high" for label in labels[:100]], kind="stable")  # late
    model, right = OnlineKernelClassifier(n_frequencies=20), 0
    for i in (*order.tolist(), *range(100, 700)):
        x = dict(zip("ab", X[i].tolist(), strict=True))
        right += i >= 300 and model.predict_one(x) == labels[i]
        model.learn_one(x, labels[i])
        assert sum(model.predict_proba_one(x).values()) == pytest.approx(1)
    assert set(model.classes) == set(names)
    assert right > 0.9 * 400


def test_a_third_class_keeps_what_the_two_learned():
    xs, ys = numbers(200)
    model = OnlineKernelClassifier(n_frequencies=10)
    for x, y in zip(xs, ys, strict=True):
        model.learn_one(x, "up" if y > 0 else "down")
    before = [model.predict_proba_one(x)["up"] for x in xs[:50]]
    model._know("sideways")
    for x, chance in zip(xs, before, strict=False):
        found = model.predict_proba_one(x)
        assert found["up"] / (found["up"] + found["down"]) == pytest.approx(chance)


def test_several_targets_are_as_many_models():
    xs, ys = numbers(120)
    model, alone = (
        OnlineKernelMultiTargetRegressor(n_frequencies=10),
        OnlineKernelRegressor(n_frequencies=10),
    )
    for x, y in zip(xs, ys, strict=True):
        model.learn_one(x, {"y": y, "twice": 2 * y})
        alone.learn_one(x, y)
    for x in xs:
        found = model.predict_one(x)
        assert found["y"] == pytest.approx(alone.predict_one(x), rel=1e-9)
        assert found["twice"] == pytest.approx(2 * found["y"], rel=1e-6)


def test_targets_come_and_go():
    xs, ys = numbers(300)
    model = OnlineKernelMultiTargetRegressor(n_frequencies=10)
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        model.learn_one(
            x, {"a": y if i % 2 or i < 100 else None, **({"b": -y} if i >= 100 else {})}
        )
    errors = np.array(
        [
            [model.predict_one(x)["a"] - y, model.predict_one(x)["b"] + y]
            for x, y in zip(xs, ys, strict=True)
        ]
    )
    assert (np.mean(errors**2, axis=0) < 0.3 * np.var(ys)).all()
    before = pickle.dumps(model)
    for bad in ({}, {"a": None}, {"a": 1.0, "new": math.inf}):
        with pytest.raises(domkl.DataError):
            model.learn_one(xs[0], bad)
    with pytest.raises(domkl.DataError):
        model.learn_one({"a": math.inf}, {"new": 1.0})
    assert pickle.dumps(model) == before


def test_weights_of_samples():
    xs, ys = numbers(100)
    plain, weighted = OnlineKernelRegressor(), OnlineKernelRegressor()
    for x, y in zip(xs, ys, strict=True):
        plain.learn_one(x, y)
        weighted.learn_one(x, y, w=1.0)
        weighted.learn_one(x, -y, w=0.0)
    assert [plain.predict_one(x) for x in xs] == [weighted.predict_one(x) for x in xs]
    weighted.learn_one(xs[0], 100.0, w=50.0)
    plain.learn_one(xs[0], 100.0, w=0.01)
    assert abs(weighted.predict_one(xs[0]) - 100) < abs(plain.predict_one(xs[0]) - 100)
    with pytest.raises(domkl.DataError, match="weights must be in"):
        plain.learn_one(xs[0], 1.0, w=-1.0)


def test_frames_of_polars_are_as_those_of_pandas():
    polars = pytest.importorskip("polars")
    xs, ys = numbers(90)
    kinds = ["a", "b", None] * 30
    X = {name: [x[name] for x in xs] for name in "abc"} | {"kind": kinds}
    X["b"][5] = None
    ours, theirs, single = (OnlineKernelRegressor() for _ in range(3))
    ours.learn_many(polars.DataFrame(X), polars.Series(ys))
    theirs.learn_many(pd.DataFrame(X), pd.Series(ys))
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        single.learn_one({**x, "b": X["b"][i], "kind": kinds[i]}, y)
    found = ours.predict_many(polars.DataFrame(X))
    assert isinstance(found, polars.Series)
    assert found.to_list() == theirs.predict_many(pd.DataFrame(X)).tolist()
    assert found.to_list() == [
        single.predict_one({**x, "b": X["b"][i], "kind": kinds[i]}) for i, x in enumerate(xs)
    ]
    model = OnlineKernelClassifier(n_frequencies=5)
    labels = polars.Series(["x" if y > 0 else "y" for y in ys])
    model.learn_many(polars.DataFrame(X), labels)
    chances = model.predict_proba_many(polars.DataFrame(X))
    assert set(chances.columns) == {"x", "y"}
    assert model.predict_many(polars.DataFrame(X)).to_list() == [
        model.predict_one(dict(zip(X, row, strict=True))) for row in zip(*X.values(), strict=True)
    ]


def test_the_newest_lag_by_name():
    series = 50 + np.cumsum(np.random.default_rng(3).normal(size=500))
    plain, known = OnlineKernelRegressor(), OnlineKernelRegressor(newest_lag="now")
    errors = []
    for now, then in itertools.pairwise(series):
        x = {"a": 1.0, "now": float(now)}
        errors.append([model.predict_one(x) - then for model in (plain, known)])
        for model in (plain, known):
            model.learn_one(x, float(then))
    assert known.learner.names == ("now", "a")
    assert np.mean(np.square(errors[5:]), axis=0)[1] < 1.2


def test_a_note_before_a_long_compilation(capfd):
    from numba.core import event

    from domkl.core import numba_internals
    from domkl.core.jit import noted_compilation

    numba_internals._note_once.cache_clear()  # it is said once in a process
    with noted_compilation(seconds=0.0), event.trigger_event("numba:compile", data={}):
        for each in threading.enumerate():
            if isinstance(each, threading.Timer):
                each.join()
    assert capfd.readouterr().err.count("compiling") == 1
    with noted_compilation(seconds=0.0):
        pass
    assert capfd.readouterr().err == ""


def test_intervals_on_request():
    model = OnlineKernelRegressor(WithDeviation())
    xs, ys = numbers(50)
    assert model.predict_interval(xs[0]) == (-np.inf, np.inf)
    for x, y in zip(xs, ys, strict=True):
        model.learn_one(x, y)
    low, high = model.predict_interval(xs[0], level=0.5)
    assert high - low == pytest.approx(2 * 0.67449 * 0.5 * np.std(ys), rel=1e-4)
    assert (low + high) / 2 == pytest.approx(model.predict_one(xs[0]))
