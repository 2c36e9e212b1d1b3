"""Regrets against sums that can be done in the head."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from domkl.metrics.regret import cumulative_regret

SIZES = st.floats(0, 100)


def test_losses_are_summed_over_rounds_and_compared_kernel_by_kernel():
    loss = np.array([[1.0, 2.0], [3.0, 4.0]])  # (T, K): the learners lose 4 and 6
    best = np.array([[[0.5, 1.0], [0.5, 5.0]], [[1.0, 0.0], [2.0, 1.0]]])  # 1 and 6; 3 and 1
    found = cumulative_regret(loss, best, np.array([[1.0, 0.0], [2.0, 0.5]]))
    assert found.accuracy.tolist() == [4 - 1, 6 - 1]
    assert (found.best_kernel, found.network_accuracy) == (1, 10 - 4)
    assert found.discrepancy.tolist() == [3.0, 0.5]
    assert found.network_discrepancy == 3.5


def test_whoever_predicts_as_the_best_has_no_regret():
    best = np.array([[[1.0, 2.0]], [[5.0, 5.0]]])
    found = cumulative_regret(best[0], best, np.zeros((1, 2)))
    assert found.accuracy.tolist() == [0.0, 0.0]
    assert (found.network_accuracy, found.best_kernel) == (0.0, 0)


@given(arrays(float, (4, 3), elements=SIZES), arrays(float, (2, 4, 3), elements=SIZES))
def test_one_kernel_for_all_is_never_better_than_one_for_each(loss, best):
    found = cumulative_regret(loss, best, np.zeros_like(loss))
    assert found.network_accuracy <= found.accuracy.sum() + 1e-9


@given(arrays(float, (6, 3), elements=SIZES), arrays(float, (1, 6, 3), elements=SIZES))
def test_with_one_kernel_regrets_add_up_over_rounds_and_learners(loss, best):
    gaps = loss**2
    whole = cumulative_regret(loss, best, gaps)
    halves = [cumulative_regret(loss[i], best[:, i], gaps[i]) for i in (slice(2), slice(2, 6))]
    np.testing.assert_allclose(whole.accuracy, sum(h.accuracy for h in halves), atol=1e-9)
    np.testing.assert_allclose(whole.discrepancy, sum(h.discrepancy for h in halves), atol=1e-9)
    np.testing.assert_allclose(whole.network_accuracy, whole.accuracy.sum(), atol=1e-9)
