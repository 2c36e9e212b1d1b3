"""The catalog agrees with itself, with the command line and with its page."""

import dataclasses
import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import domkl
from domkl.cli.main import main
from domkl.data.catalog import DATASETS, DataSet, Edition, Origin, find, read_catalog
from domkl.errors import DataError, ParameterError

PAGE = (Path(__file__).parents[3] / "docs/reference/data.md").read_text()
EDITIONS = [(data, edition) for data in DATASETS.values() for edition in data.editions]


LIGHT = """
import sys
import domkl.data.catalog, domkl.options, domkl.algorithms.registry
print(sorted({"numpy", "numba", "scipy", "matplotlib"} & set(sys.modules)))
"""


def test_the_catalog_loads_no_library():
    run = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


NODE = """
import sys
import domkl.mesh.node.node
print("domkl.data.catalog" in sys.modules)
"""


def test_a_node_of_a_mesh_does_not_load_the_catalog():
    run = subprocess.run([sys.executable, "-c", NODE], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


SMALL = """
[small]
title = "A"
task = "regression"
target = "y"
n_inputs = 2
usable = "all"

[small.origin]
uci_name = "A"
uci_id = 1
doi = "none"
archive = "https://example.org/a.zip"
citation = "none"

[small.ranges]
"*2" = [0, 2]
"x*" = [0, 1]

[small.each]
state = "as it is"
rows = 10
columns = ["x1", "x2", "y"]
target_bounds = [0, 1]

[[small.editions]]
name = "first"
file = "a.csv"

[[small.editions]]
name = "second"
file = "b.csv"
rows = 12
"""


def test_a_catalog_is_read():
    data = read_catalog(SMALL)["small"]
    assert [edition.rows for edition in data.editions] == [10, 12]
    assert data.ranges == {"x1": (0, 1), "x2": (0, 2)}  # the first pattern that matches
    assert data.paper_rows is None


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('title = "A"', 'titel = "A"', "small of the catalog must not have the key 'titel'; keys"),
        ('title = "A"', "", "small of the catalog is incomplete: .*'title'"),
        ('title = "A"', "title = 1", "small.title of the catalog must be str, got 1"),
        ("n_inputs = 2", "n_inputs = true", "small.n_inputs of the catalog must be int, got True"),
        ('target = "y"', 'target = "z"', "must have the column 'z', got none"),
        ("[0, 2]", "[2, 0]", "must have low < high, got 2, 0"),
        ("[0, 2]", "[2]", "small.ranges.*2 of the catalog must be tuple, got"),
        ("uci_id = 1", 'uci_id = "1"', "small.origin.uci_id of the catalog must be int, got '1'"),
        ("rows = 12", "row = 12", "small.editions of the catalog must not have the key 'row'"),
    ],
)
def test_a_wrong_catalog_says_what_is_wrong(old, new, told):
    assert old in SMALL
    with pytest.raises(DataError, match=told):
        read_catalog(SMALL.replace(old, new))


def test_a_set_needs_an_edition():
    with pytest.raises(DataError, match="small of the catalog must have an edition, got none"):
        read_catalog(SMALL[: SMALL.index("[[small")])


def test_a_name_that_is_not_there():
    assert find("wave") is DATASETS["wave"]
    with pytest.raises(ParameterError, match=r"data set must be one of weather, .*, got 'moon'"):
        find("moon")


@pytest.fixture
def added(tmp_path, monkeypatch):
    """A table and a series that nothing but the catalog knows."""
    content = b"when;load;rain\n" + b"".join(
        f"{hour // 2};{hour % 7},5;{hour % 3}\n".encode() for hour in range(40)
    )
    (tmp_path / "own.csv").write_bytes(content)
    edition = Edition(
        name="own", file="own.csv", state="", rows=40, columns=("when", "load", "rain"),
        target_bounds=(0, 10), text=("when",), timestamp="when", separator=";", decimal=",",
        sha256=hashlib.sha256(content).hexdigest(),
    )  # fmt: skip
    record = DataSet(
        name="own-table", title="", origin=Origin("", 0, "", "", ""), task="regression",
        target="load", not_inputs=("when",), n_inputs=1, paper_rows=40, usable="",
        editions=(edition,),
    )  # fmt: skip
    monkeypatch.setitem(DATASETS, "own-table", record)
    monkeypatch.setitem(
        DATASETS, "own-series", dataclasses.replace(record, name="own-series", is_series=True)
    )
    return tmp_path


def test_a_data_set_is_added_in_the_catalog_alone(added, capsys, tmp_path):
    """Functions, the command line and sweeps take its name from there."""
    table = domkl.load_set("own-table", scale="none", data_dir=added)
    assert (table.X[:3, 0].tolist(), table.y[:3].tolist()) == ([0, 1, 2], [0.5, 1.5, 2.5])
    assert domkl.load_series("own-series", data_dir=added).values.tolist()[:3] == [0.5, 1.5, 2.5]
    clean = domkl.load_series("own-series", rule="clean", data_dir=added)
    assert clean.values.tolist()[:3] == [0.5, 2.5, 4.5]  # one value for each time stamp
    assert domkl.load_set("own-series", n_lags=2, data_dir=added).X.shape == (38, 2)
    assert main(["data", "list", "--data-dir", str(added)]) == 0
    assert "own-table" in capsys.readouterr().out
    where = ["--data-dir", str(added), "--out", str(tmp_path / "out"), "--trials", "1"]
    assert main(["simulate", "--data", "own-series", "--algorithm", "last-value", *where]) == 0
    data = {"name": "own-table", "data_dir": str(added)}
    tables = {"sweep": {"trials": 1}, "data": data, "algorithms": {"name": "last-value"}}
    assert len(domkl.sweep(tables, out=tmp_path / "out", workers=1)) == 1


def test_the_rows_of_table_2():
    rows = [data.paper_rows for data in DATASETS.values()]
    assert rows == [7750, 11000, 9500, 98704, 7322, 6500, 5500, None, None, None]


@pytest.mark.parametrize("data", DATASETS.values(), ids=DATASETS)
def test_a_record_is_complete(data):
    if not data.origin.home:  # UCI's
        assert re.fullmatch(r"10\.24432/C5\w{4}", data.origin.doi)
        address = f"https://archive.ics.uci.edu/static/public/{data.origin.uci_id}/"
        assert data.origin.archive.startswith(address)
        assert data.origin.page.endswith(str(data.origin.uci_id))
    assert data.origin.licence == ("MIT" if data.origin.home else "CC BY 4.0")
    assert data.task in ("regression", "time series")
    is_fetched = data.stations or any(edition.is_in_archive for edition in data.editions)
    assert data.is_shipped or is_fetched
    number = "" if data.origin.home else f"{data.origin.uci_id}, "
    assert f"| {data.name} | {number}{data.origin.uci_name} |" in PAGE


@pytest.mark.parametrize(("data", "edition"), EDITIONS, ids=lambda each: each.name)
def test_an_edition_fits_its_set(data: DataSet, edition):
    columns = set(edition.columns)
    assert len(columns) == len(edition.columns)
    made = {data.target} if data.nodes and data.nodes.share else set()
    assert {*data.targets, *data.not_inputs, *edition.text} - made <= columns
    if data.stations:
        assert edition.file.replace(edition.name, "STATION") in PAGE
    elif not data.is_shipped:
        assert len(columns - {*data.targets, *data.not_inputs}) == data.n_inputs
        assert f"`{edition.file}`" in PAGE
    assert edition.sha256 is None or re.fullmatch("[0-9a-f]{64}", edition.sha256)
    assert columns | made >= set(data.ranges)
    assert all(low < high for low, high in {**data.ranges, **edition.ranges}.values())


def test_an_edition_by_name():
    assert DATASETS["wave"].edition("uci-perth").file == "Perth_Data.csv"
    with pytest.raises(DataError, match="wave has no edition 'uci'"):
        DATASETS["wave"].edition("uci")
