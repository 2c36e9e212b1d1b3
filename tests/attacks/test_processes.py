"""Attacks on a node as a process: no descriptors left, and damage between two lives."""

import asyncio
import base64
import contextlib
import http.client
import http.server
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from mesh_nets import Node, wait_for
from mesh_node import Client, Process, mesh_config, sample, solo_folder, wait_until

import domkl
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.operate.backup import back_up, restore
from domkl.mesh.protocol.wire import Frame, Kind, encode, encode_parts
from domkl.mesh.store import wal
from domkl.mesh.store.folder import open_folder
from domkl.mesh.transports import registry

pytestmark = pytest.mark.slow


def few():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def answered(client):
    """The status of an answer; None while there are too many connections."""
    try:
        return client.learn(sample(0))[0]
    except (OSError, http.client.HTTPException):
        return None


def test_a_node_without_descriptors_lives_and_writes_few_lines(tmp_path):
    """0.1: 13,000 lines in 3 s, and the node ends."""
    with Process(solo_folder(tmp_path), before=few) as node:
        client = node.client()
        address = client.base.removeprefix("http://").split(":")
        held = []
        for _ in range(300):  # whoever finds no room is closed, and the next one comes
            held.append(socket.create_connection((address[0], int(address[1])), timeout=30))
        wait_until(lambda: node.events("out of descriptors"))
        for each in held:
            each.close()
        wait_until(lambda: answered(client) == 202)
        assert len(node.log.read_text().splitlines()) < 100
        assert node.stop() == 0


def test_a_deleted_log_is_refused_until_the_loss_is_accepted(tmp_path):
    """0.1: starts from the checkpoint, and nothing is said of the 770 samples after it."""
    folder = solo_folder(tmp_path, checkpoint_every=10_000)
    with Process(folder) as node:
        client = node.client()
        client.learn([sample(k) for k in range(5)])
        wait_until(lambda: client.state()["checkpoint"] == 5)
        client.learn([sample(k) for k in range(20)])
        node.kill()
    shutil.rmtree(folder / "data" / "journal")
    with Process(folder) as node:
        assert node.wait() == 3
        assert "20 are lost (numbers 6 to 25)" in node.process.stderr.read()
        assert node.events("refused to start")[0]["lost"] == 20
    with Process(folder, "--accept-loss") as node:
        client = node.client()
        assert node.events("samples lost")[0]["lost"] == 20
        state = client.state()
        assert (state["n_learned"], state["n_lost"]) == (5, 20)
        assert client.learn(sample(0))[1]["number"] == 6
        assert node.stop() == 0


def test_swapped_frames_of_the_log_do_not_stop_a_node(tmp_path):
    """0.2: code 3 at every start, also with --accept-loss, and no file was named."""
    folder = solo_folder(tmp_path, checkpoint_every=10_000)
    with Process(folder) as node:
        client = node.client()
        for k in range(6):
            client.learn(sample(k))
        before = client.wait_learned(6)
        node.kill()
    for path in (folder / "data").glob("checkpoint-*"):
        path.unlink()
    (path,) = (folder / "data" / "journal").iterdir()
    head, *frames = path.read_bytes().split(wal.MARK)
    frames[2], frames[4] = frames[4], frames[2]
    path.write_bytes(wal.MARK.join([head, *frames]))
    with Process(folder) as node:
        after = node.client().wait_learned(6)
        (alarm,) = node.events("alarm")
        assert f"{path} is damaged, or not in order, at byte" in alarm["text"]
        assert (after["n_lost"], after["digest"]) == (0, before["digest"])
        assert node.stop() == 0


def say(folder, number):
    """As the learner of a folder, which does not run: greet the neighbor with this number."""
    read = open_folder(folder)
    model, (peer,) = read.config.model(), read.neighbors

    async def main():
        node = Node(registry.make("tls", read.endpoint))
        await node.start()
        await wait_for(lambda: peer in node.up)
        parts = encode_parts(model.parts)
        node.send(
            peer, encode(Frame(Kind.HELLO, model.fingerprint, read.name, number, 0, 0, 0, parts))
        )
        await wait_for(lambda: node.frames)
        await node.transport.stop()

    asyncio.run(main())


def test_one_greeting_does_not_close_an_edge_for_good(tmp_path):
    """0.2: after one of number 2^64 - 1, until the receiver starts again."""
    config = mesh_config(("east", "west"), (("east", "west"),))
    init_mesh(tmp_path / "mesh", config)
    east, west = (tmp_path / "mesh" / name for name in config.names)
    with Process(west) as victim:
        client = victim.client()
        say(east, 2**64 - 1)
        with Process(east) as node:
            theirs = node.client()
            wait_until(lambda: theirs.state()["neighbors"]["west"]["is_open"])
            wait_until(lambda: client.state()["neighbors"]["east"]["is_open"])
            assert node.stop() == 0
        assert victim.stop() == 0


def shown(folder):
    """What other users of the machine can read or list, but for what is public."""
    public = ("mesh.toml", "ca.pem", "node.pem", "mesh.toml.copied")
    paths = [folder, *folder.rglob("*")]
    return [path for path in paths if path.stat().st_mode & 0o077 and path.name not in public]


def test_only_the_owner_can_read_what_a_mesh_writes(tmp_path):
    """0.2: checkpoints and logs could be read by all, the folder of the log be listed."""
    before = os.umask(0o022)
    try:
        config, mesh = mesh_config(("east", "west"), (("east", "west"),)), tmp_path / "mesh"
        init_mesh(mesh, config)
        with launched(mesh) as up:
            clients = [Client(each.http) for each in config.members]
            for client in clients:
                wait_until(lambda: answered(client) == 202)  # noqa: B023
            wait_until(lambda: len([*mesh.glob("*/data/checkpoint-*.npz")]) >= 2)
            up.send_signal(signal.SIGTERM)
            assert up.wait(60) == 0
        assert shown(mesh) == []
        back_up(mesh, tmp_path / "backup", with_keys=True)
        restore(tmp_path / "backup", tmp_path / "again")
        assert shown(tmp_path / "again") == shown(tmp_path / "backup") == []
    finally:
        os.umask(before)


def test_files_of_an_earlier_version_are_taken_from_others(tmp_path):
    folder = solo_folder(tmp_path)
    with Process(folder) as node:
        assert node.client().learn(sample(0))[0] == 202
        assert node.stop() == 0
    for path in (folder / "data", *(folder / "data").rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (folder / "token").write_text("0123456789abcdef")
    with Process(folder) as node:
        assert node.wait_event("tightened")[0]["files"] >= 8
        node.client()
        assert node.stop() == 0
    assert [path for path in shown(folder) if path != folder] == []


class Hook(http.server.BaseHTTPRequestHandler):
    """Takes predictions, and notes who sends them."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.logins.append(self.headers["Authorization"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("how", ["file", "environment"])
def test_passwords_are_not_in_the_list_of_processes(tmp_path, how, monkeypatch):
    """0.2: in the command line of every node, also of those that `mesh up` starts."""
    config = mesh_config(("east", "west"), (("east", "west"),))
    init_mesh(tmp_path / "mesh", config)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        server.logins = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://me:hush-hush@127.0.0.1:{server.server_port}/"
        (tmp_path / "hook").write_text(url)
        given = ["--webhook", f"@{tmp_path / 'hook'}"] if how == "file" else []
        if how == "environment":
            monkeypatch.setenv("DOMKL_WEBHOOK", url)
        with launched(tmp_path / "mesh", *given) as up:
            client = Client(config.member("west").http)
            wait_until(lambda: answered(client) == 202)
            wait_until(lambda: server.logins)
            shown = list(commands())
            assert any(str(tmp_path / "mesh" / "west").encode() in each for each in shown)
            assert not any(b"hush" in each for each in shown)
            up.send_signal(signal.SIGTERM)
            assert up.wait(60) == 0
        assert server.logins[0] == "Basic " + base64.b64encode(b"me:hush-hush").decode()
        server.shutdown()


def commands():
    """The command line of every process, as all users of the machine can read it."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            yield path.read_bytes()


@contextlib.contextmanager
def launched(folder, *options):
    """`domkl mesh up`."""
    command = [sys.executable, "-m", "domkl", "mesh", "up", str(folder), *options]
    source = str(Path(domkl.__file__).parents[1])
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": source}, **quiet) as up:
        try:
            yield up
        finally:
            up.terminate()
