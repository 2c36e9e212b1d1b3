"""One learner: it hears neighbors as the simulator does, and keeps what belongs to each."""

import numpy as np
import pytest

import domkl
from domkl.errors import DataError
from domkl.mesh.protocol.learner import LocalLearner
from domkl.mesh.protocol.wire import Offer
from domkl.mesh.testing.schedules import DRAWN, algorithm_of


def learner_of(model, *neighbors):
    learner = LocalLearner(model)
    learner.rewire([], neighbors)
    return learner


def step(learner, x=(0.2, 0.7), y=0.5):
    return learner.local_step(*learner.look(np.array(x)), np.array([y]))[1]


def offer_of(learner, message, degree=1):
    layout = learner.layout()
    return layout.unpack(layout.pack(message, 0, degree))


@pytest.mark.parametrize("name", DRAWN)
def test_without_neighbors_a_learner_is_a_simulated_one_without_edges(model_of, name):
    model = model_of(algorithm_of(name))
    x = np.random.default_rng(0).random((20, 1, 2))
    y = x[..., 0] * x[..., 1]
    graph = domkl.Graph.empty(1)
    run = domkl.simulate(model.algorithm, x, y, graph, model.features)
    learner = LocalLearner(model)
    pairs = zip(x, y, strict=True)
    said = [learner.learn(row[0], float(label[0])).y_hat[0] for row, label in pairs]
    np.testing.assert_array_equal(said, run.predictions[:, 0])


@pytest.mark.parametrize("name", DRAWN)
def test_who_was_not_heard_yet_changes_nothing(model_of, name):
    model = model_of(algorithm_of(name))
    silent, alone = learner_of(model, "b"), learner_of(model, "b")
    silent.merge(step(silent), [None])
    message = step(alone)
    exchange = model.algorithm.exchange
    told = [v if exchange[f] == "metropolis" else 0 * v for f, v in message._asdict().items()]
    told = type(message)(*told)
    alone.state = model.algorithm.merge(alone.state, told, alone.net)
    for field, value in silent.state._asdict().items():
        np.testing.assert_array_equal(value, getattr(alone.state, field), err_msg=field)
    inputs, prediction = silent.look(np.array([0.5, 0.5]))
    assert silent.neighbor_distance(inputs, float(prediction.y_hat[0])) is None


def test_the_distance_to_neighbors_is_by_what_they_said_last(model_of):
    model = model_of()
    a, b = learner_of(model, "b"), learner_of(model, "a")
    for y in (0.2, 0.9):
        to_b, to_a = step(a, y=0.5), step(b, y=y)
        offers = offer_of(a, to_b), offer_of(b, to_a)
        a.merge(to_b, [offers[1]])
        b.merge(to_a, [offers[0]])
    inputs, prediction = a.look(np.array([0.2, 0.7]))
    y_hat = float(prediction.y_hat[0])
    theirs = np.sum(a.state.weights[0] * np.sum(offers[1].fields["theta"][0] * inputs.z[0], axis=1))
    assert a.neighbor_distance(inputs, y_hat) == pytest.approx((theirs - y_hat) ** 2)
    a.rewire(["b"], [])
    assert a.neighbor_distance(inputs, y_hat) is None


def test_metropolis_weights_use_both_degrees(model_of):
    learner = learner_of(model_of(domkl.RFFDOKL()), "b", "c")
    offers = [Offer(1, {}), Offer(4, {})]
    np.testing.assert_array_equal(learner._metropolis(offers), [1 / 3, 1 / 5])
    assert learner_of(model_of(), "b")._metropolis(offers).size == 0


def test_what_is_kept_of_a_neighbor_moves_with_its_name(model_of):
    learner = learner_of(model_of(algorithm_of("message-passing")), "b", "c")
    inbox = learner.state.inbox
    inbox[:] = np.arange(1, 3)[:, None]
    learner.rewire(["b", "c"], ["d", "c", "b"])
    np.testing.assert_array_equal(learner.state.inbox[:, 0], [0, 2, 1])
    assert learner.net.degree == 3


def test_a_state_is_restored_but_for_what_was_of_neighbors(model_of):
    model = model_of(algorithm_of("message-passing"))
    learner = learner_of(model, "b")
    learner.merge(step(learner), [None])
    arrays = {f"state.{f}": v for f, v in learner.state._asdict().items()}
    again = LocalLearner(model)
    again.restore("state", arrays)
    np.testing.assert_array_equal(again.state.theta, learner.state.theta)
    assert len(again.state.inbox) == 0
    with pytest.raises(DataError, match=r"state\.theta must be finite"):
        again.restore("state", arrays | {"state.theta": arrays["state.theta"] * np.nan})
    with pytest.raises(DataError, match=r"state\.theta must have shape"):
        again.restore("state", arrays | {"state.theta": arrays["state.theta"][:, :1]})


def test_a_deviation_is_given_if_the_algorithm_has_one(model_of):
    assert LocalLearner(model_of()).deviation(np.zeros(2)) is None
    assert LocalLearner(model_of(domkl.DOMKRLS())).deviation(np.zeros(2)) > 0
