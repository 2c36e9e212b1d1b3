"""Options: types, defaults and help texts come from the dataclasses that hold them."""

import argparse
import dataclasses
from dataclasses import dataclass
from pathlib import Path

import pytest

from domkl.algorithms.registry import ALGORITHMS
from domkl.cli.options import (
    add_fields,
    defaults_of,
    made_from,
    names_in,
    option,
    repeatable,
    switch,
)
from domkl.cli.simulate import PARAMETERS
from domkl.core.losses import LOSSES
from domkl.options import flag


def test_values_switches_and_lists():
    parser = argparse.ArgumentParser()
    option(parser, "--rate", "R", "samples a second", default=10.0)
    option(parser, "--n", "N", "a number", default=3)
    option(parser, "--out", "DIR", "a folder", default=Path("x"), type=Path)
    option(parser, "--name", "NAME", "a name")
    switch(parser, "--json", "print JSON")
    repeatable(parser, "--input", "I", "an input", dest="inputs")
    text = parser.format_help()
    for part in ("--rate R", "samples a second (default: 10)", "(default: 3)", "an input; repeat"):
        assert part in text
    found = parser.parse_args(["--rate", "2", "--n", "4", "--input", "a", "--input", "b", "--json"])
    assert vars(found) == {
        "rate": 2.0, "n": 4, "out": Path("x"), "name": None, "json": True, "inputs": ["a", "b"],
    }  # fmt: skip


@dataclass(frozen=True)
class Asked:
    n_rows: int = flag(3, "rows", "N")
    share: float | None = flag(None, "share of 100 %", "S", group="other")
    lags: int | str | None = flag(None, "lags")
    where: Path | None = flag(None, "folder")
    mode: str = flag("a", "mode", choices=("a", "b"), group="other")
    na: tuple[str, ...] = flag((), "missing")
    is_quick: bool = flag(False, "quick")
    hidden: int = 7


def test_fields_of_a_dataclass_become_options_and_come_back():
    parser = argparse.ArgumentParser()
    add_fields(parser, Asked)
    text = parser.format_help()
    for part in ("--n-rows N", "rows (default: 3)", "share of 100 %", "{a,b}", "mode (default: a)"):
        assert part in text
    assert "hidden" not in text
    assert made_from(Asked, parser.parse_args([])) == Asked()
    words = ["--n-rows=5", "--share=0.5", "--lags=1,2", "--where=x", "--mode=b", "--na=?"]
    words += ["--na=no", "--is-quick"]
    made = made_from(Asked, parser.parse_args(words), hidden=8)
    assert made == Asked(5, 0.5, "1,2", Path("x"), "b", ("?", "no"), True, 8)


def test_only_the_fields_of_a_group():
    parser = argparse.ArgumentParser()
    add_fields(parser, Asked, "other")
    assert vars(parser.parse_args([])) == {"share": None, "mode": "a"}


CLASSES = {entry.home: entry.kind for entry in ALGORITHMS.values()}


@pytest.mark.parametrize("home", CLASSES)
def test_defaults_read_from_the_source_are_those_of_the_class(home):
    kind = CLASSES[home]
    plain = (int, float, str, tuple, type(None))
    expected = {f.name: f.default for f in dataclasses.fields(kind) if isinstance(f.default, plain)}
    assert expected
    assert defaults_of(home) == expected


def test_the_names_of_losses_are_read_from_their_table():
    assert names_in("domkl.core.losses:LOSSES") == list(LOSSES)


def test_every_parameter_option_is_a_parameter_of_an_algorithm():
    known = {name for entry in ALGORITHMS.values() for name in defaults_of(entry.home)}
    assert set(PARAMETERS) <= known
