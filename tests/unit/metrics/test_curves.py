"""Running averages, and the paper's start."""

import numpy as np

import domkl


def test_the_paper_start_replaces_the_first_round_by_one():
    per_round = np.array([[0.5, 0.2, 0.3], [4.0, 1.0, 0.0]])
    curve = domkl.running_average(per_round, axis=1)
    expected = domkl.running_average(np.column_stack([[1, 1], per_round[:, 1:]]), axis=1)
    np.testing.assert_allclose(domkl.with_paper_start(curve), expected)
