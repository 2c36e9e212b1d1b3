"""The protocol of one learner: rounds, idle steps, membership, snapshots."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from schedules import DRAWN, algorithm_of

import domkl
from domkl.errors import DataError, ParameterError
from domkl.mesh.protocol.events import (
    Alarm,
    Checkpoint,
    Neighbors,
    Predicted,
    Sample,
    Tick,
    Timing,
)
from domkl.mesh.protocol.model import Range
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.testing import Conditions, VirtualNetwork
from domkl.storage import Parts

ALGORITHMS = {name: algorithm_of(name) for name in DRAWN}


def stream(n_rounds, n_learners=1, seed=0):
    x = np.random.default_rng(seed).random((n_rounds, n_learners, 2))
    return x, 0.5 + 0.3 * np.sin(5 * x[..., 0]) * x[..., 1]


def feed(protocol, x, y, now=0.0):
    """Hand over all; give the predictions."""
    out = []
    for row, label in zip(x[:, 0], y[:, 0], strict=True):
        number = protocol.learned + protocol.n_queued + 1
        out += protocol.handle(Sample(number, row, float(label)), now)
    return [each.y_hat for each in out if isinstance(each, Predicted)], out


def arrays(protocol):
    return {name: value.copy() for name, value in protocol.learner.state._asdict().items()}


def duals(protocols):
    return np.array([each.learner.state.dual for each in protocols])


# samples that are not believed


def test_a_sample_that_is_not_believed_is_an_alarm_and_survives_a_restart(model_of):
    model = model_of(ALGORITHMS["domkrls"])
    protocol = Protocol("a", model, (), incarnation=1)
    x, y = stream(60)
    y[50] = 1000.0
    _, effects = feed(protocol, x, y)
    alarms = [each for each in effects if isinstance(each, Alarm)]
    assert [(each.kind, each.peer) for each in alarms] == [("doubted", "")]
    assert f"{model.target_of(1000.0):.6g}" in alarms[0].text
    assert protocol.n_doubted == 1
    after = Protocol("a", model, (), incarnation=2, snapshot=protocol.snapshot())
    assert after.n_doubted == 1
    assert not [each for each in feed(after, *stream(5))[1] if isinstance(each, Alarm)]


# lockstep


def test_a_round_waits_for_the_neighbor_or_for_the_time_out(model_of, talk_of):
    talk = talk_of(model_of())
    talk.meet()
    a = talk.all["a"]
    talk.learn("a")
    talk.learn("a")
    assert (a.learned, a.n_queued) == (1, 1)
    talk.tick(0.9, lambda *_: True)
    assert (a.learned, a.n_queued) == (1, 1)
    talk.tick(0.15, lambda *_: True)
    assert (a.learned, a.n_queued) == (2, 0)
    assert a.measures.n_waited == 1


def test_who_made_a_round_wait_is_not_waited_for_again_until_it_caught_up(model_of, talk_of):
    talk = talk_of(model_of())
    talk.meet()
    a = talk.all["a"]
    talk.learn("a")
    talk.tick(1.1, lambda to, _: to == "b")
    for _ in range(5):
        talk.learn("a")
    assert (a.learned, a.n_queued, a.measures.n_waited) == (6, 0, 1)
    talk.learn("b")
    talk.tick(0.5)  # b hears what it missed, answers, and is waited for again
    assert not a.edges.by_peer["b"].is_lagging
    talk.learn("a")
    talk.learn("a")
    assert a.n_queued == 1


def test_the_first_round_waits_for_all_neighbors(model_of, talk_of):
    talk = talk_of(model_of())
    talk.learn("a")
    talk.tick(9.0, lambda *_: True)
    assert talk.all["a"].learned == 0
    talk.tick(0.6)
    assert talk.all["a"].learned == 1


def test_the_first_round_does_not_wait_for_ever(model_of, talk_of):
    talk = talk_of(model_of(), timing=Timing(start_timeout=2.0))
    talk.learn("a")
    talk.tick(1.9, lambda *_: True)
    assert talk.all["a"].learned == 0
    talk.tick(0.2, lambda *_: True)
    assert talk.all["a"].learned == 1


def test_asynchronous_learners_wait_for_nobody(model_of, talk_of):
    talk = talk_of(model_of(), mode="async")
    a = talk.all["a"]
    talk.learn("a")
    assert a.learned == 1
    talk.meet()
    for _ in range(3):
        talk.learn("a")
    assert (a.learned, a.measures.n_waited) == (4, 0)
    assert a.edges.by_peer["b"].n_done == 0
    before = a.learner.state.dual.copy()
    talk.learn("b", 0.9)
    talk.deliver()
    assert a.edges.by_peer["b"].n_done == 1  # taken in between two samples of a
    assert not np.array_equal(before, a.learner.state.dual)
    np.testing.assert_array_equal(a.learner.state.dual, -talk.all["b"].learner.state.dual)


@pytest.mark.parametrize(
    "conditions",
    [Conditions(latency=0.25), Conditions(loss=0.05), Conditions(loss=0.3, jitter=0.1)],
    ids=str,
)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_many_steps_between_exchanges_do_not_diverge(model_of, name, conditions):
    x, y = stream(400, 2)
    model = model_of(ALGORITHMS[name], n_frequencies=10)
    near = {"a": "b", "b": "a"}
    options = {"mode": "async", "period": 0.1, "conditions": conditions}
    network = VirtualNetwork(model, near, x, y, **options)
    network.run(50.0)
    sizes = [np.abs(model.algorithm.function(state).theta).max() for state in network.states()]
    assert max(sizes) < 5
    late = slice(200, None)
    assert np.mean((network.predictions() - y)[late] ** 2) < 0.1 * np.mean(y[late] ** 2)


# idling


def test_samples_a_little_apart_are_one_round(model_of, talk_of):
    talk = talk_of(model_of())
    talk.meet()
    for _ in range(4):
        talk.learn("a")
        talk.tick(0.1)
        talk.learn("b")
        talk.tick(2.0)  # much longer than idle_after
    for each in talk.all.values():
        assert (each.measures.n_idle, each.measures.n_rounds, each.learned) == (0, 4, 4)


def test_without_a_sample_a_learner_steps_when_a_neighbor_has_waited(model_of, talk_of):
    talk = talk_of(model_of())
    talk.meet()
    b = talk.all["b"]
    talk.learn("a")
    talk.tick(0.4)
    assert b.measures.n_idle == 0
    talk.tick(0.2)
    assert b.measures.n_idle == 1
    talk.learn("a")
    talk.deliver()  # and from then on at once
    assert b.measures.n_idle == 2
    assert (b.learned, b.measures.n_learned) == (0, 0)


@pytest.mark.parametrize("mode", ["lockstep", "async"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_learner_without_data_follows_the_networks_function(model_of, talk, name, mode):
    model = model_of(ALGORITHMS[name], n_frequencies=10)
    near = {"a": "b", "b": "ac", "c": "b"}  # c hears of the data through b alone
    options = {"mode": mode, "incarnation": 1, "measures_alone": False}
    net = talk([Protocol(k, model, list(v), **options) for k, v in near.items()])
    net.meet()
    n_rounds = 500 if name == "domkrls" else 200  # its means heal at 1 % a round
    x, y = stream(n_rounds, 3)
    for t in range(n_rounds):
        for k, who in enumerate("ab"):
            net.learn(who, float(y[t, k]), x[t, k])
        net.deliver()
        net.tick(0.05 if t % 10 else 0.6)
    a, b, c = net.all.values()
    assert c.learned == 0
    assert c.measures.n_idle >= 0.9 * n_rounds
    probe, target = stream(50, seed=1)
    told = np.array([[each.look(p)[0] for p in probe[:, 0]] for each in (a, b, c)])
    errors = np.mean((told - target[:, 0]) ** 2, axis=1)
    assert errors[2] < 1.5 * errors[:2].max() + 1e-4
    assert errors[2] < 0.05 * np.mean(target**2)  # what one errs that heard nothing


def test_a_backlog_is_caught_up_in_lockstep(model_of, talk):
    model = model_of()
    options = {"incarnation": 1, "measures_alone": False}
    line = {"a": ["b"], "b": ["a", "c"], "c": ["b"]}
    story = talk([Protocol(name, model, near, **options) for name, near in line.items()])
    story.meet()
    for _ in range(40):
        story.learn("a")
    story.deliver()
    story.tick(3 * Timing().idle_after)  # the first offer knew of no backlog: two waits
    assert story.all["a"].n_queued == 0  # its neighbors have no samples, and did not make it wait
    n_steps = story.all["c"].measures.n_idle
    assert n_steps >= 20  # whoever is further away was asked for haste, too, while there was news
    story.tick(10 * Timing().idle_after)
    assert story.all["c"].measures.n_idle < n_steps + 60  # and calmed down again


# membership


def line(model, names="abc", **options):
    x, y = stream(80, len(names))
    near = {k: list(names[i - 1 : i] + names[i + 1 : i + 2]) for i, k in enumerate(names)}
    return VirtualNetwork(model, near, x, y, period=0.1, **options)


def opened(network, name):
    return [edge.peer for edge in network.machines[name].protocol.edges.opened]


@pytest.mark.parametrize("name", ["domkl", "message-passing", "domkrls"])
def test_a_learner_joins_while_the_others_run(model_of, name):
    network = line(model_of(ALGORITHMS[name]))
    network.run(3.0)
    network.rewire("c", ("b", "d"))
    network.join("d", ("c",), column=1, n_samples=40)
    network.run(25.0)
    assert opened(network, "c") == ["b", "d"]
    assert network.machines["d"].protocol.learned == 40
    assert [each.learned for each in network.protocols()] == [80, 80, 80, 40]
    if name != "domkrls":
        states = network.states()
        assert np.abs(sum(state.dual for state in states)).max() < 1e-12
        assert max(np.abs(state.dual).max() for state in states) > 1e-3


@pytest.mark.parametrize("mode", ["lockstep", "async"])
@pytest.mark.parametrize("name", ["domkl", "message-passing", "domkrls"])
def test_a_learner_leaves_while_the_others_run(model_of, name, mode):
    network = line(model_of(ALGORITHMS[name]), mode=mode)
    network.run(4.0)
    network.leave("c")
    network.rewire("b", ("a",))
    network.run(25.0)
    assert [each.learned for each in network.protocols()] == [80, 80, 80]
    a, b, c = network.states()
    if name != "domkrls":
        assert np.abs(a.dual + b.dual).max() < 1e-12
        assert not c.dual.any()
        np.testing.assert_array_equal(a.dual.shape, b.dual.shape)


def test_the_order_of_neighbors_may_change(model_of, talk):
    model = model_of(ALGORITHMS["message-passing"])
    options = {"incarnation": 1, "measures_alone": False}
    near = {"a": "bc", "b": "a", "c": "a"}
    net = talk([Protocol(k, model, list(v), **options) for k, v in near.items()])
    net.meet()
    for who in "abc":
        net.learn(who, 0.1 + 0.2 * ord(who) % 1)
    net.deliver()
    a = net.all["a"]
    before = a.learner.state.inbox.copy()
    assert not np.array_equal(before[0], before[1])
    net.tell("a", Neighbors(("c", "b")))
    np.testing.assert_array_equal(a.learner.state.inbox, before[::-1])
    assert [edge.peer for edge in a.edges.opened] == ["c", "b"]


def test_without_open_edges_nothing_ties_the_state(model_of, talk_of):
    talk = talk_of(model_of(dtype="float32"))
    talk.meet()
    for t, y in enumerate(np.random.default_rng(0).random(40)):
        talk.learn("a", y, (t / 40, y))
        talk.learn("b", 1 - y)
        talk.deliver()
    a = talk.all["a"].learner
    assert a.state.dual.any()
    talk.tick(4.2, lambda *_: True)
    assert not a.state.dual.any()  # to the bit, not to rounding
    np.testing.assert_array_equal(a.state.center, a.state.theta)


# snapshots


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_alone_a_restart_changes_nothing(model_of, name, dtype):
    model, (x, y) = model_of(ALGORITHMS[name], dtype=dtype), stream(30)
    whole = Protocol("a", model, (), incarnation=1)
    said, _ = feed(whole, x, y)
    first = Protocol("a", model, (), incarnation=1)
    feed(first, x[:13], y[:13])
    header, kept = first.snapshot()
    header = json.loads(json.dumps(header))
    second = Protocol("a", model, (), incarnation=2, snapshot=Parts(header, kept))
    assert second.learned == 13
    assert feed(second, x[13:], y[13:])[0] == said[13:]
    for field, value in arrays(whole).items():
        np.testing.assert_array_equal(value, arrays(second)[field], err_msg=field)
    for measure in ("n_learned", "mse", "mse_alone", "mse_last_value", "n_rounds"):
        assert getattr(second.measures, measure) == getattr(whole.measures, measure), measure


def test_a_snapshot_does_not_move_on(model_of):
    protocol, (x, y) = Protocol("a", model_of(), (), incarnation=1), stream(4)
    feed(protocol, x[:2], y[:2])
    kept = protocol.snapshot().arrays["state.theta"].copy()
    snapshot = protocol.snapshot()
    feed(protocol, x[2:], y[2:])
    np.testing.assert_array_equal(snapshot.arrays["state.theta"], kept)


@pytest.mark.parametrize("name", ["domkl", "message-passing", "domkrls"])
def test_with_neighbors_a_restart_is_a_new_epoch_and_duals_sum_to_0(model_of, talk_of, name):
    model = model_of(ALGORITHMS[name])
    talk = talk_of(model)
    talk.meet()

    def rounds(n, seed):
        for y in np.random.default_rng(seed).random(n):
            talk.learn("a", y, (y, 0.4))
            talk.learn("b", 1 - y)
            talk.deliver()

    rounds(5, 0)
    before = talk.all["a"]
    again = Protocol(
        "a", model, ["b"], incarnation=2, measures_alone=False, snapshot=before.snapshot()
    )
    np.testing.assert_array_equal(again.learner.state[0], before.learner.state[0])
    talk.all["a"] = again
    talk.meet()
    rounds(5, 1)
    talk.tick(1.0)
    assert again.learned == 10
    assert talk.all["b"].measures.edges["a"].n_epochs == 2
    if name != "domkrls":
        assert duals(talk.all.values()).any()
        assert not duals(talk.all.values()).sum(axis=0).any()


def test_leaving_ends_the_step_under_way(model_of, talk_of):
    talk = talk_of(model_of())
    talk.meet()
    talk.learn("a")
    talk.air.clear()
    a = talk.all["a"]
    a.leave()
    np.testing.assert_array_equal(a.learner.state.center, a.learner.state.theta)
    assert a.learner.state.theta.any()  # or else the last sample would be lost with the center
    assert a.snapshot().header["has_neighbors"] is False


def test_a_snapshot_of_another_model_is_refused(model_of):
    """Numbers by which the algorithm is tuned may change: what was learned means the same."""
    snapshot = Protocol("a", model_of(), (), incarnation=1).snapshot()
    for other, said in (
        (model_of(domkl.DOMKL(loss=domkl.Absolute())), "loss is"),
        (model_of(domkl.DOKL()), "algorithm is DOMKL there and DOKL here"),
        (model_of(n_frequencies=4), "frequencies is 3 there and 4 here"),
        (model_of(target=Range("y", 0, 2)), "target is y 0 1 there and y 0 2 here"),
    ):
        with pytest.raises(DataError, match=f"same model; {said}"):
            Protocol("a", other, (), incarnation=2, snapshot=snapshot)
    Protocol("a", model_of(domkl.DOMKL(rho=3.0)), (), incarnation=2, snapshot=snapshot)


def test_a_broken_snapshot_is_refused(model_of):
    header, kept = Protocol("a", model_of(), (), incarnation=1).snapshot()
    for bad in (np.full_like(kept["state.theta"], np.nan), kept["state.theta"][:, :1]):
        with pytest.raises(DataError, match=r"state\.theta must"):
            Protocol(
                "a",
                model_of(),
                (),
                incarnation=2,
                snapshot=Parts(header, kept | {"state.theta": bad}),
            )


def test_checkpoints_come_every_so_many_samples(model_of):
    protocol = Protocol("a", model_of(), (), incarnation=1, checkpoint_every=4)
    _, effects = feed(protocol, *stream(10))
    assert [e.number for e in effects if isinstance(e, Checkpoint)] == [4, 8]


# what the driver may ask


def test_predicting_changes_nothing(model_of):
    model, (x, y) = model_of(domkl.DOMKRLS()), stream(10)
    asked, quiet = (Protocol("a", model, (), incarnation=1) for _ in range(2))
    said = []
    for t in range(10):
        for probe in x[:, 0]:
            assert asked.look(probe)[1] >= 0
        told = asked.look(x[t, 0])[0]
        said += feed(asked, x[t : t + 1], y[t : t + 1])[0]
        assert told == said[-1]
    assert said == feed(quiet, x, y)[0]
    assert Protocol("a", model_of(), (), incarnation=1).look(x[0, 0])[1] is None


@pytest.mark.parametrize("number", [0, 1, 3, -1])
def test_samples_are_numbered_without_gaps(model_of, number):
    protocol = Protocol("a", model_of(), (), incarnation=1)
    feed(protocol, *stream(1))
    with pytest.raises(DataError, match=f"must have number 2, got {number}"):
        protocol.handle(Sample(number, np.zeros(2), 0.0), 0.0)
    assert protocol.learned == 1


@pytest.mark.parametrize(
    "changes",
    [{"mode": "fast"}, {"incarnation": 0}, {"checkpoint_every": 0}, {"timing": Timing(silence=0)}],
)
def test_wrong_settings_are_refused(model_of, changes):
    with pytest.raises(ParameterError):
        Protocol("a", model_of(), (), **({"incarnation": 1} | changes))


def test_measures_compare_with_alone_and_with_the_last_value(model_of):
    x, y = stream(50)
    protocol = Protocol("a", model_of(), (), incarnation=1)
    said, _ = feed(protocol, x, y)
    measures = protocol.measures
    assert measures.mse == pytest.approx(np.mean((np.array(said) - y[:, 0]) ** 2))
    assert measures.mse_alone == measures.mse
    last = np.concatenate([[0.0], y[:-1, 0]])
    assert measures.mse_last_value == pytest.approx(np.mean((last - y[:, 0]) ** 2))
    assert measures.neighbor_gap is None


def test_nothing_is_said_twice(model_of):
    protocol = Protocol("a", model_of(), (), incarnation=1)
    feed(protocol, *stream(1))
    assert protocol.handle(Tick(), 1.0) == []


def test_no_call_returns_to_a_file_that_it_left(model_of, talk_of):
    """The protocol calls edges and learner, and neither calls it back."""
    source, returned = str(Path(domkl.__file__).parent), set()

    def look(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(source):
            files = []
            while frame is not None and "domkl/mesh/protocol" in frame.f_code.co_filename:
                if not files or files[-1] != frame.f_code.co_filename:
                    files.append(frame.f_code.co_filename)
                frame = frame.f_back
            if len(files) != len(set(files)):
                returned.add(tuple(Path(name).name for name in reversed(files)))

    talk = talk_of(model_of())
    sys.setprofile(look)
    try:
        talk.meet()
        for _ in range(3):
            talk.learn("a")
            talk.tick(0.6)
        talk.tick(5.0, lambda *_: True)
        talk.all["a"].leave()
    finally:
        sys.setprofile(None)
    assert returned == set()
