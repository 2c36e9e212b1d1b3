"""What `simulate` lets in: pairs of graphs and maps, algorithms that suit them, samples."""

import numpy as np
import pytest

import domkl
from domkl.sim.inputs import as_stream, as_trials, check_algorithm

RING, PATH = domkl.Graph.ring(3), domkl.Graph.path(3)
BANK = domkl.gaussian_bank([0.1, 1.0])
MAPS = [domkl.RandomFeatures.draw(BANK, 2, 4, seed=seed) for seed in range(3)]


def test_one_of_either_serves_all_of_the_other():
    one = as_trials(RING, MAPS[0])
    assert (one.graphs, one.maps, one.is_batch) == ([RING], [MAPS[0]], False)
    many = as_trials(RING, MAPS)
    assert (many.graphs, many.maps, many.is_batch) == ([RING] * 3, MAPS, True)
    assert as_trials([RING, PATH], MAPS[0]).maps == [MAPS[0]] * 2
    assert as_trials([RING], [MAPS[0]]).is_batch


@pytest.mark.parametrize(
    ("graph", "features", "message"),
    [
        ([RING, PATH], MAPS, "equal length, got 2 graphs and 3 feature maps"),
        ([RING, domkl.Graph.ring(4)], MAPS[0], r"equal size, got sizes \[3, 4\]"),
        (RING, [MAPS[0], MAPS[0].kernel(0)], "equal shape"),
        ([], MAPS, "graph must be a Graph or a list of at least one"),
        (RING, "features", "features must be a RandomFeatures or a list"),
    ],
)
def test_what_does_not_pair_is_refused(graph, features, message):
    with pytest.raises(domkl.DomklError, match=message):
        as_trials(graph, features)


@pytest.mark.parametrize(
    ("algorithm", "graph", "dtype", "message"),
    [
        (domkl.DOKL(), RING, "float64", r"DOKL takes features of one kernel, got 2"),
        (domkl.DOMKL(weights="message-passing"), RING, "float64", "graph without cycles"),
        (domkl.DOMKL(rho=1e-31), RING, "float32", r"rho must be in \[1e-30, 1e\+30\]"),
        (domkl.Alone(domkl.DOMKL(rho=1e-31)), RING, "float32", "rho must be in"),
        ("domkl", RING, "float64", "algorithm must be an Algorithm"),
    ],
)
def test_algorithms_that_do_not_suit_are_refused(algorithm, graph, dtype, message):
    with pytest.raises(domkl.DomklError, match=message):
        check_algorithm(algorithm, as_trials(graph, MAPS[0]), dtype)


def test_algorithms_that_suit_pass():
    check_algorithm(domkl.DOMKL(weights="message-passing"), as_trials(PATH, MAPS[0]), "float64")
    check_algorithm(domkl.DOMKL(rho=1e-31), as_trials(RING, MAPS[0]), "float64")


def stream(X, y, algorithm=None):
    return as_stream(X, y, as_trials(RING, MAPS[0]), algorithm or domkl.DOMKL())


def test_arrays_are_contiguous_and_writable_whatever_was_given():
    """Numba compiles everything anew for an array that is not."""
    X = np.asfortranarray(np.ones((4, 3, 2), dtype=np.float32))
    y = np.broadcast_to(0.5, (4, 3))
    made = stream(X, y)
    for values in made.arrays:
        assert values.flags.c_contiguous
        assert values.flags.writeable
        assert values.dtype == np.float64
    assert made.n_rounds == 4
    assert [round[0].shape for round in made.rounds()] == [(3, 2)] * 4


def test_an_iterator_gives_the_rounds_of_the_arrays():
    X, y = np.random.default_rng(0).random((5, 3, 2)), np.zeros((5, 3))
    lazy = stream(iter(zip(X.tolist(), y.tolist(), strict=True)), None)
    assert lazy.n_rounds is None
    for (x, labels), (x_0, labels_0) in zip(lazy.rounds(), stream(X, y).rounds(), strict=True):
        np.testing.assert_array_equal(x, x_0)
        np.testing.assert_array_equal(labels, labels_0)


ROUND = (np.ones((3, 2)), np.zeros(3))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones((4, 3, 3)), np.ones((4, 3)), r"X must have shape \(T, 3, 2\)"),
        (np.ones((4, 3, 2)), np.ones((3, 4)), r"y must have shape \(4, 3\) as X"),
        (np.ones((4, 3, 2)), None, "X must be an iterator of rounds"),
        (iter([ROUND]), np.ones((1, 3)), "y must be None where X is an iterator"),
        (np.full((1, 3, 2), np.inf), np.ones((1, 3)), "X must be finite"),
    ],
)
def test_wrong_arrays_are_refused_at_once(X, y, message):
    with pytest.raises(domkl.DataError, match=message):
        stream(X, y)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("spoiled", r"round 1 must be a pair \(x, y\), got str"),
        ((np.ones((2, 2)), np.zeros(2)), r"round 1 must hold x \(3, 2\) and y \(3,\)"),
        ((np.ones((3, 2)), np.full(3, np.inf)), "y of round 1 must be finite"),
    ],
)
def test_wrong_rounds_are_refused_when_they_come(second, message):
    rounds = stream(iter([ROUND, second]), None).rounds()
    next(rounds)
    with pytest.raises(domkl.DataError, match=message):
        next(rounds)


def test_labels_must_suit_the_loss():
    logistic = domkl.DOMKL(loss=domkl.Logistic())
    with pytest.raises(domkl.DataError, match="-1"):
        stream(np.ones((1, 3, 2)), np.zeros((1, 3)), logistic)
    assert stream(np.ones((1, 3, 2)), -np.ones((1, 3)), logistic).n_rounds == 1
