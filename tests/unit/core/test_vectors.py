"""Inner loops against NumPy, in both types, and the one that must be exact.

They are called as Python here: compiled, they have no entry from Python, and a call would end the
process. Compiled they are tested by what is built from them, in tests/contracts.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from domkl.core import vectors as compiled

vectors = SimpleNamespace(
    **{name: getattr(each, "py_func", each) for name, each in vars(compiled).items()}
)
A, B, C, D = np.random.default_rng(0).normal(size=(4, 37))


@pytest.fixture(params=["float64", "float32"])
def rows(request):
    """Four rows, room for a result, and a factor, of one type."""
    made = [row.astype(request.param) for row in (A, B, C, D)]
    return *made, np.full(37, 9.0, request.param), made[0].dtype.type(0.3)


def near(found, expected):
    tolerance = 1e-12 if np.asarray(found).dtype == np.float64 else 1e-5
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_what_is_written_replaces_what_was_there(rows):
    a, b, _, _, out, factor = rows
    for function, arguments, expected in (
        (vectors.cleared, (), 0 * A),
        (vectors.copied, (a,), A),
        (vectors.scaled, (a, factor), 0.3 * A),
        (vectors.shifted, (a, b, factor), A + 0.3 * B),
        (vectors.difference, (a, b), A - B),
        (vectors.mixture, (a, b, factor), 0.7 * A + 0.3 * B),
    ):
        out[:] = 9.0
        function(out, *arguments)
        near(out, expected)


def test_what_is_added_comes_on_top(rows):
    a, b, _, _, out, factor = rows
    for function, arguments, expected in (
        (vectors.added, (a,), A),
        (vectors.added_difference, (a, b), A - B),
        (vectors.added_share, (a, b, factor), 0.3 * (A - B)),
        (vectors.added_scaled, (a, factor), 0.3 * A),
    ):
        out[:] = 9.0
        function(out, *arguments)
        near(out, 9.0 + expected)


def test_full_trust_in_one_of_two_gives_that_one_to_the_bit(rows):
    """However large the other is: a + share (b - a) would lose b beside it."""
    a, b, _, _, out, factor = rows
    huge = (1e20 * a).astype(a.dtype)
    vectors.mixture(out, huge, b, factor.dtype.type(1))
    np.testing.assert_array_equal(out, b)
    vectors.mixture(out, b, huge, factor.dtype.type(0))
    np.testing.assert_array_equal(out, b)


def test_a_step_of_biermans_update(rows):
    """The column loses a share of the gain, and the gain takes in the column as it was."""
    a, b, _, _, _, factor = rows
    column, gain = a.copy(), b.copy()
    vectors.bierman_column(column, gain, factor, factor.dtype.type(2))
    near(column, A - 0.3 * B)
    near(gain, B + 2 * A)


def test_a_tracked_sum_moves_as_n_times_the_fit_does(rows):
    """S + n⁺φ⁺ − nφ, and then a share of the way to n⁺φ⁺."""
    own, total, gain, _, out, step = rows
    real = own.dtype.type
    before = own.copy()
    vectors.tracked_sum(own, out, total, gain, step, real(5), real(2), real(0.25))
    after = A + 0.3 * C
    near(own, after)
    moved = B + 5 * after - 3 * before
    near(out, moved + 0.25 * (5 * after - moved))


def test_a_tracked_sum_of_one_learner_stays_n_times_its_fit(rows):
    """However it moves, and whatever its memory; so θ = S/n is φ."""
    own, _, gain, _, _, step = rows
    real, n, total = own.dtype.type, 1.0, own.copy()
    for _ in range(200):
        after, out = 0.9 * n + 1, np.empty_like(total)
        vectors.tracked_sum(own, out, total, gain, step, real(after), real(after - n), real(0.01))
        n, total, gain = after, out, -gain
    near(total / real(n), own)


def test_lines_are_a_view():
    values = np.arange(24.0).reshape(2, 3, 4)
    lines = vectors.lines(values)
    assert lines.shape == (2, 12)
    lines[1, 0] = -1.0
    assert values[1, 0, 0] == -1.0
