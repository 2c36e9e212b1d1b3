"""TOML and JSON of any depth, and numbers of any length, end in one clear line.

On 0.2 a mesh.toml with a thousand brackets ended in a RecursionError, and so did `domkl mesh
restore`, and `domkl mesh status` if a node answered like that.
"""

import contextlib
import io
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from mesh_node import mesh_config

from domkl.cli.main import main
from domkl.errors import DataError, WireError
from domkl.mesh.config.file import as_text, read_config
from domkl.mesh.config.settings import Member
from domkl.mesh.node.intake import parse
from domkl.mesh.operate.page_server import follow
from domkl.mesh.operate.status import ask
from domkl.mesh.protocol.wire import decode_parts
from domkl.mesh.store.recorder import _read_events
from domkl.mesh.transports.base import Address
from domkl.text import from_json, from_toml

TOMLS = {
    "lists": "a = " + "[" * 100_000,
    "closed lists": "a = " + 500 * "[" + 500 * "]",
    "tables": "a = " + "{a=" * 50_000,
    "dots": "a" + ".a" * 50_000 + " = 1",
    "a header": "[a" + ".a" * 50_000 + "]",
    "digits": "a = " + "9" * 5000,
    "bytes": "a = \0",
    "lines in a key": '"a\\nb\\u001b" = 1',
    "a long value": 'mode = "' + 100_000 * "x" + '"',
}
JSONS = {
    "lists": b"[" * 100_000,
    "tables": b'{"a":' * 100_000,
    "digits": b"9" * 5000,
    "closed lists": b"[" * 100_000 + b"]" * 100_000,
}


@pytest.mark.parametrize("kind", TOMLS)
@pytest.mark.parametrize("command", ["mesh status", "mesh up", "mesh apply", "node", "sweep"])
def test_a_file_of_toml(tmp_path, capsys, kind, command):
    name = "sweep.toml" if command == "sweep" else "mesh.toml"
    (tmp_path / name).write_text(TOMLS[kind])
    place = tmp_path / name if command == "sweep" else tmp_path
    assert main([*command.split(), str(place)]) in (2, 3)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("domkl: error: ")
    assert line.isprintable()
    assert len(line) < 2000


def test_what_is_nested_as_deeply_as_need_be_is_read():
    assert from_toml("a.b.c = [[1, {d = 2}]]") == {"a": {"b": {"c": [[1, {"d": 2}]]}}}
    assert from_json("[" * 100 + "]" * 100)


@pytest.mark.parametrize("kind", JSONS)
def test_samples_parts_and_events(tmp_path, kind):
    with pytest.raises(DataError, match="JSON"):
        parse(JSONS[kind])
    with pytest.raises(WireError, match="parts must be"):
        decode_parts(JSONS[kind])
    (tmp_path / "events").write_bytes(JSONS[kind] + b'\n[1, 2.0, "up", "a", "b"]\n')
    assert [each.number for each in _read_events(tmp_path / "events")] == [1]


@pytest.mark.parametrize("kind", JSONS)
def test_a_manifest(tmp_path, capsys, kind):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("backup.json")
        member.size = len(JSONS[kind])
        tar.addfile(member, io.BytesIO(JSONS[kind]))
    assert main(["mesh", "restore", str(tmp_path / "a.tar.gz"), str(tmp_path / "b")]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "must be a whole backup of domkl" in line
    assert not (tmp_path / "b").exists()


class Deep(BaseHTTPRequestHandler):
    """A node that answers with what is nested deeply."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):  # the other end has heard enough
            self.wfile.write(self.server.body + b"\n")

    def log_message(self, *_):
        pass


@pytest.fixture
def deep():
    with HTTPServer(("127.0.0.1", 0), Deep) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("kind", ["lists", "closed lists", "as deep as may be"])
def test_the_answer_of_a_node(tmp_path, deep, kind):
    inner = b"[" * 900 + b"]" * 900
    deep.body = JSONS.get(kind) or b'{"learners": {"a": {"rows": ' + inner + b"}}}"
    member = Member("a", Address("127.0.0.1", 1), Address("127.0.0.1", deep.server_port))
    assert ask(member, tmp_path) is None
    heard, is_over = [], threading.Event()

    def took(name, line):
        heard.append((name, line))
        is_over.set()

    follow(member, tmp_path, took, is_over)
    assert heard == [("a", None)]


def test_a_mistake_is_told_as_before(tmp_path):
    config = mesh_config(("a", "b"), (("a", "b"),))
    path = tmp_path / "mesh.toml"
    path.write_text(as_text(config).replace('"lockstep"', '"lockstop"'))
    with pytest.raises(DataError, match=r"mode must be .*got 'lockstop'"):
        read_config(path)
