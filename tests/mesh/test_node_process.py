"""Nodes as processes: killed at any moment, without disk, with wrong input; nothing is lost."""

import asyncio
import contextlib
import errno
import http.client
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import threading
import time
import urllib.error

import pytest
from mesh_broker import Broker
from mesh_node import (
    DEADLINE,
    INPUTS,
    Client,
    Process,
    free_ports,
    made,
    mesh_config,
    sample,
    solo_folder,
    until,
    wait_until,
)
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

import domkl
from domkl.mesh.config.folder import init_mesh, rotate_keys
from domkl.mesh.config.settings import Forecasting
from domkl.mesh.node.telemetry import state_of

pytestmark = pytest.mark.slow

DOWN = (urllib.error.URLError, ConnectionError, http.client.HTTPException, TimeoutError)


class Sender(threading.Thread):
    """Sends samples in order, one request after the other, and keeps what was acknowledged.

    ``send`` has a client of the node, and answers as `Client.learn` does.
    """

    def __init__(self, samples, send=Client.learn):
        super().__init__()
        self.todo, self.send, self.acknowledged = list(samples), send, {}
        self.client, self.is_on = None, threading.Event()
        self.is_over = False

    def run(self):
        while self.todo and not self.is_over:
            self.is_on.wait()
            try:
                status, found = self.send(self.client, self.todo[0])
            except DOWN:
                time.sleep(0.02)  # it was killed: send the same again, when it is up
                continue
            if status == 202:
                self.acknowledged[found["id"]] = found["number"]
                self.todo.pop(0)


def learned_here(folder, samples=()):
    """The state of a node in this process that went on from a folder: spares starting another."""

    async def story():
        node = made(folder)
        await node.start()
        await node.intake.accept([node.format.sample(each) for each in samples])
        await until(lambda: node.is_idle)
        state = state_of(node, with_digest=True)
        await node.close()
        return state

    return asyncio.run(story())


def test_what_was_acknowledged_is_learned_once_whenever_it_is_killed(tmp_path):
    """And alone, it ends as if nothing had happened: equal to the bit."""
    n, rng = 400, random.Random(5)
    folder = solo_folder(tmp_path, queue=1000)
    sender = Sender({**sample(k), "id": f"s{k}"} for k in range(n))
    sender.start()
    kills = 0
    try:
        while sender.is_alive():
            with Process(folder) as node:
                sender.client = node.client()
                before = len(sender.acknowledged)
                sender.is_on.set()
                goal = before + rng.randint(1, 60)
                wait_until(lambda goal=goal: len(sender.acknowledged) >= min(goal, n))
                if kills < 4 and len(sender.acknowledged) < n:
                    node.kill()
                    kills += 1
                else:
                    wait_until(lambda: not sender.todo)
                    final = sender.client.wait_learned(n)
                    assert node.stop() == 0
    finally:
        sender.is_over = True
        sender.is_on.set()
        sender.join()
    assert kills >= 3
    assert sorted(sender.acknowledged.values()) == list(range(1, n + 1))
    assert final["n_learned"] == final["n_accepted"] == n

    other = solo_folder(tmp_path / "other")
    undisturbed = learned_here(other, [sample(k) for k in range(n)])
    assert final["digest"] == undisturbed["digest"]
    assert final["mse"] == undisturbed["mse"]


def test_it_stops_when_told_and_goes_on_from_there(tmp_path):
    folder = solo_folder(tmp_path)
    digests = []
    for number in (signal.SIGTERM, signal.SIGINT):
        with Process(folder) as node:
            client = node.client()
            n = client.state()["n_learned"]
            client.learn([sample(k) for k in range(n, n + 10)])
            digests.append(client.wait_learned(n + 10)["digest"])
            assert node.stop(number) == 0
            assert node.process.stderr.read() == ""
    with Process(folder) as node:
        state = node.client().state()
        assert state["n_learned"] == 20
        assert state["digest"] == digests[1]
        assert not node.events("alarm")


def _limited():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


@contextlib.contextmanager
def _small_disk(folder, size):
    """A file system of so many bytes, where this user may mount one."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _fill(client, stop, most=5000):
    """Send until a status comes that is not 202; numbers that were acknowledged."""
    numbers = []
    for k in range(most):
        status, found = client.learn([{**sample(k), "id": f"{k}-{i}"} for i in range(20)])
        if status != 202:
            assert status == stop, found
            return numbers, found
        numbers += [each["number"] for each in found]
    raise AssertionError("never full")


def test_a_file_that_may_not_grow_answers_507_and_acknowledges_nothing(tmp_path):
    folder = solo_folder(tmp_path, checkpoint_every=1_000_000)
    with Process(folder, before=_limited) as node:
        client = node.client()
        numbers, problem = _fill(client, 507)
        assert "disk" in problem["detail"]
        assert client.wait_learned(len(numbers))["n_learned"] == numbers[-1]
        assert client.ask("/predict", {"x": [1, 0]})[0] == 200
        node.kill()
    with Process(folder) as node:
        client = node.client()
        assert client.state()["n_accepted"] == numbers[-1]
        assert client.learn(sample(0))[0] == 202


def test_a_full_disk_answers_507_and_goes_on_when_there_is_room(tmp_path):
    """Checkpoints are still written then: room is kept for them, and what they free is used."""
    folder = solo_folder(tmp_path)
    with _small_disk(folder / "data", 400_000) as disk, Process(folder) as node:
        client = node.client()
        client.learn([sample(k) for k in range(20)])
        client.wait_learned(20)
        wait_until(lambda: client.state()["checkpoint"] > 0)
        (disk / "ballast").write_bytes(b"")
        with (disk / "ballast").open("wb") as file, contextlib.suppress(OSError):
            while os.write(file.fileno(), bytes(1000)):
                pass
        status, problem = client.learn(sample(0))
        assert (status, "make room" in problem["detail"]) == (507, True)
        before = client.state()
        assert (before["n_accepted"], before["rejected"]) == (20, {"disk full": 1})
        assert client.ask("/healthz")[0] == 200
        (disk / "ballast").unlink()
        assert client.learn(sample(0))[1]["number"] == 21
        assert client.wait_learned(21)["n_learned"] == 21
        assert node.stop() == 0


def test_in_a_mesh_it_rejoins_as_a_new_epoch(tmp_path):
    config = mesh_config(("north", "south"), (("north", "south"),), checkpoint_every=5)
    init_mesh(tmp_path / "mesh", config)
    north, south = tmp_path / "mesh" / "north", tmp_path / "mesh" / "south"
    with Process(north) as stays:
        here = stays.client()
        for life in (1, 2):
            with Process(south) as node:
                there = node.client()
                n = 20 * life
                for client in (here, there):
                    assert client.learn([sample(k) for k in range(20)])[0] == 202
                assert there.wait_learned(n)["n_learned"] == n
                assert here.wait_learned(n)["n_learned"] == n
                edge = here.state()["neighbors"]["south"]
                assert (edge["is_open"], edge["n_epochs"] >= life) == (True, True)
                node.kill()
        assert here.wait_learned(40)["n_learned"] == 40
        assert edge["n_exchanged"] >= 20
        assert stays.stop() == 0


def test_a_new_token_is_demanded_after_sighup(tmp_path):
    """0.2: rotate-keys keeps the token, and a node reads it at its start only."""
    config = mesh_config(("north", "south"), (("north", "south"),))
    init_mesh(tmp_path / "mesh", config)
    folder = tmp_path / "mesh" / "north"
    old = (folder / "token").read_text().strip()
    with Process(folder, "--require-token") as node:
        client = node.client(token=old)
        assert client.ask("/state")[0] == 200
        rotate_keys(tmp_path / "mesh")
        new = (folder / "token").read_text().strip()
        node.process.send_signal(signal.SIGHUP)
        wait_until(lambda: client.ask("/state")[0] == 401)
        client.token = new
        assert client.ask("/state")[0] == 200
        (folder / "token").write_text("short")
        node.process.send_signal(signal.SIGHUP)
        node.wait_event("reload refused")
        assert client.ask("/state")[0] == 200
        assert node.stop() == 0


def test_neighbors_and_certificates_are_read_again_on_sighup(tmp_path):
    folder = solo_folder(tmp_path)
    with Process(folder) as node:
        client = node.client()
        (folder / "mesh.toml").write_text("spoiled")
        node.process.send_signal(signal.SIGHUP)
        assert "TOML" in node.wait_event("reload refused")[0]["text"]
        assert client.learn(sample(0))[0] == 202
        assert node.stop() == 0


def test_lines_from_standard_input_until_their_end(tmp_path):
    folder = solo_folder(tmp_path)
    lines = ['{"x": [1, 0], "y": 5}', "spoiled", "", '{"x": [1], "y": 5}', '{"x": [2, 0], "y": 7}']
    with Process(folder, "--stdin", "--until-end", stdin=subprocess.PIPE) as node:
        node.process.stdin.write("\n".join(lines))
        node.process.stdin.close()
        assert node.wait() == 0
        assert [each["line"] for each in node.events("bad line")] == [2, 4]
        node.process.stdin = None
    assert learned_here(folder)["n_learned"] == 2


def test_a_file_is_replayed_once_across_kills(tmp_path):
    folder, n = solo_folder(tmp_path), 3000
    path = tmp_path / "table.csv"
    rows = [sample(k) for k in range(n)]
    text = "".join(f"{s['y']!r},{s['x'][1]!r},{s['x'][0]!r}\n" for s in rows)
    path.write_text("load,b,a\n" + text)
    with Process(folder, "--csv", str(path), "--rate", "500") as node:
        node.client().wait_learned(40)
        node.kill()
    with Process(folder, "--csv", str(path), "--until-end") as node:
        assert node.wait() == 0
    expected = learned_here(solo_folder(tmp_path / "other"), rows)
    with Process(folder, "--csv", str(path)) as again:
        again.wait_event("end of input")
        state = again.client().state()
    assert state["n_learned"] == n
    assert state["digest"] == expected["digest"]


HORIZONS = (1, 3, 6)
FORECASTING = {
    "inputs": (INPUTS[0],), "algorithm": domkl.DOMKRLS(),
    "forecast": Forecasting(HORIZONS, lags=(1, 2), calendar=("hour",), season="12h"),
}  # fmt: skip
HOURS = [k for k in range(200) if k % 97 > 5]
STREAM = [
    {"time": 3600.0 * k, "y": sample(k)["y"], "x": sample(k)["x"][:1], "id": f"s{k}"} for k in HOURS
]


@contextlib.contextmanager
def from_a_file(folder):
    """Give the options of a node, what to do when one has started, and whether all was sent."""
    path = folder / "table.csv"
    lines = [f"{each['time']:.0f},{each['y']!r},{each['x'][0]!r}" for each in STREAM]
    path.write_text("when,load,a\n" + "\n".join(lines) + "\n")
    yield ("--csv", str(path), "--time", "when", "--rate", "200"), lambda client: None, lambda: True


@contextlib.contextmanager
def over_http(folder, options=(), send=Client.learn):
    """What is not answered is sent again."""
    sender = Sender(STREAM, send)
    sender.start()

    def begin(client):
        sender.client = client
        sender.is_on.set()

    try:
        yield options, begin, lambda: not sender.todo
    finally:
        sender.is_over = True
        sender.is_on.set()
        sender.join()
    assert list(sender.acknowledged.values()) == list(range(1, len(STREAM) + 1))


@contextlib.contextmanager
def by_mqtt(folder):
    """What the node does not have soon is published again; brokers may deliver it twice."""
    (port,) = free_ports(1)
    publisher = paho.Client(CallbackAPIVersion.VERSION2)

    def send(client, given):
        publisher.publish("in", json.dumps(given), qos=1).wait_for_publish(DEADLINE)
        number = 1 + STREAM.index(given)
        for _ in range(50):
            if client.state()["n_accepted"] >= number:
                return 202, {"id": given["id"], "number": number}
        return 503, None

    options = ("--mqtt", f"mqtt://127.0.0.1:{port}", "--topic", "in")
    with Broker(port), over_http(folder, options, send) as found:
        publisher.connect("127.0.0.1", port)
        publisher.loop_start()
        yield found
        publisher.disconnect()
        publisher.loop_stop()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The state of a node that was given the stream and never stopped."""
    return learned_here(solo_folder(tmp_path_factory.mktemp("other"), **FORECASTING), STREAM)


@pytest.mark.parametrize("source", [from_a_file, over_http, by_mqtt])
def test_forecasts_resume_after_kills_and_each_is_scored_once(tmp_path, undisturbed, source):
    """Three horizons, lags and an input, with gaps; killed twice in the middle."""
    folder = solo_folder(tmp_path, **FORECASTING)
    with source(tmp_path) as (options, begin, is_sent):
        for n in (50, 100, len(STREAM)):
            with Process(folder, *options) as node:
                client = node.client()
                begin(client)
                state = client.wait_learned(n)
                forecasts = client.ask("/predict", {})[1]["forecasts"]
                wait_until(lambda n=n: n < len(STREAM) or is_sent())
                node.kill()
    assert [each["horizon"] for each in forecasts] == list(HORIZONS)
    assert state["n_accepted"] == len(STREAM)
    assert state["digest"] == undisturbed["digest"]
    assert state["horizons"] == undisturbed["horizons"]
    # lag 2 is not known at the first hour; after a gap the last value stands in
    made_at = set(HOURS[1:])
    scored = {h: each["n_scored"] for h, each in state["horizons"].items()}
    assert scored == {str(h): len({k for k in HOURS if k - h in made_at}) for h in HORIZONS}


def test_a_taken_port_and_a_second_node_are_errors_with_code_4(tmp_path):
    folder, other = solo_folder(tmp_path), solo_folder(tmp_path / "other")
    with Process(folder) as node:
        address = node.wait_event("http")[0]["address"]
        with Process(other, "--http", address) as second:
            assert second.wait() == 4
            said = second.process.stderr.read()
        assert said.startswith(f"domkl: error: cannot serve HTTP at {address}")
        assert os.strerror(errno.EADDRINUSE) in said
        with Process(folder) as second:
            assert second.wait() == 4
            assert "one node at a time" in second.process.stderr.read()
