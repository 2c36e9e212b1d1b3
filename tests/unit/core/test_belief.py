"""Which samples are believed: limits, rows, first labels and ranges, by hand."""

import math

import numpy as np
import pytest

from domkl.core.belief import (
    CONFIRM_FADE,
    N_BOUND,
    RANGE_FADE,
    REACH,
    believed,
    confirm,
    is_wild,
    largest,
    learn_ranges,
    within_reach,
)


def row(total=0.0, n=0.0):
    made = np.zeros(N_BOUND)
    made[:2] = total, n
    return made


def settled():
    """Errors of 1, 45 labels: the limit is 20."""
    return row(45.0, 45.0)


LIMIT = 20.0


# labels


def test_a_label_within_the_limit_is_taken_as_it_is():
    bound = settled()
    assert believed(bound, 3.0, 22.0, 1.0) == 22.0
    keep = 90 / 91
    np.testing.assert_allclose(bound[:5], [keep * 45 + 19.0**2, keep * 45 + 1, 0, 0, 0])


@pytest.mark.parametrize("sign", [1, -1])
def test_beyond_the_limit_it_counts_as_far_as_the_limit(sign):
    bound = settled()
    assert believed(bound, 3.0, 3.0 + 30 * sign, 1.0) == pytest.approx(3 + LIMIT * sign)
    keep = 90 / 91
    np.testing.assert_allclose(bound[:5], [keep * 45 + LIMIT**2, keep * 45 + 1, 1, 30 * sign, 1])


@pytest.mark.parametrize("error", [5.1 * LIMIT, -1e300, math.inf])
def test_a_huge_one_does_not_count(error):
    bound = settled()
    assert math.isnan(believed(bound, 0.0, error, 1.0))
    np.testing.assert_allclose(bound[:5], [45 + (LIMIT / 3) ** 2, 45, 1, error, 1])


def test_an_error_no_larger_than_the_inputs_is_not_huge():
    """Labels that were quiet and begin to be as large as inputs: the second is believed."""
    bound = row(45e-8, 45.0)
    assert believed(bound, 0.0, 0.9, 1.0) == pytest.approx(1e-4 * LIMIT)
    assert believed(bound, 0.0, 0.5, 1.0) == 0.5
    assert math.isnan(believed(row(45e-8, 45.0), 0.0, 1.1, 1.0))


def test_the_second_of_a_row_is_believed():
    bound = settled()
    believed(bound, 0.0, 30.0, 1.0)
    limit = 20 * math.sqrt(bound[0] / bound[1])
    assert limit < 200 < 5 * limit
    assert believed(bound, 0.0, 200.0, 1.0) == 200.0
    assert bound[2:5].tolist() == [2, 200, 1]


def test_the_third_of_a_huge_row_is_believed_and_then_the_limit_is_wide():
    bound = settled()
    found = [believed(bound, 0.0, label, 1.0) for label in (1e6, 2e6, 1e6, 1e6)]
    assert np.isnan(found[:2]).all()
    assert found[2:] == [1e6, 1e6]
    assert bound[4] == 2
    assert bound[2] == 0  # the fourth is within the limit


@pytest.mark.parametrize("second", [-1.1e7, 1.1e7, 0.9e5])
def test_errors_that_are_not_similar_are_no_row(second):
    bound = settled()
    found = [believed(bound, 0.0, label, 1.0) for label in (1e6, second, second)]
    assert np.isnan(found).all()
    assert believed(bound, 0.0, second, 1.0) == second  # the third of its own row


def test_signs_of_a_row_may_alternate():
    """Otherwise an oscillation that begins would never be believed."""
    for bound in (settled(), row()):
        found = [believed(bound, 0.0, label, 1.0) for label in (1e6, -1e6, 1e6, -1e6)]
        assert np.isnan(found[:2]).all()
        assert found[2:] == [1e6, -1e6]


def test_a_label_that_is_believed_ends_the_row():
    bound = settled()
    found = [believed(bound, 0.0, label, 1.0) for label in (1e6, 1e6, 0.5, 1e6, 1e6)]
    assert np.isnan(found).tolist() == [True, True, False, True, True]


def test_one_in_twenty_is_believed_in_the_end_and_one_in_a_hundred_never():
    for every, is_believed in ((20, True), (100, False)):
        bound, rng = settled(), np.random.default_rng(2)
        errors = rng.normal(size=3000)
        errors[every - 1 :: every] = 2000.0
        found = [believed(bound, 0.0, error, 1.0) for error in errors]
        assert (found[-1] == 2000) == is_believed


def test_before_the_first_label_the_inputs_tell_the_size():
    for label, expected in ((59.0, 59.0), (-61.0, -60.0), (299.0, 60.0)):
        assert believed(row(), 0.0, label, 3.0) == expected
    assert math.isnan(believed(row(), 0.0, 301.0, 3.0))


def test_first_labels_of_another_size_are_believed_at_the_third():
    bound = row()
    assert np.isnan([believed(bound, 0.0, 1e6, 1.0) for _ in range(2)]).all()
    assert believed(bound, 0.0, 1e6, 1.0) == 1e6
    np.testing.assert_allclose(bound[:5], [1e12, 1, 3, 1e6, 2])


def test_where_there_was_no_error_at_all_every_label_is_believed():
    """Constant labels would shut out all others."""
    bound = row()
    assert believed(bound, 0.0, 0.0, 1.0) == 0.0
    assert believed(bound, 0.0, 1e9, 1.0) == 1e9


def test_heavy_tails_widen_the_limit():
    """Cauchy errors: few of them are cut, and those only as far as the limit."""
    bound, rng = row(1.0, 1.0), np.random.default_rng(1)
    for error in rng.standard_cauchy(2000):
        believed(bound, 0.0, error, 1.0)
    assert bound[4] < 20
    assert math.sqrt(bound[0] / bound[1]) > 2


# inputs


def test_the_largest_input_is_at_least_one():
    assert largest(np.array([0.1, -0.2])) == 1
    assert largest(np.array([0.1, -7.0])) == 7
    assert largest(np.empty(0)) == 1


@pytest.mark.parametrize(
    ("low", "high", "limits"),
    [
        (0.0, 1.0, (-10, 11)),  # ten times the range
        (0.2, 0.3, (-9.8, 10.3)),  # or 1
        (-40.0, 0.0, (-440, 400)),
        (100.0, 101.0, (-910, 1111)),  # or the larger end, where the range is far from 0
    ],
)
def test_an_input_is_wild_ten_times_its_range_away(low, high, limits):
    ends = np.array([low]), np.array([high])
    for x, is_outside in zip(limits, (-1e-6, 1e-6), strict=True):
        assert not is_wild(np.array([x - is_outside]), *ends, 1.0)
        assert is_wild(np.array([x + is_outside]), *ends, 1.0)
        assert not is_wild(np.array([x + is_outside]), *ends, 2.0)


def test_one_of_many_inputs_makes_a_sample_wild():
    low, high, x = np.zeros(5), np.ones(5), np.full(5, 0.5)
    assert not is_wild(x, low, high, 1.0)
    x[3] = 12
    assert is_wild(x, low, high, 1.0)


def test_without_ranges_no_input_is_wild():
    assert not is_wild(np.array([1e300]), np.zeros(1), np.zeros(1), 0.0)


def test_what_is_no_number_is_wild():
    for value in (math.nan, math.inf, -math.inf):
        assert is_wild(np.array([value]), np.zeros(1), np.ones(1), 1.0)


def test_the_first_inputs_are_the_ranges():
    low, high, x = np.zeros(2), np.zeros(2), np.array([3.0, -4.0])
    learn_ranges(x, low, high, 0.0)
    assert low.tolist() == high.tolist() == [3, -4]


def test_ranges_take_in_and_shrink_by_hand():
    low, high = np.array([0.0, 0.0]), np.array([1.0, 2.0])
    learn_ranges(np.array([5.0, 1.0]), low, high, 1.0)
    np.testing.assert_allclose(low, [0.005, 0.01])
    np.testing.assert_allclose(high, [5.0, 1.99])


def test_an_old_range_is_forgotten():
    low, high, x = np.array([0.0]), np.array([1000.0]), np.array([500.0])
    for _ in range(1000):
        learn_ranges(x, low, high, 1.0)
    assert high[0] - low[0] == pytest.approx(1000 * (1 - RANGE_FADE) ** 1000)


# the network's prediction


def test_the_network_counts_within_reach_of_what_the_learner_alone_predicts():
    bound = settled()
    assert within_reach(bound, 3.0, 3.0 + 0.9 * REACH) == 3.0 + 0.9 * REACH
    assert within_reach(bound, 3.0, 1e6) == pytest.approx(3.0 + REACH)
    assert within_reach(bound, 3.0, -1e6) == pytest.approx(3.0 - REACH)
    assert within_reach(row(), 3.0, 1e6) == 1e6  # nothing to compare with


def test_what_labels_confirm_widens_the_reach_and_fades():
    bound = settled()
    confirm(bound, 0.0, REACH, 100.0)
    assert bound[5] == (2 * REACH) ** 2  # at most twice as far as the network said
    assert within_reach(bound, 0.0, 1e6) == pytest.approx(REACH * math.sqrt(5))
    confirm(bound, 0.0, REACH, -100.0)  # a label on the other side confirms nothing
    assert bound[5] == (1 - CONFIRM_FADE) * (2 * REACH) ** 2
