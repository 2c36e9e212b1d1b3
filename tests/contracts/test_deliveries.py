"""One table of deliveries: who reads it does not depend on the order of its rows."""

import numpy as np
import pytest

import domkl
from domkl.algorithms import base
from domkl.core import exchange
from domkl.core.exchange import DELIVERIES, DeliveryKind
from domkl.mesh.testing import VirtualMesh

ALGORITHMS = [
    domkl.DOMKL(),  # "gap" and "sum"
    domkl.DOMKL(weights="message-passing"),  # "edge"
    domkl.RFFDOMKL(),  # "metropolis"
    domkl.COMKL(),  # "total"
]


@pytest.fixture
def one_in_front(monkeypatch):
    """Another delivery, before all others."""
    rows = {"loudest": DeliveryKind(99), **DELIVERIES}
    for name in list(DELIVERIES):
        monkeypatch.delitem(DELIVERIES, name)
    for name, kind in rows.items():
        monkeypatch.setitem(DELIVERIES, name, kind)
    assert next(iter(DELIVERIES)) == "loudest"


def runs(algorithm):
    """The predictions of every host, compiled, blocked, interpreted, of a mesh and of ranks."""
    rng = np.random.default_rng(0)
    X = rng.random((12, 4, 2))
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 1.0]), 2, 3, seed=0)
    given = (algorithm, X, X[..., 0] * X[..., 1], domkl.Graph.path(4), features)
    found = [
        domkl.simulate(*given, interpreted=True),
        domkl.simulate(*given, interpreted=False),
        domkl.simulate(*given, cv="off", threads=2, interpreted=False),
    ]
    if algorithm.is_meshable:
        found.append(domkl.simulate(*given, mesh=VirtualMesh()))
    if all(DELIVERIES[how].is_summed for how in algorithm.exchange.values()):
        found.append(domkl.simulate_sharded(*given, keep_predictions=True))
    else:
        with pytest.raises(domkl.ParameterError, match="must hear its neighbors only"):
            domkl.simulate_sharded(*given)
    return [run.predictions for run in found]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    pytest.importorskip("mpi4py")
    monkeypatch.setattr(base, "PATIENCE", 0.0)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_everything_agrees_with_another_row_in_front(algorithm, request):
    before = runs(algorithm)
    request.getfixturevalue("one_in_front")
    after = runs(algorithm)
    assert len(after) == len(before) >= 3
    for ours, theirs in zip(after, before, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(ours, before[0])


def test_each_row_has_a_code_of_its_own_and_a_name_that_types_know():
    codes = [kind.code for kind in DELIVERIES.values()]
    assert len(set(codes)) == len(codes)
    assert set(DELIVERIES) == set(exchange.Delivery.__args__)


def test_what_is_symmetric_conserves_sums():
    """What one end of an edge gains by it, the other loses."""
    graph = domkl.Graph.path(3)
    weight = np.full(4, 1 / 3)
    wires = exchange.Wires(graph.indptr, graph.indices, weight, graph.reverse, 3)
    values = np.random.default_rng(0).random((3, 2))
    for name, kind in DELIVERIES.items():
        if kind.needs_reverse:  # has no row of its own to compare with
            continue
        heard = exchange.delivered(name, values, values, wires)
        moved = heard if kind.accumulates else heard - values
        assert (np.abs(moved.sum(axis=0)).max() < 1e-12) == kind.is_symmetric, name
