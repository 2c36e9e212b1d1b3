"""Laws of DOMKRLS: scale, drift, outliers, padding, weights, deviations, labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import domkl

bank = (*domkl.gaussian_bank([0.1, 1.0, 10.0]), domkl.Linear())
features = domkl.RandomFeatures.draw(bank, 3, 20, seed=1)
graph = domkl.Graph.random(6, 0.4, seed=3)


def stream(seed, n_rounds=60, n_learners=6):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rounds, n_learners, 3))
    return X, np.sin(2 * X.sum(axis=-1)) + 0.1 * rng.normal(size=X.shape[:2])


def simulate(algorithm, X, y, **options):
    return domkl.simulate(algorithm, X, y, graph, features, **options)


@pytest.mark.parametrize("loss", [domkl.Huber(), domkl.Absolute(), domkl.Pinball(), "squared"])
def test_only_losses_with_a_curvature_are_taken(loss):
    with pytest.raises(domkl.ParameterError, match=r"loss must be Squared\(\) or Logistic\(\)"):
        domkl.DOMKRLS(loss=loss)


@pytest.mark.parametrize(("name", "value"), [("forget", 0.0), ("forget", 1.1), ("ridge", 0.0)])
def test_parameters_are_checked(name, value):
    with pytest.raises(domkl.ParameterError, match=f"{name} must be"):
        domkl.DOMKRLS(**{name: value})


@pytest.mark.parametrize("factor", [1e-6, 10.0])
@pytest.mark.parametrize("forget", [1.0, 0.95])
def test_predictions_scale_with_the_targets(factor, forget):
    X, y = stream(1)
    run = simulate(domkl.DOMKRLS(forget), X, y, deviation=True)
    other = simulate(domkl.DOMKRLS(forget), X, factor * y, deviation=True)
    np.testing.assert_allclose(other.predictions, factor * run.predictions, rtol=1e-8)
    np.testing.assert_allclose(other.deviation, factor * run.deviation, rtol=1e-8)
    np.testing.assert_allclose(other.weights, run.weights, rtol=1e-8, atol=1e-12)


def test_far_larger_targets_are_learned_a_few_labels_later():
    """The first ones are beyond 20 times the largest input, and are believed as rows of three."""
    X, y = stream(1, n_rounds=300)
    run, other = (simulate(domkl.DOMKRLS(), X, factor * y) for factor in (1.0, 1e6))
    np.testing.assert_array_equal(other.predictions[:3], 0)
    gap = np.abs(other.predictions / 1e6 - run.predictions)
    assert gap[20:].mean() < 0.02  # the noise is 0.1
    assert gap[150:].max() < 0.03
    np.testing.assert_allclose(other.weights, run.weights, atol=0.03)


@given(st.integers(0, 10**6), st.sampled_from([0.9, 1.0]), st.sampled_from([1e-6, 1.0, 1e6]))
@settings(max_examples=30)
def test_weights_are_on_the_simplex(seed, forget, factor):
    X, y = stream(seed, n_rounds=20)
    run = simulate(domkl.DOMKRLS(forget), X, factor * y)
    assert (run.weights >= 0).all()
    # the linear kernel has at least 1e-6
    np.testing.assert_allclose(run.weights.sum(axis=1), 1, rtol=2e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("value", [0.0, 1e-6, -3.0, 1e6])
def test_constant_targets_are_learned(value, dtype):
    X, _ = stream(2, n_rounds=300)
    y = np.full(X.shape[:2], value)
    run = simulate(domkl.DOMKRLS(), X, y, dtype=dtype, deviation=True)
    assert np.isfinite(run.weights).all()
    np.testing.assert_allclose(run.predictions[-1], value, rtol=5e-3)
    first = 3 if value == 1e6 else 1  # the third of a row of huge labels is believed
    assert np.isfinite(run.deviation[first:]).all()
    if value == 1e6:
        np.testing.assert_array_equal(run.predictions[:3], 0)
        np.testing.assert_allclose(run.predictions[4:], value, rtol=5e-3)


def test_targets_that_begin_with_zeros_are_learned():
    X, y = stream(3, n_rounds=400)
    y = np.where(np.arange(400)[:, None] < 30, 0.0, y)
    run = simulate(domkl.DOMKRLS(), X, y)
    assert run.squared_errors[200:].mean() < 0.05


def test_padding_is_not_used():
    short = domkl.RandomFeatures.draw(bank, 3, 1, seed=1)  # 2 of D = 4 features, and 4 of the last
    X, y = stream(4)
    run = domkl.simulate(domkl.DOMKRLS(), X, y, graph, short)
    assert (run.theta[:, :-1, 2:] == 0).all()
    # of the last kernel, the linear one, there are two fits
    assert (run.state.own[:, :-2, 2:] == 0).all()
    assert (run.state.diagonal[:, :-2, 2:] == 0).all()
    assert (run.state.diagonal[:, -2:] > 0).all()


def test_a_learner_without_neighbors_is_alone():
    X, y = stream(5)
    lonely = domkl.Graph.from_edges(6, [(0, 1), (1, 2), (2, 3), (3, 4)])
    run = domkl.simulate(domkl.DOMKRLS(), X, y, lonely, features)
    alone = domkl.simulate(domkl.Alone(domkl.DOMKRLS()), X, y, lonely, features)
    np.testing.assert_array_equal(run.predictions[:, 5], alone.predictions[:, 5])


def test_neighbors_help():
    X, y = stream(6, n_rounds=200)
    run = simulate(domkl.DOMKRLS(), X, y)
    alone = simulate(domkl.Alone(domkl.DOMKRLS()), X, y)
    assert run.mse[-1] < 0.9 * alone.mse[-1]
    assert run.cv[-1] < 0.25 * alone.cv[-1]


@pytest.mark.parametrize("forget", [0.99, 1.0])
def test_a_regime_switch_is_followed(forget):
    """Told to forget or not: the second memory forgets."""
    X, y = stream(7, n_rounds=1000)
    y[500:] = -y[500:]
    errors = simulate(domkl.DOMKRLS(forget), X, y).squared_errors
    assert errors[900:].mean() < 0.03  # the noise is 0.01


def test_the_kernels_are_weighed_anew_after_a_switch():
    """From a linear function to one that only the narrow kernels have, and back.

    Accounts remember half of the stream, so that the linear kernel's weight comes back slowly.
    """
    rng = np.random.default_rng(8)
    X = rng.random((1500, 6, 3))
    linear, curved = X @ [1.0, 2.0, 3.0], np.sin(12 * X[..., 0])
    is_curved = (np.arange(1500) // 500 == 1)[:, None]
    y = np.where(is_curved, curved, linear) + 0.01 * rng.normal(size=(1500, 6))
    state, trust, errors = None, [], []
    for part in (slice(0, 500), slice(500, 1000), slice(1000, 1500)):
        run = simulate(domkl.DOMKRLS(0.98), X[part], y[part], state=state)
        state = run.state
        trust.append(run.weights[:, -1].mean())
        errors.append(run.squared_errors[-100:].mean())
    assert trust[0] > 0.9
    assert trust[1] < 0.3
    assert trust[2] > 0.5
    assert errors[0] < 2e-4  # the noise is 1e-4
    assert errors[2] < 2e-3


def test_an_outlier_does_not_flip_the_kernel_choice():
    X, y = stream(9, n_rounds=400)
    before = simulate(domkl.DOMKRLS(), X[:399], y[:399])
    hit = y.copy()
    hit[399, 2] = 1e6
    after = simulate(domkl.DOMKRLS(), X[399:], hit[399:], state=before.state)
    assert (after.weights.argmax(axis=1) == before.weights.argmax(axis=1)).all()
    assert np.abs(after.weights - before.weights).max() < 0.2


def test_forgetting_with_constant_inputs_does_not_wind_up():
    X, y = stream(10, n_rounds=5000, n_learners=6)
    X[100:] = X[0]
    y[100:] = y[0]
    for dtype in ("float64", "float32"):
        run = simulate(domkl.DOMKRLS(0.95), X, y, dtype=dtype, cv="off")
        assert run.state.diagonal.max() <= 1001
        assert np.abs(run.predictions[-1] - y[0]).max() < 0.5


def test_float32_stays_near_float64():
    X, y = stream(11, n_rounds=2000)
    double = simulate(domkl.DOMKRLS(), X, y, cv="off")
    single = simulate(domkl.DOMKRLS(), X, y, cv="off", dtype="float32")
    assert single.theta.dtype == single.state.factor.dtype == np.float32
    assert np.abs(single.predictions - double.predictions)[20:].max() < 0.02
    assert single.mse[-1] == pytest.approx(double.mse[-1], rel=0.01)


def test_the_deviation_covers_noise_of_known_size():
    """95 % of normal noise lies within 1.96 deviations; 6·550 samples: ± 0.4 % is one error."""
    X, y = stream(12, n_rounds=600)
    run = simulate(domkl.DOMKRLS(), X, y, deviation=True)
    is_inside = np.abs(run.predictions - y) <= 1.96 * run.deviation
    assert 0.93 < is_inside[50:].mean() < 0.995
    assert run.deviation[100:].mean() == pytest.approx(0.11, rel=0.3)


def test_an_algorithm_without_deviation_says_so():
    X, y = stream(13, n_rounds=3)
    with pytest.raises(domkl.ParameterError, match="deviation must be False for DOMKL"):
        simulate(domkl.DOMKL(), X, y, deviation=True)
    assert simulate(domkl.DOMKL(), X, y).deviation is None


def labelled(seed, n_rounds):
    """Labels whose log-odds are a ring's: no line divides them."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rounds, 6, 3))
    odds = 8 * (0.16 - ((X[..., :2] - 0.5) ** 2).sum(axis=-1)) / 0.16
    is_one = rng.random(odds.shape) < 1 / (1 + np.exp(-odds))
    return X, np.where(is_one, 1.0, -1.0), odds


def test_labels_are_learned_with_the_logistic_loss():
    X, y, odds = labelled(14, 800)
    algorithm = domkl.DOMKRLS(loss=domkl.Logistic())
    run = simulate(algorithm, X, y, deviation=True)
    late = slice(300, None)
    f = run.predictions[late]
    loss = np.logaddexp(0, -y[late] * f).mean()
    best = np.logaddexp(0, -y[late] * odds[late]).mean()
    share = (y[late] > 0).mean()
    base = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert loss < best + 0.25 * (base - best)
    assert (np.sign(f) == y[late]).mean() > 0.8
    # where the odds are thought to be, they are
    is_inside = np.abs(f - odds[late]) < 1.96 * run.deviation[late] + 0.5
    assert is_inside.mean() > 0.8


def test_separable_labels_do_not_blow_up():
    X, _, odds = labelled(15, 2000)
    y = np.where(odds > 0, 1.0, -1.0)
    for dtype in ("float64", "float32"):
        run = simulate(domkl.DOMKRLS(loss=domkl.Logistic()), X, y, cv="off", dtype=dtype)
        assert np.isfinite(run.predictions).all()
        assert (run.state.diagonal[:, :3, :40] > 0).all()
        assert (np.sign(run.predictions[500:]) == y[500:]).mean() > 0.95


def test_a_label_against_all_odds_is_no_disaster():
    X, _, odds = labelled(16, 600)
    y = np.where(odds > 0, 1.0, -1.0)
    y[500] = -y[500]
    run = simulate(domkl.DOMKRLS(loss=domkl.Logistic()), X, y, cv="off")
    right = np.sign(run.predictions) == y
    assert right[501:].mean() > right[400:500].mean() - 0.1


def test_the_linear_kernel_of_a_dictionary_is_the_last():
    drawn = domkl.RandomFeatures.draw(domkl.default_bank(), 4, 5, seed=2)
    same = domkl.RandomFeatures.draw(domkl.default_bank()[:-1], 4, 5, seed=2, linear=True)
    assert drawn == same
    assert drawn.linear
    for wrong in ([domkl.Linear()], [domkl.Linear(), domkl.Gaussian()]):
        with pytest.raises(domkl.ParameterError, match=r"Linear\(\) only as the last"):
            domkl.RandomFeatures.draw(wrong, 4, 5, seed=2)


def test_where_neighbors_are_no_help_a_learner_turns_to_itself():
    """Every learner sees its own part of the space, and no feature map spans all parts well."""
    rng = np.random.default_rng(17)
    X = rng.random((500, 6, 3))
    X[..., 0] = (X[..., 0] + np.arange(6)) / 6
    y = np.sin(12 * X[..., 0]) * np.cos(3 * X[..., 1]) + 0.1 * rng.normal(size=X.shape[:2])
    run = simulate(domkl.DOMKRLS(), X, y)
    alone = simulate(domkl.Alone(domkl.DOMKRLS()), X, y)
    assert run.squared_errors[100:].mean() < 1.05 * alone.squared_errors[100:].mean()


def test_a_lost_message_is_healed():
    """What a learner's mean lost or gained is gone after some hundred rounds."""
    X, y = stream(19, n_rounds=1200)
    first = simulate(domkl.DOMKRLS(), X[:200], y[:200])
    hurt = first.state._replace(sums=first.state.sums.copy(), counts=first.state.counts.copy())
    hurt.sums[0] += 200.0
    hurt.counts[1] += 50.0
    well, ill = (
        simulate(domkl.DOMKRLS(), X[200:], y[200:], state=state).state
        for state in (first.state, hurt)
    )
    theta = [state.sums / state.counts[:, :, None] for state in (well, ill)]
    assert np.abs(theta[1] - theta[0]).max() < 1e-3


def test_before_the_first_sample_the_deviation_is_infinite():
    rng = np.random.default_rng(0)
    X, y = rng.random((20, 3, 2)), rng.random((20, 3))
    features = domkl.RandomFeatures.draw(domkl.default_bank(), 2, 10, seed=0)
    run = domkl.simulate(domkl.DOMKRLS(), X, y, domkl.Graph.ring(3), features, deviation=True)
    assert np.isinf(run.deviation[0]).all()
    assert np.isfinite(run.deviation[1:]).all()
