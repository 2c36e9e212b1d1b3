"""Cells of CSV files in all dialects, and numbers in all notations."""

import gzip
import math

import numpy as np
import pytest

from domkl.data import cells
from domkl.data.cells import Problems, numbers_of, sheet_of
from domkl.errors import DataError


def sheet(text, encoding="utf-8"):
    problems = Problems()
    found = sheet_of(text.encode(encoding), "f.csv", problems)
    problems.check()
    return found


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_any_separator_and_end_of_line(separator):
    text = "\r\n".join(separator.join(row) for row in (("a", "b"), ("1", "2"), ("3", "4")))
    found = sheet(text)
    assert found.names == ["a", "b"]
    assert [list(column) for column in found.cells] == [["1", "3"], ["2", "4"]]


def test_quotes_hold_separators_and_line_ends():
    found = sheet('a,"b, with comma"\n"x\ny","1,5"\n')
    assert found.names == ["a", "b, with comma"]
    assert found.column("a")[0] == "x\ny"
    assert found.line_of(0) == 3  # the row ends there


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_encodings(encoding):
    assert sheet("größe;µg\n1;2\n", encoding).names == ["größe", "µg"]


def test_gzip_is_told_by_its_bytes_not_its_name():
    assert sheet_of(gzip.compress(b"a\n1\n"), "f.csv", Problems()).n_rows == 1


def test_empty_lines_and_empty_columns_are_left_out():
    found = sheet("a;b;;\n1;2;;\n;;;\n\n3;4;;\n")
    assert (found.names, found.n_rows, found.n_empty) == (["a", "b"], 2, 2)


def test_columns_of_one_name_get_their_own():
    found = sheet("x,x,,x (2)\n1,2,3,4\n")
    assert found.names == ["x", "x (3)", "column 3", "x (2)"]


def test_all_ragged_rows_are_told_with_their_lines():
    with pytest.raises(
        DataError, match=r"2 problems: f.csv line 3: must have 2 cells .* got 1; f.csv line 6"
    ):
        sheet("a,b\n1,2\n3\n\n1,2\n4,5,6\n")


def test_many_problems_are_counted():
    text = "a,b\n" + "1\n" * 30
    with pytest.raises(DataError, match=r"30 problems: .*; and 22 more"):
        sheet(text)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "must have a header and at least one row"),
        (b"a,b\n", "must have a header and at least one row"),
        (b'a,b\n1,"2\n', "is no CSV"),
        (b"\x00\x01\x02\x03", "got bytes that are no text"),
        (gzip.compress(b"a\n1\n", mtime=0)[:-6], "must be a whole gzip file"),
    ],
)
def test_what_is_no_table(raw, message):
    problems = Problems()
    assert sheet_of(raw, "f.csv", problems) is None
    with pytest.raises(DataError, match=message):
        problems.check()


def test_a_file_that_unpacks_to_more_than_it_may(monkeypatch):
    """0.2: as much as fits into memory."""
    monkeypatch.setattr(cells, "MAX_UNPACKED", 1 << 16)
    problems = Problems()
    raw = gzip.compress(b"a,b\n" + b"1,2\n" * 30_000, mtime=0)
    assert len(raw) < 1000
    assert sheet_of(raw, "f.csv", problems) is None
    with pytest.raises(DataError, match="must unpack to at most 65536 bytes, got more"):
        problems.check()


@pytest.mark.parametrize(
    ("cell", "comma", "value"),
    [
        ("1.5", False, 1.5), (" -2e3 ", False, -2000.0), ("1,234.5", False, 1234.5),
        ("1,5", True, 1.5), ("1.234,5", True, 1234.5), ("1.234", True, 1234.0), ("7", True, 7.0),
        ("NA", False, math.nan), ("?", False, math.nan), ("none", False, math.nan),
    ],
)  # fmt: skip
def test_numbers(cell, comma, value):
    read = numbers_of((cell,), comma)
    np.testing.assert_array_equal(read.values, [value])
    assert not read.bad


@pytest.mark.parametrize(
    ("cell", "comma", "why"),
    [
        ("x", False, "must be a number"), ("1_000", False, "must be a number"),
        ("inf", False, "must be finite"), ("1.5", True, "decimal comma"), ("1,5", False, "number"),
    ],
)  # fmt: skip
def test_what_is_no_number(cell, comma, why):
    read = numbers_of((cell, "1"), comma)
    assert why in read.bad[cell]
    assert (read.n_bad, read.n_missing) == (1, 0)


def test_a_number_may_stand_for_missing_however_it_is_written():
    read = numbers_of(("-200", "-200.0", "1", "off"), gaps=frozenset(("-200", "off")))
    assert read.n_missing == 3
    assert read.values[2] == 1


def test_decimal_commas_are_found_where_commas_do_not_separate():
    assert sheet("a;b\n1;2,5\n").is_decimal_comma()
    assert not sheet("a;b\n1;2.5\n").is_decimal_comma()
    assert not sheet('a,b\n1,"2,5"\n').is_decimal_comma()


QUOTED = 'n,"w",x\n1,"a",2.5\n2,"b c",NA\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (QUOTED, ["a", "b c"]),
        (QUOTED.rstrip("\n"), ["a", "b c"]),
        (QUOTED + '"",,\n\n', ["a", "b c"]),  # rows without a cell
        (QUOTED.replace("b c", "b,c"), ["a", "b,c"]),
        (QUOTED.replace("b c", 'b ""c""'), ["a", 'b "c"']),
        (QUOTED.replace("b c", "b\nc"), ["a", "b\nc"]),
        (QUOTED.replace('"a"', '""'), ["", "b c"]),
        ("\n" + QUOTED, ["a", "b c"]),
    ],
)
def test_cells_in_quotes(text, words):
    found = sheet(text)
    assert found.names == ["n", "w", "x"]
    assert found.column("w") == words


@pytest.mark.parametrize("odd", ["1_0", "inf", "nan", "NA", "x", "1,5", "", " 7 ", "1e3"])
def test_columns_of_different_cells_are_read_as_others_are(odd, monkeypatch):
    column = [*map(str, range(50)), odd]
    fast = numbers_of(column)
    monkeypatch.setattr("domkl.data.cells._plain_numbers", lambda _: None)
    slow = numbers_of(column)
    np.testing.assert_array_equal(fast.values, slow.values)
    assert fast[1:] == slow[1:]
