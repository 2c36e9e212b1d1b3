"""Declared ranges from a file."""

import pytest

import domkl


def test_ranges_are_read_by_name(tmp_path):
    path = tmp_path / "ranges.csv"
    path.write_text("low,column,high\n0,a,1\n-5,b,5.5\n")
    assert domkl.read_ranges(path) == {"a": (0, 1), "b": (-5, 5.5)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("column,low\na,1\n", "must have the columns column, low, high, got column, low"),
        ("column,low,high\na,1,1\n", "line 2 must have numbers low < high, got '1' and '1'"),
        ("column,low,high\na,x,1\n", "line 2 must have numbers low < high, got 'x' and '1'"),
        ("column,low,high\na,0,inf\n", "line 2 must have numbers low < high"),
        ("column,low,high\na,0,1\na,0,1\n", "line 3 must name another column, got 'a' again"),
    ],
)
def test_ranges_that_are_none(tmp_path, text, message):
    (tmp_path / "ranges.csv").write_text(text)
    with pytest.raises(domkl.DataError, match=message):
        domkl.read_ranges(tmp_path / "ranges.csv")
