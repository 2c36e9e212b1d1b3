"""The data of an experiment: catalog, table or series, and options that contradict each other."""

from pathlib import Path

import numpy as np
import pytest

import domkl
from domkl.experiments.data import read_data
from domkl.experiments.options import DataOptions


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{i},{i % 5},{10 + i % 3}" for i in range(20))
    Path("own.csv").write_text(f"a,b,y\n{rows}\n")
    Path("ranges.csv").write_text("column,low,high\na,0,40\nb,0,4\ny,0,20\n")


def test_without_options_it_is_traffic():
    made = read_data(DataOptions())
    same = domkl.load_set("traffic", scale="minmax")
    np.testing.assert_array_equal(made.X, same.X)
    assert (made.name, made.is_series) == ("traffic", True)
    assert made.facts["partition"] == "interleaved"


def test_a_table(here):
    made = read_data(DataOptions(csv=Path("own.csv"), target="y", drop=("b",)))
    assert (made.names, made.X.shape, made.is_series) == (("a",), (20, 1), False)
    assert (made.y.min(), made.y.max()) == (0, 1)
    assert made.facts["drop"] == ["b"]


def test_a_series(here):
    made = read_data(DataOptions(csv=Path("own.csv"), series="a", lags=3, scale="none"))
    assert made.names == ("a lag 1", "a lag 2", "a lag 3")
    assert (made.X[0].tolist(), made.y[0]) == ([2, 1, 0], 3)


def test_declared_ranges(here):
    ranges = Path("ranges.csv")
    made = read_data(DataOptions(csv=Path("own.csv"), target="y", scale="declared", ranges=ranges))
    assert made.X[19].tolist() == [19 / 40, 1.0]
    assert made.facts["values_outside"] == {}


def test_lags_and_inputs_together_are_of_the_rows_before(here):
    made = read_data(DataOptions(csv="own.csv", target="y", lags="1,3", horizon=2, scale="none"))
    assert made.names == ("y lag 1", "y lag 3", "a", "b")
    # row 2: y now and two rows before, a and b now; the label two rows ahead
    assert (made.X[0].tolist(), made.y[0]) == ([12, 10, 2, 2], 10 + 4 % 3)
    assert (made.y.delay, made.newest_lag) == (1, 0)


OWN = {"csv": Path("own.csv")}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({**OWN, "data": "wave", "target": "y"}, "data and csv exclude each other"),
        (OWN, "csv needs either target"),
        ({**OWN, "target": "y", "series": "a"}, "csv needs either target"),
        ({**OWN, "target": "y", "lags": "1,x"}, "lags must be numbers such as 1,6,24"),
        ({**OWN, "target": "y", "horizon": "1,6"}, "horizon must be one number here"),
        ({**OWN, "series": "y", "drop": ("a",)}, "drop is for a table with target"),
        ({**OWN, "target": "y", "scale": "declared"}, "scale declared needs ranges"),
        ({"ranges": Path("ranges.csv")}, "ranges are for scale declared, got scale minmax"),
        ({"target": "y"}, "target and series need a csv file"),
        ({"series": "y"}, "target and series need a csv file"),
        ({"drop": ("a",)}, "drop is for a table with target, got a time series"),
        ({"data": "wave", "lags": 3}, "lags is for a time series, got the set wave"),
        ({"data": "moon"}, "data set must be one of"),
    ],
)
def test_options_that_contradict_each_other(here, given, message):
    with pytest.raises(domkl.ParameterError, match=message):
        read_data(DataOptions(**given))
