"""Predictions leave at most once each: outlets that fail, files that are damaged, webhooks."""

import asyncio
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from mesh_node import free_ports, made, prepared, solo_folder, until

from domkl.errors import ParameterError
from domkl.mesh.node import publish
from domkl.mesh.node.publish import Lines, LostError, Prediction, Published, Publisher, Webhook
from domkl.mesh.store import wal


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(publish, "BACK_OFF", (0.01, 0.02))
    monkeypatch.setattr(publish, "STOPPING", 0.0)


class Flaky:
    """An outlet that does what it is told to."""

    kind, where = "flaky", "here"

    def __init__(self):
        self.ids, self.plan, self.n_opened, self.is_open = [], [], 0, True

    async def open(self):
        self.n_opened += 1
        if not self.is_open:
            raise LostError("closed")

    async def send(self, items):
        outcomes = []
        for item in items:
            assert json.loads(item.text)["id"] == item.id
            outcomes.append(self.plan.pop(0) if self.plan else "sent")
            if outcomes[-1] != "not sent":
                self.ids.append(item.id)
        return outcomes

    async def wait_lost(self):
        await asyncio.Event().wait()

    async def close(self):
        pass


async def published(folder, outlet, numbers, *, is_killed=False, plan=()):
    """Run a node that learns samples; give the publisher's counts."""
    node = made(folder)
    publisher = Publisher(node, outlet)
    outlet.plan = list(plan)
    await node.start()
    task = asyncio.create_task(publisher.run())
    await node.intake.accept(prepared(node, numbers))
    await until(lambda: node.is_idle and publisher.counts.total() == len(numbers))
    await publisher.drain()
    if is_killed:  # nothing is saved: the next one learns all of it again
        node._failure = RuntimeError("killed")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    publisher.close()
    await node.close()
    return dict(publisher.counts)


def test_a_node_that_was_killed_publishes_nothing_twice(tmp_path):
    folder, outlet = solo_folder(tmp_path, checkpoint_every=10_000), Flaky()
    for k in range(3):
        counts = asyncio.run(published(folder, outlet, range(5 * k, 5 * k + 5), is_killed=True))
        assert counts == {"sent": 5}
    numbers = [int(each.rpartition("-")[2]) for each in outlet.ids]
    assert numbers == list(range(1, 16))
    assert len({each.rpartition("-")[0] for each in outlet.ids}) == 1
    assert outlet.ids[0].startswith("solo-")


def test_what_may_have_arrived_is_not_sent_again_and_what_has_not_is(tmp_path):
    folder, outlet = solo_folder(tmp_path), Flaky()
    plan = ["sent", "unsure", "not sent", "not sent", "refused", "not sent"]
    counts = asyncio.run(published(folder, outlet, range(8), plan=plan))
    assert counts == {"sent": 6, "unsure": 1, "refused": 1}
    assert sorted(int(each.rpartition("-")[2]) for each in outlet.ids) == list(range(1, 9))
    assert outlet.n_opened > 1


def test_the_newest_wait_while_the_outlet_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(publish, "HELD", 4)
    folder, outlet = solo_folder(tmp_path), Flaky()
    outlet.is_open = False

    async def story():
        node = made(folder)
        publisher = Publisher(node, outlet)
        await node.start()
        task = asyncio.create_task(publisher.run())
        await node.intake.accept(prepared(node, range(9)))
        await until(lambda: node.is_idle and outlet.n_opened > 2)
        assert node.links == {"flaky": False}
        outlet.is_open = True
        await until(lambda: publisher.counts["sent"] == 4)
        assert node.links == {"flaky": True}
        assert node.published["flaky"] == {"dropped": 5, "sent": 4}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        publisher.close()
        await node.close()

    asyncio.run(story())
    assert [int(each.rpartition("-")[2]) for each in outlet.ids] == [6, 7, 8, 9]


def test_nothing_is_published_while_the_file_cannot_be_written(tmp_path, monkeypatch):
    folder, outlet = solo_folder(tmp_path), Flaky()
    real, fails = os.fdatasync, []

    def refused(handle):
        name = Path(f"/proc/self/fd/{handle}").readlink().name
        if len(fails) < 2 and name == "published-flaky":
            fails.append(handle)
            raise OSError(5, "Input/output error")
        real(handle)

    monkeypatch.setattr(os, "fdatasync", refused)
    assert asyncio.run(published(folder, outlet, range(3))) == {"sent": 3}
    assert len(fails) == 2
    assert len(set(outlet.ids)) == 3


def test_numbers_go_on_unless_samples_are_numbered_anew(tmp_path, monkeypatch):
    path = tmp_path / "published"
    first = Published(path, 0)
    first.set(7)
    first.close()
    with monkeypatch.context() as full:
        full.setattr(wal, "write", None)  # a disk without a free byte lets the node start
        again = Published(path, 7)
    assert (again.stream, again.number) == (first.stream, 7)
    again.close()
    fewer = Published(path, 5)  # a loss was accepted, or the log is gone
    assert fewer.number == 5
    assert fewer.stream != first.stream
    fewer.close()
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    damaged = Published(path, 9)
    assert damaged.number == 9
    assert damaged.stream not in (first.stream, fewer.stream)
    damaged.close()


def test_lines_of_standard_output(tmp_path):
    reading, writing = os.pipe()
    lines = Lines(writing)
    items = [Prediction("a-1", '{"id": "a-1"}'), Prediction("a-2", '{"id": "a-2"}')]
    assert asyncio.run(lines.send(items)) == ["sent", "sent"]
    assert os.read(reading, 1000) == b'{"id": "a-1"}\n{"id": "a-2"}\n'
    os.close(reading)
    assert asyncio.run(lines.send(items)) == ["unsure", "unsure"]
    with pytest.raises(LostError, match="nobody reads it"):
        asyncio.run(lines.open())
    os.close(writing)


@pytest.mark.parametrize("url", ["mqtt://h", "http://", "http://h:x", "http://h/a b", "h", ""])
def test_a_webhook_that_is_none_is_refused(url):
    with pytest.raises(ParameterError, match="webhook must be http://host/path"):
        Webhook(url)


class Receiver(BaseHTTPRequestHandler):
    """Answers 204; 503 if the id says so, and nothing at all if it says that."""

    got: list

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.got.append((body["id"], self.path, self.headers["Authorization"]))
        assert self.headers["Idempotency-Key"] == body["id"]
        if body["id"] == "dead":
            self.close_connection = True
            return
        self.send_response(503 if body["id"] == "busy" else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_a_webhook_gets_each_prediction_once():
    Receiver.got = []
    (port,) = free_ports(1)
    hook = Webhook(f"http://us%40er:p%3Aw@127.0.0.1:{port}/in?key=1")
    items = [Prediction(name, json.dumps({"id": name})) for name in ("a", "busy", "dead", "b")]
    with pytest.raises(LostError):
        asyncio.run(hook.open())
    assert asyncio.run(hook.send(items)) == ["not sent"] * 4
    with HTTPServer(("127.0.0.1", port), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        asyncio.run(hook.open())
        assert asyncio.run(hook.send(items)) == ["sent", "refused", "unsure", "not sent"]
        server.shutdown()
        thread.join()
    assert [each[0] for each in Receiver.got] == ["a", "busy", "dead"]
    assert Receiver.got[0][1:] == ("/in?key=1", "Basic dXNAZXI6cDp3")
    assert hook.where == "127.0.0.1"
