"""Models outside the network: the order in which they see samples, and what they predict."""

import numpy as np
import pytest

import domkl
from domkl.experiments.rivals import Refitted, installed, maker, play, rivals

T, K, D = 40, 3, 2
RNG = np.random.default_rng(0)
X = RNG.random((T, K, D))
Y = X.sum(axis=2)


class Diary:
    """Note every call."""

    def __init__(self):
        self.calls = []

    def predict(self, x):
        self.calls.append(("predict", x.tolist()))
        return np.full(len(x), float(len(self.calls)))

    def learn(self, x, y):
        self.calls.append(("learn", x.tolist(), y.tolist()))


def played(y=Y, inputs=X, **options):
    made = []

    def make():
        made.append(Diary())
        return made[-1]

    return play(make, inputs, y, **options), [diary.calls for diary in made]


def test_a_pooled_model_predicts_a_round_before_it_learns_any_of_it():
    _, (calls,) = played(is_pooled=True)
    assert [call[0] for call in calls] == ["predict", "learn"] * T
    for t in range(T):
        assert calls[2 * t] == ("predict", X[t].tolist())
        assert calls[2 * t + 1] == ("learn", X[t].tolist(), Y[t].tolist())


def test_alone_each_model_sees_its_own_stream():
    predictions, diaries = played(is_pooled=False)
    assert predictions.shape == (T, K)
    for k, calls in enumerate(diaries):
        assert calls[1::2] == [("learn", [X[t, k].tolist()], [Y[t, k]]) for t in range(T)]


@pytest.mark.parametrize("is_pooled", [False, True])
def test_with_a_delay_no_label_is_younger(is_pooled):
    _, diaries = played(is_pooled=is_pooled, delay=5)
    for calls in diaries:
        seen = [call[0] for call in calls]
        assert seen == ["predict"] * 5 + ["predict", "learn"] * (T - 5)
    rounds = [call[1] for call in diaries[0] if call[0] == "learn"]
    first = slice(None) if is_pooled else slice(0, 1)
    assert rounds == [X[t, first].tolist() for t in range(T - 5)]


def test_labels_bring_their_delay():
    X, y = domkl.deal(*domkl.embed(np.arange(60.0), 2, horizon=6), 4, "blocks")
    _, (calls,) = played(y, X, is_pooled=True)
    assert [call[0] for call in calls[:6]] == ["predict"] * 6
    with pytest.raises(domkl.ParameterError, match="delay must be at least 5"):
        played(y, X, is_pooled=True, delay=4)


def test_samples_without_a_label_or_inputs():
    labels, inputs = Y.copy(), X.copy()
    labels[3, 1], inputs[4, 2] = np.nan, np.nan
    predictions, (calls,) = played(labels, inputs, is_pooled=True)
    assert calls[7] == ("learn", X[3, [0, 2]].tolist(), Y[3, [0, 2]].tolist())
    assert calls[8] == ("predict", X[4, :2].tolist())
    assert np.argwhere(np.isnan(predictions)).tolist() == [[4, 2]]


@pytest.mark.parametrize("name", rivals())
@pytest.mark.parametrize("delay", [0, 4])
def test_no_rival_knows_a_label_before_its_time(name, delay):
    changed = Y.copy()
    changed[30] += 1.0
    before, after = (play(maker(name, D), X, y, is_pooled=True, delay=delay) for y in (Y, changed))
    np.testing.assert_array_equal(before[: 31 + delay], after[: 31 + delay])
    if name != "lightgbm":  # which is fitted later
        assert (before[31 + delay :] != after[31 + delay :]).any()


@pytest.mark.skipif(installed("lightgbm") is None, reason="needs the extra lightgbm")
def test_lightgbm_is_fitted_every_so_many_rounds():
    import lightgbm

    found = play(lambda: Refitted(every=30), X, Y, is_pooled=True)
    assert (found[0] == 0).all()
    np.testing.assert_allclose(found[29], Y[:29].mean())
    data = lightgbm.Dataset(X[:30].reshape(-1, D), Y[:30].ravel())
    settings = {"objective": "regression", "verbosity": -1, "num_threads": 1, "seed": 1}
    fitted = lightgbm.train(
        settings | {"deterministic": True, "force_col_wise": True}, data, num_boost_round=100
    )
    np.testing.assert_allclose(found[30:].ravel(), fitted.predict(X[30:].reshape(-1, D)))


def test_wrong_inputs():
    with pytest.raises(domkl.ParameterError, match="every must be an integer >= 1, got 0"):
        Refitted(every=0)
    with pytest.raises(domkl.ParameterError, match="delay must be an integer >= 0, got -1"):
        played(is_pooled=True, delay=-1)
