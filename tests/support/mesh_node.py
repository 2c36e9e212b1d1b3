"""Nodes for tests: small folders, real processes, and HTTP by urllib."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import domkl
from domkl.mesh.config.file import Member, MeshConfig, write_config
from domkl.mesh.node.node import Node
from domkl.mesh.protocol.model import Range
from domkl.mesh.store.folder import open_folder
from domkl.mesh.transports import registry
from domkl.mesh.transports.base import Address

DEADLINE = 120  # seconds; compiling afresh on a busy machine takes most of it
INPUTS = (Range("a", 0.0, 10.0), Range("b", -1.0, 1.0))
TARGET = Range("load", 0.0, 100.0)


def free_ports(n):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def solo_config(name="solo", **changes):
    address, http = (Address("127.0.0.1", port) for port in free_ports(2))
    given = {
        "members": (Member(name, address, http),), "edges": (), "target": TARGET,
        "inputs": () if "lags" in changes else INPUTS, "algorithm": domkl.DOMKL(),
        "kernels": (1.0, 10.0), "n_frequencies": 5, "checkpoint_every": 7,
    }  # fmt: skip
    return MeshConfig(**given | changes)


def mesh_config(names, edges, **changes):
    ports = free_ports(2 * len(names))
    members = tuple(
        Member(name, Address("127.0.0.1", ports[2 * k]), Address("127.0.0.1", ports[2 * k + 1]))
        for k, name in enumerate(names)
    )
    given = {"algorithm": domkl.DOMKL(), "kernels": (1.0, 10.0), "n_frequencies": 5}
    return MeshConfig(members=members, edges=edges, target=TARGET, inputs=INPUTS, **given | changes)


def solo_folder(parent, name="solo", **changes):
    folder = Path(parent) / name
    folder.mkdir(parents=True)
    write_config(folder / "mesh.toml", solo_config(name, **changes))
    return folder


def sample(k):
    """The k-th of a stream, in its own units."""
    a, b = (k * 0.37) % 10, ((k * 0.61) % 2) - 1
    return {"x": [a, b], "y": 10 * a * (b + 1) / 2}


def wait_until(claim, seconds=DEADLINE):
    """Poll until the claim gives something true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = claim()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not in {seconds} s: {claim}")


def made(path, with_transport=False, **options):
    folder = open_folder(path)
    transport = registry.make("tls", folder.endpoint) if with_transport else None
    return Node(folder, transport, save_pause=0.0, **options)


def prepared(node, numbers):
    return [node.format.sample(sample(k)) for k in numbers]


async def until(claim):
    end = time.monotonic() + DEADLINE
    while not claim():
        assert time.monotonic() < end, "not in time"
        await asyncio.sleep(0.01)


class Client:
    """Asks a node; gives status and JSON."""

    def __init__(self, address, token=None, context=None, scheme="http"):
        self.base, self.token, self.context = f"{scheme}://{address}", token, context

    def ask(self, path, body=None, headers=(), timeout=30):
        """``body`` is sent as it is where it is bytes."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        made = urllib.request.Request(self.base + path, data, dict(headers))
        if data is not None and not made.has_header("Content-type"):
            made.add_header("Content-Type", "application/json")
        if self.token:
            made.add_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(made, timeout=timeout, context=self.context) as answer:
                return answer.status, _content(answer)
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, _content(answer)

    def learn(self, body):
        return self.ask("/learn", body)

    def state(self):
        return self.ask("/state?digest=true")[1]

    def wait_learned(self, n):
        """State once n samples are learned."""
        return wait_until(lambda: (s := self.state())["n_learned"] >= n and s)


def _content(answer):
    text = answer.read().decode()
    return json.loads(text) if "json" in answer.headers.get("Content-Type", "") else text


class Process:
    """A node as a process of its own."""

    def __init__(self, folder, *options, before=None, program=("-m", "domkl"), **streams):
        self.folder, self.log = Path(folder), Path(folder) / f"log-{time.monotonic_ns()}"
        command = [sys.executable, *program, "node", str(folder)]
        source = Path(domkl.__file__).parents[1]
        self.process = subprocess.Popen(
            [*command, "--log-format", "json", "--log-file", str(self.log), *options],
            env={**os.environ, "PYTHONPATH": str(source)},
            preexec_fn=before,
            stderr=subprocess.PIPE,
            text=True,
            **streams,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
        self.process.stderr.close()
        if self.process.stdin is not None:
            self.process.stdin.close()

    def events(self, name):
        if not self.log.exists():
            return []
        lines = self.log.read_text().splitlines()
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return [each for each in found if each["event"] == name]

    def wait_event(self, name, n=1):
        def look():
            found = self.events(name)
            is_over = self.process.poll() is not None and len(self.events(name)) < n
            assert not is_over, self.process.stderr.read()
            return len(found) >= n and found

        return wait_until(look)

    def client(self, **options):
        """Once it is ready."""
        address = self.wait_event("http")[-1]["address"]
        self.wait_event("ready")
        return Client(address, **options)

    def kill(self):
        self.process.kill()
        self.process.wait(DEADLINE)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.wait()

    def wait(self):
        return self.process.wait(DEADLINE)
