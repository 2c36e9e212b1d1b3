"""What a node answers to those who watch: history, newest samples, the stream, the page."""

import http.client
import json
import logging

import pytest
from mesh_node import mesh_config, sample, wait_until
from mesh_served import served

NAMES = ("north", "south")


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    config = mesh_config(NAMES, (("north", "south"),))
    with served(tmp_path_factory.mktemp("watch") / "mesh", config) as running:
        for name in NAMES:
            client = running.client(name)
            client.learn([sample(k) for k in range(60)])
            client.wait_learned(60)
            wait_until(lambda: client.state()["recent"]["1"]["last 100"]["n"] == 60)  # noqa: B023
        yield running


def lines(mesh, name, n, headers=()):
    address = mesh.config.member(name).http
    connection = http.client.HTTPConnection(address.host, address.port, timeout=30)
    connection.request("GET", "/watch", headers=dict(headers))
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("application/x-ndjson")
    found = [json.loads(answer.readline()) for _ in range(n)]
    connection.close()
    return found


def test_the_history_adds_up_to_what_was_learned(mesh):
    status, found = mesh.client("north").ask("/history?since=0&step=1")
    assert status == 200
    by = found["horizons"]["1"]
    assert (found["learner"], found["target"]["name"]) == ("north", "load")
    assert sum(by["n"]) == mesh.client("north").state()["n_learned"]
    state = mesh.client("north").state()
    squares = sum(n * e**2 for n, e in zip(by["n"], by["rmse"], strict=True) if n)
    assert squares / sum(by["n"]) == pytest.approx(state["in_units"]["mse"], rel=1e-4)
    assert {len(column) for column in by.values()} == {len(found["start"])}
    assert [each["kind"] for each in found["events"][:1]] == ["ready"]
    assert {each["text"] for each in found["events"]} >= {"south is up"}
    minute = mesh.client("north").ask("/history?since=0&step=60")[1]
    assert minute["step"] == 60
    assert sum(minute["horizons"]["1"]["n"]) == sum(by["n"])
    later = mesh.client("north").ask(f"/history?since={found['now'] + 1000}")[1]
    assert sum(later["horizons"]["1"]["n"]) == 0


@pytest.mark.parametrize("query", ["since=x", "since=-1", "since=nan", "since=inf", "step=-3"])
def test_a_wrong_question_is_refused(mesh, query):
    assert mesh.client("north").ask(f"/history?{query}")[0] == 422


def test_the_newest_samples(mesh):
    status, found = mesh.client("north").ask("/recent")
    assert (status, [each[0] for each in found]) == (200, list(range(1, 61)))
    assert found[7][2] == pytest.approx(sample(7)["y"], rel=1e-5)
    assert mesh.client("north").ask("/recent?horizon=9")[0] == 422


def test_the_stream_says_first_what_there_is_and_then_what_is_new(mesh):
    first, second = lines(mesh, "north", 2)
    hello = first["hello"]
    assert (hello["mesh"], hello["watched"]) == ("mesh", ["north"])
    assert hello["edges"] == [["north", "south"]]
    assert [each["name"] for each in hello["learners"]] == ["north", "south"]
    assert hello["kernels"] == ["gaussian 1", "gaussian 10"]
    now = second["learners"]["north"]
    assert now["is_ready"]
    assert now["neighbors"]["south"]["is_open"]
    assert now["recent"]["1"]["last 100"]["n"] == 60
    assert now["verdict"]["word"] in ("exchanging", "learning", "worth it")
    assert now["samples"] == {"1": []}


def test_new_samples_and_events_are_in_the_stream_once(mesh):
    address = mesh.config.member("south").http
    connection = http.client.HTTPConnection(address.host, address.port, timeout=30)
    connection.request("GET", "/watch")
    answer = connection.getresponse()
    answer.readline()
    answer.readline()
    mesh.client("south").learn([sample(k) for k in range(60, 70)])
    mesh.call(mesh.nodes["south"].recorder.note, "reloaded", "", "by a test")
    numbers, events, rows = [], [], {}
    while len(numbers) < 10 or not events or not any(rows.values()):
        news = json.loads(answer.readline())["learners"]["south"]
        numbers += [each[0] for each in news["samples"]["1"]]
        events += [each["text"] for each in news["events"]]
        new = dict(zip(news["rows"]["start"], news["rows"]["horizons"]["1"]["n"], strict=True))
        assert not set(rows) & set(new)
        rows |= new
    connection.close()
    assert numbers == list(range(61, 71))
    assert events == ["by a test"]
    found = mesh.client("south").ask("/history?since=0&step=1")[1]
    kept = dict(zip(found["start"], found["horizons"]["1"]["n"], strict=True))
    assert rows == {start: kept[start] for start in rows}


def test_good_news_is_no_alarm(mesh, caplog):
    node = mesh.nodes["north"]
    with caplog.at_level(logging.INFO, logger="domkl.mesh"):
        for kind in ("up", "down", "left", "refused"):
            mesh.call(node._alarm, kind, "someone", f"{kind} by a test")
    found = {r.facts["kind"]: (r.message, r.levelname) for r in caplog.records if "kind" in r.facts}
    news, alarm = ("neighbor", "INFO"), ("alarm", "WARNING")
    assert found == {"up": news, "left": news, "down": alarm, "refused": alarm}


def test_a_page_that_is_closed_is_forgotten(mesh):
    before = len(mesh.loop._selector.get_map())
    for _ in range(40):  # more than may watch at once
        lines(mesh, "north", 1)
    wait_until(lambda: len(mesh.loop._selector.get_map()) <= before)
    assert lines(mesh, "north", 1)


def test_without_the_token_there_is_the_page_and_no_data(tmp_path):
    with served(tmp_path / "mesh", mesh_config(("solo",), ()), with_token=True) as mesh:
        stranger = mesh.client("solo")
        assert stranger.ask("/healthz")[0] == 200
        status, page = stranger.ask("/")
        assert status == 200
        assert "<title>domkl mesh</title>" in page
        assert "solo" not in page
        for path in ("/history", "/recent", "/watch", "/state", "/metrics", "/openapi.json"):
            assert stranger.ask(path)[0] == 401
        token = (tmp_path / "mesh" / "solo" / "token").read_text().strip()
        assert mesh.client("solo", token=token).ask("/history")[0] == 200
