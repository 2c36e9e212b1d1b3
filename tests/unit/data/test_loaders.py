import gzip

import numpy as np
import pytest

import domkl


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
        ("a,b\n1,x\n", r"line 2, column 'b' must be a number, got 'x'"),
        ("a,b\n1,2\n1,\n", r"line 3, column 'b' is empty"),
        ("a,b\n1,nan\n", r"column 'b' must be finite, got 'nan'"),
        ("a,b\n1,inf\n", r"column 'b' must be finite, got 'inf'"),
        ("a,c\n1,2\n", r"has no column 'b'; it has a, c"),
        ("a,b\n", "must have a header and at least one row"),
        ("", "must have a header and at least one row"),
        ("a,b\n1,2,3\n", "line 2 must have 2 cells as the header, got 3"),
        ("b\n1\n", "must have a column besides the target"),
        ("a,a,b\n1,2,3\n", "must name each column once, got 'a' again"),
    ],
)
def test_tables_that_cannot_be_used(table, text, message):
    with pytest.raises(domkl.DataError, match=message):
        domkl.load_table(table(text), "b")


def test_files_that_cannot_be_read(tmp_path, table):
    with pytest.raises(domkl.DataError, match="no such file"):
        domkl.load_table(tmp_path / "none.csv", "a")
    with pytest.raises(domkl.DataError, match="cannot read"):
        domkl.load_table(tmp_path, "a")
    whole = gzip.compress(b"a,b\n1,2\n" * 1000)
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(domkl.DataError, match="cannot read"):
        domkl.load_table(tmp_path / "cut.csv.gz", "a")
    (tmp_path / "latin.csv").write_bytes(b"a,b\n\xff\xfe,1\n")
    with pytest.raises(domkl.DataError, match="cannot read"):
        domkl.load_table(tmp_path / "latin.csv", "a")


def test_the_shipped_series_follow_the_paper():
    traffic, temperature = domkl.load_series("traffic"), domkl.load_series("temperature")
    assert (len(traffic.values), traffic.values.min(), traffic.values.max()) == (6500, 125, 7217)
    assert len(temperature.values) == 5500
    assert temperature.values.min() == 244.82


def test_the_clean_series_has_one_possible_value_an_hour():
    traffic = domkl.load_series("traffic", rule="clean")
    temperature = domkl.load_series("temperature", rule="clean")
    assert len(traffic.values) == 48204 - 7629
    assert "7629 repeated hours" in traffic.note
    assert (temperature.values > 0).all()
    assert len(temperature.values) == len(traffic.values) - 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("rain",), "name must be one of"), (("traffic", "raw"), "rule must be one of")],
)
def test_unknown_names(arguments, message):
    with pytest.raises(domkl.ParameterError, match=message):
        domkl.load_series(*arguments)
