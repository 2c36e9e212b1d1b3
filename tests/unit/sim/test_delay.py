"""Labels that come late, or never."""

import pickle

import numpy as np
import pytest

import domkl
from domkl.algorithms import base

T, K, D = 40, 5, 2
ALGORITHMS = [
    domkl.DOMKL(),
    domkl.RFFDOMKL(),
    domkl.COMKL(),
    domkl.DOMKRLS(),
    domkl.DOMKRLS(newest_lag=1),
]
GRAPHS = [domkl.Graph.random(K, 0.4, seed=0), domkl.Graph.ring(K)]


@pytest.fixture(autouse=True)
def _always_compiled(monkeypatch):
    monkeypatch.setattr(base, "PATIENCE", 0.0)


def samples(share_missing=0.0):
    rng = np.random.default_rng(0)
    X = rng.random((T, K, D))
    y = np.sin(3 * X[..., 0]) + 0.1 * rng.standard_normal((T, K))
    y[rng.random((T, K)) < share_missing] = np.nan
    return X, y


def maps(algorithm, dtype="float64"):
    return domkl.RandomFeatures.draw(algorithm.bank(), D, 3, seed=1)


def assert_same(left, right):
    np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("delay", [0, 1, 6])
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: type(a).__name__)
def test_hosts_agree_to_the_bit(algorithm, delay, dtype):
    X, y = samples(0.2)
    X[7, 2, 0] = np.nan
    features, given = maps(algorithm), {"delay": delay, "dtype": dtype}
    expected = domkl.simulate(algorithm, X, y, GRAPHS, features, interpreted=True, **given)
    for cv in ("exact", "moments", "off"):
        run = domkl.simulate(algorithm, X, y, GRAPHS, features, cv=cv, **given)
        assert_same(run.predictions, expected.predictions)
        assert_same(run.mse, expected.mse)
        one = domkl.simulate(algorithm, X, y, GRAPHS[0], features, cv=cv, threads=2, **given)
        assert_same(one.predictions, expected.predictions[0])
        rounds = ((X[t], y[t]) for t in range(T))
        given_rounds = given | {"cv": cv, "keep_predictions": True}
        run = domkl.simulate(algorithm, rounds, None, GRAPHS[0], features, **given_rounds)
        assert_same(run.predictions, expected.predictions[0])


@pytest.mark.parametrize("cut", [3, 20])
@pytest.mark.parametrize("cv", ["exact", "off"])
def test_a_run_cut_in_two_is_the_same_run(cut, cv):
    X, y = samples(0.1)
    features, given = maps(domkl.DOMKL()), {"delay": 2, "cv": cv}
    whole = domkl.simulate(domkl.DOMKL(), X, y, GRAPHS, features, **given)
    first = domkl.simulate(domkl.DOMKL(), X[:cut], y[:cut], GRAPHS, features, **given)
    assert_same(first.state.waiting.y, y[cut - 2 : cut])
    state = pickle.loads(pickle.dumps(first.state))
    then = domkl.simulate(domkl.DOMKL(), X[cut:], y[cut:], GRAPHS, features, state=state, **given)
    both = np.concatenate([first.predictions, then.predictions], axis=1)
    assert_same(both, whole.predictions)


def test_a_few_rounds_that_all_wait_and_then_more():
    X, y = samples()
    features = maps(domkl.DOMKL())
    whole = domkl.simulate(domkl.DOMKL(), X, y, GRAPHS[0], features, delay=5)
    state, found = None, []
    for start in range(0, T, 2):
        rounds = ((X[t], y[t]) for t in range(start, min(start + 2, T)))
        given = {"delay": 5, "state": state, "keep_predictions": True}
        run = domkl.simulate(domkl.DOMKL(), rounds, None, GRAPHS[0], features, **given)
        state = run.state
        found.append(run.predictions)
    assert_same(np.concatenate(found), whole.predictions)


@pytest.mark.parametrize("delay", [1, 4])
def test_a_prediction_knows_the_labels_until_n_rounds_ago(delay):
    """DOKL's steps do not look at predictions, so this is a run on what was known."""
    X, y = samples()
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([1.0]), D, 5, seed=0)
    run = domkl.simulate(domkl.DOKL(), X, y, GRAPHS[0], features, delay=delay)
    for t in (delay + 1, 20, T - 1):
        known = domkl.simulate(domkl.DOKL(), X[: t - delay], y[: t - delay], GRAPHS[0], features)
        now = domkl.simulate(
            domkl.DOKL(), X[t : t + 1], y[t : t + 1], GRAPHS[0], features, state=known.state
        )
        assert_same(now.predictions[0], run.predictions[t])
    assert_same(run.predictions[: delay + 1], np.zeros((delay + 1, K)))


def test_the_future_is_not_seen():
    X, y = samples()
    features = maps(domkl.DOMKRLS())
    other = y.copy()
    other[20:] += 5.0
    runs = [domkl.simulate(domkl.DOMKRLS(), X, v, GRAPHS[0], features, delay=3) for v in (y, other)]
    assert_same(runs[0].predictions[:24], runs[1].predictions[:24])
    assert (runs[0].predictions[24] != runs[1].predictions[24]).all()


def test_without_labels_nothing_is_scored_or_learned():
    X, y = samples()
    features = maps(domkl.DOMKL())
    missing = y.copy()
    missing[:, 1] = np.nan
    missing[3] = np.nan
    run = domkl.simulate(domkl.DOMKL(), X, missing, GRAPHS[0], features)
    squares = (run.predictions - missing) ** 2
    assert run.mse[-1] == pytest.approx(np.nanmean(squares))
    assert np.isnan(run.learner_mse[:, 1]).all()
    assert np.isfinite(run.predictions).all()
    assert run.component_mse[-1, 0] == pytest.approx(run.mse[-1])


def test_a_learner_without_inputs_does_not_predict():
    X, y = samples()
    X[4, 2] = np.nan
    run = domkl.simulate(domkl.DOMKL(), X, y, GRAPHS[0], maps(domkl.DOMKL()))
    assert np.argwhere(np.isnan(run.predictions)).tolist() == [[4, 2]]
    assert np.isfinite(run.mse).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delay": -1}, "delay must be an integer >= 0, got -1"),
        ({"delay": 1.5}, "delay must be an integer"),
        ({"delay": T}, f"delay must be below the {T} rounds of the stream, got {T}"),
    ],
)
def test_a_bad_delay_is_refused(given, message):
    X, y = samples()
    with pytest.raises(domkl.DomklError, match=message):
        domkl.simulate(domkl.DOMKL(), X, y, GRAPHS[0], maps(domkl.DOMKL()), **given)


def test_a_state_of_another_delay_is_refused():
    X, y = samples()
    features = maps(domkl.DOMKL())
    prompt, late = (
        domkl.simulate(domkl.DOMKL(), X, y, GRAPHS[0], features, delay=n).state for n in (0, 3)
    )
    with pytest.raises(domkl.ParameterError, match="state must come from a run with delay=3"):
        domkl.simulate(domkl.DOMKL(), X, y, GRAPHS[0], features, delay=3, state=prompt)
    with pytest.raises(domkl.ParameterError, match="delay must be that of the run"):
        domkl.simulate(domkl.DOMKL(), X, y, GRAPHS[0], features, state=late)


def test_an_algorithm_that_takes_no_gaps_says_so():
    class Mean(domkl.RFFDOMKL):
        takes_missing = False

    X, y = samples()
    y[3, 1] = np.nan
    with pytest.raises(domkl.DataError, match=r"takes no missing samples, got nan at index \(3, 1"):
        domkl.simulate(Mean(), X, y, GRAPHS[0], maps(Mean()))


def test_labels_of_a_horizon_bring_their_delay():
    series = np.sin(np.arange(200) / 7)
    X, y = domkl.embed(series, 3, horizon=6)
    assert (y.horizon, y.delay) == (6, 5)
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([1.0]), 3, 5, seed=0)
    one = domkl.Graph.empty(1)
    by_itself = domkl.simulate(domkl.DOKL(), X[:, None], y[:, None], one, features)
    asked = domkl.simulate(domkl.DOKL(), X[:, None], np.asarray(y)[:, None], one, features, delay=5)
    assert_same(by_itself.predictions, asked.predictions)
    with pytest.raises(domkl.ParameterError, match="delay must be at least 5 for these labels"):
        domkl.simulate(domkl.DOKL(), X[:, None], y[:, None], one, features, delay=4)
