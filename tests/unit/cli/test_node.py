"""The command's own part: options that do not go together, extras that are missing."""

import subprocess
import sys

import pytest
from mesh_node import solo_folder

from domkl.cli.main import main


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--stdin", "--csv", "f"], "one of --stdin, --csv, --topic"),
        (["--rate", "1"], "--rate needs --csv"),
        (["--rows", "0::2"], "--rows needs --csv"),
        (["--csv", "f", "--rate", "-1"], "rate must be >= 0"),
        (["--csv", "f", "--rate", "nan"], "rate must be >= 0"),
        (["--mqtt", "mqtt://h"], "--mqtt needs --topic or --publish TOPIC"),
        (["--topic", "t"], "--mqtt needs --topic or --publish TOPIC"),
        (["--publish", "t"], "--mqtt needs --topic or --publish TOPIC"),
        (["--mqtt", "mqtt://h", "--publish", "-"], "--mqtt needs --topic"),
        (["--mqtt", "mqtt://h", "--publish", "a/+"], "must not have + or #, nor begin with $"),
        (["--mqtt", "mqtt://h", "--publish", "a", "--discovery", "#"], "must not have + or #"),
        (
            ["--webhook", "mqtt://u:secret@h"],
            "webhook must be http://host/path or https://, got 'h'",
        ),
        (["--mqtt", "http://h", "--topic", "t"], "mqtt must be mqtt://host:port"),
        (["--mqtt", "mqtt://h", "--topic", "a/#/b"], "# as the last one, got 'a/#/b'"),
        (["--until-end"], "--until-end needs --stdin or --csv"),
        (["--http", "nowhere"], "address must be host:port"),
    ],
)
def test_options_that_break_their_rule(options, said, capsys, tmp_path):
    assert main(["node", str(tmp_path), *options]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_that_is_none_is_missing_data(capsys, tmp_path):
    assert main(["node", str(tmp_path / "nothing")]) == 3
    assert "must be a learner's, as domkl mesh init makes them" in capsys.readouterr().err


def test_beyond_loopback_it_does_not_start_without_token(capsys, tmp_path):
    folder = solo_folder(tmp_path)
    assert main(["node", str(folder), "--http", "0.0.0.0:1", "--log-level", "error"]) == 2
    assert "must have a token" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "options", "extra"),
    [("starlette", [], "mesh"), ("paho", ["--mqtt", "mqtt://h", "--topic", "t"], "mqtt")],
)
def test_a_missing_extra_is_one_clear_line(module, options, extra, tmp_path):
    code = f"import sys; sys.modules[{module!r}] = None; from domkl.cli.main import entry; entry()"
    command = [sys.executable, "-c", code, "node", str(tmp_path), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    said = f"domkl: error: {module} is not installed; pip install 'domkl[{extra}]'\n"
    assert (done.returncode, done.stderr) == (2, said)
