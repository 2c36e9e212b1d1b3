"""The way of a sample from POST /learn to a neighbor's merge: docs/explanation/design.md."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from mesh_node import made, mesh_config, prepared, sample, until
from walk import Walk, documented

from domkl.mesh.config.folder import init_mesh
from domkl.mesh.node.http import create_app, rules_for
from domkl.mesh.transports.base import Address
from domkl.mesh.transports.memory import MemoryHub, MemoryTransport

MAX_FILES = 15


async def post(app, path, body):
    """Send a request to an app, as a server would; give the status of the answer."""
    sent = []
    scope = {
        "type": "http", "method": "POST", "path": path, "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }  # fmt: skip

    async def receive():
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"]


def is_quiet(source, target):
    """Whether all frames from one node to the other have been handled."""
    sent = source.transport.traffic()[target.folder.name].sent
    return sent == target.transport.traffic()[source.folder.name].received and not target._events


def traced(folder, guard=False):
    """North gets a sample over HTTP; south, who has learned one, merges what north sends."""
    names, walk = ("north", "south"), Walk()
    init_mesh(folder, replace(mesh_config(names, (names,)), guard=guard))

    async def story():
        hub = MemoryHub()
        north, south = nodes = [made(folder / name, None) for name in names]
        for node in nodes:
            node.transport = MemoryTransport(hub, node.folder.name, node.folder.neighbors)
            await node.start()
        app = create_app(north, rules_for(Address("127.0.0.1", 1), folder / "token"))
        edges = [node.protocol.measures.edges for node in nodes]
        await until(lambda: edges[0]["south"].is_open and edges[1]["north"].is_open)
        for node in nodes:
            node._ticker.cancel()  # else what the clock does would be in the walk
        for k, node in enumerate(nodes, 1):  # the label of sample 0 is 0: it teaches nothing
            await node.intake.accept(prepared(node, [k]))
        await until(lambda: north.is_idle and south.is_idle)
        await south.intake.accept(prepared(south, [2]))  # it offers, and waits for north
        await until(lambda: south.protocol.is_waiting and is_quiet(south, north))
        assert await post(app, "/predict", {"x": sample(0)["x"]}) == 200  # builds the app
        with walk:
            loop = asyncio.get_running_loop()
            loop.set_default_executor(ThreadPoolExecutor(1))  # its thread is new, and so recorded
            assert await post(app, "/learn", sample(3)) == 202
            while edges[1]["north"].n_exchanged < 2 or not south.is_idle:
                await asyncio.sleep(0)
        for node in nodes:
            await node.close()

    asyncio.run(story())
    return walk


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    return traced(tmp_path_factory.mktemp("walk") / "mesh")


def test_the_walk_is_the_documented_one(walk):
    listed = documented("POST /learn to the neighbor's merge")
    assert walk.entries == listed, f"docs/explanation/design.md should have\n{walk.as_markdown()}"


def test_the_walk_is_short_and_never_goes_back(walk):
    assert walk.returns == set()
    assert len(walk.files) <= MAX_FILES, sorted(walk.files)


def test_a_guard_is_one_file_more(walk, tmp_path):
    assert traced(tmp_path / "mesh", guard=True).files - walk.files == {"mesh/protocol/guard.py"}
