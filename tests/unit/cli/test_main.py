"""The top of the command line: help without heavy imports, and exit codes of errors."""

import subprocess
import sys

import pytest

from domkl import errors
from domkl.cli import data
from domkl.cli.main import main

HELP = """
import sys
from domkl.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
heavy = {"numpy", "numba", "scipy", "matplotlib", "pandas", "tqdm", "sklearn", "river", "joblib"}
print(sorted(heavy & set(sys.modules)))
"""


@pytest.mark.parametrize(
    "words", [[], ["simulate"], ["sweep"], ["reproduce"], ["data"], ["data", "fetch"]], ids=" ".join
)
def test_help_imports_nothing_heavy(words):
    command = [sys.executable, "-c", HELP, *words, "--help"]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    assert made.stdout.startswith("usage: domkl")
    assert made.stdout.splitlines()[-1] == "[]"


def test_a_command_loads_no_other():
    code = HELP.replace("heavy = {", 'heavy = {"domkl.cli.simulate", "domkl.cli.mesh", ')
    command = [sys.executable, "-c", code, "node", "--help"]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    assert made.stdout.startswith("usage: domkl node")
    assert made.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ParameterError("a"), 2),
        (errors.GraphError("a"), 2),
        (OSError("a"), 2),
        (errors.DataError("a"), 3),
        (errors.MeshError("a"), 4),
        (errors.WorkerError("a"), 4),
    ],
)
def test_an_expected_error_is_one_line_and_a_code(monkeypatch, capsys, error, code):
    def fail(args):
        raise error

    monkeypatch.setattr(data, "run", fail)
    assert main(["data", "list"]) == code
    assert capsys.readouterr().err == "domkl: error: a\n"


def test_another_error_is_a_traceback(monkeypatch):
    def fail(args):
        raise ZeroDivisionError

    monkeypatch.setattr(data, "run", fail)
    with pytest.raises(ZeroDivisionError):
        main(["data", "list"])


def test_an_interrupt_is_130(monkeypatch, capsys):
    def stop(args):
        raise KeyboardInterrupt

    monkeypatch.setattr(data, "run", stop)
    assert main(["data", "list"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_an_error_after_an_interrupt_is_130_too(monkeypatch):
    def stop(args):
        args.interrupts.is_set = True
        raise ZeroDivisionError

    monkeypatch.setattr(data, "run", stop)
    assert main(["data", "list"]) == 130


def test_the_current_folder_comes_last(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["first"])
    for _ in range(2):
        assert main(["data", "show", "traffic"]) == 0
    assert sys.path == ["first", str(tmp_path)]
