"""The server of `domkl mesh ui`: it passes on what the nodes answer, to those who may see it."""

import asyncio
import http.client
import json
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest
from mesh_node import Client, mesh_config, sample, wait_until
from mesh_served import served

from domkl.errors import DataError
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.operate.page_server import serve_ui
from domkl.mesh.transports.base import Address


@contextmanager
def ui(folder, with_token=False):
    """The server in a thread of its own; its address."""
    told, loop, is_up = [], asyncio.new_event_loop(), threading.Event()

    def tell(address):
        told.append(address)
        is_up.set()

    task = loop.create_task(serve_ui(folder, 0, with_token, tell))

    def main():
        try:
            loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()

    thread = threading.Thread(target=main)
    thread.start()
    try:
        assert is_up.wait(60)
        yield told[0].removeprefix("http://").rstrip("/")
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    config = mesh_config(("a", "b"), (("a", "b"),))
    with served(tmp_path_factory.mktemp("ui") / "mesh", config, with_token=True) as running:
        yield running


def test_it_asks_the_nodes_with_their_tokens(nodes):
    token = (nodes.folder / "a" / "token").read_text().strip()
    client = nodes.client("a", token=token)
    client.learn([sample(k) for k in range(20)])
    client.wait_learned(20)
    with ui(nodes.folder) as address:
        page = Client(address)
        status, found = page.ask("/history?since=0&step=5")
        assert status == 200
        assert list(found["learners"]) == ["a", "b"]
        assert sum(found["learners"]["a"]["horizons"]["1"]["n"]) == 20
        assert list(page.ask("/history?learner=b")[1]["learners"]) == ["b"]
        assert page.ask("/history?learner=nobody")[0] == 404
        assert page.ask("/history?since=x")[0] == 422
        assert len(page.ask("/recent?learner=a")[1]) == 20
        assert page.ask("/healthz")[0] == 200
        assert page.ask("/", headers={"Host": "evil.example"})[0] == 403
        assert page.ask("/history", headers={"Origin": "http://evil.example"})[0] == 403


def test_the_stream_has_all_learners(nodes):
    with ui(nodes.folder) as address:
        connection = http.client.HTTPConnection(address, timeout=30)
        connection.request("GET", "/watch")
        answer = connection.getresponse()
        assert json.loads(answer.readline())["hello"]["watched"] == ["a", "b"]
        seen = {}
        wait_until(
            lambda: (
                seen.update(json.loads(answer.readline())["learners"])
                or all(seen.get(name, {}).get("is_ready") for name in "ab")
            )
        )
        assert seen["a"]["neighbors"]["b"]["is_open"]
        connection.close()


def test_beyond_loopback_it_demands_a_token_as_the_nodes_do(tmp_path):
    config = mesh_config(("a",), ())
    (member,) = config.members
    open_to_all = replace(member, http=Address("0.0.0.0", member.http.port))
    init_mesh(tmp_path / "far", replace(config, members=(open_to_all,)))
    init_mesh(tmp_path / "near", config)
    with ui(tmp_path / "far") as address:
        path = tmp_path / "far" / "ui-token"
        assert path.stat().st_mode & 0o077 == 0
        token = path.read_text().strip()
        assert Client(address).ask("/history")[0] == 401
        assert Client(address).ask("/")[0] == 200
        assert Client(address, token=token).ask("/history")[1] == {"learners": {"a": None}}
    with ui(tmp_path / "near") as address:
        assert Client(address).ask("/history")[0] == 200
    with ui(tmp_path / "near", with_token=True) as address:
        assert Client(address).ask("/history")[0] == 401


def test_there_must_be_a_mesh(tmp_path):
    with pytest.raises(DataError, match="cannot read the mesh file"):
        asyncio.run(serve_ui(tmp_path, 0, False, print))
