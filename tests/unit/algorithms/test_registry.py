"""The table of algorithms agrees with the algorithms."""

import subprocess
import sys

import pytest

import domkl
from domkl.algorithms.registry import ALGORITHMS, find, name_of


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_entry_says_what_its_algorithm_says(name):
    entry = ALGORITHMS[name]
    algorithm = entry.make()
    assert entry.is_meshable == algorithm.is_meshable
    assert entry.is_alone == algorithm.is_alone
    assert entry.cost == algorithm.relative_cost
    if not entry.is_alone:
        assert name_of(algorithm) == name


def test_colors_are_told_apart():
    colors = [entry.color for entry in ALGORITHMS.values()]
    assert len(set(colors)) == len(colors)


def test_a_users_own_is_imported_by_its_name():
    assert find("domkl.algorithms.admm:DOMKL").make() == domkl.DOMKL()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("domkx", "algorithm must be one of domkl, domkrls, .* or module:Name, got 'domkx'"),
        (
            "nowhere:Name",
            "got 'nowhere:Name': ModuleNotFoundError: No module",
        ),
        ("json:loads", "must be a subclass of domkl.Algorithm, got 'json:loads'"),
        ("json:Nothing", "must be a class that can be imported"),
        (":", "must be a class that can be imported"),
    ],
)
def test_wrong_names(name, message):
    with pytest.raises(domkl.ParameterError, match=message):
        _ = find(name).kind


def test_what_needs_a_server_is_not_found_for_a_mesh():
    with pytest.raises(domkl.ParameterError, match="got 'comkl'"):
        find("comkl", meshable=True)
    with pytest.raises(domkl.ParameterError, match="exchange messages with neighbors only"):
        find("domkl.algorithms.server:COMKL", meshable=True)


def test_reading_the_names_imports_no_compiler():
    code = "import sys, domkl.algorithms.registry; print('numba' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
