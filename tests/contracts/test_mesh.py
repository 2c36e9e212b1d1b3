"""The mesh without faults is the simulator: predictions and states, to the bit."""

import numpy as np
import pytest
from schedules import DRAWN, algorithm_of

import domkl
from domkl.mesh.protocol.events import Timing
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.testing import Conditions, VirtualNetwork, neighbors_of

ALGORITHMS = {
    **{name: algorithm_of(name) for name in DRAWN},
    "domkl-huber": domkl.DOMKL(loss=domkl.Huber(0.2)),
    "domkrls-forget": domkl.DOMKRLS(forget=0.9),
}
N_LEARNERS, N_ROUNDS = 6, 25
PATIENT = Timing(round_timeout=30, idle_after=30, start_timeout=30, silence=30)


def graphs(algorithm):
    """Random graphs; the last one has a learner without neighbors."""
    if algorithm.needs_acyclic:
        made = [domkl.Graph.tree(N_LEARNERS, seed=b) for b in range(3)]
        return [*made, domkl.Graph.from_edges(N_LEARNERS, [(0, 2), (2, 3), (4, 5)])]
    made = [domkl.Graph.random(N_LEARNERS, 0.5, seed=b) for b in range(3)]
    return [*made, domkl.Graph.from_edges(N_LEARNERS, [(0, 2), (2, 3), (0, 3), (4, 5)])]


def network_of(algorithm, graph, dtype, b, delay=0, missing=0.0, **options):
    generator = np.random.default_rng(b)
    x, y = generator.random((N_ROUNDS, N_LEARNERS, 3)), generator.random((N_ROUNDS, N_LEARNERS))
    y[generator.random(y.shape) < missing] = np.nan
    bank = domkl.gaussian_bank([1.0] if algorithm.single_kernel else [0.01, 1.0, 100.0])
    linear = not algorithm.single_kernel
    features = domkl.RandomFeatures.draw(bank, 3, 7, seed=b, linear=linear)
    inputs = tuple(Range(name, 0, 1) for name in "abc")
    model = Model(algorithm, features, inputs, Range("y", 0, 1), dtype=dtype, delay=delay)
    given = {"mode": "lockstep", **options}
    return VirtualNetwork(model, neighbors_of(graph), x, y, **given)


def assert_equal_to_the_simulator(network, graph, dtype):
    model, options = network.model, {"dtype": dtype, "delay": network.model.delay}
    run = domkl.simulate(model.algorithm, network.x, network.y, graph, model.features, **options)
    network.run(60.0)
    np.testing.assert_array_equal(network.predictions(), run.predictions)
    states = network.states()
    expected_state = run.state.state if model.delay else run.state
    for field, expected in expected_state._asdict().items():
        found = np.concatenate([getattr(state, field) for state in states])
        np.testing.assert_array_equal(found, expected, err_msg=field)
        assert found.dtype == expected.dtype


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_mesh_without_faults_is_the_simulator(name, dtype):
    algorithm = ALGORITHMS[name]
    for b, graph in enumerate(graphs(algorithm)):
        network = network_of(algorithm, graph, dtype, b)
        assert_equal_to_the_simulator(network, graph, dtype)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_mesh_that_does_not_wait_is_the_simulator_if_frames_come_in_time(name):
    """So it cannot do worse than alone where the simulator does not: 0.1 was a round behind."""
    algorithm = ALGORITHMS[name]
    for b, graph in enumerate(graphs(algorithm)):
        network = network_of(algorithm, graph, "float64", b, mode="async")
        assert_equal_to_the_simulator(network, graph, "float64")


@pytest.mark.parametrize("name", ["domkl", "message-passing", "domkrls"])
def test_lost_and_overtaking_frames_only_cost_time(name):
    """While no round times out, the same messages are merged."""
    algorithm = ALGORITHMS[name]
    for b, graph in enumerate(graphs(algorithm)):
        rough = Conditions(loss=0.1, duplication=0.2, jitter=0.01)
        network = network_of(algorithm, graph, "float64", b, conditions=rough, timing=PATIENT)
        assert_equal_to_the_simulator(network, graph, "float64")
        waited = [each.measures.n_waited for each in network.protocols()]
        assert waited == [0] * N_LEARNERS


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["domkl", "rff-domkl", "domkrls", "domkrls-forget"])
def test_late_and_missing_labels_are_those_of_the_simulator(name, dtype):
    algorithm = ALGORITHMS[name]
    missing = 0.3 if algorithm.takes_missing else 0.0
    for b, graph in enumerate(graphs(algorithm)):
        network = network_of(algorithm, graph, dtype, b, delay=1 + 3 * b, missing=missing)
        assert_equal_to_the_simulator(network, graph, dtype)


def test_a_learner_that_waits_for_labels_continues_from_its_checkpoint():
    """Alone and without faults, to the bit: what waits is in the checkpoint."""
    graph = domkl.Graph.empty(N_LEARNERS)
    whole, killed = (
        network_of(domkl.DOMKRLS(), graph, "float64", 0, delay=4, missing=0.2) for _ in range(2)
    )
    for moment in (1.35, 2.15):
        killed.at(moment, lambda: killed.crash("2"))
        killed.at(moment + 0.3, lambda: killed.start("2"))
    for network in (whole, killed):
        network.run(60.0)
    assert killed.machines["2"].incarnation == 3
    np.testing.assert_array_equal(killed.predictions(), whole.predictions())
    for ours, theirs in zip(*(each.states() for each in (killed, whole)), strict=True):
        for field in ours._fields:
            np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))


def test_a_label_that_waits_is_checked_when_it_is_restored():
    network = network_of(domkl.DOMKRLS(), domkl.Graph.empty(N_LEARNERS), "float64", 0, delay=4)
    network.run(2.0)
    protocol = network.protocols()[0]
    parts = protocol.snapshot()
    assert parts.arrays["waiting.state.x"].shape == (4, 3)
    parts.arrays["waiting.state.notes"] = parts.arrays["waiting.state.notes"][:, 1:]
    with pytest.raises(domkl.DataError, match=r"waiting\.state\.notes must have shape"):
        Protocol("0", network.model, (), incarnation=9, snapshot=parts)


HONEST = [
    (domkl.DOMKRLS(), 0, 0.0),
    (domkl.DOMKRLS(forget=0.9), 3, 0.3),
    (domkl.DOMKRLS(newest_lag=1), 1, 0.0),
]


@pytest.mark.parametrize("mode", ["lockstep", "async"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_honest_message_is_refused(dtype, mode):
    """Lost, doubled and overtaking frames, a crash, a cut, a newcomer, late and missing labels."""
    rough = Conditions(loss=0.2, duplication=0.2, jitter=0.05)
    for b, (algorithm, delay, missing) in enumerate(HONEST):
        graph = domkl.Graph.ring(N_LEARNERS)
        options = {"conditions": rough, "generator": np.random.default_rng(b), "mode": mode}
        network = network_of(algorithm, graph, dtype, b, delay=delay, missing=missing, **options)
        network.at(1.5, lambda each=network: each.crash("1"))
        network.at(1.7, lambda each=network: each.cut("3", "4"))
        network.at(2.0, lambda each=network: each.start("1"))
        network.at(2.2, lambda each=network: each.join("new", ["0", "3"], 0, 10))
        network.at(2.2, lambda each=network: each.rewire("0", ["1", "5", "new"]))
        network.at(2.2, lambda each=network: each.rewire("3", ["2", "4", "new"]))
        network.at(2.6, lambda each=network: each.heal("3", "4"))
        network.run(30.0)
        protocols = network.protocols()
        assert len(protocols) == N_LEARNERS + 1
        assert sum(edge.n_exchanged for p in protocols for edge in p.measures.edges.values()) > 100
        assert not [why for p in protocols for _, why in p.measures.refused if why == "malformed"]


def test_a_newcomer_and_one_that_was_away_for_long_take_over_what_neighbors_know():
    """Before the newcomer's first sample, weights included; after a silence, the means."""
    network = network_of(domkl.DOMKRLS(), domkl.Graph.complete(N_LEARNERS), "float64", 0)
    network.at(1.65, lambda: network.crash("5"))  # after some six of 25 samples
    network.run(6.0)
    network.join("new", ["0", "1"], 0, 0)
    network.rewire("0", ["1", "2", "3", "4", "5", "new"])
    network.rewire("1", ["0", "2", "3", "4", "5", "new"])
    network.start("5")
    network.run(60.0)
    neighbor, newcomer, away = (
        network.machines[name].protocol.learner.state for name in ("0", "new", "5")
    )
    assert not newcomer.own_counts.any()
    assert (away.own_counts[0] > 0).all()
    for each in (newcomer, away):
        for field in ("sums", "counts", "loss", "variance", "rounds", "by_regret"):
            ours, theirs = getattr(each, field)[0], getattr(neighbor, field)[0]
            if field not in ("sums", "counts"):  # the others are of two sides
                ours, theirs = ours[0], theirs[0]
            assert np.linalg.norm(ours - theirs) < 0.3 * np.linalg.norm(theirs), field
