"""DOMKRLS: whose samples count, what a newcomer knows, what a message may say, old states."""

import math
import pickle
import re

import numpy as np
import pytest

import domkl
from domkl.algorithms import least_squares
from domkl.algorithms.base import Inputs, Net
from domkl.algorithms.before import Before
from domkl.algorithms.mixtures import ALONE, CLIP, NETWORK
from domkl.core.belief import N_BOUND
from domkl.errors import WireError
from domkl.learner.restore import of_now, restored_state
from domkl.mesh.protocol.families import family_of
from domkl.mesh.protocol.wire import Frame, Kind, Offer, OfferFormat
from domkl.sim.cells import Cell
from domkl.speech.base import Layout

K, D_IN = 5, 3
BANK = (*domkl.gaussian_bank([0.1, 1.0, 10.0]), domkl.Linear())
FEATURES = domkl.RandomFeatures.draw(BANK, D_IN, 6, seed=1)
PLAIN = domkl.RandomFeatures.draw(BANK[:-1], D_IN, 6, seed=1)
GRAPH = domkl.Graph.ring(K)
PAIR = domkl.Graph.path(2)


def stream(seed, n_rounds=60, n_learners=K):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rounds, n_learners, D_IN))
    return X, np.sin(2 * X.sum(axis=-1)) + 0.1 * rng.normal(size=X.shape[:2])


def simulate(X, y, algorithm=None, graph=GRAPH, features=FEATURES, **options):
    return domkl.simulate(algorithm or domkl.DOMKRLS(), X, y, graph, features, **options)


def inputs_of(x, features=FEATURES):
    z = features(x)
    return domkl.Inputs(np.ascontiguousarray(x), z, np.sum(z**2, axis=-1))


def experts_of(algorithm, state, x, features=FEATURES):
    """What θs and φs predict, (K, F) each, and the prediction before it is corrected, (K,)."""
    n_fits = state.sums.shape[1]
    notes = algorithm.predict(state, inputs_of(x, features)).notes
    thetas, own = notes[:, :n_fits], notes[:, n_fits : 2 * n_fits]
    return thetas, own, uncorrected(state, notes, n_fits)


def uncorrected(state, notes, n_fits):
    """The prediction before corrections: of each side behind the experts and the mixtures."""
    sides = notes[:, :-3].reshape(len(notes), 2, -1)
    return (state.trust * sides[:, :, 2 * n_fits + 6]).sum(axis=1)


def theta(state):
    """θ = S/N of each fit."""
    return state.sums / state.counts[:, :, None]


# the mean


def test_who_has_no_samples_does_not_change_the_mean():
    """Gossip with it halves S and N alike; it takes θ over, and its own fits stay empty."""
    X, y = stream(0, n_learners=2)
    taught = simulate(X, y, graph=domkl.Graph.empty(2)).state
    fresh = domkl.DOMKRLS().init(sizes_of(FEATURES, 2))
    rows = zip(taught, fresh, strict=True)
    state = type(taught)(*(np.stack([one[0], other[1]]) for one, other in rows))
    none = np.full((10, 2), np.nan)
    after = simulate(X[:10], none, graph=PAIR, state=state).state
    for k in range(2):
        np.testing.assert_allclose(theta(after)[k], theta(taught)[0], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(after.counts[:, 0], 30)
    np.testing.assert_array_equal(after.own[1], 0)


def test_the_mean_of_one_and_of_who_has_no_samples_is_nearly_the_ones_fit():
    """What the leak adds to S and N is a fit of some rounds ago: near as a function, not equal."""
    X, y = stream(0, n_rounds=400, n_learners=2)
    y[:, 1] = np.nan
    state = simulate(X, y, graph=PAIR).state
    x = np.random.default_rng(1).random((200, 1, D_IN)).repeat(2, axis=1)
    for each in x:
        thetas, own, _ = experts_of(domkl.DOMKRLS(), state, each)
        assert np.abs(thetas - own[0]).max() < 0.1
    np.testing.assert_array_equal(state.own_counts[1], 0)


def test_equal_counts_give_the_plain_mean():
    """Two learners say the same each round: S is the mean of nφ but for the leak, which is even."""
    X, y = stream(1, n_learners=2)
    state = simulate(X, y, graph=PAIR).state
    for k in range(2):
        np.testing.assert_allclose(theta(state)[k], state.own.mean(axis=0), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(state.counts, state.own_counts)


def test_fits_count_by_their_samples():
    """One of two has missed some rounds; the leak, 1 % a label, is what is not exact."""
    X, y = stream(2, n_rounds=60, n_learners=2)
    y[:40, 1] = np.nan
    state = simulate(X, y, graph=PAIR).state
    n = state.own_counts[:, 0]
    np.testing.assert_array_equal(n, [60, 20])
    weighed = (n[:, None, None] * state.own[:, ::2]).sum(axis=0) / n.sum()  # of the first memory
    plain = state.own[:, ::2].mean(axis=0)
    gap = np.abs(theta(state)[0, ::2] - weighed).max()
    assert gap < 0.3 * np.abs(plain - weighed).max()


def test_counts_of_a_network_are_the_mean_count():
    X, y = stream(3, n_rounds=500)
    state = simulate(X, y).state
    np.testing.assert_allclose(state.counts[:, 0], 500)
    np.testing.assert_allclose(state.counts[:, 1], (1 - 0.99**500) / 0.01)


def test_a_newcomer_predicts_as_its_neighbor_does():
    """Before its first sample, θs and mixtures are what it heard, and its side is the network's."""
    X, y = stream(4, n_rounds=150, n_learners=2)
    y[:, 1] = np.nan
    algorithm, state = domkl.DOMKRLS(), simulate(X, y, graph=PAIR).state
    x = np.repeat(X[-1:, 0], 2, axis=0)
    thetas, own, _ = experts_of(algorithm, state, x)
    np.testing.assert_allclose(thetas[1], thetas[0], rtol=1e-9)
    np.testing.assert_array_equal(own[1], 0)
    np.testing.assert_array_equal(state.trust[1], [1, 0])
    first, second = state.by_regret[:, NETWORK]
    np.testing.assert_allclose(second, first, rtol=1e-6, atol=1e-12)
    inputs = inputs_of(x)
    deviation = algorithm.deviation(state, inputs, algorithm.predict(state, inputs))
    assert np.isfinite(deviation).all()


def test_a_newcomer_does_well_at_once():
    X, y = stream(5, n_rounds=300)
    y[:200, 2] = np.nan
    run = simulate(X, y)
    squares = (run.predictions - y) ** 2
    assert squares[200:220, 2].mean() < 2 * squares[200:220, [0, 1, 3, 4]].mean()


def test_one_of_five_with_samples_is_hardly_made_worse_by_four_without():
    """Its evidence is averaged with theirs, and so takes longer: some 0.7 % in 300 rounds."""
    over, graph = [], domkl.Graph.complete(K)
    for seed in (6, 7, 8, 9):
        X, y = stream(seed, n_rounds=300)
        y[:, 1:] = np.nan
        ours, alone = (
            simulate(X, y, each, graph=graph) for each in (None, domkl.Alone(domkl.DOMKRLS()))
        )
        over.append(ours.mse[-1] / alone.mse[-1])
    assert np.mean(over) < 1.01
    assert max(over) < 1.03


@pytest.mark.parametrize("delay", [0, 5, 11])
def test_labels_are_within_the_deviations_that_were_told(delay):
    """Noise that changes while labels wait: judged by the noise of now, 0.92 and 0.88 were."""
    rng = np.random.default_rng(3)
    X, steps = rng.random((1500, K, D_IN)), rng.normal(size=(1500 + delay, K))
    noise = 0.1 * np.stack([steps[t : t + delay + 1].sum(axis=0) for t in range(len(X))])
    is_loud = (np.arange(len(X)) // 50 % 2 == 0)[:, None]
    y = X[..., 0] + np.where(is_loud, noise, 0.3 * noise)
    run = simulate(X, y, delay=delay, deviation=True)
    inside = np.abs(run.predictions - y) <= 1.96 * run.deviation
    assert 0.93 < inside[200:].mean() < 0.97


@pytest.mark.parametrize("delay", [0, 5])
def test_labels_are_within_the_bands_that_were_told(delay):
    """Errors with heavy tails, on one side: normal bands of 50 % hold 70 % of them."""
    rng = np.random.default_rng(4)
    X, levels = rng.random((1200, K, D_IN)), (0.025, 0.1, 0.25, 0.75, 0.9, 0.975)
    y = X[..., 0] + 0.1 * rng.exponential(size=(1200, K)) ** 2
    run = simulate(X, y, delay=delay, quantiles=levels)
    for j, level in enumerate((0.95, 0.8, 0.5)):
        low, high = run.quantiles[..., j], run.quantiles[..., -1 - j]
        assert np.mean(((low <= y) & (y <= high))[200:]) == pytest.approx(level, abs=0.02)


def test_a_deviation_is_never_0():
    X = np.random.default_rng(5).random((20, K, D_IN))
    run = simulate(X, np.zeros((20, K)), deviation=True)
    assert (run.deviation > 0).all()


def test_a_width_of_0_4_goes_on_as_quantiles():
    X, y = stream(8, n_rounds=30)
    algorithm = domkl.DOMKRLS()
    state = simulate(X, y, algorithm).state
    numbers = 1 + np.arange(8.0)
    given = state._asdict() | {"by_evidence": state.by_regret, "prior": state.own_counts}
    given |= {
        "quantiles": np.full(K, 0.1),  # in its place: the logarithm of a factor
        "correction": np.tile(numbers, (K, 2, 1)),
        "clue_diagonal": np.tile(numbers, (K, 2, 1)),
        "clue_factor": np.tile(np.arange(12.0), (K, 2, 1)),
        "score": np.ones((K, 2, 4)),
        "final": np.ones((K, 2, 3)),
    }
    old = Before(*(given[name] for name in Before._fields if name not in ("past", "season")))
    first = algorithm.init(sizes_of(FEATURES, K, "float64"))
    found = of_now(algorithm, old, first)
    np.testing.assert_allclose(found.quantiles, np.exp(0.1) * first.quantiles)
    stored = {name: values for name, values in old._asdict().items() if name != "quantiles"}
    assert pickle.loads(pickle.dumps(state)).own.shape == state.own.shape
    again = restored_state(algorithm, stored | {"width": np.full(K, 0.1)}, first)
    np.testing.assert_array_equal(again.quantiles, found.quantiles)
    np.testing.assert_array_equal(again.own, state.own)
    assert found.correction[0, 0].tolist() == [5, 6, 7, 0, 8, 0]  # that of B
    assert found.clue_diagonal[0, 1].tolist() == [5, 6, 7, 0.1, 8, 0.1]
    factor = found.clue_factor[0, 0]  # columns of the triangle above the diagonal
    assert factor[[0, 1, 2]].tolist() == [6, 7, 8]
    assert factor[6:10].tolist() == [9, 10, 11, 0]


def test_the_first_label_is_in_no_account_of_ones_own():
    X, y = stream(7, n_rounds=2)
    first, second = (simulate(X[:n], y[:n]).state for n in (1, 2))
    for field in ("score", "final", "sides", "own_regret", "own_variance", "own_rounds"):
        assert not getattr(first, field).any()
    assert second.own_rounds.tolist() == [1.0] * K
    assert (second.score > 0).all()
    np.testing.assert_array_equal(second.last, y[1])


def test_without_a_label_a_learner_keeps_what_is_its_own():
    X, y = stream(6)
    before = simulate(X[:50], y[:50]).state
    y[50:, 1] = np.nan
    shared = {"loss", "regret", "variance", "rounds", "by_regret"}
    after = simulate(X[50:], y[50:], state=before).state
    for name in sorted(shared):
        first, second = (getattr(state, name)[1, ALONE] for state in (before, after))
        np.testing.assert_array_equal(second, first, err_msg=name)
    shared |= {"sums", "counts", "nearby", "season"}  # the clock goes on
    for name in sorted(set(before._fields) - shared):
        np.testing.assert_array_equal(
            getattr(after, name)[1], getattr(before, name)[1], err_msg=name
        )
        if name not in ("lag", "is_linear", "turns", "odds", "gate"):
            assert (getattr(after, name)[0] != getattr(before, name)[0]).any(), name


def test_a_round_without_any_label_is_gossip_only():
    X, y = stream(7)
    before = simulate(X[:50], y[:50]).state
    after = simulate(X[50:51], np.full((1, K), np.nan), state=before).state
    for name in ("sums", "counts", "loss", "regret", "variance", "rounds"):
        mean = getattr(before, name).mean(axis=0)
        np.testing.assert_allclose(getattr(after, name).mean(axis=0), mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(after.loss[:, ALONE], before.loss[:, ALONE])
    np.testing.assert_array_equal(after.nearby, 0)


def test_an_idle_step_is_a_round_without_a_label():
    X, y = stream(8)
    algorithm, state = domkl.DOMKRLS(), simulate(X, y).state
    net = domkl.Net(np.full(K, 2.0), np.ones(K), np.arange(K + 1) * 2)
    inputs = inputs_of(X[-1])
    prediction = algorithm.predict(state, inputs)
    _, told = algorithm.local_step(state, inputs, np.full(K, np.nan), prediction, net)
    _, idle = algorithm.idle_step(state, net)
    for name, values in told._asdict().items():
        np.testing.assert_array_equal(values, getattr(idle, name), err_msg=name)


# fits, priors and horizons


def test_own_fits_are_ridge_regressions():
    X, y = stream(9, n_rounds=30, n_learners=1)
    state = simulate(X, y, graph=domkl.Graph.empty(1)).state
    for fit in (0, 2, 3):  # those that keep everything; a fit has its kernel's number
        z = FEATURES(X[:, 0])[:, fit]
        A = 1e-3 * np.eye(z.shape[1]) + z.T @ z
        expected = np.linalg.solve(A, z.T @ y[:, 0])
        np.testing.assert_allclose(state.own[0, fit], expected, rtol=1e-6, atol=1e-8)


def test_both_fits_of_the_last_kernel_begin_with_its_ridge():
    for features in (FEATURES, PLAIN, PLAIN.kernel(0)):
        diagonal = domkl.DOMKRLS().init(sizes_of(features)).diagonal[0].max(axis=1)
        assert diagonal[-1] == diagonal[-2] == pytest.approx(1e3)
    two = domkl.RandomFeatures(PLAIN.frequencies[:2])
    diagonal = domkl.DOMKRLS().init(sizes_of(two)).diagonal[0].max(axis=1)
    np.testing.assert_allclose(diagonal, [1e3, 1e2, 1e2])


def sizes_of(features, n_learners=1, dtype="float64"):
    return domkl.Sizes(
        n_learners,
        features.n_kernels,
        features.n_features,
        features.n_inputs,
        0,
        dtype,
        features.n_frequencies,
        features.linear,
    )


def test_the_horizon_is_one_more_than_the_delay():
    algorithm = domkl.DOMKRLS()
    assert algorithm.delayed(0) == algorithm
    assert algorithm.delayed(5).steps_ahead == 6
    assert domkl.DOMKRLS(steps_ahead=2).delayed(5).steps_ahead == 2
    assert algorithm.delayed(5).second_memory == pytest.approx(1 - 0.01 / 6)
    assert domkl.Alone(algorithm).delayed(5).algorithm.steps_ahead == 6


def test_with_a_lag_the_first_prediction_is_the_lag():
    X, y = stream(10)
    run = simulate(X, y, domkl.DOMKRLS(newest_lag=1))
    np.testing.assert_allclose(run.predictions[0], X[0, :, 1], rtol=1e-12)


@pytest.mark.parametrize("delay", [0, 3])
def test_where_all_experts_agree_there_is_no_regret(delay):
    """All are the lag until the first label is learned; weights stay the prior's, equal ones."""
    X, y = stream(11)
    n = delay + 1
    run = simulate(X[:n], y[:n], domkl.DOMKRLS(newest_lag=1), delay=delay)
    state = run.state.state if delay else run.state
    np.testing.assert_array_equal(state.regret, 0)
    np.testing.assert_array_equal(state.own_regret, 0)
    np.testing.assert_allclose(state.by_regret, 1 / state.by_regret.shape[2])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"newest_lag": -1}, "newest_lag must be an integer >= 0, got -1"),
        ({"steps_ahead": 0}, "steps_ahead must be an integer >= 1, got 0"),
        ({"newest_lag": 0, "loss": domkl.Logistic()}, "newest_lag must be None for Logistic"),
    ],
)
def test_bad_parameters_are_refused(given, message):
    with pytest.raises(domkl.ParameterError, match=message):
        domkl.DOMKRLS(**given)


def test_a_lag_beyond_the_inputs_is_refused():
    X, y = stream(12, n_rounds=2)
    with pytest.raises(domkl.ParameterError, match="newest_lag must be below the 3 inputs, got 3"):
        simulate(X, y, domkl.DOMKRLS(newest_lag=3))


# the function


@pytest.mark.parametrize("n_rounds", [0, 1, 2, 40])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["plain", "lag", "logistic", "newcomer"])
def test_the_function_is_the_prediction_before_its_correction(name, dtype, n_rounds):
    algorithm = {
        "lag": domkl.DOMKRLS(newest_lag=2),
        "logistic": domkl.DOMKRLS(loss=domkl.Logistic()),
    }.get(name, domkl.DOMKRLS())
    X, y = stream(13)
    if name == "logistic":
        y = np.where(y > 0.3, 1.0, -1.0)
        y[:, 3] = 1.0
    if name == "newcomer":
        y[:, 2] = np.nan
    state = algorithm.init(sizes_of(FEATURES, K, dtype))
    if n_rounds:
        state = simulate(X[:n_rounds], y[:n_rounds], algorithm, dtype=dtype).state
    x = np.random.default_rng(14).normal(size=(K, D_IN))
    inputs = domkl.Inputs(x, FEATURES(x, dtype), np.ones((K, 4)))
    notes = algorithm.predict(state, inputs).notes
    before = uncorrected(state, notes, state.sums.shape[1])
    found = algorithm.function(state)
    values = np.einsum("kp,kpd,kpd->k", found.weights, found.theta, inputs.z)
    tolerance = 1e-9 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(values, before, rtol=tolerance, atol=tolerance)
    assert found.weights.sum(axis=1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernels_of_vanishing_weight_do_no_harm(dtype):
    """A weight may be any number down to 5e-324, of which there is no inverse."""
    X, y = stream(15)
    algorithm, state = domkl.DOMKRLS(), simulate(X, y, dtype=dtype).state
    for tiny in (1e-40, 1e-300, 1e-310, 5e-324, 0.0):
        for name in ("by_regret", "by_own"):
            weights = getattr(state, name)
            weights[:] = tiny
            weights[..., 3] = 1.0
        found = algorithm.function(state)
        assert np.isfinite(found.theta).all()
        assert np.abs(found.theta).max() < 1e3


def test_neighbors_functions_are_their_means_with_our_weights():
    X, y = stream(16)
    algorithm, state = domkl.DOMKRLS(), simulate(X, y, graph=GRAPH).state
    one = type(state)(*(values[:1] for values in state))
    same = {name: np.repeat(getattr(state, name)[:1], 2, axis=0) for name in ("sums", "counts")}
    same["rounds"] = np.ones(2)
    found, ours = family_of(algorithm).functions(one, same), algorithm.function(one)
    for k in range(2):
        np.testing.assert_array_equal(found.theta[k], ours.theta[0])
        np.testing.assert_array_equal(found.weights[k], ours.weights[0])


def alone_state(state):
    """The state with the side that is alone in the place of the network's."""
    both = {name: getattr(state, name)[:, [1, 1]] for name in least_squares.SIDES}
    bound = state.bound.copy()
    bound[:, N_BOUND - 1] = 0.0  # nothing is heard that could be confirmed
    return state._replace(
        **both,
        sums=state.own * state.own_counts[:, :, None],
        counts=state.own_counts,
        nearby=np.zeros_like(state.nearby),
        past=state.past[..., [0, 2, 2, 3]],
        bound=bound,
    )


def test_the_state_alone_is_that_of_a_learner_without_neighbors():
    """Fits, accounts and the corrector of the side alone are those of `Alone`."""
    X, y = stream(19)
    algorithm = domkl.DOMKRLS()
    state = simulate(X, y, algorithm).state
    alone = simulate(X, y, domkl.Alone(algorithm)).state
    found = alone_state(state)
    assert found.past[..., 1].any()
    # equal sides have any weights; the deviation is that of what was told
    for name in set(state._fields) - {"trust", "noise", "quantiles"}:
        expected = getattr(alone, name)
        np.testing.assert_allclose(
            getattr(found, name), expected, rtol=1e-9, atol=1e-9, err_msg=name
        )


# messages


def messages(algorithm, X, y, features=FEATURES, dtype="float64"):
    """All that learners on a ring say in a run, learner by learner."""
    state = algorithm.init(sizes_of(features, K, dtype))
    graph, ids = GRAPH, np.arange(K)
    net = domkl.Net(np.full(K, 2.0), np.ones(K), graph.indptr)
    for x, labels in zip(X, y, strict=True):
        z = features(x, dtype)
        inputs = domkl.Inputs(x, z, np.sum(z**2, axis=-1))
        prediction = algorithm.predict(state, inputs)
        state, told = algorithm.local_step(state, inputs, labels, prediction, net)
        for k in ids:
            yield {name: values[k : k + 1] for name, values in told._asdict().items()}
        heard = {
            name: sum(values[(ids + step) % K] for step in (-1, 0, 1)) / 3
            for name, values in told._asdict().items()
        }
        heard["residual"] = sum(told.residual[(ids + step) % K] for step in (-1, 1))
        heard["sums"] = heard["sums"].astype(dtype)
        state = algorithm.merge(state, type(told)(**heard), net)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "algorithm",
    [
        domkl.DOMKRLS(),
        domkl.DOMKRLS(forget=0.9),
        domkl.DOMKRLS(newest_lag=0, steps_ahead=24),
        domkl.DOMKRLS(loss=domkl.Logistic()),
    ],
    ids=["plain", "forget", "lag", "logistic"],
)
def test_an_honest_run_is_never_refused(algorithm, dtype):
    X, y = stream(17, n_rounds=400)
    y[100:110] *= 1e3
    if algorithm.loss == domkl.Logistic():
        y = np.where(y > 0, 1.0, -1.0)
    y[np.random.default_rng(18).random(y.shape) < 0.2] = np.nan
    y[:50, 0] = np.nan
    refusal = family_of(algorithm).refusal
    assert {refusal(said) for said in messages(algorithm, X, y, dtype=dtype)} == {None}


LIES = {
    "loss": (("loss", -1e-9), "loss must not be negative"),
    "variance": (("variance", -1e-9), "variance must not be negative"),
    "counts": (("counts", -1e-9), "counts must not be negative"),
    "rounds": (("rounds", -1.0), "rounds must not be negative"),
    "memory": (("counts", 101.0), "counts must be at most 100 for this memory, got 101"),
    "regret": (("regret", 1e9), "regret must be at most √"),
    "blame": (("regret", -1e9), "regret must be at most √"),
    "residual": (("residual", 5.1), "residual must be at most 5 in size, got 5.1"),
    "opposite": (("residual", -5.1), "residual must be at most 5 in size, got -5.1"),
    "sums": (("sums", 1e9), r"sums must be at most 1e\+06 times the counts"),
}


@pytest.mark.parametrize(("lie", "rule"), LIES.values(), ids=LIES.keys())
def test_what_no_run_can_say_is_refused(lie, rule):
    algorithm, (X, y) = domkl.DOMKRLS(), stream(19)
    *_, said = messages(algorithm, X, y)
    name, value = lie
    said[name] = said[name].copy()
    said[name].reshape(-1)[-1] = value  # of counts, the second memory's
    assert re.match(rule, family_of(algorithm).refusal(said))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "name", ["sums", "counts", "loss", "regret", "variance", "rounds", "residual"]
)
def test_what_is_not_finite_is_refused(name, value):
    algorithm, (X, y) = domkl.DOMKRLS(), stream(20, n_rounds=5)
    *_, said = messages(algorithm, X, y)
    said[name] = said[name].copy()
    said[name].reshape(-1)[0] = value
    layout = Layout(algorithm.exchange, least_squares.Message(**said))
    offers = OfferFormat(layout, family_of(algorithm))
    offer = Offer(1, said, radii=np.ones(offers.n_rows))
    frame = Frame(Kind.OFFER, b"", "other", 1, 1, payload=offers.repack(offer))
    with pytest.raises(WireError, match=f"{name} must be finite"):
        offers.heard(frame)


def test_what_forgets_counts_no_more_than_its_memory():
    """Nor, if that is short, than what the leak leaves of a newcomer's: n + 1 less 1 %, 100."""
    for forget, limit in ((0.999, 1000), (0.9, 100)):
        algorithm, (X, y) = domkl.DOMKRLS(forget=forget), stream(21, n_rounds=5)
        *_, said = messages(algorithm, X, y)
        said["counts"] = np.array([[limit, 5.0, 5.0, 5.0, 5.0]])
        assert family_of(algorithm).refusal(said) is None
        said["counts"][0, 0] *= 1.01
        told = family_of(algorithm).refusal(said)
        assert told.startswith(f"counts must be at most {limit:g} for this memory")


def test_newcomers_one_after_the_other_are_honest_too():
    """Each adds its samples to the mean that it took over."""
    X, y = stream(27, n_rounds=500)
    for k in range(1, K):
        y[: 100 * k, k] = np.nan
    for algorithm in (domkl.DOMKRLS(), domkl.DOMKRLS(forget=0.9), domkl.DOMKRLS(steps_ahead=24)):
        assert {family_of(algorithm).refusal(said) for said in messages(algorithm, X, y)} == {None}


def test_residuals_are_clipped_and_no_label_is_said():
    X, y = stream(22)
    y[30:] *= 1e6
    said = np.array([each["residual"][0] for each in messages(domkl.DOMKRLS(), X, y)])
    assert np.abs(said).max() == CLIP


# states of version 0.1


@pytest.mark.parametrize("n_seen", [0, 1, 200])
def test_a_state_of_version_0_1_goes_on(n_seen):
    rng = np.random.default_rng(23)
    algorithm = domkl.DOMKRLS()
    first = algorithm.init(sizes_of(FEATURES, 2))
    n_kernels, n_features = FEATURES.n_kernels, FEATURES.n_features
    shape, n_pairs = (2, n_kernels, n_features), n_features * (n_features - 1) // 2
    rounds = 0.0
    for _ in range(n_seen):
        rounds = rounds * 2 * rounds / (2 * rounds + 1) + 1
    found = {
        "theta": rng.normal(size=shape) * (n_seen > 0),
        "combined": rng.normal(size=shape),
        "loss": rng.random((2, n_kernels)),
        "weights": np.full((2, n_kernels), 0.25),
        "own": rng.normal(size=shape) * (n_seen > 0),
        "diagonal": rng.random(shape) + 0.1,
        "factor": rng.normal(size=(2, n_kernels, n_pairs)),
        "own_loss": rng.random((2, n_kernels)),
        "score": rng.random((2, 2)),
        "rounds": np.full(2, rounds),
        "prior": np.full((2, n_kernels), 0.25),
    }
    state = restored_state(algorithm, found, first)
    for values, like in zip(state, first, strict=True):
        assert values.shape == like.shape
        assert values.dtype == like.dtype
    kernels = [0, 1, 2, 3, 3]
    for name in ("own", "diagonal", "factor"):
        np.testing.assert_array_equal(getattr(state, name), found[name][:, kernels])
    for side in range(2):
        np.testing.assert_array_equal(state.loss[:, side], found["loss"][:, kernels])
        np.testing.assert_array_equal(state.rounds[:, side], found["rounds"])
    for name in ("regret", "score", "own_rounds", "noise"):
        np.testing.assert_array_equal(getattr(state, name), 0)
    assert state.own_counts[:, 0] == pytest.approx(n_seen, rel=0.05)
    if n_seen:
        np.testing.assert_allclose(theta(state), found["theta"][:, kernels], rtol=1e-12)
    else:
        np.testing.assert_array_equal(state.sums, 0)
    x = rng.random((2, D_IN))
    prediction = algorithm.predict(state, inputs_of(x))
    assert np.isfinite(prediction.y_hat).all()


def test_a_state_of_its_own_is_taken_as_it_is():
    X, y = stream(24)
    algorithm, state = domkl.DOMKRLS(), simulate(X, y).state
    again = restored_state(algorithm, state._asdict(), algorithm.init(sizes_of(FEATURES, K)))
    for name, values in state._asdict().items():
        np.testing.assert_array_equal(getattr(again, name), values, err_msg=name)
    lacking = {name: values for name, values in state._asdict().items() if name != "noise"}
    with pytest.raises(KeyError):
        restored_state(algorithm, lacking, state)


# numbers


def test_the_last_of_labels_counts_by_how_often_they_stay():
    """Labels that always stay: the log-odds after n of them are log n."""
    X, _ = stream(25, n_rounds=20, n_learners=1)
    state = simulate(
        X, np.ones((20, 1)), domkl.DOMKRLS(loss=domkl.Logistic()), domkl.Graph.empty(1)
    ).state
    np.testing.assert_array_equal(state.turns, [[19, 0]])
    np.testing.assert_array_equal(state.level, 0)
    assert state.odds[0] == pytest.approx(math.log(20))


@pytest.mark.slow
def test_float32_stays_within_a_thousandth_of_float64():
    X, y = stream(26, n_rounds=20_000, n_learners=2)
    given = {"graph": PAIR, "cv": "off"}
    double, single = (simulate(X, y, dtype=dtype, **given) for dtype in ("float64", "float32"))
    gap = np.abs(single.predictions - double.predictions)
    assert gap[-10_000:].max() < 1e-3
    assert single.mse[-1] == pytest.approx(double.mse[-1], rel=1e-3)


def learned_with(algorithm, features, X, y, weights):
    """The state of one learner after these samples with these weights."""
    alone = Net(np.zeros(1), np.ones(1), np.zeros(2, dtype=np.int64))
    state = Cell([domkl.Graph.empty(1)], [features], algorithm).first_state()
    for x, label, weight in zip(X, y, weights, strict=True):
        z = features(x)[None]
        inputs = Inputs(x[None], z, (z**2).sum(axis=2))
        prediction = algorithm.predict(state, inputs)
        prediction.notes[:, -1] = weight
        state, message = algorithm.local_step(state, inputs, np.array([label]), prediction, alone)
        state = algorithm.merge(state, message, alone)
    return state


def test_a_weight_counts_as_so_many_equal_samples():
    """Of a fit that forgets nothing: the same least squares problem."""
    generator = np.random.default_rng(5)
    X, y = generator.uniform(size=(30, 2)), generator.normal(size=30)
    weights = generator.integers(1, 4, size=30)
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 1.0]), 2, 5, seed=2, linear=True)
    once = learned_with(domkl.DOMKRLS(), features, X, y, weights.astype(float))
    repeated = (X.repeat(weights, axis=0), y.repeat(weights), np.ones(weights.sum()))
    often = learned_with(domkl.DOMKRLS(), features, *repeated)
    np.testing.assert_allclose(once.own[0, 0], often.own[0, 0], rtol=1e-6)
    np.testing.assert_allclose(once.diagonal[0, 0], often.diagonal[0, 0], rtol=1e-6)


def test_mirrored_is_what_labels_of_the_other_sign_teach():
    generator = np.random.default_rng(6)
    X, y = generator.uniform(size=(40, 2)), np.sign(generator.normal(size=40))
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 1.0]), 2, 5, seed=2, linear=True)
    algorithm = domkl.DOMKRLS(loss=domkl.Logistic())
    one = domkl.Learner(algorithm)._mirrored(learned_with(algorithm, features, X, y, np.ones(40)))
    for ours, theirs in zip(
        one, learned_with(algorithm, features, X, -y, np.ones(40)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
    assert domkl.Learner()._mirrored(one) is None


@pytest.mark.parametrize("newest_lag", [None, 0])
def test_what_a_prediction_rests_on_adds_up_to_one(newest_lag):
    X, y = stream(6)
    algorithm = domkl.DOMKRLS(newest_lag=newest_lag)
    run = simulate(X, y, algorithm)
    trust = family_of(algorithm).trust(run.state)
    assert list(trust) == ["network", "own", "last value"]
    assert sum(trust.values()) == pytest.approx(1.0)
    assert min(trust.values()) >= 0
    assert family_of(domkl.DOMKL()).trust(None) is None  # it cannot tell
