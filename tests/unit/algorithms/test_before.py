"""States that earlier versions pickled are told from those of now."""

import numpy as np

from domkl.algorithms.before import Before
from domkl.algorithms.least_squares import State


def arrays(*shapes):
    return [np.zeros(shape) for shape in shapes]


def test_fields_by_position_with_counts_behind_the_sums_are_an_older_state():
    found = State(*arrays((1, 3, 4), (1, 3), *[(1,)] * 30))  # 0.3 had 32 of them
    assert isinstance(found, Before)
    assert found.counts.shape == (1, 3)
    assert found.top.shape == (1,)
    assert found.season.shape == (0,)


def test_fields_of_now_are_a_state():
    made = State(*arrays((1, 3, 4), (1, 3, 4), *[(1,)] * (len(State._fields) - 2)))
    assert type(made) is State
    assert type(State(**made._asdict())) is State
    assert type(made._replace(sums=made.sums)) is State
