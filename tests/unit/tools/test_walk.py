"""The walks of docs/explanation/design.md are those that tools/walk.py finds."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DESIGN = (ROOT / "docs/explanation/design.md").read_text()


def files_of(text):
    """The files of each walk, in the order of their first calls."""
    sections = text.split("### Walk: ")[1:]
    return {
        section.partition("\n")[0]: [
            line.split("`")[1].partition(":")[0]
            for line in section.split("\n## ")[0].splitlines()
            if line[:1].isdigit() and "`" in line
        ]
        for section in sections
    }


@pytest.mark.slow
@pytest.mark.parametrize("walk", ["simulate", "csv", "fit"])
def test_a_walk_passes_the_documented_files(walk):
    """Those of nodes depend on what happens meanwhile, and are listed by hand."""
    run = [sys.executable, str(ROOT / "tools/walk.py"), walk, "--markdown"]
    out = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert sorted(files_of(out)[walk]) == sorted(files_of(DESIGN)[walk])


def test_every_walk_is_documented():
    assert list(files_of(DESIGN)) == ["simulate", "csv", "sample", "fit", "node"]
