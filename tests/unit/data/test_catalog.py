"""The catalog agrees with itself, with the command line and with its page."""

import re
from pathlib import Path

import pytest

from domkl.cli.source import RULE_NAMES, SET_NAMES
from domkl.data.catalog import DATASETS
from domkl.data.records import DataSet
from domkl.data.rules import RULES
from domkl.errors import DataError

PAGE = (Path(__file__).parents[3] / "docs" / "data.md").read_text()
EDITIONS = [(data, edition) for data in DATASETS.values() for edition in data.editions]


def test_the_parser_knows_the_names():
    assert tuple(DATASETS) == SET_NAMES
    assert RULES == RULE_NAMES


def test_the_rows_of_table_2():
    rows = [data.paper_rows for data in DATASETS.values()]
    assert rows == [7750, 11000, 9500, 98704, 7322, 6500, 5500]


@pytest.mark.parametrize("data", DATASETS.values(), ids=DATASETS)
def test_a_record_is_complete(data):
    assert re.fullmatch(r"10\.24432/C5\w{4}", data.origin.doi)
    address = f"https://archive.ics.uci.edu/static/public/{data.origin.uci_id}/"
    assert data.origin.archive.startswith(address)
    assert data.origin.page.endswith(str(data.origin.uci_id))
    assert data.origin.licence == "CC BY 4.0"
    assert data.task in ("regression", "time series")
    assert data.is_shipped or any(edition.is_in_archive for edition in data.editions)
    assert f"| {data.name} | {data.origin.uci_id}, {data.origin.uci_name} |" in PAGE


@pytest.mark.parametrize(("data", "edition"), EDITIONS, ids=lambda each: each.name)
def test_an_edition_fits_its_set(data: DataSet, edition):
    columns = set(edition.columns)
    assert len(columns) == len(edition.columns)
    assert {*data.targets, *data.not_inputs, *edition.text} <= columns
    if not data.is_shipped:
        assert len(columns - {*data.targets, *data.not_inputs}) == data.n_inputs
        assert f"`{edition.file}`" in PAGE
    assert edition.sha256 is None or re.fullmatch("[0-9a-f]{64}", edition.sha256)
    assert columns >= set(data.ranges)
    assert all(low < high for low, high in {**data.ranges, **edition.ranges}.values())


def test_an_edition_by_name():
    assert DATASETS["wave"].edition("uci-perth").file == "Perth_Data.csv"
    with pytest.raises(DataError, match="wave has no edition 'uci'"):
        DATASETS["wave"].edition("uci")
