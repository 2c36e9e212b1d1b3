"""Running standardisation."""

import numpy as np

from domkl.estimators.scaling import look_at_rows, take_rows


def taken(rows, width=1.0, weights=None):
    rows = np.asarray(rows, dtype=float)
    statistics = np.zeros((3, rows.shape[1]))
    out = np.empty_like(rows)
    weights = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=float)
    take_rows(out, rows, weights, *statistics, width)
    return out, statistics


def test_each_value_is_scaled_by_those_up_to_itself():
    rows = np.random.default_rng(0).normal(3, 5, size=(40, 2))
    out, (count, mean, square) = taken(rows, width=0.3)
    for t in range(1, 40):
        so_far = rows[: t + 1]
        np.testing.assert_allclose(out[t], 0.3 * (rows[t] - so_far.mean(0)) / so_far.std(0))
    assert count.tolist() == [40, 40]
    np.testing.assert_allclose(mean, rows.mean(axis=0))
    np.testing.assert_allclose(square, 40 * rows.var(axis=0))


def test_a_constant_is_0_and_an_outlier_is_bounded():
    rows = np.full((100, 1), 0.1)
    rows[-1] = 1e90
    out, _ = taken(rows)
    assert not out[:-1].any()
    assert abs(out[-1, 0]) <= np.sqrt(100)


def test_what_is_absent_is_0_and_counts_for_nothing():
    out, statistics = taken([[1.0], [np.nan], [3.0]])
    without, same = taken([[1.0], [3.0]])
    assert out[:, 0].tolist() == [0.0, 0.0, without[1, 0]]
    np.testing.assert_array_equal(statistics, same)


def test_looking_is_taking_without_counting():
    rows = np.random.default_rng(0).normal(size=(5, 2))
    _, statistics = taken(rows[:4])
    before, out = statistics.copy(), np.empty((1, 2))
    look_at_rows(out, rows[4:], *statistics, 1.0)
    np.testing.assert_array_equal(out, taken(rows)[0][4:])
    np.testing.assert_array_equal(statistics, before)


def test_a_value_of_weight_3_counts_as_three_do():
    _, weighted = taken([[1.0], [5.0], [2.0]], weights=[1, 3, 1])
    _, repeated = taken([[1.0], [5.0], [5.0], [5.0], [2.0]])
    np.testing.assert_allclose(weighted, repeated)
