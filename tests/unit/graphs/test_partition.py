"""Parts: every learner in one, none empty, balanced, and no dearer than blocks."""

import numpy as np
import pytest

import domkl
from domkl.graphs import partition as module
from domkl.graphs.partition import SLACK, blocks, cut_of, partition

GRAPHS = {
    "sparse": domkl.Graph.sparse(2000, 4, seed=1),
    "small world": domkl.Graph.small_world(1000, 4, 0.1, seed=1),
    "scale free": domkl.Graph.scale_free(500, 2, seed=1),
    "grid": domkl.Graph.grid(30, 30),
    "star": domkl.Graph.star(9),
    "isolated": domkl.Graph.from_edges(7, [(0, 1), (2, 5)]),
    "empty": domkl.Graph.empty(8),
    "one": domkl.Graph.empty(1),
}


@pytest.mark.parametrize("has_metis", [True, False])
@pytest.mark.parametrize("n_parts", [1, 2, 4, 7])
@pytest.mark.parametrize("name", GRAPHS)
def test_parts_cover_balance_and_are_no_dearer_than_blocks(name, n_parts, has_metis, monkeypatch):
    graph = GRAPHS[name]
    n_parts = min(n_parts, graph.n_learners)
    if has_metis:
        pytest.importorskip("pymetis")
    else:
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    part = partition(graph, n_parts)
    sizes = np.bincount(part, minlength=n_parts)
    assert part.shape == (graph.n_learners,)
    assert len(sizes) == n_parts
    assert sizes.min() > 0
    assert sizes.max() <= max(SLACK * graph.n_learners / n_parts, 1 + sizes.min())
    cut, dear = cut_of(graph, part), cut_of(graph, blocks(graph.n_learners, n_parts))
    assert cut.rows <= dear.rows
    assert cut.largest == sizes.max()
    np.testing.assert_array_equal(part, partition(graph, n_parts))


def test_metis_finds_two_clubs_that_the_numbering_hides():
    pytest.importorskip("pymetis")
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(200)
    club = shuffled.reshape(2, 100)
    edges = np.concatenate(
        [club[c][rng.integers(0, 100, (400, 2))] for c in range(2)] + [club.T[:3]]
    )
    graph = domkl.Graph.from_edges(200, edges[edges[:, 0] != edges[:, 1]])
    part = partition(graph, 2)
    assert cut_of(graph, part).edges == 3
    assert len(set(part[club[0]])) == 1


def test_without_metis_the_order_of_neighbors_helps(monkeypatch):
    """A path numbered at random: blocks cut nearly half of it, Cuthill-McKee finds the path."""
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    at = np.random.default_rng(0).permutation(300)
    path = domkl.Graph.from_edges(300, np.column_stack([at[:-1], at[1:]]))
    assert cut_of(path, partition(path, 3)).edges == 2
    assert cut_of(path, blocks(300, 3)).edges > 100


def test_a_cut_counts_edges_and_rows_apart():
    """Two neighbors in the same other part hear one row."""
    cut = cut_of(domkl.Graph.complete(6), np.array([0, 0, 0, 1, 1, 2]))
    assert cut == (11, 12, 3)  # edges 15 − 3 − 1; every learner is sent to both other parts


@pytest.mark.parametrize("n_parts", [0, 5, 2.0])
def test_refused(n_parts):
    with pytest.raises(domkl.ParameterError, match="n_parts"):
        partition(domkl.Graph.ring(4), n_parts)
