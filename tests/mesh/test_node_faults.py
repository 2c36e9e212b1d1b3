"""Nodes as processes in a mesh: one that hangs, garbage on every port, foreign certificates."""

import contextlib
import random
import signal
import socket
from dataclasses import replace

import pytest
from mesh_node import Process, free_ports, mesh_config, sample, wait_until

from domkl.mesh.config import certificates
from domkl.mesh.config.file import write_config
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.protocol.events import Timing
from domkl.mesh.testing.relay import Relay
from domkl.mesh.transports.base import Address

pytestmark = pytest.mark.slow

NAMES = ("east", "north", "south")
EDGES = (("east", "north"), ("east", "south"), ("north", "south"))
QUICK = Timing(start_timeout=1.0)


def _mesh(folder, names=NAMES, edges=EDGES):
    config = mesh_config(names, edges, timing=QUICK)
    init_mesh(folder, config)
    return config


def _is_open(client, peer):
    return client.ask("/state")[1]["neighbors"][peer]["is_open"]


def _learn(clients, first, n=10):
    """So many samples for each, until they are learned."""
    for client in clients:
        assert client.learn([sample(k) for k in range(first, first + n)])[0] == 202
    for client in clients:
        client.wait_learned(first + n)


def test_a_stopped_node_is_noticed_and_comes_back(tmp_path):
    """By timers of 5 seconds; the others go on without it, and it finds its way back by itself."""
    assert QUICK.silence <= 5
    _mesh(tmp_path / "mesh")
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(Process(tmp_path / "mesh" / name)) for name in NAMES]
        east, north, south = clients = [node.client() for node in nodes]
        pairs = zip(clients, NAMES, strict=True)
        ends = [(client, peer) for client, own in pairs for peer in NAMES if peer != own]
        wait_until(lambda: all(_is_open(*end) for end in ends))
        _learn(clients, 0)
        nodes[2].process.send_signal(signal.SIGSTOP)
        try:
            for each in (east, north):  # before it is noticed, they wait for it once
                assert each.learn([sample(k) for k in range(10, 20)])[0] == 202
            wait_until(lambda: not any(_is_open(each, "south") for each in (east, north)))
            assert [each.wait_learned(20)["n_learned"] for each in (east, north)] == [20, 20]
            _learn([east, north], 20)
            assert _is_open(east, "north")
        finally:
            nodes[2].process.send_signal(signal.SIGCONT)
        wait_until(lambda: all(_is_open(*end) for end in ends))
        _learn([south], 10)
        assert [node.stop() for node in nodes] == [0, 0, 0]
        assert not [each for node in nodes for each in node.events("failed")]


def test_a_cut_is_noticed_at_both_ends_and_heals(tmp_path):
    """No connection breaks, as when a cable is pulled; both go on alone and meet again."""
    config = _mesh(tmp_path / "mesh", NAMES[:2], EDGES[:1])
    north = config.member("north")
    listen = Address("127.0.0.1", free_ports(1)[0])
    members = (config.member("east"), replace(north, address=listen))
    write_config(tmp_path / "mesh" / "east" / "mesh.toml", replace(config, members=members))
    with contextlib.ExitStack() as stack:
        relay = stack.enter_context(
            Relay(listen, north.address)
        )  # east dials: its name sorts first
        nodes = [stack.enter_context(Process(tmp_path / "mesh" / name)) for name in NAMES[:2]]
        clients = [node.client() for node in nodes]
        ends = list(zip(clients, ("north", "east"), strict=True))
        wait_until(lambda: all(_is_open(*end) for end in ends))
        _learn(clients, 0)
        relay.cut()
        wait_until(lambda: not any(_is_open(*end) for end in ends))
        _learn(clients, 10)
        relay.heal()
        wait_until(lambda: all(_is_open(*end) for end in ends))
        _learn(clients, 20)
        assert [node.stop() for node in nodes] == [0, 0]


def _garbage():
    noise = random.Random(3).randbytes(3000)
    yield from (noise, bytes(100_000), b"\x16\x03\x01\x02\x00" + noise, b"domkl-mesh/1\n" + noise)
    yield b"GET /state HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 200_000
    yield b"POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n"
    yield b"POST /learn HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    yield b"POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40\r\n\r\n{"
    yield b""


def test_garbage_on_every_port_is_refused_and_the_node_goes_on(tmp_path):
    config = _mesh(tmp_path / "mesh", NAMES[:2], EDGES[:1])
    here = config.member("east")
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(Process(tmp_path / "mesh" / name)) for name in NAMES[:2]]
        east, north = clients = [node.client() for node in nodes]
        wait_until(lambda: _is_open(east, "north") and _is_open(north, "east"))
        n_epochs = east.state()["neighbors"]["north"]["n_epochs"]
        for address in (here.address, here.http):
            for garbage in _garbage():
                held = stack.enter_context(socket.create_connection(address, timeout=30))
                with contextlib.suppress(ConnectionError):
                    held.sendall(garbage)
        _learn(clients, 0)
        assert sum(wait_until(lambda: east.state()["strangers"]).values()) > 0
        state = east.state()
        assert (state["n_accepted"], state["neighbors"]["north"]["is_open"]) == (10, True)
        assert state["neighbors"]["north"]["n_epochs"] == n_epochs
        assert [node.stop() for node in nodes] == [0, 0]


def test_wrong_certificates_are_refused_until_they_are_right(tmp_path):
    """One of another mesh, then one of this mesh under another name; then its own."""
    mesh = tmp_path / "mesh"
    _mesh(mesh, NAMES[:2], EDGES[:1])
    own = {name: (mesh / "north" / name).read_bytes() for name in ("node.pem", "node.key")}
    certificates.create_authority(tmp_path / "foreign", "foreign")
    with Process(mesh / "east") as stays:
        east = stays.client()
        certificates.issue(tmp_path / "foreign", "north", tmp_path / "forged")
        for name in own:
            (mesh / "north" / name).write_bytes((tmp_path / "forged" / name).read_bytes())
        with Process(mesh / "north") as forged:
            forged.client()
            wait_until(lambda: any("certificate" in why for why in east.state()["strangers"]))
            assert not _is_open(east, "north")
        certificates.issue(mesh / "authority", "south", mesh / "north")
        with Process(mesh / "north") as misnamed:
            assert misnamed.wait() == 3
            assert "must be of north" in misnamed.process.stderr.read()
        for name, data in own.items():
            (mesh / "north" / name).write_bytes(data)
        with Process(mesh / "north") as right:
            north = right.client()
            wait_until(lambda: _is_open(east, "north"))
            _learn([east, north], 0)
            assert right.stop() == 0
        assert stays.stop() == 0
