"""One learner outside a network: the law, scaling, atomic learning, new inputs, networks."""

import numpy as np
import pytest

import domkl
from domkl.estimators.learner import Learner

ALGORITHMS = {
    "domkl": domkl.DOMKL(),
    "domkl-huber": domkl.DOMKL(loss=domkl.Huber(0.2)),
    "domkl-messages": domkl.DOMKL(weights="message-passing"),
    "dokl": domkl.DOKL(),
    "comkl": domkl.COMKL(),
    "rff-dokl": domkl.RFFDOKL(),
    "rff-domkl": domkl.RFFDOMKL(),
    "alone": domkl.Alone(domkl.DOMKL()),
    "last-value": domkl.LastValue(),
    "linear-rls": domkl.LinearRLS(),
    "domkrls": domkl.DOMKRLS(),
    "domkrls-forgets": domkl.DOMKRLS(forget=0.99),
}


def samples(n=300, d=3, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, d))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, -1]


def a_map(algorithm, d=3, seed=7):
    bank = domkl.gaussian_bank([1.0] if algorithm.single_kernel else [0.1, 1.0, 10.0])
    linear = not algorithm.single_kernel
    return domkl.RandomFeatures.draw(bank, d, 10, seed=seed, linear=linear)


def assert_same(ours, theirs):
    for name, a, b in zip(ours._fields, ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("split", [[300], [1] * 300, [1, 7, 39, 40, 41, 172]])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_unscaled_it_is_a_network_of_one_to_the_bit(name, split):
    algorithm, (X, y) = ALGORITHMS[name], samples()
    features = a_map(algorithm)
    run = domkl.simulate(algorithm, X[:, None], y[:, None], domkl.Graph.empty(1), features)
    learner = Learner(algorithm, features=features, is_scaled=False)
    start = 0
    for n in split:
        if n == 1 and start:  # predictions are those of the rounds, too
            assert learner.predict(X[start : start + 1])[0] == run.predictions[start, 0]
        learner.learn(X[start : start + n], y[start : start + n])
        start += n
    assert_same(run.state, learner.state)


@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_predictions_of_the_same_row_or_of_another_one_change_nothing(shift):
    X, y = samples(100)
    asked, silent = (Learner().learn(X[:80], y[:80]) for _ in range(2))
    for x, label in zip(X[80:, None], y[80:, None], strict=True):
        asked.predict(x + shift)
        asked.learn(x, label)
        silent.learn(x, label)
    assert_same(asked.state, silent.state)


def test_a_label_is_compared_with_what_was_predicted():
    """Behind a scaler, a sample's inputs change a little between its prediction and its label."""
    X, y = samples(81)
    asked, silent = (Learner().learn(X[:80], y[:80]) for _ in range(2))
    before, rounds = silent.state.score[0, 0].copy(), silent.state.own_rounds[0]
    y_hat = asked.predict(X[80:] + 0.02)
    asked.learn(X[80:], y[80:])
    silent.learn(X[80:], y[80:])
    np.testing.assert_array_equal(asked.state.own, silent.state.own)  # fits learn the sample
    assert (asked.state.score != silent.state.score).any()
    assert y_hat[0] != silent.predict(X[80:])[0]
    keep = 2 * rounds / (2 * rounds + 1)
    last = [(each.state.score[0, 0] - keep * before)[2] for each in (asked, silent)]
    assert last[0] == last[1]  # the last label is the same, whatever the inputs are


def hours_ahead(n=600, delay=5):
    """A noisy wave, from its newest values: the last label known is a poor prediction."""
    rng = np.random.default_rng(5)
    series = np.sin(np.arange(n + 20) / 3) + 0.3 * rng.normal(size=n + 20)
    X = np.lib.stride_tricks.sliding_window_view(series, 4)[:n, ::-1].copy()
    return X, series[4 + delay : 4 + delay + n]


def predicted_late(learner, X, y, delay):
    found = []
    for t in range(len(y)):
        found.append(learner.predict(X[t : t + 1])[0])
        if t >= delay:
            learner.learn(X[t - delay : t - delay + 1], y[t - delay : t - delay + 1])
    return np.array(found)


@pytest.mark.parametrize("delay", [1, 5])
def test_labels_that_come_late_are_learned_as_simulate_does(delay):
    X, y = hours_ahead(delay=delay)
    learner = Learner()
    found = predicted_late(learner, X, y, delay)
    assert learner.asked.delay == delay
    assert learner.host.algorithm.steps_ahead == delay + 1
    run = domkl.simulate(
        domkl.DOMKRLS(), X[:, None], y[:, None], domkl.Graph.empty(1), learner.features, delay=delay
    )
    ours, theirs = (np.mean((each - y)[100:] ** 2) for each in (found, run.predictions[:, 0]))
    assert ours < 1.06 * theirs  # 1.5 times and more where labels count as prompt


def test_unscaled_late_labels_are_those_of_simulate_after_the_first():
    """To the bit from there on if the first samples are prompt in both."""
    X, y = hours_ahead(200)
    features = a_map(domkl.RFFDOMKL(), d=4)
    first = domkl.simulate(
        domkl.RFFDOMKL(), X[:50, None], y[:50, None], domkl.Graph.empty(1), features
    )
    learner = Learner(domkl.RFFDOMKL(), features=features, is_scaled=False).learn(X[:50], y[:50])
    found = predicted_late(learner, X[50:], y[50:], 3)
    nothing = domkl.simulate(
        domkl.RFFDOMKL(), X[:9, None], y[:9, None], domkl.Graph.empty(1), features, delay=3
    ).state
    waiting = nothing.waiting._replace(**{n: v[:0] for n, v in nothing.waiting._asdict().items()})
    run = domkl.simulate(
        domkl.RFFDOMKL(),
        X[50:, None],
        y[50:, None],
        domkl.Graph.empty(1),
        features,
        delay=3,
        state=nothing._replace(state=first.state, waiting=waiting),
    )
    np.testing.assert_array_equal(found, run.predictions[:, 0])
    assert_same(learner.state, run.state.state)


def test_rows_that_are_judged_before_they_are_learned_are_not_late():
    """Predictions of all rows, now and then, change nothing."""
    X, y = samples(150)
    asked, silent = Learner().learn(X[:70], y[:70]), Learner().learn(X[:70], y[:70])
    for t in range(70, 150):
        if t % 20 == 10:
            for x in X[:, None]:
                asked.predict(x)
        for learner in (asked, silent):
            learner.learn(X[t : t + 1], y[t : t + 1])
    assert asked.asked.delay == 0
    assert_same(asked.state, silent.state)


def test_splitting_a_stream_changes_nothing():
    X, y = samples()
    whole, parts = Learner().learn(X, y), Learner()
    for start, stop in ((0, 1), (1, 3), (3, 60), (60, 300)):
        parts.learn(X[start:stop], y[start:stop])
    assert_same(whole.state, parts.state)
    np.testing.assert_array_equal(whole.predict(X), parts.predict(X))


def test_predictions_of_a_batch_are_those_of_its_rows():
    X, y = samples(600)
    learner = Learner().learn(X, y)
    one_by_one = [learner.predict(X[i : i + 1])[0] for i in range(len(X))]
    np.testing.assert_array_equal(learner.predict(X), one_by_one)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_units_do_not_matter(unit):
    X, y = samples(500)
    plain = Learner().learn(X, y).predict(X)
    other = Learner().learn(unit * X + 7, y / unit - 3 / unit).predict(unit * X + 7)
    np.testing.assert_allclose(other * unit + 3, plain, atol=1e-5)


def test_constant_targets_are_predicted_exactly():
    X, _ = samples(50)
    np.testing.assert_array_equal(Learner().learn(X, np.full(50, 0.1)).predict(X), 0.1)


def test_constant_and_duplicate_inputs_do_no_harm():
    X, y = samples(500)
    X = np.column_stack([X, np.full(500, 1e9), X[:, 0]])
    learner = Learner().learn(X[:400], y[:400])
    assert np.mean((learner.predict(X[400:]) - y[400:]) ** 2) < 0.5 * y.var()


def test_scaling_is_that_of_the_samples_so_far():
    X, y = samples(30)
    learner = Learner().learn(X, y)
    np.testing.assert_allclose(learner.x_seen.mean, X.mean(axis=0))
    np.testing.assert_allclose(learner.x_seen.deviation, X.std(axis=0))
    np.testing.assert_allclose(learner.y_seen.deviation, y.std())


@pytest.mark.parametrize("n", [2, 16, 64])
def test_the_first_samples_are_learned_anew_as_scaling_becomes_known(n):
    X, y = samples(n)
    X[0], y[0] = 50, -1e4  # at first all is scaled by this
    learner = Learner().learn(X, y)
    knowing = Learner(features=learner.features, is_scaled=False).learn(*learner.scaled(X, y))
    assert_same(learner.state, knowing.state)
    assert (learner.first_samples is None) == (n == 64)


BAD = {
    "nan": (lambda X, y: (np.where(X > 0.9, np.nan, X), y), "finite"),
    "infinity": (lambda X, y: (X, np.where(y > 0.9, np.inf, y)), "finite"),
    "huge": (lambda X, y: (1e200 * X, y), "within"),
    "columns": (lambda X, y: (X[:, :2], y), "3 columns"),
    "strings": (lambda X, y: (X.astype(str), y), "numbers"),
    "labels": (lambda X, y: (X, y.astype(str)), "numbers"),
    "empty": (lambda X, y: (X[:0], y[:0]), "empty"),
    "lengths": (lambda X, y: (X, y[:-1]), "values as X has rows"),
    "shape": (lambda X, y: (X[0], y[:1]), "shape"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_samples_change_nothing(name):
    spoil, message = BAD[name]
    X, y = samples()
    learner, other = Learner().learn(X, y), Learner().learn(X, y)
    with pytest.raises(domkl.DataError, match=message):
        learner.learn(*spoil(X, y))
    assert_same(learner.state, other.state)
    assert_same(learner.x_seen, other.x_seen)
    assert learner.n_seen == other.n_seen
    fresh = Learner()
    if name != "columns":
        with pytest.raises(domkl.DataError, match=message):
            fresh.learn(*spoil(X, y))
        assert fresh.features is None


class Stumbles(domkl.LinearRLS):
    """Fails at a label of 100."""

    def local_step(self, state, inputs, y, prediction, net):
        if y[0] == 100:
            raise RuntimeError("stumbled")
        return super().local_step(state, inputs, y, prediction, net)


@pytest.mark.parametrize("n", [30, 300])
def test_a_law_that_fails_in_a_batch_changes_nothing(n):
    X, y = samples(n)
    y[-5] = 100
    learner = Learner(Stumbles(), is_scaled=False).learn(X[:10], y[:10])
    before = learner.copy()
    with pytest.raises(RuntimeError, match="stumbled"):
        learner.learn(X[10:], y[10:])
    assert_same(learner.state, before.state)
    assert_same(learner.x_seen, before.x_seen)
    assert learner.n_seen == 10


def test_what_is_no_algorithm_is_refused():
    with pytest.raises(domkl.ParameterError, match="algorithm must be an Algorithm"):
        Learner("domkl")
    with pytest.raises(domkl.ParameterError, match="one kernel"):
        Learner(domkl.DOKL(), bank=domkl.gaussian_bank()).learn(*samples(5))
    with pytest.raises(domkl.ParameterError, match="bank must hold"):
        Learner(bank=())


def test_labels_must_suit_the_loss():
    X, y = samples()
    learner = Learner(domkl.DOMKL(loss=domkl.Logistic()))
    with pytest.raises(domkl.DataError, match="-1 or 1"):
        learner.learn(X, y)
    assert np.isfinite(learner.learn(X, np.sign(y)).predict(X)).all()


def test_before_the_first_sample():
    learner = Learner()
    assert learner.predict([[1.0, 2.0]]).tolist() == [0.0]
    assert learner.deviation([[1.0, 2.0]]).tolist() == [np.inf]
    with pytest.raises(domkl.DataError, match="at least one sample"):
        learner.state_for(domkl.Graph.ring(3))


class WithDeviation(domkl.LinearRLS):
    def deviation(self, state, inputs, prediction):
        return np.full(1, 0.5)


def test_deviations_are_in_the_units_of_the_target():
    X, y = samples()
    learner = Learner(WithDeviation()).learn(X, 10 * y)
    np.testing.assert_allclose(learner.deviation(X[:2]), 0.5 * 10 * y.std())
    with pytest.raises(domkl.ParameterError, match="gives deviations"):
        Learner(domkl.LinearRLS()).learn(X, y).deviation(X)


def test_deviations_cover_what_they_should():
    """Of 1900 errors, 95 % within 1.96 deviations; bounds far beyond chance."""
    X, y = samples(2000)
    y = 1e4 * (y + 0.2 * np.random.default_rng(1).normal(size=2000))
    learner, inside = Learner().learn(X[:100], y[:100]), []
    for i in range(100, 2000):
        error = learner.predict(X[i : i + 1]) - y[i]
        inside.append(abs(error[0]) < 1.96 * learner.deviation(X[i : i + 1])[0])
        learner.learn(X[i : i + 1], y[i : i + 1])
    assert 0.91 < np.mean(inside) < 0.99


@pytest.mark.parametrize("n_frequencies", [1, 2, 10])  # with 1 and 2, inputs outgrow features
@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != "last-value"])
def test_a_late_input_counts_as_one_that_was_0_all_along(name, n_frequencies):
    algorithm, (X, y) = ALGORITHMS[name], samples(120, d=4)
    made = {"n_frequencies": n_frequencies, "is_scaled": False}
    X[:60, 2:], X[60, 3] = 0, 0
    known = Learner(algorithm, **made).learn(X, y)
    grown = Learner(algorithm, **made).learn(X[:60, :2], y[:60])
    grown.learn_rows(range(3), X[60:61, :3].copy(), y[60:61])
    grown.learn_rows(range(4), X[61:].copy(), y[61:])
    assert grown.features == known.features
    for a, b in zip(grown.state, known.state, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


class Odd(domkl.LastValue):
    """Keeps an array that has the inputs' length in no known way."""

    def init(self, sizes):
        return super().init(sizes)._replace(previous=np.zeros((1, 3 * sizes.n_inputs)))


def test_a_state_that_cannot_grow_says_so():
    learner = Learner(Odd())
    learner.learn_rows((0,), np.zeros((0, 1)), np.zeros(0))
    with pytest.raises(domkl.ParameterError, match="no place for new inputs"):
        learner.learn_rows((0, 1), np.zeros((1, 2)), np.zeros(1))
    assert learner.names == (0,)


def test_a_given_map_does_not_grow():
    learner = Learner(domkl.DOMKL(), features=a_map(domkl.DOMKL()))
    with pytest.raises(domkl.DataError, match="those of the map given"):
        learner.learn_rows(range(4), np.zeros((1, 4)), np.zeros(1))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_learner_seeds_a_network_and_one_comes_out_again(name):
    algorithm, (X, y) = ALGORITHMS[name], samples(400)
    graph = domkl.Graph.path(5)
    learner = Learner(algorithm).learn(X, y)
    state = learner.state_for(graph)
    rounds = learner.scaled(*(v[:100].reshape(20, 5, *v.shape[1:]) for v in (X, y)))
    run = domkl.simulate(algorithm, *rounds, graph, learner.features, state=state)
    first = learner.scaled(X[:5], y[:5])[0]  # the first round's predictions are the learner's own
    expected = [learner.host.look(x)[1].y_hat[0] for x in first]
    np.testing.assert_allclose(run.predictions[0], expected, rtol=1e-12, atol=1e-12)
    out = learner.joined(run, 3)
    function = algorithm.function(run.state)
    if function is not None:
        np.testing.assert_array_equal(algorithm.function(out.state).theta[0], function.theta[3])
    assert np.isfinite(out.learn(X, y).predict(X)).all()


def test_a_learner_that_left_is_pushed_no_more():
    algorithm, (X, y) = domkl.DOKL(), samples(300)
    rounds, features = (X.reshape(60, 5, 3), y.reshape(60, 5)), a_map(algorithm)
    run = domkl.simulate(algorithm, *rounds, domkl.Graph.ring(5), features)
    assert abs(run.state.dual[2]).max() > 1e-3
    learner = Learner.from_run(run, 2, algorithm, features)
    before = learner.predict(X[:5])
    for _ in range(100):  # samples that it predicts exactly teach it nothing
        learner.learn(X[:1], before[:1])
    np.testing.assert_allclose(learner.predict(X[:5]), before, atol=1e-9)


def test_runs_that_cannot_give_a_learner_are_refused():
    algorithm, (X, y) = domkl.DOMKL(), samples(300)
    rounds, features = (X.reshape(60, 5, 3), y.reshape(60, 5)), a_map(algorithm)
    graph = domkl.Graph.ring(5)
    run = domkl.simulate(algorithm, *rounds, graph, features)
    with pytest.raises(domkl.ParameterError, match=r"k must be in 0\.\.4"):
        Learner.from_run(run, 5, algorithm, features)
    with pytest.raises(domkl.ParameterError, match="must be one of DOKL"):
        Learner.from_run(run, 1, domkl.DOKL(), features.kernel(0))
    with pytest.raises(domkl.ParameterError, match="must have shape"):
        Learner.from_run(run, 1, algorithm, features.kernel(0))
    batch = domkl.simulate(algorithm, *rounds, [graph, graph], features)
    with pytest.raises(domkl.ParameterError, match="one trial"):
        Learner.from_run(batch, 1, algorithm, features)


def test_a_deviation_is_infinite_while_nothing_is_known():
    learner = domkl.Learner()
    learner.learn([[0.1, 0.2]], [3.0])
    assert np.isinf(learner.deviation([[0.3, 0.4]])).all()
    learner.learn([[0.5, 0.1]], [4.0])
    std = learner.deviation([[0.3, 0.4]])
    assert np.isfinite(std).all()
    assert (std > 0).all()


def test_quantiles_hold_what_they_should_in_the_units_of_the_target():
    """Of 900 errors with heavy tails: 80 % within the band, 50 % below the median."""
    X, y = samples(1000)
    y = 1e4 * (y + 0.1 * np.random.default_rng(2).standard_t(3, size=1000))
    learner, shares = Learner().learn(X[:100], y[:100]), []
    for i in range(100, 1000):
        low, middle, high = learner.quantiles(X[i : i + 1], (0.1, 0.5, 0.9))[0]
        shares.append((low <= y[i] <= high, y[i] < middle))
        learner.learn(X[i : i + 1], y[i : i + 1])
    np.testing.assert_allclose(np.mean(shares, axis=0), [0.8, 0.5], atol=0.06)


def test_quantiles_are_infinite_while_nothing_is_known():
    learner = domkl.Learner()
    assert learner.quantiles([[0.1, 0.2]], (0.1, 0.5, 0.9)).tolist() == [[-np.inf, 0, np.inf]]
    learner.learn([[0.1, 0.2]], [3.0])
    assert learner.quantiles([[0.1, 0.2]], (0.1, 0.5, 0.9)).tolist() == [[-np.inf, 3, np.inf]]
    with pytest.raises(domkl.ParameterError, match="levels must be ascending levels"):
        learner.quantiles([[0.1, 0.2]], (0.9, 0.1))
