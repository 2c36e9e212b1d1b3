"""What tools/dist.py tries is what pyproject.toml allows."""

import importlib.util
import tomllib
from pathlib import Path

from domkl.core.numba_internals import VERSIONS

ROOT = Path(__file__).parents[3]
SPEC = importlib.util.spec_from_file_location("dist", ROOT / "tools/dist.py")
dist = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(dist)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_one_release_of_each_numba_in_the_range_is_tried():
    (major, first), (_, end) = VERSIONS
    assert f"numba>={major}.{first},<{major}.{end}" in PROJECT["dependencies"]
    tried = [version.rpartition(".")[0] for version in dist.NUMBAS]
    assert tried == [f"{major}.{minor}" for minor in range(first, end)]


def test_every_supported_python_is_tried():
    named = "Programming Language :: Python :: 3."
    minors = [each.removeprefix(named) for each in PROJECT["classifiers"] if named in each]
    assert [f"3.{minor}" for minor in minors] == list(dist.SUPPORTED)
