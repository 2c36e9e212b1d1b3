"""Text that people write and read."""

import pytest

from domkl.errors import ParameterError
from domkl.text import parse_lags, parse_numbers, parse_rows, text_table


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (None, slice(None)),
        (3, slice(3)),
        ("12", slice(12)),
        ("1::2", slice(1, None, 2)),
        ("1:5", slice(1, 5)),
        ("1:5:", slice(1, 5, None)),
        (":", slice(None, None)),
    ],
)
def test_rows(given, found):
    assert parse_rows(given) == found


@pytest.mark.parametrize("given", ["x", "0", "", "::0", "-1:", "1:2:3:4", -1])
def test_wrong_rows(given):
    with pytest.raises(ParameterError, match="rows must be"):
        parse_rows(given)


@pytest.mark.parametrize(
    ("given", "told"),
    [("", "such as 1,6,24"), ("1,x", "such as"), ("0,1", ">= 1, got 0"), ("2,2", "not repeat")],
)
def test_wrong_numbers(given, told):
    with pytest.raises(ParameterError, match=f"lags must .*{told}"):
        parse_numbers("lags", given)


def test_no_lags():
    assert parse_lags("lags", 0) == ()


def test_a_table_has_no_spaces_at_the_end_of_a_line():
    assert text_table([("a", "long"), ("bb", "1"), ("c", "")]) == (
        "a   long\n--------\nbb     1\nc"
    )
