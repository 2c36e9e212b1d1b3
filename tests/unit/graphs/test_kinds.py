import numpy as np
import pytest

from domkl.graphs.graph import Graph
from domkl.graphs.kinds import KINDS


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_can_be_made_and_is_what_its_entry_says(name):
    kind, places = KINDS[name], np.arange(12.0)[:, None]
    first, second = (kind.make(12, seed, places) for seed in (1, 2))
    assert first.n_learners == 12
    assert first.is_connected == kind.is_connected
    assert first == kind.make(12, 1, places)
    assert (first != second) == (kind.is_random or kind.takes_seed)


def test_parameters_replace_the_defaults():
    assert KINDS["regular"].make(10, 1, degree=3).degree.tolist() == [3] * 10
    assert KINDS["small-world"].make(10, 1, rewired=0.0).degree.tolist() == [4] * 10
    near = KINDS["nearest"].make(4, places=np.arange(4.0)[:, None], neighbors=1)
    assert near == Graph.path(4)


def test_a_tree_without_a_seed_is_the_full_one():
    assert KINDS["tree"].make(7) == Graph.tree(7)


def test_a_ring_with_chords_outlives_any_two():
    graph = Graph.ring_with_chords(10)
    assert graph.degree.tolist() == [3] * 10
    for a in range(10):
        for b in range(a):
            left = [k for k in range(10) if k not in (a, b)]
            rest = [(left.index(i), left.index(j)) for i, j in graph.edges if {i, j} <= set(left)]
            assert Graph.from_edges(8, rest).is_connected
