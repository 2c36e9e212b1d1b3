"""The node's lags are those of data.streams.embed, also across a restart."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from domkl.data.streams import embed
from domkl.mesh.store.backlog import Series

NUMBERS = st.floats(-1e6, 1e6)


@given(st.lists(NUMBERS, min_size=6, max_size=30), st.integers(1, 5))
def test_lags_are_those_of_embed(values, n_lags):
    series = Series(n_lags)
    made = [(x, value) for value in values if (x := series.sample(value)) is not None]
    X, y = embed(values, n_lags)
    np.testing.assert_array_equal(np.array([x for x, _ in made]), X)
    np.testing.assert_array_equal([value for _, value in made], y)


@given(st.lists(NUMBERS, min_size=2, max_size=30), st.integers(1, 5), st.data())
def test_it_goes_on_from_what_a_checkpoint_keeps(values, n_lags, data):
    series = Series(n_lags)
    for value in values:
        series.sample(value)
    position = data.draw(st.integers(0, len(values)))
    series.forget(data.draw(st.integers(0, position)))
    again = Series(n_lags, position, series.before(position))
    for value in values[position:]:
        again.sample(value)
    assert again.position == series.position
    expected = None if len(values) < n_lags else values[::-1][:n_lags]
    assert (again.lags is None) == (expected is None)
    if expected is not None:
        np.testing.assert_array_equal(again.lags, expected)


def test_memory_is_bounded():
    series = Series(3)
    for k in range(1000):
        series.sample(k)
        series.forget(max(0, k - 10))
    assert len(series._values) < 20
