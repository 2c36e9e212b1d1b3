"""What a learner hears: sums over its neighbors, against dense matrices, and what must be exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import domkl
from domkl.core.exchange import DELIVERIES, Wires, delivered


def wires_of(graph, span=1):
    """The network as hosts hand it over; ``span`` learners share a total."""
    edges = list(zip(graph.sources, graph.indices, strict=True))
    reverse = np.array([edges.index((b, a)) for a, b in edges], dtype=np.int64)
    return Wires(graph.indptr, graph.indices, graph.metropolis[1], reverse, span)


@st.composite
def networks(draw):
    n_learners, seed = draw(st.integers(1, 8)), draw(st.integers(0, 1000))
    graph = domkl.Graph.random(n_learners, draw(st.floats(0.01, 1)), seed=seed, connected=False)
    return graph, np.random.default_rng(seed).normal(size=(n_learners, 2, 3))


def adjacency(graph):
    dense = np.zeros((graph.n_learners, graph.n_learners))
    for a, b in graph.edges:
        dense[a, b] = dense[b, a] = 1
    return dense


def test_a_star_by_hand():
    wires, values = wires_of(domkl.Graph.star(4), 4), np.array([[1.0], [10.0], [100.0], [1000.0]])
    expected = {
        "sum": [1110, 1, 1, 1],
        "gap": [1107, -9, -99, -999],
        "metropolis": [1 + 1107 / 4, 10 - 9 / 4, 100 - 99 / 4, 1000 - 999 / 4],
        "total": [1111, 1111, 1111, 1111],
    }
    for how, heard in expected.items():
        assert delivered(how, values, values, wires).ravel().tolist() == heard


def test_by_edge_each_hears_what_was_said_to_it():
    """The center says 1, 2, 3 to the leaves, and these 10, 20, 30 to the center."""
    said = np.array([[1.0], [2.0], [3.0], [10.0], [20.0], [30.0]])
    heard = delivered("edge", said, said, wires_of(domkl.Graph.star(4)))
    assert heard.ravel().tolist() == [10, 20, 30, 1, 2, 3]


@given(networks())
def test_sums_and_gaps_are_products_with_the_adjacency(problem):
    graph, values = problem
    dense, wires = adjacency(graph), wires_of(graph)
    laplacian = np.diag(dense.sum(axis=1)) - dense
    for how, matrix in (("sum", dense), ("gap", -laplacian)):
        expected = np.tensordot(matrix, values, 1)
        np.testing.assert_allclose(delivered(how, values, values, wires), expected, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_two_ends_of_an_edge_hear_exact_opposites(dtype):
    """Rounded or not; so the duals of a network, which sum gaps up, go on summing to 0."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 500)).astype(dtype) * np.array([[1], [1e6]], dtype=dtype)
    one, other = delivered("gap", values, values, wires_of(domkl.Graph.path(2)))
    np.testing.assert_array_equal(one, -other)


@given(networks())
def test_a_mean_keeps_the_sum_and_learners_that_agree(problem):
    """Metropolis weights are symmetric, so the sum stays; agreement is kept to the bit."""
    graph, values = problem
    wires = wires_of(graph)
    mean = delivered("metropolis", values, values, wires)
    np.testing.assert_allclose(mean.sum(axis=0), values.sum(axis=0), atol=1e-12)
    assert np.ptp(mean, axis=0).max() <= np.ptp(values, axis=0).max() + 1e-12
    same = np.broadcast_to(values[:1], values.shape).copy()
    np.testing.assert_array_equal(delivered("metropolis", same, same, wires), same)


def test_a_server_sums_each_trial_by_itself():
    values = np.array([[1.0], [2.0], [4.0], [10.0], [20.0], [40.0]])
    heard = delivered("total", values, values, wires_of(domkl.Graph.empty(6), 3))
    assert heard.ravel().tolist() == [7, 7, 7, 70, 70, 70]


def test_learners_without_neighbors_hear_nothing_and_average_themselves():
    wires, values = wires_of(domkl.Graph.empty(3)), np.ones((3, 2))
    room = np.full_like(values, 9.0)
    for how, heard in (("sum", 0.0), ("gap", 0.0), ("metropolis", 1.0)):
        assert (delivered(how, values, values, wires, room) == heard).all()


def test_some_learners_may_hear_rows_that_are_elsewhere():
    """As over MPI ranks: two learners here, three rows to be heard."""
    values, own = np.array([[1.0], [2.0], [30.0]]), np.array([[1.0], [2.0]])
    indptr, indices, none = np.array([0, 2, 3]), np.array([1, 2, 0]), np.empty(0, np.int64)
    wires = Wires(indptr, indices, np.empty(0), none, 1)
    assert delivered("gap", values, own, wires).ravel().tolist() == [1 + 29, -1]


def test_there_are_five_ways():
    assert tuple(DELIVERIES) == ("sum", "gap", "metropolis", "edge", "total")
