import pytest

from domkl.errors import GraphError, ParameterError
from domkl.mesh.config.topology import TOPOLOGIES, named_edges, parse_edges, topology_graph


@pytest.mark.parametrize("n_learners", [1, 2, 3, 4, 5, 10])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_network_is_connected(topology, n_learners):
    graph = topology_graph(topology, n_learners, connect=0.9)
    assert graph.n_learners == n_learners
    assert graph.is_connected


def test_a_ring_with_chords_outlives_any_two():
    graph = topology_graph("ring-with-chords", 10)
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
