"""The versions of Numba that domkl runs with, and how Python calls compiled functions."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from domkl.core import numba_internals
from domkl.core.jit import sweep
from domkl.core.numba_internals import check_version, machine_code
from domkl.errors import VersionError

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
RANGE = "{}.{}".format(*numba_internals.VERSIONS[0]), "{}.{}".format(*numba_internals.VERSIONS[1])
FAKED = """
import sys, numba
numba.__version__ = sys.argv.pop(1)
from domkl.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_the_project_asks_for_the_versions_that_were_tested():
    wanted = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
    assert "numba>={},<{}".format(*RANGE) in wanted


@pytest.mark.parametrize("version", ["0.60.0", "0.69.0", "0.69.0rc1", "1.0.0"])
def test_another_version_is_refused(version):
    with pytest.raises(VersionError, match=rf"numba must be >=.*,<.*, got {version}: pip install"):
        check_version(version)


@pytest.mark.parametrize("version", ["0.61.0", "0.68.1", "0.68.2rc1", "0.67.0+1.g0"])
def test_tested_versions_are_taken(version):
    check_version(version)


def test_a_command_with_another_version_is_one_clear_error():
    code = [sys.executable, "-c", FAKED, "0.99.0", "simulate"]
    done = subprocess.run(code, capture_output=True, text=True)
    assert done.returncode == 2
    assert "numba must be >={},<{}, got 0.99.0: pip install".format(*RANGE) in done.stderr
    assert "Traceback" not in done.stderr


class Pair(NamedTuple):
    left: np.ndarray
    right: float


@sweep
def _scaled(out, pair):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = pair.right * pair.left[i, j]


def run(*given):
    machine_code(_scaled, *given)(*given)


def test_a_call_finds_the_code_for_each_layout():
    values = np.arange(12.0).reshape(3, 4)
    for left in (values, values, values.T, values[:, ::2], values.astype("float32"), values[:0]):
        out = np.zeros(left.shape)
        run(out, Pair(left, 2.0))
        np.testing.assert_array_equal(out, 2 * left)
        run(out, Pair(left, 3))
        np.testing.assert_array_equal(out, 3 * left)


def test_a_call_of_a_plain_function():
    assert [machine_code(max, 1, each)(1, each) for each in (2, 3)] == [2, 3]
