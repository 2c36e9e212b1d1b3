"""Shards: together they are the network, and what one sends another expects."""

import numpy as np
import pytest

import domkl
from domkl.graphs.partition import partition
from domkl.sim.mpi import ranks
from domkl.sim.mpi.shard import shard_of

GRAPHS = {
    "sparse": domkl.Graph.sparse(60, 4, seed=1, connected=False),
    "complete": domkl.Graph.complete(9),
    "star": domkl.Graph.star(11),
    "empty": domkl.Graph.empty(7),
}


def parts_of(graph, n_parts):
    yield partition(graph, n_parts)
    yield np.random.default_rng(n_parts).permutation(np.arange(graph.n_learners) % n_parts)


@pytest.mark.parametrize("n_parts", [1, 2, 5])
@pytest.mark.parametrize("name", GRAPHS)
def test_shards_are_the_network(name, n_parts):
    graph = GRAPHS[name]
    start = graph.indptr[:-1]
    for part in parts_of(graph, n_parts):
        for here in range(n_parts):
            shard = shard_of(graph, part, here)
            rows = np.concatenate([shard.learners, shard.halo])
            assert len(np.unique(rows)) == len(rows) == shard.n_rows
            np.testing.assert_array_equal(shard.learners, np.flatnonzero(part == here))
            for i, k in enumerate(shard.learners):
                edges = slice(shard.indptr[i], shard.indptr[i + 1])
                np.testing.assert_array_equal(rows[shard.indices[edges]], graph.neighbors(k))
                weight = graph.metropolis[1][start[k] : start[k] + graph.degree[k]]
                np.testing.assert_array_equal(shard.weight[edges], weight)


@pytest.mark.parametrize("n_parts", [2, 5])
@pytest.mark.parametrize("name", GRAPHS)
def test_what_one_sends_the_other_expects(name, n_parts):
    graph = GRAPHS[name]
    for part in parts_of(graph, n_parts):
        shards = [shard_of(graph, part, here) for here in range(n_parts)]
        filled = []
        for here, shard in enumerate(shards):
            numbers = shard.extended(shard.learners)
            for there, rows in shard.receives:
                sent = shards[there].learners[dict(shards[there].sends)[here]]
                numbers[rows] = sent
                filled.append(len(sent))
            np.testing.assert_array_equal(numbers[shard.n_learners :], shard.halo)
        assert sum(filled) == sum(len(rows) for shard in shards for _, rows in shard.sends)


def test_without_mpi4py_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(ranks, "find_spec", lambda name: None)
    with pytest.raises(domkl.ParameterError, match=r"pip install 'domkl\[mpi\]'"):
        ranks.world()
