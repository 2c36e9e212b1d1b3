"""The virtual network: what happens to frames, machines and samples, and that it repeats."""

import numpy as np
import pytest

from domkl.graphs.graph import Graph
from domkl.mesh.testing import Conditions, VirtualNetwork, neighbors_of
from domkl.mesh.testing.network import BUFFER


def path_of(model, n_rounds=20, **options):
    x = np.random.default_rng(0).random((n_rounds, 3, 2))
    near = {"a": "b", "b": "ac", "c": "b"}
    return VirtualNetwork(model, near, x, x[..., 0], period=0.1, **options)


def learned(network):
    return [each.learned for each in network.protocols()]


def test_a_run_repeats_itself_to_the_bit(model_of):
    def run():
        conditions = Conditions(loss=0.2, duplication=0.2, jitter=0.1)
        generator = np.random.default_rng(4)
        network = path_of(model_of(), 80, conditions=conditions, generator=generator)
        network.at(2.0, lambda: network.crash("b"))
        network.at(5.0, lambda: network.start("b"))
        network.run(20.0)
        return network.predictions(), network.alarms

    one, other = run(), run()
    np.testing.assert_array_equal(one[0], other[0])
    assert one[1] == other[1]


def test_actions_of_one_moment_happen_in_the_order_of_asking(model_of):
    network, happened = path_of(model_of(), 0), []
    for text in "abc":
        network.at(5.0, lambda text=text: happened.append((network.now, text)))
    network.at(4.0, lambda: happened.append((network.now, "first")))
    network.run(5.0)
    assert happened == [(4.0, "first"), (5.0, "a"), (5.0, "b"), (5.0, "c")]


@pytest.mark.parametrize(
    ("conditions", "n_arrivals"),
    [(Conditions(), {1}), (Conditions(loss=1.0), {0}), (Conditions(duplication=1.0), {2})],
)
def test_frames_are_lost_and_duplicated(conditions, n_arrivals):
    generator = np.random.default_rng(0)
    delays = [conditions.delays(generator) for _ in range(10)]
    assert {len(each) for each in delays} == n_arrivals
    assert all(delay == conditions.latency for each in delays for delay in each)


def test_jitter_reorders_frames():
    generator = np.random.default_rng(0)
    delays = [Conditions(jitter=0.1).delays(generator)[0] for _ in range(1000)]
    assert min(delays) >= 0.002
    assert np.mean(delays) == pytest.approx(0.102, rel=0.2)  # six standard errors


def test_a_crash_loses_what_is_not_in_the_checkpoint_and_the_sensor_has_it(model_of):
    network = path_of(model_of(), checkpoint_every=4)
    network.run(1.65)
    assert learned(network) == [7, 7, 7]
    network.crash("b")
    assert learned(network) == [7, 7]
    assert network.machines["b"].disk.header["learned"] == 4
    network.run(1.85)
    network.start("b")
    assert network.machines["b"].incarnation == 2
    network.run(30.0)
    assert learned(network) == [20, 20, 20]
    assert not np.isnan(network.predictions()).any()


def test_a_suspended_learner_holds_frames_up_to_a_limit(model_of):
    network = path_of(model_of(), mode="async")
    network.run(1.5)
    network.suspend("b")
    network.run(20.0)
    machine = network.machines["b"]
    assert len(machine.buffer) == BUFFER
    assert machine.protocol.learned < 20
    network.resume("b")
    assert machine.buffer == []
    assert learned(network) == [20, 20, 20]


def test_a_cut_loses_all_frames_until_it_is_healed(model_of):
    network = path_of(model_of())
    network.run(0.5)
    network.cut("a", "b")
    network.run(10.0)
    closed = {(name, alarm.text) for _, name, alarm in network.alarms if alarm.kind == "down"}
    assert closed == {("a", "b was not heard for 4 s"), ("b", "a was not heard for 4 s")}
    network.heal("a", "b")
    network.run(11.0)
    assert [len(each.edges.opened) for each in network.protocols()] == [1, 2, 1]


def test_who_leaves_goes_on_alone_and_who_is_removed_is_gone(model_of):
    network = path_of(model_of())
    network.run(2.0)
    network.leave("a")
    network.remove("c")
    network.run(10.0)
    assert list(network.machines) == ["a", "b"]
    assert learned(network) == [20, 20]
    assert not any(each.edges.opened for each in network.protocols())


def test_at_rest_nobody_steps_without_a_sample(model_of):
    network = path_of(model_of())
    network.run(8.0)
    network.settle(4.0)
    before = [each.measures.n_rounds for each in network.protocols()]
    network.settle(4.0)
    assert [each.measures.n_rounds for each in network.protocols()] == before


def test_the_spread_is_the_variance_between_learners(model_of):
    network = path_of(model_of())
    network.run(8.0)
    probe = np.random.default_rng(1).random((5, 2))
    told = [[each.look(x)[0] for each in network.protocols()] for x in probe]
    assert network.spread(probe) == pytest.approx(np.mean([np.var(row) for row in told]))
    assert network.spread(probe) > 0


def test_learners_of_a_graph_are_named_by_their_numbers():
    graph = Graph.from_edges(4, [(2, 0), (0, 1)])
    assert neighbors_of(graph) == {"0": ["1", "2"], "1": ["0"], "2": ["0"], "3": []}
