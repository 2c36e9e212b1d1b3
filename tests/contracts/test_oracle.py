"""Every algorithm against the paper's transcription, on random graphs, sizes and parameters."""

import numpy as np
import paper
import pytest
import second_order
from hypothesis import given
from hypothesis import strategies as st

import domkl

TOLERANCE = 1e-10
LEVELS = (0.01, 0.3, 0.5, 0.9)

LOSSES = {
    "squared": (domkl.Squared(), paper.squared),
    "huber": (domkl.Huber(delta=0.3), paper.huber(0.3)),
    "absolute": (domkl.Absolute(), paper.absolute),
    "pinball": (domkl.Pinball(level=0.8), paper.pinball(0.8, 0.2)),
    "logistic": (domkl.Logistic(), paper.logistic),
}


@st.composite
def problems(draw, one_kernel=False, acyclic=False):
    """A small stream, graph and map; isolated learners, K = 1 and P = 1 among them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_learners = draw(st.integers(1, 7))
    n_kernels = 1 if one_kernel else draw(st.integers(1, 4))
    n_inputs, n_frequencies = draw(st.integers(1, 9)), draw(st.integers(1, 20))
    n_rounds = draw(st.integers(1, 12))
    linear = not one_kernel and draw(st.booleans())
    if acyclic:
        graph = domkl.Graph.tree(n_learners, seed=rng)
        if draw(st.booleans()):  # a forest
            graph = domkl.Graph.from_edges(n_learners, graph.edges[::2])
    else:
        chance = draw(st.sampled_from([0.05, 0.3, 1.0]))
        graph = domkl.Graph.random(n_learners, chance, seed=rng, connected=False)
    frequencies = rng.normal(size=(n_kernels, n_frequencies, n_inputs))
    frequencies *= 10.0 ** rng.integers(-2, 3, size=(n_kernels, 1, 1))
    X, y = rng.random((n_rounds, n_learners, n_inputs)), rng.normal(size=(n_rounds, n_learners))
    return X, y, graph, domkl.RandomFeatures(frequencies, linear=linear)


positive = st.sampled_from([0.01, 0.2, 2.0, 30.0])
losses = st.sampled_from(sorted(LOSSES))


def neighbors(graph):
    return [graph.neighbors(k).tolist() for k in range(graph.n_learners)]


def labels(y, loss):
    return np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y


def assert_agrees(run, expected, *names):
    for name in ("predictions", "theta", "weights", "cv", *names):
        got = getattr(run, name)
        np.testing.assert_allclose(
            got, expected[name], rtol=TOLERANCE, atol=TOLERANCE, err_msg=name
        )


@given(problems(), positive, positive, positive, losses)
def test_domkl(problem, rho, eta_l, eta_g, loss):
    X, y, graph, features = problem
    ours, theirs = LOSSES[loss]
    y = labels(y, loss)
    algorithm = domkl.DOMKL(rho, eta_l, eta_g, loss=ours)
    run = domkl.simulate(algorithm, X, y, graph, features, discrepancy=True)
    expected = paper.domkl(
        X, y, neighbors(graph), features.frequencies, rho, eta_l, eta_g, theirs, features.linear
    )
    assert_agrees(run, expected, "discrepancy")
    np.testing.assert_allclose(run.state.dual, expected["dual"], rtol=1e-9, atol=1e-10)


@given(problems(acyclic=True), positive, positive, positive)
def test_domkl_with_message_passing(problem, rho, eta_l, eta_g):
    X, y, graph, features = problem
    algorithm = domkl.DOMKL(rho, eta_l, eta_g, weights="message-passing")
    run = domkl.simulate(algorithm, X, y, graph, features)
    expected = paper.domkl(
        X,
        y,
        neighbors(graph),
        features.frequencies,
        rho,
        eta_l,
        eta_g,
        linear=features.linear,
        message_passing=True,
    )
    assert_agrees(run, expected)


@given(problems(one_kernel=True), positive, positive, losses)
def test_dokl(problem, rho, eta_l, loss):
    X, y, graph, features = problem
    ours, theirs = LOSSES[loss]
    y = labels(y, loss)
    run = domkl.simulate(domkl.DOKL(rho, eta_l, loss=ours), X, y, graph, features)
    expected = paper.domkl(X, y, neighbors(graph), features.frequencies, rho, eta_l, 1.0, theirs)
    assert_agrees(run, expected)


@given(problems(), st.sampled_from([0.01, 0.2, 0.5]), positive, losses)
def test_comkl(problem, step, eta_g, loss):
    X, y, graph, features = problem
    ours, theirs = LOSSES[loss]
    y = labels(y, loss)
    run = domkl.simulate(domkl.COMKL(step, eta_g, loss=ours), X, y, graph, features)
    expected = paper.comkl(X, y, features.frequencies, step, eta_g, theirs, features.linear)
    assert_agrees(run, expected)


@given(problems(), st.sampled_from([0.01, 0.2, 0.5]), positive, losses)
def test_rff_domkl(problem, step, eta_g, loss):
    X, y, graph, features = problem
    ours, theirs = LOSSES[loss]
    y = labels(y, loss)
    run = domkl.simulate(domkl.RFFDOMKL(step, eta_g, loss=ours), X, y, graph, features)
    expected = paper.rff_domkl(
        X, y, neighbors(graph), features.frequencies, step, eta_g, theirs, features.linear
    )
    assert_agrees(run, expected)


@given(problems(one_kernel=True), st.sampled_from([0.01, 0.2, 0.5]), losses)
def test_rff_dokl(problem, step, loss):
    X, y, graph, features = problem
    ours, theirs = LOSSES[loss]
    y = labels(y, loss)
    run = domkl.simulate(domkl.RFFDOKL(step, loss=ours), X, y, graph, features)
    expected = paper.rff_domkl(X, y, neighbors(graph), features.frequencies, step, 1.0, theirs)
    assert_agrees(run, expected)


@given(problems())
def test_alone_is_a_network_without_edges(problem):
    X, y, graph, features = problem
    run = domkl.simulate(domkl.Alone(domkl.DOMKL()), X, y, graph, features)
    nobody = [[] for _ in range(graph.n_learners)]
    expected = paper.domkl(
        X, y, nobody, features.frequencies, 2.0, 0.2, 10.0, linear=features.linear
    )
    assert_agrees(run, expected)


@given(problems())
def test_comkl_alone_is_omkl_at_each_learner(problem):
    X, y, graph, features = problem
    run = domkl.simulate(domkl.Alone(domkl.COMKL(0.2, 2.0)), X, y, graph, features)
    for k in range(graph.n_learners):
        expected = paper.comkl(
            X[:, [k]], y[:, [k]], features.frequencies, 0.2, 2.0, linear=features.linear
        )
        np.testing.assert_allclose(
            run.predictions[:, [k]], expected["predictions"], rtol=TOLERANCE, atol=TOLERANCE
        )


@pytest.mark.parametrize("newest_lag", [None, 0])
def test_last_value(newest_lag):
    X = np.array([[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]])
    y = X[..., 0] * 10
    run = domkl.simulate(
        domkl.LastValue(newest_lag),
        X,
        y,
        domkl.Graph.ring(2),
        domkl.RandomFeatures(np.ones((1, 1, 1))),
    )
    expected = [[0, 0], [10, 20], [30, 40]] if newest_lag is None else X[..., 0]
    assert run.predictions.tolist() == np.asarray(expected, dtype=float).tolist()
    # f_ℓ(x_k) is learner ℓ's previous label, and with lags the same function for all
    spread = [0, 50, 200 / 3] if newest_lag is None else [0, 0, 0]
    np.testing.assert_allclose(run.cv, spread)


@st.composite
def second_order_problems(draw):
    """The same with a lag among the inputs, labels that come late or never, and parameters."""
    X, y, graph, features = draw(problems())
    loss = draw(st.sampled_from(["squared", "squared", "logistic"]))
    lags = [None] if loss == "logistic" else [None, 0, X.shape[2] - 1]
    given = {
        "forget": draw(st.sampled_from([0.9, 1.0])),
        "ridge": draw(st.sampled_from([1e-3, 0.1, 2.0])),
        "lag": draw(st.sampled_from(lags)),
        "horizon": draw(st.sampled_from([None, 1, 24])),
        "delay": min(draw(st.sampled_from([0, 0, 1, 4])), len(X) - 1),
        "period": draw(st.sampled_from([None, 0, 2, 5])),
    }
    y, chance = labels(y, loss), draw(st.sampled_from([0.0, 0.1, 0.6]))
    is_missing = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).random(y.shape) < chance
    return (X, np.where(is_missing, np.nan, y), graph, features), loss, given


@given(second_order_problems())
def test_domkrls(made):
    (X, y, graph, features), loss, given = made
    algorithm = domkl.DOMKRLS(
        given["forget"],
        given["ridge"],
        loss=LOSSES[loss][0],
        newest_lag=given["lag"],
        steps_ahead=given["horizon"],
        period=given["period"],
    )
    asked = {"deviation": True, "quantiles": LEVELS, "delay": given["delay"]}
    run = domkl.simulate(algorithm, X, y, graph, features, **asked)
    expected = second_order.domkrls(
        X,
        y,
        neighbors(graph),
        features.frequencies,
        linear=features.linear,
        logistic=loss == "logistic",
        levels=LEVELS,
        **given,
    )
    state = run.state.state if given["delay"] else run.state
    found = {"weighted": run.theta * run.weights[..., None], "own": state.own}
    for name, values in expected.items():
        got = found[name] if name in found else getattr(run, name)
        np.testing.assert_allclose(got, values, rtol=1e-8, atol=1e-8, err_msg=name)


def test_domkrls_for_long():
    """Until accounts, memories and the quantiles have found their levels; labels late."""
    rng = np.random.default_rng(5)
    X = rng.random((150, 4, 2))
    y = np.sin(4 * X[..., 0]) + X[..., 1] + 0.1 * rng.normal(size=(150, 4))
    y[60, 1], y[90, 2] = 50.0, -50.0  # beyond what counts as a square
    y[:40, 3] = np.nan
    graph = domkl.Graph.path(4)
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 1.0]), 2, 4, seed=1, linear=True)
    algorithm = domkl.DOMKRLS(newest_lag=1)
    run = domkl.simulate(
        algorithm, X, y, graph, features, delay=2, deviation=True, quantiles=LEVELS
    )
    expected = second_order.domkrls(
        X, y, neighbors(graph), features.frequencies, 1.0, 1e-3,
        linear=True, lag=1, delay=2, levels=LEVELS,
    )  # fmt: skip
    for name in ("predictions", "deviation", "quantiles", "weights", "cv"):
        np.testing.assert_allclose(getattr(run, name), expected[name], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("period", [None, 0, 12])
@pytest.mark.parametrize("delay", [0, 13])
def test_domkrls_with_seasons(delay, period):
    """With the period of the labels, which is also found; seven kernels, the last sees it."""
    rng = np.random.default_rng(7)
    X, t = rng.random((220, 3, 2)), np.arange(220)[:, None]
    y = X[..., 0] + np.sin(t * np.pi / 6) + (t % 12 == 3) + 0.05 * rng.normal(size=(220, 3))
    y[rng.random(y.shape) < 0.1], y[:90, 2] = np.nan, np.nan
    graph = domkl.Graph.path(3)
    bank = domkl.gaussian_bank([0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0])
    features = domkl.RandomFeatures.draw(bank, 2, 6, seed=1, linear=True)
    algorithm = domkl.DOMKRLS(period=period)
    run = domkl.simulate(algorithm, X, y, graph, features, delay=delay, deviation=True)
    state = run.state.state if delay else run.state
    assert state.season[:2, 3].tolist() == ([0, 0] if period == 0 else [12, 12])
    expected = second_order.domkrls(
        X, y, neighbors(graph), features.frequencies, 1.0, 1e-3,
        linear=True, delay=delay, period=period,
    )  # fmt: skip
    for name in ("predictions", "deviation", "weights", "cv"):
        np.testing.assert_allclose(getattr(run, name), expected[name], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("lag", [None, 1])
def test_domkrls_with_wrong_samples(lag, delay):
    """Spikes, huge first labels, jumps of the level, wild inputs, inputs of another size."""
    rng = np.random.default_rng(6)
    X = rng.random((120, 4, 2))
    y = np.sin(4 * X[..., 0]) + X[..., 1] + 0.1 * rng.normal(size=(120, 4))
    y[0, 0], y[:2, 1], y[:, 2] = 1e6, 300.0, 1e4 * y[:, 2]
    y[50, 0], y[60, 1], y[61, 1], y[70, 3] = 1e3, 12.0, 15.0, -1e6
    y[80:, 1] += 20.0
    y[90:, 3] -= 1e5
    X[40, 0], X[65:67, 3], X[75, 2, 1], X[100:, 0] = 1e3, -200.0, 30.0, 50 * X[100:, 0]
    y[30:45, 0], y[rng.random(y.shape) < 0.1] = np.nan, np.nan
    graph = domkl.Graph.path(4)
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 1.0]), 2, 4, seed=1, linear=True)
    algorithm = domkl.DOMKRLS(newest_lag=lag)
    run = domkl.simulate(algorithm, X, y, graph, features, delay=delay, deviation=True)
    state = run.state.state if delay else run.state
    assert (state.bound[:, 4] > 0).all()  # labels that were not believed
    assert (state.gate[[0, 3], 1] > 0).all()  # wild inputs
    expected = second_order.domkrls(
        X, y, neighbors(graph), features.frequencies, 1.0, 1e-3, linear=True, lag=lag, delay=delay
    )
    for name in ("predictions", "deviation", "weights", "cv"):
        got, values = getattr(run, name), expected[name]
        np.testing.assert_allclose(got, values, rtol=1e-7, atol=1e-7, err_msg=name)
