"""DOMKRLS with wrong labels and inputs: who errs, for how long; and the side that is alone."""

from collections import deque

import numpy as np
import pytest

import domkl
from domkl.algorithms.least_squares import alone_prediction

K, D_IN = 10, 5
features = domkl.RandomFeatures.draw(domkl.default_bank(), D_IN, 10, seed=1)
graph = domkl.Graph.random(K, 0.3, seed=2)


def stream(seed, n_rounds):
    """Friedman's first function, in about [0, 1], with a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rounds, K, D_IN))
    y = 10 * np.sin(np.pi * X[..., 0] * X[..., 1]) + 20 * (X[..., 2] - 0.5) ** 2
    y += 10 * X[..., 3] + 5 * X[..., 4]
    return X, y / 30 + 0.03 * rng.normal(size=y.shape)


def errors(X, y, truth=None, **options):
    run = domkl.simulate(domkl.DOMKRLS(), X, y, graph, features, cv="off", **options)
    return run.predictions - (y if truth is None else truth)


def rmse(errors):
    return float(np.sqrt(np.mean(errors**2)))


# wrong labels


@pytest.mark.parametrize("label", [1e3, -1e3, 1e6, 5.0])
def test_one_wrong_label_is_hardly_felt(label):
    X, y = stream(1, 300)
    hit = y.copy()
    hit[159, 3] = label
    after, others = slice(160, 300), np.arange(K) != 3
    clean, dirty = errors(X, y)[after], errors(X, hit, y)[after]
    assert rmse(dirty[:, others]) < 1.02 * rmse(clean[:, others])
    assert rmse(dirty[:, 3]) < 1.05 * rmse(clean[:, 3])


def test_one_percent_of_labels_a_thousand_times_too_large():
    X, y = stream(2, 400)
    is_hit = np.random.default_rng(3).random(y.shape) < 0.01
    clean, dirty = errors(X, y), errors(X, np.where(is_hit, 1e3 * y, y), y)
    assert rmse(dirty[20:]) < 1.2 * rmse(clean[20:])


def test_a_first_label_of_a_million_is_not_believed():
    X, y = stream(4, 200)
    hit = y.copy()
    hit[0] = 1e6
    clean, dirty = errors(X, y), errors(X, hit, y)
    assert np.abs(dirty).max() < 2
    assert rmse(dirty[20:]) < 1.05 * rmse(clean[20:])


def test_a_jump_of_the_level_is_followed_from_the_sixth_label_on():
    for jump in (3.0, -30.0, 1e4):
        X, y = stream(5, 200)
        y[120:] += jump
        late = np.abs(errors(X, y)[125:])
        assert late.mean() < 0.1 * abs(jump)
        assert late.max() < 0.5 * abs(jump)


@pytest.mark.parametrize("jump", [10.0, -100.0])
def test_after_many_labels_a_jump_is_followed_as_soon(jump):
    """Losses at the top are squares up to ten deviations: else a last label wins labels later."""
    X, y = stream(5, 310)
    y[300:] += jump
    assert rmse(errors(X, y)[305:]) < 0.5


@pytest.mark.parametrize("n_quiet", [0, 60])
def test_an_oscillation_that_begins_is_learned(n_quiet):
    X, y = stream(12, 200)
    sign = np.where(np.arange(200) % 2 == 0, 1.0, -1.0)[:, None]
    X[..., 0] = sign
    y = np.where(np.arange(200)[:, None] < n_quiet, y, 1e3 * sign)
    assert np.abs(errors(X, y)[-50:]).mean() < 50


# wrong inputs


def test_one_percent_of_inputs_a_thousand_times_too_large():
    X, y = stream(6, 400)
    is_hit = np.random.default_rng(7).random(y.shape) < 0.01
    is_hit[:2] = False
    clean, dirty = errors(X, y), errors(np.where(is_hit[..., None], 1e3 * X, X), y)
    kept = ~is_hit
    kept[:20] = False
    assert rmse(dirty[kept]) < 1.1 * rmse(clean[kept])
    assert np.abs(dirty).max() < 2  # wild inputs: the mean of labels


@pytest.mark.parametrize("is_walk", [False, True])
def test_a_wild_row_is_predicted_by_the_mean_of_labels_or_by_the_last(is_walk):
    X, y = stream(13, 300)
    y = np.cumsum(y - 0.5, axis=0) / 3 if is_walk else y
    X[299] *= 1e3
    run = domkl.simulate(domkl.DOMKRLS(), X, y, graph, features, cv="off")
    if is_walk:
        np.testing.assert_allclose(run.predictions[299], y[298], rtol=1e-12)
    else:
        assert np.abs(run.predictions[299] - y[:299].mean(axis=0)).max() < 0.05


def test_inputs_of_another_size_are_taken_in():
    """Each wild sample doubles the gate."""
    X, y = stream(8, 300)
    X[150:] *= 1000.0
    run = domkl.simulate(domkl.DOMKRLS(), X, y, graph, features, cv="off")
    assert (run.state.gate[:, 0] == 1).all()
    assert (run.state.gate[:, 1] > 0).all()
    assert (run.state.high > 100).all()


# newcomers


def test_a_newcomer_far_ahead_begins_half_way_between_its_network_and_the_lag():
    """Its network says +1 for each, and it has nothing to tell yet whether that is so here."""
    rng = np.random.default_rng(14)
    X = rng.random((200, K, D_IN))
    y = X[..., 0] + 1
    y[:, 3] = np.nan
    learner = domkl.DOMKRLS(newest_lag=0, steps_ahead=24)
    run = domkl.simulate(learner, X, y, graph, features, cv="off", delay=23)
    changes = run.predictions[150:, 3] - X[150:, 3, 0]
    assert np.abs(changes - 0.5).max() < 0.1
    y[:, 3] = X[:, 3, 0] + 1
    run = domkl.simulate(learner, X, y, graph, features, cv="off", delay=23)
    assert np.abs(run.predictions[150:] - y[150:]).max() < 0.1


# the side that is alone


def sides(X, y, delay):
    """What the side alone predicts in a network."""
    algorithm = domkl.DOMKRLS().delayed(delay)
    sizes = domkl.Sizes(
        K, features.n_kernels, features.n_features, D_IN, 0, "float64",
        features.n_frequencies, features.linear,
    )  # fmt: skip
    state, waiting, found = algorithm.init(sizes), deque(), []
    degrees = np.diff(graph.indptr).astype(float)
    net = domkl.Net(degrees, np.ones(K), graph.indptr)
    near = [graph.neighbors(k) for k in range(K)]
    mean = np.zeros((K, K))
    for k in range(K):
        mean[k, near[k]] = 1 / (1 + np.maximum(degrees[k], degrees[near[k]]))
        mean[k, k] = 1 - mean[k].sum()
    for x, labels in zip(X, y, strict=True):
        z = features(x)
        inputs = domkl.Inputs(x, z, np.sum(z**2, axis=-1))
        prediction = algorithm.predict(state, inputs)
        found.append(alone_prediction(prediction.notes, state.sums.shape[1]).copy())
        waiting.append((inputs, labels, prediction))
        if len(waiting) > delay:
            inputs, labels, prediction = waiting.popleft()
            state, told = algorithm.local_step(state, inputs, labels, prediction, net)
            heard = {name: np.tensordot(mean, v, 1) for name, v in told._asdict().items()}
            heard["residual"] = (mean > 0) @ told.residual - told.residual
            state = algorithm.merge(state, type(told)(**heard), net)
    return np.array(found)


@pytest.mark.parametrize("delay", [0, 4])
def test_the_side_alone_is_the_learner_alone(delay):
    """With missing labels, late starters, spikes, jumps and wild inputs."""
    X, y = stream(9, 150)
    rng = np.random.default_rng(10)
    y[rng.random(y.shape) < 0.02] *= 1e3
    X[rng.random(y.shape) < 0.01] *= 1e3
    y[90:, 2] += 50.0
    y[rng.random(y.shape) < 0.2] = np.nan
    y[:60, 5], y[:1, 6] = np.nan, 1e6
    alone = domkl.Alone(domkl.DOMKRLS())
    run = domkl.simulate(alone, X, y, graph, features, cv="off", delay=delay)
    np.testing.assert_allclose(sides(X, y, delay), run.predictions, rtol=1e-12, atol=1e-12)


def test_a_network_of_one_has_two_equal_sides():
    X, y = stream(11, 80)
    one = domkl.Graph.empty(1)
    state = domkl.simulate(domkl.DOMKRLS(), X[:, :1], y[:, :1], one, features, cv="off").state
    for name in ("loss", "regret", "variance", "rounds", "score", "final", "sides", "errors"):
        network, alone = np.moveaxis(getattr(state, name), 1, 0)
        np.testing.assert_allclose(network, alone, rtol=1e-9, atol=1e-12, err_msg=name)
