import pickle

import numpy as np
import pytest

import domkl


def test_interleaved_deals_as_the_paper_says():
    """D_k = {(x_{K(t−1)+k}, y_{K(t−1)+k})}, both counted from 1; what is over is left out."""
    X, y = np.arange(22.0).reshape(11, 2), np.arange(11.0)
    dealt, labels = domkl.deal(X, y, 3)
    assert dealt.shape == (3, 3, 2)
    for t in range(3):
        for k in range(3):
            assert labels[t, k] == y[3 * t + k]
            assert dealt[t, k].tolist() == X[3 * t + k].tolist()


def test_blocks_keep_runs_together():
    X, y = np.arange(22.0).reshape(11, 2), np.arange(11.0)
    dealt, labels = domkl.deal(X, y, 3, "blocks")
    assert labels[:, 1].tolist() == [3, 4, 5]
    assert dealt[:, 2].tolist() == X[6:9].tolist()


def test_lags_come_newest_first():
    X, y = domkl.embed(np.arange(10.0), 3)
    assert X[0].tolist() == [2, 1, 0]
    assert y.tolist() == list(range(3, 10))


def test_scaling_is_by_column_and_can_be_undone():
    values = np.array([[1.0, 100.0, 7.0], [3.0, 300.0, 7.0]])
    found = domkl.scaled(values, "minmax")
    np.testing.assert_array_equal(found.values, [[0, 0, 0], [1, 1, 0]])
    np.testing.assert_allclose(found.values * found.divisor + found.offset, values)
    np.testing.assert_array_equal(domkl.scaled(values, "none").values, values)
    np.testing.assert_allclose(domkl.scaled(values, "authors").values[1], [2 / 3, 2 / 3, 0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: domkl.deal([[1.0]], [1.0], 2), domkl.DataError, "2 learners need at least"),
        (lambda: domkl.deal([[1.0]], [1.0], 0), domkl.ParameterError, "learners must be"),
        (lambda: domkl.deal([[1.0]], [1.0, 2.0], 1), domkl.DataError, "equal length"),
        (lambda: domkl.deal([[1.0]], [1.0], 1, "rows"), domkl.ParameterError, "partition must be"),
        (lambda: domkl.embed([1.0, 2.0], 2), domkl.DataError, "longer than its 2 lags"),
        (lambda: domkl.embed([1.0, np.nan, 2.0], 1), domkl.DataError, "series must be finite"),
        (lambda: domkl.embed([1.0, 2.0], 0), domkl.ParameterError, "lags must be an integer >= 1"),
        (lambda: domkl.embed([], 1), domkl.DataError, "series must not be empty"),
        (lambda: domkl.scaled([1.0], "log"), domkl.ParameterError, "scale must be one of"),
    ],
)
def test_wrong_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_shuffling_keeps_every_sample_and_its_label():
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    dealt, labels = domkl.deal(X, y, 2, "shuffled", seed=1)
    assert sorted(labels.ravel()) == y.tolist()
    np.testing.assert_array_equal(dealt[..., 0], 2 * labels)
    again = domkl.deal(X, y, 2, "shuffled", seed=1)[1]
    np.testing.assert_array_equal(labels, again)
    assert (labels != domkl.deal(X, y, 2, "shuffled", seed=2)[1]).any()
    with pytest.raises(domkl.ParameterError, match="partition shuffled needs a seed"):
        domkl.deal(X, y, 2, "shuffled")


def test_declared_ranges_are_the_same_whatever_the_data():
    ranges = domkl.Ranges(np.array([0.0, -1.0]), np.array([10.0, 1.0]))
    made = domkl.scaled([[5.0, 0.0], [20.0, 1.0]], "declared", ranges)
    assert made.values.tolist() == [[0.5, 0.5], [2.0, 1.0]]
    assert made.n_outside.tolist() == [1, 0]
    assert domkl.scaled([[5.0, 0.0]], "minmax").n_outside.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("rule", "ranges", "message"),
    [
        ("declared", None, "scale declared needs ranges"),
        ("minmax", domkl.Ranges(0.0, 1.0), "scale minmax takes no ranges"),
        ("declared", domkl.Ranges(1.0, 1.0), "finite with low < high"),
        ("declared", domkl.Ranges(np.zeros(3), np.ones(3)), "ranges must be numbers"),
        ("declared", domkl.Ranges(0.0, np.inf), "finite with low < high"),
    ],
)
def test_ranges_that_cannot_be_used(rule, ranges, message):
    with pytest.raises(domkl.ParameterError, match=message):
        domkl.scaled([[1.0, 2.0]], rule, ranges)


def test_a_horizon_is_carried_through_dealing():
    """Interleaved, a round is K steps; the label of step i is known at step i + horizon."""
    series = np.arange(100.0)
    for horizon in (1, 2, 3, 5, 9):
        X, y = domkl.embed(series, 2, horizon=horizon)
        np.testing.assert_array_equal(np.asarray(y), X[:, 0] + horizon)
        for n_learners in (1, 2, 4):
            dealt_x, dealt_y = domkl.deal(X, y, n_learners)
            delay = getattr(dealt_y, "delay", 0)
            for t in range(delay, 10):  # what is learned in round t is known when t + 1 begins
                assert np.asarray(dealt_y)[t - delay].max() <= dealt_x[t + 1, 0, 0]
            if delay:  # and with a round less it would not be
                assert np.asarray(dealt_y)[10 - delay + 1].max() > dealt_x[11, 0, 0]
            blocks = domkl.deal(X, y, n_learners, "blocks")[1]
            assert getattr(blocks, "delay", 0) == horizon - 1


def test_labels_keep_what_they_know():
    _, y = domkl.embed(np.arange(20.0), 2, horizon=4)
    for made in (y[3:], y * 2, pickle.loads(pickle.dumps(y)), y.reshape(-1, 1)):
        assert (made.horizon, made.delay) == (4, 3)
    assert type(domkl.embed(np.arange(20.0), 2)[1]) is np.ndarray


def test_a_horizon_that_cannot_be():
    with pytest.raises(domkl.ParameterError, match="horizon must be an integer >= 1, got -1"):
        domkl.embed(np.arange(20.0), 2, horizon=-1)
    with pytest.raises(domkl.DataError, match="its 2 lags and its horizon of 19, got 20 values"):
        domkl.embed(np.arange(20.0), 2, horizon=19)
    X, y = domkl.embed(np.arange(20.0), 2, horizon=2)
    with pytest.raises(domkl.DataError, match="shuffled, they would be seen before their time"):
        domkl.deal(X, y, 2, "shuffled", seed=0)
