"""An option in one line: its default gives the type and is shown."""

import argparse
from pathlib import Path

from domkl.cli.options import option, repeatable, switch


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
