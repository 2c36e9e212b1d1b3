"""Every source and every outlet of the table can be made, and says what it needs."""

import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from domkl.mesh.node.registry import OUTLETS, SOURCES
from domkl.mesh.transports.registry import imported

PROJECT = Path(__file__).parents[4] / "pyproject.toml"


@pytest.mark.parametrize("entry", [*SOURCES, *OUTLETS], ids=lambda each: each.name)
def test_an_entry_has_its_option_its_maker_and_its_extra(entry):
    options = {each.name: each for each in fields(entry.options)}
    assert not options[entry.name].default  # without the flag it is not selected
    assert callable(imported(entry.home, entry.extra))
    assert entry.extra in tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
