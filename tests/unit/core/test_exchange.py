"""What a learner hears: sums over its neighbors, against dense matrices, and what must be exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import domkl
from domkl.core import exchange

STAR = domkl.Graph.star(4)


@st.composite
def networks(draw):
    n_learners = draw(st.integers(1, 8))
    seed = draw(st.integers(0, 1000))
    graph = domkl.Graph.random(n_learners, draw(st.floats(0.01, 1)), seed=seed, connected=False)
    values = np.random.default_rng(seed).normal(size=(n_learners, 2, 3))
    return graph, values


def adjacency(graph):
    dense = np.zeros((graph.n_learners, graph.n_learners))
    for a, b in graph.edges:
        dense[a, b] = dense[b, a] = 1
    return dense


def test_a_star_by_hand():
    values = np.array([[1.0], [10.0], [100.0], [1000.0]])
    out = np.empty_like(values)
    exchange.neighbor_sum(out, values, STAR.indptr, STAR.indices)
    assert out.ravel().tolist() == [1110.0, 1.0, 1.0, 1.0]
    exchange.neighbor_gap(out, values, values, STAR.indptr, STAR.indices)
    assert out.ravel().tolist() == [1107.0, -9.0, -99.0, -999.0]
    weight = np.full(6, 0.25)
    exchange.weighted_mean(out, values, values, STAR.indptr, STAR.indices, weight)
    assert out.ravel().tolist() == [1 + 1107 / 4, 10 - 9 / 4, 100 - 99 / 4, 1000 - 999 / 4]


@given(networks())
def test_sums_and_gaps_are_products_with_the_adjacency(problem):
    graph, values = problem
    dense, out = adjacency(graph), np.empty_like(values)
    exchange.neighbor_sum(out, values, graph.indptr, graph.indices)
    np.testing.assert_allclose(out, np.tensordot(dense, values, 1), atol=1e-12)
    exchange.neighbor_gap(out, values, values, graph.indptr, graph.indices)
    laplacian = np.diag(dense.sum(axis=1)) - dense
    np.testing.assert_allclose(out, -np.tensordot(laplacian, values, 1), atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_two_ends_of_an_edge_hear_exact_opposites(dtype):
    """Rounded or not; so the duals of a network, which sum gaps up, go on summing to 0."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 500)).astype(dtype) * np.array([[1], [1e6]], dtype=dtype)
    pair, out = domkl.Graph.path(2), np.empty_like(values)
    exchange.neighbor_gap(out, values, values, pair.indptr, pair.indices)
    np.testing.assert_array_equal(out[0], -out[1])


@given(networks())
def test_a_mean_keeps_the_sum_and_learners_that_agree(problem):
    """With Metropolis weights, which are symmetric; agreement is kept to the bit."""
    graph, values = problem
    (_, weight), out = graph.metropolis, np.empty_like(values)
    exchange.weighted_mean(out, values, values, graph.indptr, graph.indices, weight)
    np.testing.assert_allclose(out.sum(axis=0), values.sum(axis=0), atol=1e-12)
    assert np.ptp(out, axis=0).max() <= np.ptp(values, axis=0).max() + 1e-12
    same = np.broadcast_to(values[:1], values.shape).copy()
    exchange.weighted_mean(out, same, same, graph.indptr, graph.indices, weight)
    np.testing.assert_array_equal(out, same)


def test_a_server_sums_each_trial_by_itself():
    values = np.array([[1.0], [2.0], [4.0], [10.0], [20.0], [40.0]])
    out = np.empty_like(values)
    exchange.total_sum(out, values, 3)
    assert out.ravel().tolist() == [7.0, 7.0, 7.0, 70.0, 70.0, 70.0]


def test_learners_without_neighbors_hear_nothing():
    graph, values = domkl.Graph.empty(3), np.ones((3, 2))
    out = np.full_like(values, 9.0)
    exchange.neighbor_sum(out, values, graph.indptr, graph.indices)
    assert not out.any()
    out[:] = 9.0
    exchange.neighbor_gap(out, values, values, graph.indptr, graph.indices)
    assert not out.any()


def test_some_learners_may_hear_rows_that_are_elsewhere():
    """As over MPI ranks: two learners here, three rows to be heard."""
    values, own = np.array([[1.0], [2.0], [30.0]]), np.array([[1.0], [2.0]])
    indptr, indices = np.array([0, 2, 3]), np.array([1, 2, 0])
    out = np.empty_like(own)
    exchange.neighbor_gap(out, values, own, indptr, indices)
    assert out.ravel().tolist() == [1.0 + 29.0, -1.0]
