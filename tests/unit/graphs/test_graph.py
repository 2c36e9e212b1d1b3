import networkx
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

import domkl
from domkl.graphs.graph import disjoint_union

Graph = domkl.Graph


@pytest.mark.parametrize(
    ("graph", "theirs"),
    [
        (Graph.ring(7), networkx.cycle_graph(7)),
        (Graph.path(5), networkx.path_graph(5)),
        (Graph.star(6), networkx.star_graph(5)),
        (Graph.complete(5), networkx.complete_graph(5)),
        (Graph.tree(7), networkx.balanced_tree(2, 2)),
        (Graph.tree(13, branching=3), networkx.balanced_tree(3, 2)),
        (
            Graph.grid(3, 4),
            networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(3, 4)),
        ),
        (Graph.empty(4), networkx.empty_graph(4)),
    ],
    ids=["ring", "path", "star", "complete", "tree", "tree-3", "grid", "empty"],
)
def test_named_graphs_equal_networkx(graph, theirs):
    assert graph == Graph.from_networkx(theirs)
    assert graph.is_connected == networkx.is_connected(theirs)
    assert graph.is_acyclic == networkx.is_forest(theirs)
    assert graph.n_components == networkx.number_connected_components(theirs)


@pytest.mark.parametrize("seed", range(20))
def test_components_are_numbered_by_their_first_learner(seed):
    """Compared with SciPy's search, on graphs in pieces whose numbers are shuffled."""
    graph = Graph.sparse(60, 1.3, connected=False, seed=seed)
    shape = (graph.n_learners, graph.n_learners)
    ones = np.ones(len(graph.indices))
    _, labels = connected_components(csr_array((ones, graph.indices, graph.indptr), shape=shape))
    assert graph.n_components > 1
    np.testing.assert_array_equal(graph.component, labels)


def test_components_of_a_long_path_whose_numbers_are_shuffled():
    order = np.random.default_rng(3).permutation(10_000)
    ends = np.column_stack([order[:-1], order[1:]])
    cut = np.delete(ends, 4_000, axis=0)
    assert Graph.from_edges(10_000, ends).is_connected
    assert Graph.from_edges(10_000, cut).n_components == 2


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(
    "make",
    [Graph.ring, Graph.path, Graph.star, Graph.complete, Graph.tree],
    ids=lambda f: f.__name__,
)
def test_smallest_graphs(make, n):
    graph = make(n)
    assert graph.n_learners == n
    assert graph.is_connected
    assert graph.n_edges == (3 if n == 3 and make in (Graph.ring, Graph.complete) else n - 1)


def test_rows_are_sorted_and_symmetric():
    graph = Graph.random(30, 0.2, seed=4)
    for k in range(30):
        assert (np.diff(graph.neighbors(k)) > 0).all()
        assert all(k in graph.neighbors(other) for other in graph.neighbors(k))
    assert (graph.degree == [len(graph.neighbors(k)) for k in range(30)]).all()
    np.testing.assert_array_equal(graph.sources[graph.reverse], graph.indices)
    np.testing.assert_array_equal(graph.indices[graph.reverse], graph.sources)


def test_generators_have_the_probability_and_are_redrawn_until_connected():
    sizes = [Graph.random(12, 0.3, seed=b, connected=False).n_edges for b in range(400)]
    # 66 pairs at 0.3: mean 19.8, standard error of 400 draws 0.19; 4 of them fail once in 15000
    assert abs(np.mean(sizes) - 19.8) < 0.75
    draws = [Graph.random(10, 0.25, seed=b) for b in range(50)]
    assert all(g.is_connected for g in draws)
    assert len(set(draws)) > 45
    assert Graph.random(10, 0.25, seed=3) == Graph.random(10, 0.25, seed=3)


def test_every_pair_can_be_drawn():
    graph = Graph.random(40, 1.0, seed=0)
    assert graph == Graph.complete(40)


@pytest.mark.parametrize(
    ("n", "degree"), [(10, 3), (50, 4), (8, 7), (10, 9), (12, 8), (1000, 4), (5, 4)]
)
def test_random_regular(n, degree):
    graph = Graph.random_regular(n, degree, seed=2)
    assert (graph.degree == degree).all()
    assert graph.is_connected


def test_random_trees_are_trees():
    graphs = [Graph.tree(20, seed=b) for b in range(20)]
    assert all(g.is_acyclic and g.is_connected for g in graphs)
    assert len(set(graphs)) == 20


def test_metropolis_weights_are_symmetric_and_doubly_stochastic():
    graph = Graph.random(15, 0.2, seed=1, connected=False)
    own, edge = graph.metropolis
    matrix = np.diag(own)
    matrix[graph.sources, graph.indices] = edge
    np.testing.assert_allclose(matrix, matrix.T)
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    assert (matrix >= 0).all()
    a, b = graph.edges[0]
    assert matrix[a, b] == 1 / (1 + max(graph.degree[a], graph.degree[b]))


def test_edges_as_pairs_and_as_an_array():
    pairs = [(0, 1), (2, 1), (1, 0)]
    assert Graph.from_edges(4, pairs) == Graph.from_edges(4, np.array(pairs))
    assert Graph.from_edges(4, pairs).edges.tolist() == [[0, 1], [1, 2]]
    assert Graph.from_edges(2, []).n_edges == 0


def test_a_file_of_edges(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("# a path\n0 1\n1, 2  # and on\n\n")
    assert Graph.from_file(path) == Graph.path(3)
    assert Graph.from_file(path, n_learners=5).n_components == 3


def test_a_union_sets_graphs_side_by_side():
    both = disjoint_union([Graph.path(3), Graph.empty(1), Graph.ring(3)])
    assert both.edges.tolist() == [[0, 1], [1, 2], [4, 5], [4, 6], [5, 6]]
    assert both.n_components == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Graph.from_edges(3, [(0, 3)]), r"edges must join nodes 0\.\.2, got \(0, 3\)"),
        (lambda: Graph.from_edges(3, [(-1, 0)]), r"edges must join nodes 0\.\.2, got \(-1, 0\)"),
        (lambda: Graph.from_edges(3, [(1, 1)]), r"self-loop \(1, 1\)"),
        (lambda: Graph.from_edges(3, [(0, 1, 2)]), "pairs of integers"),
        (lambda: Graph.from_edges(3, [(0, 1), (1,)]), "pairs of integers"),
        (lambda: Graph.from_edges(3, [(0.0, 1.5)]), "pairs of integers"),
        (lambda: Graph.from_edges(3, 5), "pairs of integers"),
        (lambda: Graph.from_networkx([(0, 1)]), "undirected networkx graph"),
        (lambda: Graph.random(30, 0.01, seed=0, max_draws=10), "no connected graph of 30 learners"),
        (lambda: Graph.from_networkx(networkx.DiGraph([(0, 1)])), "undirected"),
    ],
)
def test_impossible_graphs(make, message):
    with pytest.raises(domkl.GraphError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Graph.ring(0), "n_learners must be an integer >= 1, got 0"),
        (lambda: Graph.from_edges(0, []), "n_learners must be an integer >= 1, got 0"),
        (lambda: Graph.random(5, 0.0, seed=0), r"probability must be in \(0, 1\], got 0.0"),
        (lambda: Graph.random(5, 1.5, seed=0), r"probability must be in \(0, 1\], got 1.5"),
        (lambda: Graph.random(5, 0.5, seed=-1), "seed must be an integer >= 0"),
        (lambda: Graph.random_regular(5, 3, seed=0), "n_learners \\* degree even, got 3"),
        (lambda: Graph.random_regular(4, 4, seed=0), "degree must be below n_learners = 4"),
        (lambda: Graph.grid(0, 3), "n_rows must be an integer >= 1"),
        (lambda: Graph.tree(5, branching=0), "branching must be an integer >= 1"),
    ],
)
def test_wrong_parameters(make, message):
    with pytest.raises(domkl.ParameterError, match=message):
        make()


def test_a_file_that_is_no_graph(tmp_path):
    with pytest.raises(domkl.GraphError, match="cannot read the graph file"):
        Graph.from_file(tmp_path / "missing.txt")
    (tmp_path / "bad.txt").write_text("0 1\n1 two\n")
    with pytest.raises(domkl.GraphError, match="line 2 must hold two node numbers, got '1 two'"):
        Graph.from_file(tmp_path / "bad.txt")
