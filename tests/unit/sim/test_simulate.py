"""What simulate promises beyond the algorithms: metrics, trials, modes, errors."""

import numpy as np
import pytest

import domkl
from domkl.sim import compiled

rng = np.random.default_rng(0)
X = rng.random((25, 6, 2))
Y = np.sin(5 * X[..., 0])
GRAPH = domkl.Graph.random(6, 0.4, seed=1)
FEATURES = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 1.0]), 2, 8, seed=1)


def test_mse_and_cv_are_running_averages_over_all_learners():
    run = domkl.simulate(domkl.DOMKL(), X, Y, GRAPH, FEATURES)
    for t in range(25):
        assert run.mse[t] == pytest.approx(np.mean((run.predictions[: t + 1] - Y[: t + 1]) ** 2))
    np.testing.assert_allclose(run.learner_mse.mean(axis=1), run.mse)
    np.testing.assert_allclose(run.learner_cv.mean(axis=1), run.cv)
    assert run.cv_mode == "exact"
    assert (run.cv_error == 0).all()


def test_components_have_values_of_their_own():
    graph = domkl.Graph.from_edges(6, [(0, 1), (1, 2), (3, 4)])
    run = domkl.simulate(domkl.DOMKL(), X, Y, graph, FEATURES)
    assert run.component.tolist() == [0, 0, 0, 1, 1, 2]
    np.testing.assert_allclose(run.component_mse @ [3 / 6, 2 / 6, 1 / 6], run.mse)
    parts = [[0, 1, 2], [3, 4], [5]]
    for c, part in enumerate(parts):
        edges = [(a, b) for a, b in graph.edges.tolist() if a in part]
        small = domkl.Graph.from_edges(len(part), [(a - part[0], b - part[0]) for a, b in edges])
        alone = domkl.simulate(domkl.DOMKL(), X[:, part], Y[:, part], small, FEATURES)
        np.testing.assert_allclose(run.component_mse[:, c], alone.mse)
        np.testing.assert_allclose(run.component_cv[:, c], alone.cv, atol=1e-15)
    whole = domkl.simulate(domkl.DOMKL(), X, Y, graph, FEATURES, interpreted=True)
    np.testing.assert_array_equal(whole.component_cv, run.component_cv)


def test_a_sampled_cv_is_near_the_exact_one_and_says_how_near():
    exact = domkl.simulate(domkl.DOMKL(), X, Y, GRAPH, FEATURES)
    sampled = domkl.simulate(domkl.DOMKL(), X, Y, GRAPH, FEATURES, cv="sampled")
    assert sampled.cv_mode == "sampled"
    assert sampled.cv_error[-1] > 0
    # four standard errors: fails by chance once in 16000, and the seed is fixed
    assert abs(sampled.cv[-1] - exact.cv[-1]) < 4 * sampled.cv_error[-1]
    np.testing.assert_array_equal(sampled.predictions, exact.predictions)
    other = domkl.simulate(domkl.DOMKL(), X, Y, GRAPH, FEATURES, cv="sampled", seed=1)
    assert other.cv[-1] != sampled.cv[-1]


def test_moments_are_the_exact_cv():
    for graph in (GRAPH, domkl.Graph.from_edges(6, [(0, 1), (1, 2), (3, 4)])):
        exact = domkl.simulate(domkl.DOMKL(), X, Y, graph, FEATURES, cv="exact")
        ours = domkl.simulate(domkl.DOMKL(), X, Y, graph, FEATURES, cv="moments")
        assert (ours.cv_mode, ours.cv_error[-1]) == ("moments", 0)
        for name in ("cv", "learner_cv", "component_cv"):
            np.testing.assert_allclose(getattr(ours, name), getattr(exact, name), rtol=1e-9)


def test_moments_serve_components_larger_than_the_functions():
    """Above P·D = 4 parameters a component has moments of its own."""
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([1.0]), 2, 2, seed=1)
    graph = domkl.Graph.from_edges(6, [(0, 1), (1, 2), (2, 3), (3, 4)])
    both = [
        domkl.simulate(domkl.DOMKL(), X, Y, graph, features, cv=c) for c in ("exact", "moments")
    ]
    np.testing.assert_allclose(both[1].component_cv, both[0].component_cv, rtol=1e-9, atol=1e-15)


def test_moments_keep_their_digits_where_learners_nearly_agree():
    """The duals are stiff and the common label large: uncentred, float32 would be percents off."""
    algorithm = domkl.DOMKL(rho=200.0)
    call = algorithm, X, Y + 100, domkl.Graph.complete(6), FEATURES
    exact = domkl.simulate(*call, cv="exact")
    ours = domkl.simulate(*call, cv="moments", dtype="float32")
    np.testing.assert_allclose(ours.cv[1:], exact.cv[1:], rtol=1e-3)


def test_one_network_is_not_copied():
    run = domkl.simulate(domkl.DOMKL(), X, Y, GRAPH, FEATURES, cv="off")
    assert np.shares_memory(run.theta, run.state.theta)
    assert np.shares_memory(run.weights, run.state.weights)


@pytest.mark.parametrize("cv", ["exact", "off"])
def test_a_state_can_be_reused(cv):
    run = domkl.simulate(domkl.DOMKL(), X[:9], Y[:9], GRAPH, FEATURES, cv=cv)
    call = domkl.DOMKL(), X[9:], Y[9:], GRAPH, FEATURES
    copied = domkl.simulate(*call, cv=cv, state=run.state)
    assert not np.shares_memory(copied.theta, run.theta)
    reused = domkl.simulate(*call, cv=cv, state=run.state, reuse_state=True)
    assert np.shares_memory(reused.theta, run.theta)
    np.testing.assert_array_equal(reused.theta, copied.theta)


def test_the_standard_error_is_the_spread_over_seeds():
    """60 seeds estimate a standard deviation to 9 %; 40 % off fails by chance below 1e-5."""
    call = domkl.DOMKL(), X[:6], Y[:6], GRAPH, FEATURES
    runs = [domkl.simulate(*call, cv="sampled", seed=seed) for seed in range(60)]
    for t in (0, 1, 5):
        spread = np.std([run.cv[t] for run in runs], ddof=1)
        if t > 0:  # before the first step all functions are 0
            assert spread == pytest.approx(np.mean([r.cv_error[t] for r in runs]), rel=0.4)


def test_discrepancy_without_a_function_is_measured_by_predictions():
    run = domkl.simulate(domkl.LastValue(), X, Y, GRAPH, FEATURES, discrepancy=True)
    previous = np.vstack([np.zeros(6), Y[:-1]])
    for k in range(6):
        gaps = [previous[:, k] - previous[:, other] for other in GRAPH.neighbors(k)]
        np.testing.assert_allclose(run.discrepancy[:, k], sum(gaps) ** 2)


@pytest.mark.parametrize("algorithm", [domkl.DOMKL(), domkl.LastValue()], ids=repr)
def test_sampled_pairs_belong_to_the_trial_and_not_to_the_thread(algorithm):
    call = algorithm, X, Y, [GRAPH] * 4, FEATURES
    one, two = (domkl.simulate(*call, cv="sampled", threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one.cv, two.cv)
    assert len(set(one.cv[:, -1])) == 4
    exact = domkl.simulate(*call)
    assert (np.abs(one.cv[:, -1] - exact.cv[:, -1]) < 4 * one.cv_error[:, -1]).all()


def test_large_networks_are_sampled_by_default_and_off_is_off():
    n = 1001
    inputs, labels = rng.random((2, n, 1)), rng.random((2, n))
    features = domkl.RandomFeatures(np.ones((1, 2, 1)))
    run = domkl.simulate(domkl.DOKL(), inputs, labels, domkl.Graph.ring(n), features)
    assert run.cv_mode == "sampled"
    off = domkl.simulate(domkl.DOKL(), inputs, labels, domkl.Graph.ring(n), features, cv="off")
    assert np.isnan(off.cv).all()
    assert np.isnan(off.cv_error).all()
    last = domkl.simulate(domkl.LastValue(), inputs, labels, domkl.Graph.ring(n), features)
    assert last.cv_mode == "sampled"
    assert last.cv[-1] > 0
    np.testing.assert_array_equal(off.mse, run.mse)


def test_lists_give_a_trial_axis_also_for_one():
    one = domkl.simulate(domkl.DOMKL(), X, Y, [GRAPH], [FEATURES])
    assert one.mse.shape == (1, 25)
    assert one.predictions.shape == (1, 25, 6)
    assert one.theta.shape == (1, 6, 2, 16)
    assert one.weights.shape == (1, 6, 2)
    shared = domkl.simulate(domkl.DOMKL(), X, Y, GRAPH, [FEATURES, FEATURES])
    np.testing.assert_array_equal(shared.mse[0], shared.mse[1])
    shared = domkl.simulate(domkl.DOMKL(), X, Y, [GRAPH, GRAPH], FEATURES)
    assert shared.cv.shape == (2, 25)


def test_progress_reaches_the_end():
    calls = []
    domkl.simulate(
        domkl.DOMKL(), X, Y, [GRAPH] * 3, FEATURES, progress=lambda *a: calls.append(a), threads=2
    )
    assert calls[-1] == (75, 75)
    domkl.simulate(
        domkl.DOMKL(), X, Y, [GRAPH] * 3, FEATURES, interpreted=True, threads=1,
        progress=lambda *a: calls.append(a),
    )  # fmt: skip
    assert calls[-1] == (75, 75)
    domkl.simulate(
        domkl.DOMKL(), zip(X, Y, strict=True), None, GRAPH, FEATURES,
        progress=lambda *a: calls.append(a),
    )  # fmt: skip
    assert calls[-1] == (25, None)


def test_an_error_in_a_thread_reaches_the_caller():
    class Broken(domkl.LastValue):
        def predict(self, state, inputs):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        domkl.simulate(Broken(), X, Y, [GRAPH] * 4, FEATURES, threads=2)


def test_reading_the_result():
    run = domkl.simulate(domkl.DOMKL(), X, Y, GRAPH, FEATURES)
    assert repr(run).startswith("Run(25 rounds, mse=")
    many = domkl.simulate(domkl.DOMKL(), X, Y, [GRAPH] * 2, FEATURES)
    assert repr(many).startswith("Run(2 trials, 25 rounds, mse=")


def with_value(array, value):
    changed = array.copy()
    changed.flat[7] = value
    return changed


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": X[:, :5]}, domkl.DataError, r"X must have shape \(T, 6, 2\)"),
        ({"X": X[..., :1]}, domkl.DataError, r"X must have shape \(T, 6, 2\)"),
        ({"X": X[0]}, domkl.DataError, r"X must have shape \(T, K, d\), got \(6, 2\)"),
        ({"X": X[:0], "y": Y[:0]}, domkl.DataError, "X must not be empty"),
        ({"y": Y[:5]}, domkl.DataError, r"y must have shape \(25, 6\) as X, got \(5, 6\)"),
        ({"X": with_value(X, np.inf)}, domkl.DataError, "X must be finite, got inf"),
        ({"y": with_value(Y, -np.inf)}, domkl.DataError, "y must be finite, got -inf at"),
        ({"y": None}, domkl.DataError, "X must be an iterator of rounds"),
        ({"X": iter([])}, domkl.DataError, "y must be None where X is an iterator"),
        ({"X": [["a"]]}, domkl.DataError, "X must hold numbers"),
        ({"algorithm": "domkl"}, domkl.ParameterError, "algorithm must be an Algorithm"),
        ({"algorithm": domkl.DOKL()}, domkl.ParameterError, "DOKL takes features of one kernel"),
        ({"algorithm": domkl.RFFDOKL()}, domkl.ParameterError, "RFFDOKL takes features of one"),
        ({"graph": "ring"}, domkl.ParameterError, "graph must be a Graph or a list"),
        ({"graph": []}, domkl.ParameterError, "graph must be a Graph or a list"),
        ({"features": [1]}, domkl.ParameterError, "features must be a RandomFeatures or a list"),
        ({"graph": [GRAPH] * 2, "features": [FEATURES] * 3}, domkl.ParameterError, "equal length"),
        ({"graph": [GRAPH, domkl.Graph.ring(5)]}, domkl.GraphError, r"equal size, got sizes \[5"),
        ({"features": [FEATURES, FEATURES.kernel(0)]}, domkl.ParameterError, "equal shape"),
        ({"X": X + 0j}, domkl.DataError, "X must hold numbers"),
        ({"X": X.astype(str)}, domkl.DataError, "X must hold numbers"),
        ({"algorithm": domkl.LastValue(2)}, domkl.ParameterError, "newest_lag must be below the 2"),
        (
            {"algorithm": domkl.DOMKL(rho=1e39), "dtype": "float32"},
            domkl.ParameterError,
            "rho must be in .* for float32, got 1e",
        ),
        ({"cv": "none"}, domkl.ParameterError, "cv must be one of exact, moments, sampled, off"),
        ({"dtype": "float16"}, domkl.ParameterError, "dtype must be one of float64, float32"),
        ({"threads": 0}, domkl.ParameterError, "threads must be an integer >= 1, got 0"),
        ({"state": (1, 2)}, domkl.ParameterError, "state must come from a run of DOMKL"),
        (
            {"algorithm": domkl.DOMKL(weights="message-passing"), "graph": domkl.Graph.ring(6)},
            domkl.GraphError,
            "message passing needs a graph without cycles",
        ),
        (
            {"algorithm": domkl.DOMKL(loss=domkl.Logistic())},
            domkl.DataError,
            "y must be -1 or 1 for the logistic loss",
        ),
    ],
)
def test_bad_input(change, error, message):
    call = {"algorithm": domkl.DOMKL(), "X": X, "y": Y, "graph": GRAPH, "features": FEATURES}
    with pytest.raises(error, match=message):
        domkl.simulate(**(call | change))


def test_a_state_of_other_trials_is_refused():
    run = domkl.simulate(domkl.DOMKL(), X, Y, [GRAPH] * 2, FEATURES)
    with pytest.raises(domkl.ParameterError, match=r"state.theta must have shape \(6, 2, 16\)"):
        domkl.simulate(domkl.DOMKL(), X, Y, GRAPH, FEATURES, state=run.state)


def test_a_state_of_another_type_is_refused():
    run = domkl.simulate(domkl.DOMKL(), X, Y, GRAPH, FEATURES)
    with pytest.raises(domkl.ParameterError, match=r"of float32 for these trials, got .* float64"):
        domkl.simulate(domkl.DOMKL(), X, Y, GRAPH, FEATURES, state=run.state, dtype="float32")


def test_a_users_shapes_are_checked():
    class Wrong(domkl.LastValue):
        def predict(self, state, inputs):
            return domkl.Prediction(state.previous[:, None], state.previous[:, None])

    with pytest.raises(domkl.ParameterError, match=r"y_hat of shape \(6,\), got \(6, 1\)"):
        domkl.simulate(Wrong(), X, Y, GRAPH, FEATURES)

    class Clock(domkl.LastValue):
        def init(self, sizes):
            return type(super().init(sizes))(np.zeros(()))

        def predict(self, state, inputs):
            return domkl.Prediction(np.zeros(6), np.zeros((6, 1)))

        def local_step(self, state, inputs, y, prediction, net):
            return state, super().local_step(state, inputs, y, prediction, net)[1]

    with pytest.raises(domkl.ParameterError, match="one entry per learner"):
        domkl.simulate(Clock(), X, Y, GRAPH, FEATURES)


def test_numpys_types_go_by_their_names():
    run = domkl.simulate(domkl.DOMKL(), X, Y, GRAPH, FEATURES, dtype=np.float32)
    assert run.theta.dtype == np.float32


@pytest.mark.parametrize(
    ("exchange", "message"),
    [
        ({"previous": "average"}, r"exchange\['previous'\] must be one of sum, gap"),
        ({"theta": "sum"}, "exchange must name the message's fields previous, got theta"),
    ],
)
def test_a_wrong_exchange_is_named(exchange, message):
    class Chatty(domkl.LastValue):
        def local_step(self, state, inputs, y, prediction, net):
            state = type(state)(y.copy())
            return state, state

    Chatty.exchange = exchange
    with pytest.raises(domkl.ParameterError, match=message):
        domkl.simulate(Chatty(), X, Y, GRAPH, FEATURES)


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        ([], "at least one round"),
        ([1], "round 0 must be a pair"),
        ([(X[0], Y[0]), (X[0, :3], Y[0])], "round 1 must hold x"),
        ([(X[0], np.full(6, np.inf))], "y of round 0 must be finite"),
    ],
)
def test_bad_rounds(rounds, message):
    with pytest.raises(domkl.DataError, match=message):
        domkl.simulate(domkl.DOMKL(), iter(rounds), None, GRAPH, FEATURES)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: domkl.DOMKL(rho=-1.0), "rho must be > 0, got -1.0"),
        (lambda: domkl.DOMKL(rho=0), "rho must be > 0, got 0"),
        (lambda: domkl.DOMKL(eta_l=float("nan")), "eta_l must be > 0, got nan"),
        (lambda: domkl.DOMKL(eta_g="10"), "eta_g must be > 0, got '10'"),
        (lambda: domkl.DOMKL(weights="all"), "weights must be one of neighbors, message-passing"),
        (lambda: domkl.DOKL(eta_l=0.0), "eta_l must be > 0, got 0.0"),
        (lambda: domkl.COMKL(step=0), "step must be > 0, got 0"),
        (lambda: domkl.RFFDOKL(step=-0.1), "step must be > 0, got -0.1"),
        (lambda: domkl.RFFDOMKL(eta_g=float("inf")), "eta_g must be > 0, got inf"),
        (lambda: domkl.DOMKL(rho=10**400), "rho must be > 0"),
        (lambda: domkl.DOMKL(loss="huber"), r"loss must be Squared\(\), .* got 'huber'"),
        (lambda: domkl.COMKL(loss=domkl.Huber), "loss must be Squared"),
        (lambda: domkl.RandomFeatures.draw(domkl.Gaussian(), 2, seed=0), "bank must hold"),
        (lambda: FEATURES([1.0, 2.0], dtype="int32"), "dtype must be one of float64, float32"),
        (lambda: FEATURES.kernel(1.5), "p must be an integer >= 0, got 1.5"),
        (lambda: domkl.Alone("domkl"), "algorithm must be an Algorithm"),
        (lambda: domkl.LastValue(newest_lag=-1), "newest_lag must be an integer >= 0, got -1"),
        (lambda: domkl.Gaussian(0.0), "bandwidth must be > 0, got 0.0"),
        (lambda: domkl.Matern(1.0, smoothness=0), "smoothness must be > 0"),
        (lambda: domkl.Huber(delta=-1), "delta must be > 0, got -1"),
        (lambda: domkl.Pinball(level=1.0), r"level must be in \(0, 1\), got 1.0"),
        (lambda: domkl.RandomFeatures.draw([], 2, seed=0), "bank must hold at least one kernel"),
        (lambda: domkl.RandomFeatures.draw([domkl.Gaussian()], 0, seed=0), "n_inputs must be"),
        (
            lambda: domkl.RandomFeatures.draw([domkl.Gaussian()], 2, 0, seed=0),
            "n_frequencies must be an integer >= 1, got 0",
        ),
        (
            lambda: domkl.RandomFeatures.draw([domkl.Cauchy()], 2, seed=0, orthogonal=True),
            "orthogonal features need an isotropic kernel",
        ),
        (lambda: FEATURES.kernel(2), r"p must be in 0\.\.1, got 2"),
    ],
)
def test_wrong_parameters(make, message):
    with pytest.raises(domkl.ParameterError, match=message):
        make()


def test_wrong_frequencies_and_inputs():
    with pytest.raises(domkl.DataError, match=r"frequencies must have shape \(P, M, d\)"):
        domkl.RandomFeatures(np.ones((2, 3)))
    with pytest.raises(domkl.DataError, match="frequencies must be finite"):
        domkl.RandomFeatures(np.full((1, 1, 1), np.inf))
    with pytest.raises(domkl.DataError, match=r"x must have shape \(…, 2\), got \(3,\)"):
        FEATURES(np.ones(3))


@pytest.mark.parametrize(("interpreted", "is_asked"), [(None, True), (False, False), (True, False)])
def test_only_a_run_without_a_choice_may_do_without_the_compiler(
    interpreted, is_asked, monkeypatch
):
    asked = []
    monkeypatch.setattr(compiled, "is_worth_compiling", lambda *_: asked.append(1))
    monkeypatch.setattr(compiled, "play", lambda *_: None)
    features = domkl.RandomFeatures(np.ones((1, 2, 1)))
    given = np.ones((3, 2, 1)), np.ones((3, 2)), domkl.Graph.ring(2), features
    domkl.simulate(domkl.DOMKL(), *given, interpreted=interpreted)
    assert bool(asked) == is_asked


def test_quantiles_are_kept_for_the_levels_asked_for():
    levels = (0.1, 0.5, 0.9)
    run = domkl.simulate(domkl.DOMKRLS(), X, Y, GRAPH, FEATURES, quantiles=levels)
    assert run.quantiles.shape == (25, 6, 3)
    assert run.levels.tolist() == list(levels)
    assert np.isinf(run.quantiles[0, :, [0, 2]]).all()
    assert np.isfinite(run.quantiles[1:]).all()
    assert (np.diff(run.quantiles[1:], axis=-1) > 0).all()
    gap = Y[1:, :, None] - run.quantiles[1:]
    expected = np.where(gap > 0, np.array(levels) * gap, (np.array(levels) - 1) * gap)
    np.testing.assert_allclose(run.pinball[[0, 2]], expected.mean(axis=(0, 1))[[0, 2]])
    trials = domkl.simulate(domkl.DOMKRLS(), X, Y, [GRAPH] * 2, FEATURES, quantiles=levels)
    np.testing.assert_array_equal(trials.quantiles[1], run.quantiles)
    np.testing.assert_allclose(trials.pinball[1], run.pinball)
    alone = domkl.simulate(
        domkl.Alone(domkl.DOMKRLS()), X, Y, domkl.Graph.empty(6), FEATURES, quantiles=levels
    )
    assert alone.quantiles.shape == (25, 6, 3)


@pytest.mark.parametrize("levels", [(), (0.5, 0.1), (0.0, 0.5), (0.5, 1.0), "many", (0.2, 0.2)])
def test_levels_ascend_between_0_and_1(levels):
    with pytest.raises(domkl.ParameterError, match="quantiles must be ascending levels in"):
        domkl.simulate(domkl.DOMKRLS(), X, Y, GRAPH, FEATURES, quantiles=levels)


class Sure(domkl.LinearRLS):
    def deviation(self, state, inputs, prediction):
        return np.full(len(prediction.y_hat), 0.5)


def test_quantiles_of_an_algorithm_with_deviations_are_normal():
    run = domkl.simulate(Sure(), X, Y, GRAPH, FEATURES, quantiles=(0.025, 0.5))
    np.testing.assert_allclose(run.quantiles[..., 0], run.predictions - 0.98, atol=1e-4)
    np.testing.assert_array_equal(run.quantiles[..., 1], run.predictions)
    with pytest.raises(domkl.ParameterError, match="quantiles must be None for DOMKL"):
        domkl.simulate(domkl.DOMKL(), X, Y, GRAPH, FEATURES, quantiles=(0.5,))
