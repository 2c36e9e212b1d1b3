"""The compiled and the interpreted host run the same laws: equal to the bit."""

import numpy as np
import pytest

import domkl
from domkl.algorithms import base
from domkl.sim import blocked as passes


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Small as they are, these runs are to be compiled."""
    monkeypatch.setattr(base, "PATIENCE", 0.0)


ALGORITHMS = {
    "domkl": domkl.DOMKL(),
    "domkl-huber": domkl.DOMKL(loss=domkl.Huber(0.2)),
    "domkl-messages": domkl.DOMKL(weights="message-passing"),
    "domkrls": domkl.DOMKRLS(),
    "domkrls-forget": domkl.DOMKRLS(forget=0.9),
    "domkrls-logistic": domkl.DOMKRLS(loss=domkl.Logistic()),
    "domkrls-lag": domkl.DOMKRLS(newest_lag=2),
    "domkrls-horizon": domkl.DOMKRLS(newest_lag=0, steps_ahead=24),
    "domkrls-alone": domkl.Alone(domkl.DOMKRLS(newest_lag=5)),
    "dokl": domkl.DOKL(),
    "comkl": domkl.COMKL(),
    "rff-dokl": domkl.RFFDOKL(),
    "rff-domkl": domkl.RFFDOMKL(),
    "alone": domkl.Alone(domkl.DOMKL()),
    "omkl": domkl.Alone(domkl.COMKL()),
    "last-value": domkl.LastValue(),
    "linear-rls": domkl.LinearRLS(),
    "linear-rls-forget": domkl.LinearRLS(forget=0.9),
    "linear-pooled": domkl.PooledLinearRLS(),
    "seasonal-naive": domkl.SeasonalNaive(4),
}
BASELINES = ("last-value", "linear-rls", "linear-rls-forget", "linear-pooled", "seasonal-naive")


def problem(algorithm, n_learners=7, n_trials=5, n_rounds=30, n_inputs=6):
    rng = np.random.default_rng(3)
    X, y = rng.random((n_rounds, n_learners, n_inputs)), rng.random((n_rounds, n_learners))
    if algorithm.loss == domkl.Logistic():
        y = np.where(y > 0.5, 1.0, -1.0)
    bank = domkl.gaussian_bank([1.0] if algorithm.single_kernel else [0.01, 1.0, 100.0])
    if algorithm.needs_acyclic:
        graphs = [domkl.Graph.tree(n_learners, seed=b) for b in range(n_trials)]
    else:
        graphs = [
            domkl.Graph.random(n_learners, 0.3, seed=b, connected=False) for b in range(n_trials)
        ]
    linear = not algorithm.single_kernel
    maps = [
        domkl.RandomFeatures.draw(bank, n_inputs, 13, seed=b, linear=linear)
        for b in range(n_trials)
    ]
    return X, y, graphs, maps


def fields(run):
    assert run.component_mse.shape == (*run.mse.shape, run.component.max() + 1)
    assert run.component_cv is not None
    assert run.learner_mse is not None
    assert run.learner_cv is not None  # the four are now among the run's variables
    return {name: value for name, value in vars(run).items() if isinstance(value, np.ndarray)} | {
        f"state.{name}": value for name, value in run.state._asdict().items()
    }


def assert_same(ours, theirs):
    ours, theirs = fields(ours), fields(theirs)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_compiled_rounds_equal_interpreted_ones(name, dtype):
    algorithm = ALGORITHMS[name]
    X, y, graphs, maps = problem(algorithm)
    fast = domkl.simulate(algorithm, X, y, graphs, maps, dtype=dtype)
    slow = domkl.simulate(algorithm, X, y, graphs, maps, dtype=dtype, interpreted=True)
    assert_same(fast, slow)


def assert_same_without_pairs(ours, theirs):
    """Where CV is not exact, a run has no sums over pairs."""
    for name in ("mse", "cv", "cv_error", "predictions", "theta", "weights"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    for name, value in ours.state._asdict().items():
        np.testing.assert_array_equal(value, getattr(theirs.state, name), err_msg=name)


@pytest.mark.parametrize("cv", ["off", "sampled", "moments"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["domkl", "domkl-huber", "dokl", "rff-dokl", "rff-domkl", "alone"])
def test_passes_equal_interpreted_rounds(name, dtype, cv):
    algorithm = ALGORITHMS[name]
    X, y, graphs, maps = problem(algorithm, n_trials=1, n_rounds=31)
    both = [
        domkl.simulate(algorithm, X, y, graphs[0], maps[0], dtype=dtype, cv=cv, interpreted=is_slow)
        for is_slow in (False, True)
    ]
    assert_same_without_pairs(*both)


@pytest.mark.parametrize("n_learners", [7, 150])
@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("name", BASELINES)
def test_baselines_run_in_all_hosts(name, delay, n_learners):
    """Compiled and blocked rounds, with labels that come late or never."""
    algorithm = ALGORITHMS[name]
    X, y, graphs, maps = problem(algorithm, n_learners, n_trials=1)
    y[4:9, 2] = np.nan
    both = [
        domkl.simulate(
            algorithm, X, y, graphs[0], maps[0], cv="off", delay=delay, interpreted=is_slow
        )
        for is_slow in (False, True)
    ]
    np.testing.assert_array_equal(both[0].predictions, both[1].predictions)
    learned = [run.state.state if delay else run.state for run in both]
    for ours, theirs in zip(*learned, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("n_rounds", [1, 2, 37])
@pytest.mark.parametrize("name", ["domkl", "rff-domkl", "alone"])
def test_every_order_gives_the_same(name, n_rounds, monkeypatch):
    """Kernel by kernel or learner by learner, on one core or three, in stretches of any length."""
    algorithm = ALGORITHMS[name]
    X, y, graphs, maps = problem(algorithm, n_learners=150, n_trials=1, n_rounds=n_rounds)

    def run(stretch, threads):
        monkeypatch.setattr(passes, "STRETCH", stretch)
        return domkl.simulate(algorithm, X, y, graphs, maps, cv="off", threads=threads)

    first = run(150, 1)  # a round at a time: learner by learner
    for stretch, threads in ((150, 3), (150 * 16, 1), (150 * 16, 3), (150 * 100, 2)):
        assert_same_without_pairs(first, run(stretch, threads))


@pytest.mark.parametrize("cv", ["off", "sampled"])
@pytest.mark.parametrize("name", ["domkl", "rff-domkl"])
def test_passes_take_an_iterator(name, cv):
    algorithm = ALGORITHMS[name]
    X, y, graphs, maps = problem(algorithm)
    arrays = domkl.simulate(algorithm, X, y, graphs[0], maps[0], cv=cv)
    rounds = zip(X, y, strict=True)
    lazy = domkl.simulate(algorithm, rounds, None, graphs[0], maps[0], cv=cv, keep_predictions=True)
    assert_same_without_pairs(arrays, lazy)


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_batch_equals_each_trial_by_itself(name, interpreted):
    algorithm = ALGORITHMS[name]
    X, y, graphs, maps = problem(algorithm)
    batch = domkl.simulate(algorithm, X, y, graphs, maps, interpreted=interpreted)
    for b in range(len(graphs)):
        alone = domkl.simulate(algorithm, X, y, graphs[b], maps[b], interpreted=interpreted)
        np.testing.assert_array_equal(batch.predictions[b], alone.predictions)
        np.testing.assert_array_equal(batch.cv[b], alone.cv)


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize("name", ["domkl", "domkrls", "rff-domkl", "omkl"])
def test_a_learner_without_neighbors_equals_a_network_of_one(name, interpreted):
    algorithm = ALGORITHMS[name]
    X, y, graphs, maps = problem(algorithm)
    alone = domkl.Alone(algorithm)
    whole = domkl.simulate(alone, X, y, graphs[0], maps[0], interpreted=interpreted)
    one = domkl.Graph.empty(1)
    for k in range(y.shape[1]):
        single = domkl.simulate(alone, X[:, [k]], y[:, [k]], one, maps[0], interpreted=interpreted)
        np.testing.assert_array_equal(whole.predictions[:, [k]], single.predictions)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_threads_do_not_matter(name):
    algorithm = ALGORITHMS[name]
    X, y, graphs, maps = problem(algorithm)
    one = domkl.simulate(algorithm, X, y, graphs, maps, threads=1)
    assert_same(one, domkl.simulate(algorithm, X, y, graphs, maps, threads=3))


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_interrupted_and_resumed_equals_uninterrupted(name, interpreted, tmp_path):
    algorithm = ALGORITHMS[name]
    X, y, graphs, maps = problem(algorithm)
    whole = domkl.simulate(algorithm, X, y, graphs, maps, interpreted=interpreted)
    half = domkl.simulate(algorithm, X[:11], y[:11], graphs, maps, interpreted=interpreted)
    np.savez(tmp_path / "state.npz", **half.state._asdict())
    with np.load(tmp_path / "state.npz", allow_pickle=False) as stored:
        state = type(half.state)(**stored)
    rest = domkl.simulate(
        algorithm, X[11:], y[11:], graphs, maps, state=state, interpreted=interpreted
    )
    np.testing.assert_array_equal(whole.predictions[:, 11:], rest.predictions)
    for name, value in whole.state._asdict().items():
        np.testing.assert_array_equal(value, getattr(rest.state, name), err_msg=name)
    for name, value in half.state._asdict().items():  # the given state is left as it was
        np.testing.assert_array_equal(value, getattr(state, name), err_msg=name)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_iterator_gives_the_same(name):
    algorithm = ALGORITHMS[name]
    X, y, graphs, maps = problem(algorithm)
    arrays = domkl.simulate(algorithm, X, y, graphs, maps)
    rounds = zip(X, y, strict=True)
    lazy = domkl.simulate(algorithm, rounds, None, graphs, maps, keep_predictions=True)
    assert_same(arrays, lazy)
    forgetful = domkl.simulate(algorithm, zip(X, y, strict=True), None, graphs, maps)
    assert forgetful.predictions is None
    np.testing.assert_array_equal(forgetful.mse, arrays.mse)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_inputs_are_not_touched(name):
    algorithm = ALGORITHMS[name]
    X, y, graphs, maps = problem(algorithm)
    X.setflags(write=False)
    y.setflags(write=False)
    domkl.simulate(algorithm, X, y, graphs, maps)
    domkl.simulate(algorithm, X, y, graphs, maps, interpreted=True)
