"""One learner: it hears neighbors as the simulator does, and keeps what belongs to each."""

import numpy as np
import pytest
from schedules import DRAWN, algorithm_of

import domkl
from domkl.errors import DataError
from domkl.learner.local import LocalLearner
from domkl.mesh.protocol.wire import Offer


def learner_of(algorithm=None, *neighbors):
    algorithm = domkl.DOMKL() if algorithm is None else algorithm
    bank = domkl.gaussian_bank((0.01,) if algorithm.single_kernel else (0.01, 1.0))
    learner = LocalLearner(algorithm, domkl.RandomFeatures.draw(bank, 2, 3, seed=1))
    learner.rewire([], neighbors)
    return learner


def step(learner, x=(0.2, 0.7), y=0.5):
    return learner.local_step(*learner.look(np.array(x)), np.array([y]))


@pytest.mark.parametrize("name", DRAWN)
def test_without_neighbors_a_learner_is_a_simulated_one_without_edges(name):
    learner = learner_of(algorithm_of(name))
    x = np.random.default_rng(0).random((20, 1, 2))
    y = x[..., 0] * x[..., 1]
    run = domkl.simulate(learner.algorithm, x, y, domkl.Graph.empty(1), learner.features)
    pairs = zip(x, y, strict=True)
    said = [learner.learn(row[0], float(label[0])).y_hat[0] for row, label in pairs]
    np.testing.assert_array_equal(said, run.predictions[:, 0])


@pytest.mark.parametrize("name", DRAWN)
def test_who_was_not_heard_yet_changes_nothing(name):
    algorithm = algorithm_of(name)
    silent, alone = learner_of(algorithm, "b"), learner_of(algorithm, "b")
    silent.merge(step(silent), [None])
    message = step(alone).message
    exchange = algorithm.exchange
    told = [v if exchange[f] == "metropolis" else 0 * v for f, v in message._asdict().items()]
    alone.state = algorithm.merge(alone.state, type(message)(*told), alone.net)
    for field, value in silent.state._asdict().items():
        np.testing.assert_array_equal(value, getattr(alone.state, field), err_msg=field)
    assert silent.heard == {}


def test_several_rows_are_learners_of_their_own():
    features = domkl.RandomFeatures.draw(domkl.default_bank(), 2, 3, seed=1)
    both = LocalLearner(domkl.DOMKRLS(), features, n_rows=2)
    each = [LocalLearner(domkl.DOMKRLS(), features) for _ in range(2)]
    for x in np.random.default_rng(0).random((20, 2)):
        y = np.array([x[0], x[1] ** 2])
        inputs, prediction = both.look(x)
        alone = [one.learn(x, float(label)).y_hat[0] for one, label in zip(each, y, strict=True)]
        np.testing.assert_array_equal(prediction.y_hat, alone)
        both.merge(both.local_step(inputs, prediction, y))


def test_metropolis_weights_use_both_degrees():
    learner = learner_of(domkl.RFFDOKL(), "b", "c")
    offers = [Offer(1, {}), Offer(4, {})]
    np.testing.assert_array_equal(learner._wires_to(offers).weight, [1 / 3, 1 / 5])
    assert learner_of(None, "b")._wires_to(offers).weight.size == 0


def test_what_is_kept_of_a_neighbor_moves_with_its_name():
    learner = learner_of(algorithm_of("message-passing"), "b", "c")
    inbox = learner.state.inbox
    inbox[:] = np.arange(1, 3)[:, None]
    learner.rewire(["b", "c"], ["d", "c", "b"])
    np.testing.assert_array_equal(learner.state.inbox[:, 0], [0, 2, 1])
    assert learner.net.degree == 3


def test_a_state_is_restored_but_for_what_was_of_neighbors():
    algorithm = algorithm_of("message-passing")
    learner = learner_of(algorithm, "b")
    learner.merge(step(learner), [None])
    arrays = {f"state.{f}": v for f, v in learner.state._asdict().items()}
    again = learner_of(algorithm)
    again.restore("state", arrays)
    np.testing.assert_array_equal(again.state.theta, learner.state.theta)
    assert len(again.state.inbox) == 0
    with pytest.raises(DataError, match=r"state\.theta must be finite, of shape"):
        again.restore("state", arrays | {"state.theta": arrays["state.theta"] * np.nan})
    with pytest.raises(DataError, match=r"state\.theta must be finite, of shape"):
        again.restore("state", arrays | {"state.theta": arrays["state.theta"][:, :1]})


def test_a_deviation_is_given_if_the_algorithm_has_one():
    for algorithm, has_one in ((domkl.DOMKL(), False), (domkl.DOMKRLS(), True)):
        learner = learner_of(algorithm)
        assert (learner.deviation(*learner.look(np.zeros(2))) is not None) == has_one
