import pytest

from domkl.errors import GraphError, ParameterError
from domkl.graphs.graph import Graph
from domkl.graphs.kinds import PLAIN
from domkl.mesh.config.topology import named_edges, parse_edges


@pytest.mark.parametrize("n_learners", [1, 2, 3, 4, 5, 10])
@pytest.mark.parametrize("topology", PLAIN)
def test_every_network_is_connected(topology, n_learners):
    names = [f"n{k}" for k in range(n_learners)]
    edges = named_edges(topology, names, connect=0.9)
    numbers = [(names.index(a), names.index(b)) for a, b in edges]
    assert Graph.from_edges(n_learners, numbers).is_connected


def test_a_tree_has_no_chance_in_it():
    names = [f"n{k}" for k in range(8)]
    assert named_edges("tree", names, seed=3) == named_edges("tree", names, seed=4)


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
