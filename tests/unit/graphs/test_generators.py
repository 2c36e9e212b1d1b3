"""Large random networks: simple, symmetric, seeded, of the degrees they promise."""

import numpy as np
import pytest

import domkl
from domkl.graphs.generators import distinct

MAKERS = {
    "sparse": lambda n, seed: domkl.Graph.sparse(n, 4, seed=seed),
    "regular": lambda n, seed: domkl.Graph.random_regular(n, 4, seed=seed),
    "small world": lambda n, seed: domkl.Graph.small_world(n, 4, 0.2, seed=seed),
    "scale free": lambda n, seed: domkl.Graph.scale_free(n, 2, seed=seed),
}


@pytest.mark.parametrize("n_learners", [7, 100, 20_000])
@pytest.mark.parametrize("name", MAKERS)
def test_simple_symmetric_connected_and_seeded(name, n_learners):
    graph = MAKERS[name](n_learners, 3)
    pairs = np.column_stack([graph.sources, graph.indices])
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    np.testing.assert_array_equal(pairs[graph.reverse], pairs[:, ::-1])
    assert graph.is_connected
    assert graph == MAKERS[name](n_learners, 3)
    assert n_learners < 50 or graph != MAKERS[name](n_learners, 4)


def test_a_sparse_graph_has_its_mean_degree():
    parts = domkl.Graph.sparse(20_000, 4, seed=0, connected=False)
    assert parts.n_edges == 40_000
    assert parts.n_components > 1
    whole = domkl.Graph.sparse(20_000, 4, seed=0)
    assert whole.n_edges == parts.n_edges + parts.n_components - 1  # one bridge a part
    # degrees are binomial, nearly Poisson(4): variance 4, its own deviation 4 √(2.25/20000) = 0.04
    assert parts.degree.var() == pytest.approx(4, abs=0.25)


def test_sparse_edges_are_uniform_over_pairs():
    """Each of the 10 pairs of 5 nodes is drawn with probability 0.4: 6 deviations is 0.07."""
    counts = np.zeros((5, 5))
    for seed in range(2000):
        edges = domkl.Graph.sparse(5, 1.6, seed=seed, connected=False).edges
        counts[edges[:, 0], edges[:, 1]] += 1
    np.testing.assert_allclose(counts[np.triu_indices(5, 1)] / 2000, 0.4, atol=0.07)


def test_a_full_sparse_graph_is_complete():
    assert domkl.Graph.sparse(6, 5, seed=0) == domkl.Graph.complete(6)


def test_a_small_world_goes_from_a_lattice_to_anywhere():
    lattice = domkl.Graph.small_world(1000, 6, 0.0, seed=0)
    hops = np.minimum((lattice.indices - lattice.sources) % 1000, 6)
    assert set(lattice.degree) == {6}
    assert (np.sort(hops.reshape(1000, 6)) <= 6).all()
    np.testing.assert_array_equal(lattice.neighbors(10), [7, 8, 9, 11, 12, 13])
    n = 20_000
    some = domkl.Graph.small_world(n, 4, 0.3, seed=0)
    assert some.n_edges == 2 * n
    distance = np.abs(some.edges[:, 0] - some.edges[:, 1])
    is_long = np.minimum(distance, n - distance) > 2
    assert is_long.mean() == pytest.approx(0.3, abs=0.02)  # 6 deviations of 0.0023


def test_a_dense_small_world_keeps_what_it_cannot_move():
    graph = domkl.Graph.small_world(5, 4, 1.0, seed=0)
    assert graph == domkl.Graph.complete(5)


def test_newcomers_link_to_so_many_and_the_rich_get_richer():
    graph = domkl.Graph.scale_free(20_000, 3, seed=0)
    earlier = np.bincount(graph.edges[:, 1], minlength=20_000)
    assert (earlier[4:] == 3).all()
    assert graph.degree.min() == 3
    # the share of degree k is 2m(m+1)/(k(k+1)(k+2)): 0.4 at 3, 0.2 at 4; deviations below 0.004
    shares = np.bincount(graph.degree)[3:6] / 20_000
    np.testing.assert_allclose(shares, [24 / 60, 24 / 120, 24 / 210], atol=0.02)
    assert graph.degree.max() > 100


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: domkl.Graph.sparse(5, 5, seed=0), r"mean_degree must be in \[0, 4\], got 5"),
        (lambda: domkl.Graph.small_world(9, 3, 0.1, seed=0), "degree must be even and below"),
        (lambda: domkl.Graph.small_world(9, 4, 1.5, seed=0), "rewired must be"),
        (lambda: domkl.Graph.scale_free(3, 3, seed=0), "n_learners must be"),
    ],
)
def test_what_cannot_be_drawn(make, message):
    with pytest.raises(domkl.ParameterError, match=message):
        make()


def test_distinct_is_unique():
    keys = np.random.default_rng(0).integers(0, 50, 200)
    np.testing.assert_array_equal(distinct(keys), np.unique(keys))
    assert len(distinct(keys[:0])) == 0


def test_the_nearest_are_joined_and_what_is_apart_by_the_shortest_edges():
    places = np.random.default_rng(0).random((9, 2))
    places[5:] += 10
    graph = domkl.Graph.nearest(places, 2)
    distance = np.linalg.norm(places[:, None] - places, axis=2)
    for k in range(9):
        assert set(np.argsort(distance[k])[1:3]) <= set(graph.neighbors(k).tolist())
    bridge = [(a, b) for a, b in graph.edges.tolist() if a < 5 <= b]
    between = distance[:5, 5:]
    assert bridge == [(int(between.argmin() // 4), 5 + int(between.argmin() % 4))]
    assert graph.is_connected


@pytest.mark.parametrize(
    ("places", "n_neighbors", "error", "message"),
    [
        (np.zeros((3, 2)), 3, domkl.ParameterError, "n_neighbors must be below the 3 learners"),
        (np.zeros((3, 2)), 0, domkl.ParameterError, "n_neighbors must be an integer >= 1, got 0"),
        ([[0.0], [np.nan]], 1, domkl.DataError, "places must be finite"),
    ],
)
def test_wrong_places(places, n_neighbors, error, message):
    with pytest.raises(error, match=message):
        domkl.Graph.nearest(places, n_neighbors)
