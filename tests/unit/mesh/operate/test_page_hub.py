"""What nodes say is passed on; who is silent is down; nobody speaks for another."""

import asyncio
import json
import threading

import pytest
from mesh_node import mesh_config

from domkl.mesh.operate.page_server import Hub, follow, merged


@pytest.fixture
def config():
    return mesh_config(("a", "b"), (("a", "b"),))


def news(k):
    return {"is_ready": True, "k": k, "events": [k], "samples": {"1": [[k]]},
            "rows": {"step": 1, "start": [k], "horizons": {"1": {"n": [1]}}}}  # fmt: skip


def test_what_is_new_adds_up_until_it_is_sent():
    assert merged(None, news(1)) == news(1)
    twice = merged(news(1), news(2))
    assert (twice["k"], twice["events"], twice["samples"]) == (2, [1, 2], {"1": [[1], [2]]})
    assert twice["rows"] == {"step": 1, "start": [1, 2], "horizons": {"1": {"n": [1, 1]}}}
    gone = merged(twice, {"is_ready": False})
    assert (gone["is_ready"], gone["events"]) == (False, [1, 2])


def test_those_who_watch_get_the_state_and_then_the_news(config, tmp_path, monkeypatch):
    monkeypatch.setattr("domkl.mesh.operate.page_server.EVERY", 0.01)

    async def story():
        hub = Hub(config, tmp_path)
        hub._took("a", news(1))
        stream = hub.lines()
        assert (await anext(stream))["hello"]["watched"] == ["a", "b"]
        first = (await anext(stream))["learners"]
        assert (first["a"]["k"], "rows" in first["a"]) == (1, False)
        assert (first["b"]["is_ready"], first["b"]["verdict"]["word"]) == (False, "down")
        hub._took("a", news(2))
        hub._took("a", news(3))
        hub._took("b", None)
        second = (await anext(stream))["learners"]
        assert second["a"]["events"] == [2, 3]
        since = second["b"]["since"]
        hub._took("b", None)
        third = (await anext(stream))["learners"]
        assert third["b"]["since"] == since  # it is down since it was first so
        assert (await anext(stream))["learners"] == {}
        hub._took("a", None)
        assert (await anext(stream))["learners"]["a"]["verdict"]["word"] == "down"
        hub.stop()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        assert hub._watchers == []

    asyncio.run(story())


def test_a_node_is_asked_until_its_stream_ends(config, tmp_path):
    hub = Hub(config, tmp_path)
    assert not hub.is_down("a")  # not heard yet
    hub._took("a", {"hello": {"horizons": [1]}})
    assert not hub.is_down("a")
    hub._took("a", None)
    assert hub.is_down("a")
    hub._took("a", {"is_ready": False})  # it replays its log, and answers
    assert not hub.is_down("a")


@pytest.mark.parametrize(
    "line",
    [
        b"no JSON\n",
        b'{"learners": {"b": {"is_ready": true}}}\n',
        b"[]\n",
        b'{"learners": 3}\n',
        b"",
    ],
)
def test_a_node_that_talks_nonsense_or_for_another_is_down(config, tmp_path, monkeypatch, line):
    said, is_over = [], threading.Event()

    class Answer:
        status = 200
        readline = lambda self, most: line  # noqa: E731

    class Connection:
        request = close = lambda *given, **options: None
        getresponse = lambda self: Answer()  # noqa: E731

    monkeypatch.setattr("domkl.mesh.operate.page_server.connected", lambda *given: Connection())

    def took(name, found):
        said.append((name, found))
        is_over.set()

    follow(config.member("a"), tmp_path, took, is_over)
    assert said == [("a", None)]
    assert json.dumps(said)
