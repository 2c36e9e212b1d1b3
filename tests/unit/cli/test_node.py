"""The command's own part: options that do not go together, extras that are missing."""

import subprocess
import sys
from argparse import Namespace

import pytest
from mesh_node import solo_folder

from domkl.cli.main import main
from domkl.cli.node import PASSWORD, url_of


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
        (["--webhook", "mqtt://u@h"], "webhook must be http://host/path or https://, got 'h'"),
        (["--webhook", "@nothing"], "--webhook must be @FILE with a URL in it, got"),
        (["--mqtt", "http://h", "--topic", "t"], "mqtt must be mqtt://host:port"),
        (["--mqtt", "mqtt://h", "--topic", "a/#/b"], "# as the last one, got 'a/#/b'"),
        (["--until-end"], "--until-end needs --stdin or --csv"),
        (["--http", "nowhere"], "address must be host:port"),
    ],
)
def test_options_that_break_their_rule(options, said, capsys, tmp_path):
    assert main(["node", str(tmp_path), *options]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--webhook", "https://u:secret@h/path"],
        ["--mqtt", "mqtts://u:sec#ret@h", "--topic", "t"],
        ["--mqtt", "mqtts://:secret@h", "--publish", "t"],
    ],
)
def test_a_password_on_the_command_line_is_refused(options, capsys, tmp_path):
    """0.2: all users of the machine can read it in the list of processes."""
    folder = solo_folder(tmp_path)
    for command in (["node", str(folder)], ["mesh", "up", str(tmp_path)]):
        assert main([*command, *options]) == 2
        said = capsys.readouterr().err
        assert f"{options[0]} must have no password" in said
        assert "ret@" not in said


def test_a_url_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    path = tmp_path / "broker"
    path.write_text("mqtts://u:secret@h\n")
    monkeypatch.setenv("DOMKL_WEBHOOK", "https://u:other@h/a")
    args = Namespace(mqtt=f"@{path}", webhook=None)
    assert (url_of(args, "mqtt"), url_of(args, "webhook")) == (
        "mqtts://u:secret@h", "https://u:other@h/a",
    )  # fmt: skip
    monkeypatch.setenv("DOMKL_WEBHOOK", f"@{path}")
    assert url_of(args, "webhook") == "mqtts://u:secret@h"
    monkeypatch.delenv("DOMKL_WEBHOOK")
    assert url_of(args, "webhook") is None
    assert url_of(Namespace(mqtt="mqtt://h"), "mqtt") == "mqtt://h"


def test_a_port_or_a_path_is_no_password():
    for url in ("https://h:8080/a@b", "mqtt://user@h:1883", "https://h/a:b@c"):
        assert not PASSWORD.search(url)


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
