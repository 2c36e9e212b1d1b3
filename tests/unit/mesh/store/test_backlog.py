"""The lags of a series are those of data.streams.embed, also across a restart."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from domkl.data.rows import RowPlan
from domkl.data.streams import embed
from domkl.mesh.store.backlog import Rows

NUMBERS = st.floats(-1e6, 1e6)


def plan(n_lags):
    return RowPlan("load", lags=tuple(range(1, n_lags + 1)), hold=0)


def fed(rows, values, first=1):
    return [each for k, v in enumerate(values, first) for each in rows.events(k, np.array([v]))]


@given(st.lists(NUMBERS, min_size=6, max_size=30), st.integers(1, 5))
def test_lags_are_those_of_embed(values, n_lags):
    made = fed(Rows(plan(n_lags)), values)
    X, y = embed(values, n_lags)
    np.testing.assert_array_equal(np.array([each.x for each in made]), X)
    np.testing.assert_array_equal([each.y for each in made], y)


@given(st.lists(NUMBERS, min_size=2, max_size=30), st.integers(1, 5), st.data())
def test_it_goes_on_from_what_a_checkpoint_keeps(values, n_lags, data):
    """Whatever is learned when it is written; values that are lags only count as learned."""
    rows = Rows(plan(n_lags))
    fed(rows, values)
    position = data.draw(st.integers(min(n_lags, len(values)), len(values)))
    rows.learned(position)
    kept = rows.saved_lags()
    np.testing.assert_array_equal(kept, values[max(0, position - n_lags) : position])
    again = Rows(plan(n_lags), lags=kept)
    fed(again, values[position:], position + 1)
    expected = values[::-1][:n_lags]
    np.testing.assert_array_equal(again.lags_after([])[: len(expected)], expected)
    if len(values) >= n_lags:
        np.testing.assert_array_equal(rows.lags_at(len(values)), expected)


def test_the_next_value_follows_those_that_wait():
    rows = Rows(plan(3))
    assert rows.lags_after([]) is None
    fed(rows, [1.0, 2.0])
    found = rows.lags_after([np.array([3.0]), np.array([4.0])])
    np.testing.assert_array_equal(found, [4.0, 3.0, 2.0])
    np.testing.assert_array_equal(rows.lags_after([]), [2.0, 1.0, np.nan])


def test_memory_is_bounded():
    rows = Rows(plan(3))
    for k in range(1, 1001):
        rows.events(k, np.array([float(k)]))
        rows.learned(k - 10)
    assert len(rows._before) == 10
