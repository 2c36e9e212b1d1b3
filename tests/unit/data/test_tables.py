"""Tables of an edition: separators, marks, gaps, and cells that are wrong."""

from dataclasses import replace

import numpy as np
import pytest

import domkl
from domkl.data.content import check_content
from domkl.data.records import DataSet, Edition, Origin
from domkl.data.rules import choose
from domkl.data.tables import day_fraction, read_table

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
    assert table.n_empty == 2


def test_without_a_header():
    assert read("x,1,2\nx,3,4\n", has_header=False).column("y").tolist() == [2, 4]
    with pytest.raises(domkl.DataError, match="must have 3 columns, got 2 in line 1"):
        read("1,2\n", has_header=False)


@pytest.mark.parametrize("gap", ["", " ", "nan", "NaN", "NA", "?"])
def test_gaps_are_kept_as_such(gap):
    assert np.isnan(read(f"when,a,y\nx,{gap},2\n").column("a")).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("when,a,y\nx,1\n", "toy.csv line 2 must have 3 cells, got 2; the file may be cut off"),
        ("when,a,y\nx,one,2\n", "toy.csv line 2, column 'a' must be a number, got 'one'"),
        ("when,a\nx,1\n", "toy.csv has no column 'y'; it has when, a"),
        ("when,a,y\n\n\n", "toy.csv must have rows, got none"),
        ("", "has no column 'when' and 2 more"),
    ],
)
def test_tables_that_cannot_be_used(text, message):
    with pytest.raises(domkl.DataError, match=message):
        read(text)


@pytest.mark.parametrize("cell", ["noon", "18", "18:00"])
def test_a_time_of_day(cell):
    assert day_fraction("12:00:00") == 0.5
    with pytest.raises(ValueError, match=cell):
        day_fraction(cell)
    with pytest.raises(domkl.DataError, match="column 'when' must be a time of day, got"):
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
