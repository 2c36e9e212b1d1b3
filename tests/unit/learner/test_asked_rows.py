"""Predictions of an estimator that wait for their labels."""

import numpy as np
import pytest

from domkl.algorithms.base import Prediction
from domkl.learner.late import N_WAITING, AskedRows


def row(value):
    return np.array([[float(value), 1.0]])


def prediction():
    return Prediction(np.zeros(1), np.zeros((1, 2)))


def far(rows):
    return np.full(len(rows), 2.0)


def played(delay, n=30, distance=far):
    """Predict a row, learn the one so many before; how many were found."""
    late, found = AskedRows(), 0
    for t in range(n):
        late.ask(row(t), max(t - delay, 0), prediction())
        if t >= delay:
            which = late.find(row(t - delay), t - delay, distance)
            found += which is not None and which.row[0, 0] == t - delay
            late.learned(row(t - delay), t - delay, which)
    return late, found


@pytest.mark.parametrize("delay", [0, 1, 7])
def test_a_label_finds_its_prediction_and_tells_how_late_it_is(delay):
    late, found = played(delay)
    assert found == 30 - delay
    assert late.delay == delay
    assert len(late) == delay


def test_a_row_that_a_scaler_has_changed_is_found_where_its_turn_is():
    late = AskedRows()
    for t in range(3):
        late.ask(row(t), 0, prediction())
    found = late.find(row(0.01), 0, lambda rows: np.abs(rows[:, 0] - 0.01) / 0.1)
    assert found.row[0, 0] == 0
    assert late.find(row(0.5), 0, lambda rows: np.abs(rows[:, 0] - 0.5) / 0.1) is None


def test_a_row_learned_just_now_does_not_wait():
    late = AskedRows()
    late.learned(row(1), 0, None)
    late.ask(row(1), 1, prediction())
    late.ask(row(2), 1, prediction())
    late.ask(row(2), 1, prediction())
    assert [each.row[0, 0] for each in late] == [2.0]


def test_what_waits_is_bounded():
    late = AskedRows()
    for t in range(N_WAITING + 5):
        late.ask(row(t), 0, prediction())
    assert len(late) == N_WAITING
    assert late.find(row(0), 0, far) is None
