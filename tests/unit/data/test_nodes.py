"""Files of nodes to one table on one clock."""

import numpy as np
import pytest

from domkl.data.clock import HOUR
from domkl.data.nodes import Form, natural, read_nodes
from domkl.errors import DataError, ParameterError

LOADS = """\
when,place,load,sky
2024-01-01 00:00,b2,1.5,fair
2024-01-01 01:00,b2,NA,rain
2024-01-01 03:00,b2,2.5,
2024-01-01 02:00,b10,7,fair
2024-01-01 01:00,b10,6,rain
2024-01-01 01:00,b10,6.5,?
,b10,9,fair
"""
TIMED = Form(("when",), "place")


@pytest.fixture
def write(tmp_path):
    def put(text, name="f.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return put


def test_nodes_of_a_column_on_one_clock(write):
    table = read_nodes(write(LOADS), "load", form=TIMED)
    nan = np.nan
    assert table.nodes == ("b2", "b10")
    assert table.columns == ("load", "sky=fair", "sky=rain")
    np.testing.assert_array_equal(
        table.column("load"), [[1.5, nan], [nan, 6.5], [nan, 7], [2.5, nan]]
    )
    np.testing.assert_array_equal(
        table.column("sky=rain"), [[0, nan], [1, 1], [nan, 0], [nan, nan]]
    )
    assert table.spans.tolist() == [[0, 3], [1, 2]]
    assert table.clock.step == HOUR


def test_what_was_done_is_told(write):
    table = read_nodes(write(LOADS), "load", form=TIMED)
    told = {key: table.facts[key] for key in ("duplicates", "out_of_order", "gaps", "rows_dropped")}
    assert told == {
        "duplicates": 1,
        "out_of_order": 1,
        "gaps": 1,
        "rows_dropped": {"without a time": 1},
    }
    assert table.facts["first_lines_dropped"] == {"without a time": [8]}
    assert table.facts["levels"] == {"sky": ["fair", "rain"]}
    assert table.facts["cells_missing"] == {"load": 1, "sky=fair": 1, "sky=rain": 1}
    for words in ("7 rows of 2 nodes", "every 1 h", "1 rows without a time left out", "sky has 2"):
        assert words in table.note


def test_a_file_for_each_node_equals_one_with_a_column(write, tmp_path):
    head, *rows = LOADS.splitlines()
    for node in ("b2", "b10"):
        own = [row for row in rows if f",{node}," in row]
        write("\n".join([head, *own]) + "\n", f"log-{node}.csv")
    one = read_nodes(write(LOADS), "load", form=TIMED)
    many = read_nodes(tmp_path / "log-{node}.csv", "load", drop=["place"], form=Form(("when",)))
    assert many.nodes == one.nodes
    np.testing.assert_array_equal(many.values, one.values)


def test_without_a_time_rows_are_ticks(write):
    table = read_nodes(write("n,y\na,1\nb,5\na,2\n"), "y", form=Form((), "n"))
    np.testing.assert_array_equal(table.column("y"), [[1, 5], [2, np.nan]])
    assert not table.clock.is_dated


def test_columns_of_no_use_are_left_out_and_named(write):
    rows = [f"{i + 1},{i % 3},5,{'x' if i else ''},,{i * i}" for i in range(9)]
    table = read_nodes(write("\n".join(["No,a,same,word,void,y", *rows])), "y")
    assert table.columns == ("y", "a")
    assert table.facts["columns_left_out"] == {
        "No": "counts the rows",
        "same": "never changes at a node",
        "word": "never changes at a node",
        "void": "is missing in 100% of the rows",
    }
    assert read_nodes(
        write("\n".join(["No,a,same,word,void,y", *rows])), "y", inputs=["same"]
    ).columns == ("y", "same")


def test_coordinates_are_places(write):
    table = read_nodes(
        write("n,lat,Longitude,y\na,1,2,3\nb,4,5,6\na,1,2,4\nb,4,5,1\n"), "y", form=Form((), "n")
    )
    assert [tuple(each) for each in table.places] == [("a", 1, 2), ("b", 4, 5)]


def test_a_target_of_two_words(write):
    table = read_nodes(write("x,is\n1,no\n2,yes\n3,\n"), "is")
    np.testing.assert_array_equal(table.column("is")[:, 0], [-1, 1, np.nan])


def test_many_levels_are_an_error_that_names_the_option(write):
    text = "y,w\n" + "".join(f"{i},w{i}\n" for i in range(30))
    with pytest.raises(
        DataError, match=r"f.csv, column 'w': is text of 30 levels, more than 20; give --levels 30"
    ):
        read_nodes(write(text), "y")
    assert len(read_nodes(write(text), "y", form=Form(levels=30)).columns) == 31


def test_all_problems_of_all_files_are_told_at_once(write, tmp_path):
    write("t,y\n2024-01-01,1\n2024-13-01,2\n2024-01-03,x\n2024-01-04,4\n", "n-a.csv")
    write("t,z\n2024-01-01,1\n", "n-b.csv")
    write("t,y\n2024-01-01\n2024-01-02,5\n", "n-c.csv")
    with pytest.raises(DataError) as raised:
        read_nodes(tmp_path / "n-{node}.csv", "y", form=Form(("t",)))
    text = str(raised.value)
    assert text.startswith("4 problems: ")
    assert "\n" not in text
    parts = (
        "n-a.csv line 3, column 't'",
        "n-a.csv line 4, column 'y': must be a number, got 'x'",
        "n-b.csv line 1: has no column 'y'; it has t, z",
        "n-c.csv line 2: must have 2 cells",
    )
    for part in parts:
        assert part in text


@pytest.mark.parametrize(
    ("name", "form", "error", "message"),
    [
        ("absent.csv", Form(), DataError, "absent.csv: no such file"),
        ("absent-{node}.csv", Form(), DataError, "for any {node}"),
        ("{node}-{node}.csv", Form(), ParameterError, "{node} once"),
        ("x-{node}.csv", Form((), "n"), ParameterError, "nodes is for one file"),
    ],
)
def test_files_that_cannot_be(tmp_path, name, form, error, message):
    with pytest.raises(error, match=message):
        read_nodes(tmp_path / name, "y", form=form)


def test_rows_are_ticks(write):
    table = read_nodes(write(LOADS), "load", form=TIMED)
    some = table.rows(slice(1, 4, 2))
    np.testing.assert_array_equal(some.values, table.values[1:4:2])
    assert (some.clock.start, some.clock.step) == (table.clock.time(1), 2 * HOUR)
    first, last = (table.clock.text(tick).replace("T", " ") for tick in (1, 3))
    assert some.facts["first_time"] == first
    assert f"from {first} to {last}, 2 ticks" in some.note
    with pytest.raises(DataError, match="rows must be at least one of 4"):
        table.rows(slice(4, None))


def test_natural_order():
    assert natural({"home 10", "home 9", "b"}) == ["b", "home 9", "home 10"]
