"""Laws of the learners on a network."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import domkl
from domkl.algorithms.admm import dual_step, primal_step
from domkl.core.hedge import hedge_weights, pass_messages

LOSSES = [
    domkl.Squared(),
    domkl.Huber(0.3),
    domkl.Absolute(),
    domkl.Pinball(0.7),
    domkl.Logistic(),
]


def stream(seed, n_rounds=15, n_learners=6, n_inputs=3):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rounds, n_learners, n_inputs))
    return X, np.sin(4 * X.sum(axis=-1)) + 0.1 * rng.normal(size=X.shape[:2])


@st.composite
def networks(draw):
    n, chance = draw(st.integers(2, 8)), draw(st.sampled_from([0.2, 0.5, 1.0]))
    return domkl.Graph.random(n, chance, seed=draw(st.integers(0, 10**6)), connected=False)


bank = domkl.gaussian_bank([0.01, 0.1, 1.0])
features = domkl.RandomFeatures.draw(bank, 3, 12, seed=1)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(seed=st.integers(0, 10**6), degree=st.integers(0, 5), scale=st.sampled_from([0.01, 1, 30]))
def test_the_primal_step_is_stationary(loss, seed, degree, scale):
    """The gradient of (11) vanishes at θ⁺, with a subgradient of the loss there."""
    rng = np.random.default_rng(seed)
    D, rho, eta_l = 8, 2.0 * scale, 0.2 * scale
    theta, dual, z = (rng.normal(size=(1, 1, D)) for _ in range(3))
    others = rng.normal(size=(degree, D))
    y = np.sign(rng.normal(size=1))
    count = np.array([float(degree)])
    nbr = others.sum(axis=0).reshape(1, 1, D)
    gap = nbr - degree * theta
    # the center that dual_step leaves belongs to the dual it leaves
    risen = dual + rho / 2 * gap
    center = np.empty_like(theta)
    dual_step(risen, center, theta, gap, count, eta_l, rho)
    np.testing.assert_allclose(risen, dual, rtol=0, atol=1e-10 * scale * 30)
    new = np.empty_like(theta)
    energy = np.sum(z**2, axis=-1)
    primal_step(new, center, z, energy, y, count, eta_l, rho, loss.compiled)
    step, old, z = new.ravel(), theta.ravel(), z.ravel()
    rest = dual.ravel() + eta_l * (step - old)
    for other in others:
        rest = rest + rho * (step - (old + other) / 2)
    g = -(rest @ z) / (z @ z)  # what the loss must contribute: rest + g z = 0
    np.testing.assert_allclose(rest + g * z, 0, atol=1e-9 * (1 + 30 * scale))
    s = step @ z
    slack = 1e-6 * (1 + abs(s))
    low, high = loss.derivative(s - 1e-7, y[0]), loss.derivative(s + 1e-7, y[0])
    assert low - slack <= g <= high + slack


@given(networks(), st.integers(0, 10**6))
def test_the_duals_sum_to_zero(graph, seed):
    X, y = stream(seed, n_learners=graph.n_learners)
    run = domkl.simulate(domkl.DOMKL(), X, y, graph, features)
    assert np.abs(run.state.dual).max() < 10
    np.testing.assert_allclose(run.state.dual.sum(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize(
    "algorithm", [domkl.DOMKL(), domkl.RFFDOMKL(), domkl.COMKL(), domkl.DOMKRLS()], ids=repr
)
@given(graph=networks(), seed=st.integers(0, 10**6))
def test_relabelling_learners_commutes_with_learning(algorithm, graph, seed):
    X, y = stream(seed, n_learners=graph.n_learners)
    order = np.random.default_rng(seed).permutation(graph.n_learners)
    place = np.argsort(order)
    renamed = domkl.Graph.from_edges(graph.n_learners, place[graph.edges])
    run = domkl.simulate(algorithm, X, y, graph, features)
    other = domkl.simulate(algorithm, X[:, order], y[:, order], renamed, features)
    np.testing.assert_allclose(other.predictions, run.predictions[:, order], atol=1e-11)
    np.testing.assert_allclose(other.theta, run.theta[order], atol=1e-11)


ALL = [domkl.DOMKL(), domkl.RFFDOMKL(), domkl.COMKL(), domkl.Alone(domkl.DOMKL())]


@pytest.mark.parametrize("algorithm", ALL, ids=repr)
@given(graph=networks(), seed=st.integers(0, 10**6), cut=st.integers(1, 14))
def test_a_run_cut_in_two_is_the_same_run(algorithm, graph, seed, cut):
    X, y = stream(seed, n_learners=graph.n_learners)
    whole = domkl.simulate(algorithm, X, y, graph, features)
    first = domkl.simulate(algorithm, X[:cut], y[:cut], graph, features)
    rest = domkl.simulate(algorithm, X[cut:], y[cut:], graph, features, state=first.state)
    np.testing.assert_array_equal(rest.predictions, whole.predictions[cut:])
    np.testing.assert_array_equal(rest.theta, whole.theta)


@pytest.mark.parametrize("algorithm", [a for a in ALL if a != domkl.COMKL()], ids=repr)
@given(a=networks(), b=networks(), seed=st.integers(0, 10**6))
def test_networks_side_by_side_do_not_see_each_other(algorithm, a, b, seed):
    """Two networks as one graph in two parts; only COMKL's server would hear both."""
    n = a.n_learners
    both = domkl.Graph.from_edges(n + b.n_learners, [*a.edges.tolist(), *(b.edges + n).tolist()])
    X, y = stream(seed, n_learners=both.n_learners)
    whole = domkl.simulate(algorithm, X, y, both, features)
    for graph, part in ((a, slice(n)), (b, slice(n, None))):
        alone = domkl.simulate(algorithm, X[:, part], y[:, part], graph, features)
        np.testing.assert_array_equal(alone.predictions, whole.predictions[:, part])


@pytest.mark.parametrize("algorithm", ALL, ids=repr)
@given(graph=networks(), seed=st.integers(0, 10**6))
def test_float32_is_float64_within_a_budget(algorithm, graph, seed):
    X, y = stream(seed, n_learners=graph.n_learners)
    double = domkl.simulate(algorithm, X, y, graph, features)
    single = domkl.simulate(algorithm, X, y, graph, features, dtype="float32")
    assert np.abs(single.predictions - double.predictions).max() < 1e-5


@given(networks(), st.integers(0, 10**6))
def test_with_one_kernel_domkl_is_dokl(graph, seed):
    X, y = stream(seed, n_learners=graph.n_learners)
    one = features.kernel(1)
    many, single = (domkl.simulate(a, X, y, graph, one) for a in (domkl.DOMKL(), domkl.DOKL()))
    np.testing.assert_array_equal(many.predictions, single.predictions)
    np.testing.assert_array_equal(many.theta, single.theta)
    np.testing.assert_array_equal(many.weights, single.weights)


@given(st.integers(0, 10**6), st.floats(0, 1e6), st.sampled_from([0.01, 10.0, 1e4]))
def test_weights_are_on_the_simplex_and_blind_to_a_common_loss(seed, shift, eta_g):
    rng = np.random.default_rng(seed)
    loss = rng.exponential(rng.choice([1.0, 1e6]), size=(4, 7))
    weights, shifted, none = np.empty((4, 7)), np.empty((4, 7)), np.zeros((4, 7))
    hedge_weights(weights, loss, none, eta_g)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    hedge_weights(shifted, loss, none + shift, eta_g)
    spread = 1e-15 * (loss.max() + shift) / eta_g
    np.testing.assert_allclose(shifted, weights, rtol=1e-9 + 10 * spread, atol=1e-300)


def test_a_tree_hears_every_loss_once_after_its_distance():
    """(22): learner k counts learner ℓ's losses up to t − ζ, ζ their distance."""
    graph = domkl.Graph.path(4)
    loss = np.zeros((4, 1))
    inbox = np.zeros((len(graph.indices), 1))
    history = [loss.copy()]
    for _ in range(6):
        loss = loss + np.array([[1.0], [10.0], [100.0], [1000.0]])
        history.append(loss.copy())
        outbox, heard = np.empty_like(inbox), np.empty_like(loss)
        pass_messages(outbox, heard, loss, inbox, graph.indptr)
        t = len(history) - 1
        for k in range(4):
            expected = sum(history[max(t - abs(k - other), 0)][other, 0] for other in range(4))
            assert loss[k, 0] + heard[k, 0] == expected
        inbox = outbox[graph.reverse]


def test_on_a_ring_of_six_messages_count_double():
    """Remark 3 allows cycles longer than T: a ring of six counts losses twice from T = 4 on."""
    graph = domkl.Graph.ring(6)
    loss, inbox = np.zeros((6, 1)), np.zeros((12, 1))
    for t in range(1, 6):
        loss = loss + 1.0
        outbox, heard = np.empty_like(inbox), np.empty_like(loss)
        pass_messages(outbox, heard, loss, inbox, graph.indptr)
        inbox = outbox[graph.reverse]
        distance = np.array([0, 1, 2, 3, 2, 1])
        once = np.maximum(t - distance, 0).sum()
        total = float(loss[0, 0] + heard[0, 0])
        assert total == once if t < 4 else total > once


@pytest.mark.parametrize(
    ("algorithm", "budget"),
    [(domkl.DOMKL(), 2e-5), (domkl.RFFDOMKL(), 2e-6), (domkl.COMKL(), 2e-6)],
    ids=["domkl", "rff-domkl", "comkl"],
)
def test_float32_stays_near_float64(algorithm, budget):
    """Over 6000 rounds, the paper's bank: predictions of order 1 differ by less than the budget."""
    X, y = stream(1, n_rounds=6000, n_learners=10)
    graph = domkl.Graph.random(10, 0.25, seed=1)
    paper = domkl.RandomFeatures.draw(domkl.gaussian_bank(), 3, 50, seed=1)
    double = domkl.simulate(algorithm, X, y, graph, paper)
    single = domkl.simulate(algorithm, X, y, graph, paper, dtype="float32")
    assert single.theta.dtype == np.float32
    assert single.state.loss.dtype == single.mse.dtype == np.float64
    assert np.abs(double.predictions).max() > 0.5
    assert np.abs(single.predictions - double.predictions).max() < budget


def test_consensus_on_a_complete_graph_beats_no_network():
    X, y = stream(2, n_rounds=300)
    together = domkl.simulate(domkl.DOMKL(), X, y, domkl.Graph.complete(6), features)
    alone = domkl.simulate(domkl.Alone(domkl.DOMKL()), X, y, domkl.Graph.complete(6), features)
    assert together.cv[-1] < 0.2 * alone.cv[-1]
