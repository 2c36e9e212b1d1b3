"""Sums of products: their order is the one that is written, whatever they are compiled into."""

import numba
import numpy as np
import pytest

from domkl.core import lanes

N = 300
TYPES = ["float64", "float32"]


def rows(dtype, n, count=2):
    """Rows of numbers with so few digits that a product of two is exact."""
    digits = {"float64": 24, "float32": 11}[dtype]
    values = np.random.default_rng(n).integers(-(2**digits), 2**digits, (count, n))
    return list((values / 2**digits).astype(dtype))


def halved(lanes_of_sum):
    while lanes_of_sum.size > 1:
        half = lanes_of_sum.size // 2
        lanes_of_sum = lanes_of_sum[:half] + lanes_of_sum[half:]
    return lanes_of_sum[0]


def in_lanes(a, b, wide):
    """The sum as lanes.py says it is made, in NumPy."""
    products, few = a * b, lanes.NARROW // a.itemsize
    many = wide // a.itemsize
    sums = np.zeros(many, a.dtype)
    start = 0
    while start + many <= a.size:
        sums = sums + products[start : start + many]
        start += many
    while sums.size > few:
        sums = sums[: sums.size // 2] + sums[sums.size // 2 :]
    while start + few <= a.size:
        sums = sums + products[start : start + few]
        start += few
    total = halved(sums)
    for product in products[start:]:
        total = total + product
    return total


@pytest.mark.parametrize("dtype", TYPES)
def test_sums_are_made_in_the_order_that_is_written(dtype):
    for n in (*range(70), N):
        a, b = rows(dtype, n)
        found = lanes.dot(a, b)
        assert found == in_lanes(a, b, lanes.WIDE)


@pytest.mark.parametrize("dtype", TYPES)
def test_a_block_is_four_sums(dtype):
    for n in (0, 1, 7, 8, 33, N):
        a, b, c, d = rows(dtype, n, 4)
        expected = [in_lanes(x, y, lanes.WIDE // 2) for x in (a, b) for y in (c, d)]
        assert list(lanes.dot_block(a, b, c, d)) == expected


def test_a_longer_second_row_is_read_as_far_as_the_first():
    a, b = rows("float64", 20)
    assert lanes.dot(a[:13], b) == lanes.dot(a[:13].copy(), b[:13].copy())


@numba.njit
def _of_three(out, a, b):
    room = np.empty(3)
    for i in range(len(a)):
        for j in range(3):
            room[j] = a[i, j]
        out[i] = lanes.dot(room, b[i])


@numba.njit(fastmath=True)
def _of_four(out, a, b):
    for i in range(len(a)):
        out[i] = lanes.dot(a[i, 0:4], b[i])


@pytest.mark.parametrize(("function", "n"), [(_of_three, 3), (_of_four, 4)])
def test_the_last_digit_does_not_depend_on_what_a_sum_is_compiled_into(function, n):
    """A caller that knows the size, or that allows the compiler to reorder its own sums."""
    a, b = np.random.default_rng(0).standard_normal((2, 2000, n))
    out = np.empty(2000)
    function(out, a, b)
    expected = [lanes.dot(x.copy(), y.copy()) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", TYPES)
def test_fused_rounds_like_a_product_and_a_sum_where_the_product_is_exact(dtype):
    a, b, c = rows(dtype, N, 3)
    for x, y, z in zip(a, b, c, strict=True):
        assert lanes.fused(x, y, z) == x * y + z


def test_rows_of_two_types_are_refused():
    with pytest.raises(numba.TypingError):
        lanes.dot(np.ones(3), np.ones(3, "float32"))
