"""What was predicted waits for its label, survives a restart, and is checked when it is read."""

import numpy as np
import pytest

from domkl.algorithms.base import Prediction
from domkl.errors import DataError
from domkl.learner.late import LateLabels, Sample


def sample(number):
    values = np.array([float(number)])
    return Sample.copied(values[None], values, Prediction(values, values[None], values[None]))


def queue_of(*numbers):
    queue = LateLabels(Sample)
    for number in numbers:
        queue.add(sample(number))
    return queue


def test_the_oldest_is_taken_once_more_than_the_delay_wait():
    queue = queue_of(1, 2)
    assert queue.take(2) is None
    queue.add(sample(3))
    assert queue.take(2).y == 1
    assert len(queue) == 2
    assert queue.oldest.y == 2
    assert queue.newest.y == 3
    assert [float(each.prediction.y_hat[0]) for each in queue] == [2, 3]


def test_what_waits_is_a_copy():
    x = np.ones((1, 1))
    made = Sample.copied(x, x[0], Prediction(x[0], x, x))
    x[:] = 5
    assert made.x == made.y_hat == 1


def test_what_waits_survives_a_restart():
    saved = queue_of(1, 2).saved("waiting")
    again = queue_of(7)
    again.restore("waiting", saved, sample(0), 2)
    assert [float(each.x[0, 0]) for each in again] == [1, 2]
    again.restore("waiting", {}, sample(0), 2)
    assert len(again) == 0
    assert again.oldest is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda saved: saved.pop("waiting.y"), "must hold at most 2 whole samples"),
        (lambda saved: saved.update({"waiting.x": np.ones((3, 1))}), "at most 2 whole samples"),
        (lambda saved: saved.update({"waiting.y": np.ones((2, 5))}), r"waiting.y must have shape"),
    ],
)
def test_a_damaged_file_is_refused(change, why):
    saved = queue_of(1, 2).saved("waiting")
    change(saved)
    with pytest.raises(DataError, match=why):
        queue_of().restore("waiting", saved, sample(0), 2)
