import pytest

from domkl.errors import GraphError, ParameterError
from domkl.mesh.config.topology import (
    TOPOLOGIES,
    members_at,
    named_edges,
    next_member,
    parse_edges,
    ring_with_chords,
)
from domkl.mesh.transports.base import Address


@pytest.mark.parametrize("n_learners", [1, 2, 3, 4, 5, 10])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_network_is_connected(topology, n_learners):
    graph = TOPOLOGIES[topology](n_learners)
    assert graph.n_learners == n_learners
    assert graph.is_connected


def test_a_ring_with_chords_outlives_any_two():
    graph = ring_with_chords(10)
    assert graph.degree.tolist() == [3] * 10
    for a in range(10):
        for b in range(a):
            left = [k for k in range(10) if k not in (a, b)]
            rest = [(left.index(i), left.index(j)) for i, j in graph.edges if {i, j} <= set(left)]
            assert type(graph).from_edges(8, rest).is_connected


def test_a_random_network_is_the_seeds():
    names = [f"n{k}" for k in range(8)]
    assert named_edges("random", names, seed=3) == named_edges("random", names, seed=3)
    assert named_edges("random", names, seed=3) != named_edges("random", names, seed=4)
    with pytest.raises(ParameterError, match=r"topology must be one of ring, .*, random, got 'x'"):
        named_edges("x", names)
    with pytest.raises(GraphError, match="no connected graph of 8 learners"):
        named_edges("random", names, connect=0.01)


def test_edges_of_names_with_hyphens():
    names = ["pi", "pi-1", "pi-1-a"]
    assert parse_edges("pi-pi-1,pi-1-pi-1-a,", names) == (("pi", "pi-1"), ("pi-1", "pi-1-a"))
    for wrong in ("pi-pi-2", "pi", "pi>pi-1"):
        with pytest.raises(ParameterError, match=f"learners pi, pi-1, pi-1-a, got '{wrong}'"):
            parse_edges(wrong, names)


def test_ports_count_up_on_a_host():
    here = members_at("abc", ["127.0.0.1"])
    assert [str(m.address) for m in here] == [f"127.0.0.1:2100{k}" for k in range(3)]
    assert [m.http.port for m in here] == [22000, 22001, 22002]
    devices = members_at("abc", ["x", "y", "x"], port=7000, http_host="0.0.0.0")
    assert [str(m.address) for m in devices] == ["x:7000", "y:7000", "x:7001"]
    assert next_member(devices, "d", "x").address == Address("x", 7002)
    assert next_member(devices, "d", "z").address == Address("z", 21000)
    assert next_member(devices, "d", "z").http == Address("0.0.0.0", 22000)
    with pytest.raises(ParameterError, match="hosts must be one or 3, got 2"):
        members_at("abc", ["x", "y"])
