"""CSV files of the user's own, declared ranges, and the tables of the catalog's data sets."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

import domkl
from domkl.data.catalog import DataSet, Edition, Origin
from domkl.data.sets import choose
from domkl.data.tables import check_content, day_fraction, read_table

PLAIN = Edition(
    name="plain", file="toy.csv", state="", rows=2, columns=("when", "a", "y"), text=("when",),
    target_bounds=(0, 9),
)  # fmt: skip
SET = DataSet(
    name="toy", title="", origin=Origin("", 0, "", "", ""), task="regression", target="y",
    not_inputs=("when",), n_inputs=1, paper_rows=2, usable="", editions=(PLAIN,),
)  # fmt: skip


def read(lines, **changes):
    return read_table(lines.encode(), replace(PLAIN, **changes), "toy.csv")


def test_columns_are_found_by_name_and_others_ignored():
    table = read("y,extra,a,when\n1,x,2,monday\n3,x,4,tuesday\n")
    assert table.column("y").tolist() == [1, 3]
    assert table.column("a").tolist() == [2, 4]
    assert np.isnan(table.column("when")).all()


def test_another_separator_decimal_mark_and_empty_lines():
    table = read(
        "\ufeffwhen;a;y;;\r\nx;1,5;2;;\r\n;;;;\r\n\r\nx;2,5;3;;\r\n;;;;\r\n",
        separator=";",
        decimal=",",
    )
    assert table.column("a").tolist() == [1.5, 2.5]
    assert table.lines.tolist() == [2, 5]


def test_without_a_header():
    assert read("x,1,2\nx,3,4\n", has_header=False).column("y").tolist() == [2, 4]
    with pytest.raises(domkl.DataError, match="line 1: must have 3 cells as the header, got 2"):
        read("1,2\n", has_header=False)


@pytest.mark.parametrize("gap", ["", " ", "nan", "NaN", "NA", "?"])
def test_gaps_are_kept_as_such(gap):
    assert np.isnan(read(f"when,a,y\nx,{gap},2\n").column("a")).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("when,a,y\nx,1\n", "toy.csv line 2: must have 3 cells as the header, got 2"),
        ("when,a,y\nx,one,2\n", "toy.csv line 2, column 'a': must be a number, got 'one'"),
        ("when,a\nx,1\n", "has no column 'y'; it has when, a"),
        ("when,a,y\n\n\n", "toy.csv must have rows, got none"),
        ("", "toy.csv must have rows, got none"),
    ],
)
def test_tables_of_the_catalog_that_cannot_be_used(text, message):
    with pytest.raises(domkl.DataError, match=message):
        read(text)


@pytest.mark.parametrize("cell", ["noon", "18", "18:00"])
def test_a_time_of_day(cell):
    assert day_fraction("12:00:00") == 0.5
    with pytest.raises(ValueError, match="must be a time of day"):
        day_fraction(cell)
    with pytest.raises(domkl.DataError, match="column 'when': must be a time of day, got"):
        read(f"when,a,y\n{cell},1,2\n", text=(), clock="when")


def test_a_number_that_stands_for_a_missing_value():
    edition = replace(PLAIN, missing=-200.0, rows=4)
    table = read_table(b"when,a,y\nx,-200,1\nx,2,-200\nx,3,4\nx,,5\n", edition, "toy.csv")
    paper = choose(table, SET, edition, "y", "paper")
    assert paper.X[:, 0].tolist() == [-200, 3]  # as the authors left it
    assert paper.rows_left_out == {"no target": 1, "missing inputs": 1}
    assert paper.first_lines == {"no target": [3], "missing inputs": [5]}
    clean = choose(table, SET, edition, "y", "clean")
    assert clean.X.tolist() == [[3]]
    assert clean.n_missing == 3


def test_nothing_left_is_an_error():
    table = read("when,a,y\nx,1,\n")
    with pytest.raises(domkl.DataError, match="toy has no row that can be used with target 'y'"):
        choose(table, SET, PLAIN, "y", "clean")


def test_rows_within_a_slack_where_the_file_was_never_seen():
    content = b"when,a,y\n" + b"x,1,2\n" * 1999
    assert "1999 rows" in check_content(content, SET, replace(PLAIN, rows=2000), "toy.csv")
    with pytest.raises(domkl.DataError, match="must have about 3000 rows, got 1999"):
        check_content(content, SET, replace(PLAIN, rows=3000), "toy.csv")
    with pytest.raises(domkl.DataError, match="must have 2000 rows, got 1999"):
        check_content(content, SET, replace(PLAIN, rows=2000, sha256="0" * 64), "toy.csv")


@pytest.fixture
def table(tmp_path):
    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_a_table(table, name):
    path = table("a,b,price\n1,2,3\n4,5,6\n", name)
    found = domkl.load_table(path, "price")
    assert found.names == ("a", "b")
    np.testing.assert_array_equal(found.X, [[1, 2], [4, 5]])
    np.testing.assert_array_equal(found.y, [3, 6])


def test_columns_can_be_dropped_and_rows_with_gaps_too(table):
    path = table("when,a,price\nmonday,1,2\ntuesday,,3\n,4,5\n")
    found = domkl.load_table(path, "price", drop=["when"], missing="drop")
    assert found.y.tolist() == [2, 5]
    assert found.n_dropped == 1


def test_a_byte_order_mark_is_no_part_of_a_name(table):
    assert domkl.load_table(table("\ufeffa,b\n1,2\n"), "a").names == ("b",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,x\n", r"line 2, column 'b': must be a number, got 'x'"),
        ("a,b\n1,2\n1,\n", r"line 3, column 'b': is empty"),
        ("a,b\n1,nan\n", r"column 'b': is empty"),
        ("a,b\n1,inf\n", r"column 'b': must be finite, got 'inf'"),
        ("a,b\nx,y\n", r"2 problems: .* column 'a': must be a number, got 'x'; .* column 'b'"),
        ("a,c\n1,2\n", r"has no column 'b'; it has a, c"),
        ("a,b\n", "must have a header and at least one row"),
        ("", "must have a header and at least one row"),
        ("a,b\n1,2,3\n", "line 2: must have 2 cells as the header, got 3"),
        ("b\n1\n", "must have a column besides the target"),
    ],
)
def test_tables_that_cannot_be_used(table, text, message):
    with pytest.raises(domkl.DataError, match=message):
        domkl.load_table(table(text), "b")


def test_files_that_cannot_be_read(tmp_path, table):
    with pytest.raises(domkl.DataError, match="no such file"):
        domkl.load_table(tmp_path / "none.csv", "a")
    with pytest.raises(domkl.DataError, match="cannot be read"):
        domkl.load_table(tmp_path, "a")
    whole = gzip.compress(b"a,b\n1,2\n" * 1000)
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(domkl.DataError, match="must be a whole gzip file"):
        domkl.load_table(tmp_path / "cut.csv.gz", "a")
    (tmp_path / "bytes.csv").write_bytes(b"a,b\n\0,1\n")
    with pytest.raises(domkl.DataError, match="must be text in UTF-8"):
        domkl.load_table(tmp_path / "bytes.csv", "a")


def test_columns_are_read_in_any_dialect(table):
    """As `domkl node --csv` does, without a clock."""
    values, n_dropped = domkl.read_columns(
        table("t;x;y\n1;2,5;3\n2;NA;4\n3;4,5;6\n"), ("x", "y"), missing="drop"
    )
    assert (values.tolist(), n_dropped) == ([[2.5, 3], [4.5, 6]], 1)


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
