"""The HTTP interface of a node, over real sockets, in a thread of its own."""

import asyncio
import http.client
import json
import re
import socket
import ssl
import urllib.error

import numpy as np
import pytest
from mesh_http import LOOPBACK, served
from mesh_node import Client, sample, solo_config, wait_until
from prometheus_client.parser import text_string_to_metric_families

import domkl
from domkl.errors import MeshError, ParameterError
from domkl.mesh import process_log as log
from domkl.mesh.config import certificates
from domkl.mesh.node.connections import Limits
from domkl.mesh.node.http import HttpServer, Rules, rules_for
from domkl.mesh.node.intake import FIELDS, ID, Future, Inputs
from domkl.mesh.node.node import ForecastAnswer
from domkl.mesh.transports.base import Address


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    with served(tmp_path_factory.mktemp("node"), solo_config()) as (_, address):
        yield Client(address)


def test_a_sample_is_accepted_learned_and_predicted(table):
    before = table.state()["n_learned"]
    status, found = table.learn({**sample(1), "id": "first"})
    assert (status, found["id"]) == (202, "first")
    assert table.learn({"b": 0.1, "a": 3, "load": 4, "battery": "low"})[0] == 202
    status, found = table.learn([sample(2), {**sample(3), "id": "third"}])
    assert [each["id"] for each in found] == [None, "third"]
    state = table.wait_learned(before + 4)
    assert state["n_accepted"] == state["n_learned"] == before + 4
    assert state["in_units"]["mse"] == pytest.approx(1e4 * state["mse"])
    status, found = table.ask("/predict", {"x": sample(1)["x"]})
    assert status == 200
    assert np.isfinite(found["prediction"])
    assert found["deviation"] is None
    assert found["quantiles"] is None
    assert table.ask("/predict", {"x": [99, 0]})[1]["n_outside"] == 1


def test_a_learner_that_knows_nothing_says_so(tmp_path):
    with served(tmp_path, solo_config()) as (_, address):
        client = Client(address)
        status, found = client.ask("/predict", {"x": sample(1)["x"]})
        assert status == 409
        assert "has no sample yet, and has heard of none" in found["detail"]
        client.learn(sample(1))
        client.wait_learned(1)
        assert client.ask("/predict", {"x": sample(1)["x"]})[0] == 200


def test_an_id_sent_again_is_the_same_sample(table):
    first = table.learn({**sample(1), "id": "again"})
    before = table.state()
    assert table.learn({**sample(1), "id": "again"}) == first
    after = table.state()
    assert after["n_accepted"] == before["n_accepted"]
    assert after["n_repeated"] == before["n_repeated"] + 1


WRONG = {
    b'{"x": [1, 2, 3], "y": 1}': "must have 2 inputs, got 3",
    b'{"x": [1, NaN], "y": 1}': "finite number",
    b'{"x": [1, Infinity], "y": 1}': "finite number",
    b'{"x": [1, 1e999], "y": 1}': "finite number",
    b'{"x": [1, 2], "y": "1"}': "y must be a finite number or null, got '1'",
    b'{"x": [1, 2]}': "must have x and y",
    b'[{"x": [1, 0], "y": 1}, {"x": [1], "y": 1}]': "sample 2 of 2: sample must have 2 inputs",
    b'{"value": 3}': "the mesh has no lags",
    b'{"a": 1, "b": 0}': "sample lacks 'load'",
    b'{"a": 1, "b": NaN, "load": 1}': "b must be a finite number or null, got nan",
    b"{": "JSON",
    b"\xff\xfe": "",
}


@pytest.mark.parametrize("body", WRONG)
def test_wrong_samples_get_422_and_the_node_goes_on(body, table):
    before = table.state()["n_accepted"]
    status, found = table.learn(body)
    assert status in (400, 422) if body == b"\xff\xfe" else status == 422
    assert WRONG[body] in found["detail"]
    assert table.ask("/healthz") == (200, {"status": "ready"})
    assert table.state()["n_accepted"] == before


def test_wrong_samples_are_counted(table):
    before = table.state()["rejected"].get("invalid", 0)
    table.learn({"x": [1], "y": 1})
    table.learn(b'{"x": [1, NaN], "y": 1}')
    assert table.state()["rejected"]["invalid"] == before + 2


def test_an_empty_list_is_accepted(table):
    assert table.learn([]) == (202, [])


def test_a_page_of_another_origin_or_name_is_refused(table):
    """A browser on this machine must not be a way in."""
    assert table.ask("/state", headers={"Host": "evil.example"}.items())[0] == 403
    assert table.ask("/state", headers={"Origin": "https://evil.example"}.items())[0] == 403
    plain = {"Content-Type": "text/plain"}.items()
    assert table.ask("/learn", b'{"x": [1, 0], "y": 1}', headers=plain)[0] == 422
    port = table.base.rsplit(":", 1)[1]
    assert table.ask("/healthz", headers={"Host": f"localhost:{port}"}.items())[0] == 200
    assert table.ask("/healthz", headers={"Host": f"[::1]:{port}"}.items())[0] == 200


def test_openapi_is_served_and_pages_that_load_foreign_scripts_are_not(table):
    paths = table.ask("/openapi.json")[1]["paths"]
    watching = {"/state", "/healthz", "/metrics", "/history", "/recent", "/watch"}
    assert set(paths) == {"/learn", "/predict", *watching}
    assert table.ask("/docs")[0] == 404


def test_openapi_describes_what_is_asked_and_answered(table):
    found = table.ask("/openapi.json")[1]
    kinds = found["components"]["schemas"]
    assert found["info"]["version"] == domkl.__version__
    assert set(kinds["Given"]["properties"]) == FIELDS
    assert kinds["Given"]["properties"]["id"]["pattern"] == f"^{ID.pattern}$"
    assert set(kinds["Inputs"]["properties"]) == set(Inputs._fields)
    assert set(kinds["Future"]["properties"]) == set(Future._fields)
    assert set(kinds["OneForecast"]["properties"]) == set(ForecastAnswer._fields)
    assert set(table.learn(sample(1))[1]) == set(kinds["Accepted"]["properties"])
    assert set(table.ask("/predict", {"x": [1, 0]})[1]) == set(kinds["Predicted"]["properties"])
    assert set(table.learn(b"{")[1]) == set(kinds["Problem"]["properties"])
    refs = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(found)))
    assert refs == set(kinds)


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/learn", 3, "sample must be a JSON object, got 3"),
        ("/learn", [[]], "sample must be a JSON object, got []"),
        ("/learn", {"x": "1", "y": 1}, "x must be a list or an object, got '1'"),
        ("/learn", {"x": [1, 10**400], "y": 1}, "x[1] must be a finite number or null, got 1000"),
        ("/learn", {"x": {"<script>": "a"}, "y": 1}, "<script> must be a finite number or null"),
        ("/learn", {"x": [1, 0], "y": 1, "id": 7}, "id must be 1 to 200 characters of ASCII"),
        ("/learn", {"x": [1, 0], "y": 1, "time": [1]}, "time must be a finite number or null"),
        ("/learn", b"[" * 100_000, "body must be JSON: it is nested too deeply"),
        ("/predict", [], "body must be a JSON object, got []"),
        ("/predict", {"y": 1}, "body has no place for 'y'"),
        ("/predict", {"future": {}}, "x must be given, got none"),
        ("/predict", {"future": 3}, "future must be a list of at most 10000 items"),
        ("/predict", {"future": [{"x": {}}]}, "future must have time and x"),
        ("/predict", {"future": [{"time": "now"}]}, "x of future must be a JSON object, got None"),
        ("/predict", {"future": [{"time": 1, "x": {"a": None}}]}, "a must be a finite number, got"),
    ],
)
def test_wrong_bodies_say_where(table, path, body, said):
    status, found = table.ask(path, body)
    assert (status, said in found["detail"]) == (422, True), found


def test_wrong_questions_and_other_ways_of_asking(table):
    assert table.ask("/state?digest=perhaps")[0] == 422
    assert table.ask("/learn") == (405, {"detail": "Method Not Allowed"})
    assert table.ask("/nowhere") == (404, {"detail": "Not Found"})


def test_metrics_are_those_of_the_page(table):
    status, text = table.ask("/metrics")
    assert status == 200
    found = {f.name: f for f in text_string_to_metric_families(text)}
    assert found["domkl_samples_learned"].samples[0].value == table.state()["n_learned"]
    assert found["process_resident_memory_bytes"].samples[0].value > 1e6


def test_a_series_takes_values_and_predicts_the_next(tmp_path):
    config = solo_config(lags=3)
    with served(tmp_path, config) as (_, address):
        client = Client(address)
        assert client.learn({"value": 10})[0] == 202
        status, found = client.ask("/predict", {})
        assert status == 409
        assert "must have 3 values to predict the next, got 1" in found["detail"]
        assert client.learn([{"value": v} for v in (20, 30, 40, 50)])[0] == 202
        state = client.wait_learned(2)
        assert (state["n_accepted"], state["n_learned"], state["n_queued"]) == (5, 2, 0)
        status, following = client.ask("/predict", {})
        assert client.ask("/predict", {"x": [50, 40, 30]})[1] == following
        assert client.learn(sample(0))[0] == 422
        status, found = client.learn({"temperature": 3})
        assert (status, "it has value, or load by name" in found["detail"]) == (422, True)
        before = client.state()["digest"]
    with served(tmp_path, config) as (_node, address):
        client = Client(address)
        assert client.state()["digest"] == before
        assert client.ask("/predict", {})[1] == following


def test_values_outside_are_refused_where_that_is_the_policy(tmp_path):
    with served(tmp_path, solo_config(outside="refuse")) as (_, address):
        client = Client(address)
        status, found = client.learn({"x": [11, 0], "y": 1})
        assert (status, "a must be in 0.0 .. 10.0, got 11.0" in found["detail"]) == (422, True)
        assert client.ask("/predict", {"x": [11, 0]})[0] == 422
        assert client.learn({"x": [10, 0], "y": 1})[0] == 202


def test_values_outside_are_clipped_and_counted(tmp_path):
    with served(tmp_path, solo_config()) as (_, address):
        client = Client(address)
        client.learn({"x": [11, -3], "y": 200})
        assert client.wait_learned(1)["n_outside"] == 3


def test_a_full_queue_answers_429_and_when_to_try_again(tmp_path):
    with served(tmp_path, solo_config(queue=5)) as (_node, address):
        client = Client(address)
        status, found = client.learn([sample(k) for k in range(6)])
        assert (status, "room for 6 samples, got 5" in found["detail"]) == (429, True)
        assert client.state()["rejected"] == {"queue full": 6}
        assert client.learn([sample(k) for k in range(5)])[0] == 202
        assert client.wait_learned(5)["n_accepted"] == 5


def test_before_it_is_ready_it_says_so(tmp_path):
    with served(tmp_path, solo_config(), is_started=False) as (_, address):
        client = Client(address)
        assert client.ask("/healthz")[0] == 503
        assert client.learn(sample(0))[0] == 503
        assert client.ask("/predict", {"x": [1, 0]})[0] == 503
        assert "domkl_ready 0.0" in client.ask("/metrics")[1]
        assert client.ask("/state")[1]["is_ready"] is False


def test_a_body_that_is_too_large_is_refused(tmp_path):
    rules = Rules(None, None, max_body=1000)
    with served(tmp_path, solo_config(), rules=rules) as (_, address):
        client = Client(address)
        assert client.learn([sample(k) for k in range(100)])[0] == 413
        chunked = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}
        body = b"".join(b"64\r\n" + b"[" * 100 + b"\r\n" for _ in range(20)) + b"0\r\n\r\n"
        assert client.ask("/learn", body, headers=chunked.items())[0] == 413
        assert client.learn(sample(0))[0] == 202


def test_beyond_loopback_there_is_tls_and_a_token(tmp_path):
    certificates.create_authority(tmp_path / "authority", "mesh")
    certificates.issue(tmp_path / "authority", "solo", tmp_path / "solo", hosts=["127.0.0.1"])
    folder = tmp_path / "solo"
    (folder / "token").write_text("a-token-of-some-length\n")
    rules = rules_for(Address("0.0.0.0", 0), folder / "token")
    with served(folder, solo_config(), rules=rules, tls=folder) as (_, address):
        context = ssl.create_default_context(cafile=folder / "ca.pem")
        anyone = Client(address, context=context, scheme="https")
        holder = Client(address, context=context, scheme="https", token="a-token-of-some-length")
        assert anyone.ask("/healthz")[0] == 200
        for path in ("/state", "/metrics", "/openapi.json"):
            assert anyone.ask(path)[0] == 401
        assert anyone.learn(sample(0))[0] == 401
        wrong = Client(address, context=context, scheme="https", token="a-token-of-some-lengtX")
        assert wrong.ask("/state")[0] == 401
        assert holder.learn(sample(0))[0] == 202
        assert holder.ask("/state")[0] == 200
        with pytest.raises((urllib.error.URLError, ConnectionError)):
            Client(address).ask("/healthz")


def test_beyond_loopback_without_a_token_is_an_error(tmp_path):
    with pytest.raises(ParameterError, match="must have a token"):
        rules_for(Address("0.0.0.0", 80), tmp_path / "token")
    (tmp_path / "token").write_text("short")
    with pytest.raises(ParameterError, match="at least 16 printable characters"):
        rules_for(Address("192.168.1.1", 80), tmp_path / "token")


def test_beyond_loopback_without_a_certificate_is_an_error(tmp_path):
    async def story():
        server = HttpServer(LOOPBACK, tmp_path)
        try:
            with pytest.raises(ParameterError, match="must have TLS"):
                await server.start(None)
        finally:
            await server.stop()

    asyncio.run(story())


def test_a_taken_port_is_an_error():
    async def story():
        server = HttpServer(LOOPBACK, None)
        await server.start(None)
        with pytest.raises(MeshError, match="cannot serve HTTP at"):
            await HttpServer(server.address, None).start(None)
        await server.stop()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.3.2.1", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("localhost.evil", False)],
)  # fmt: skip
def test_what_is_loopback(host, expected):
    assert Address(host, 1).is_loopback is expected


def test_predictions_are_answered_while_it_learns(tmp_path):
    """With thousands of samples waiting, an answer comes after a few of them."""
    with served(tmp_path, solo_config()) as (node, address):
        client = Client(address)
        client.learn(sample(0))
        client.wait_learned(1)
        client.learn([sample(k) for k in range(3000)])
        waiting = []
        while client.ask("/predict", {"x": [1, 0]})[0] == 200:
            waiting.append(node.backlog.n_waiting)
            if not waiting[-1]:
                break
        assert len([n for n in waiting if n]) >= 3
        client.wait_learned(3001)


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr(log.logger, "disabled", True)


@pytest.mark.parametrize("is_tls", [False, True])
def test_idle_connections_take_no_more_than_their_share(tmp_path, is_tls):
    """Else strangers could use up the descriptors that log and checkpoints need."""
    certificates.create_authority(tmp_path / "authority", "farm")
    certificates.issue(tmp_path / "authority", "solo", tmp_path / "solo")
    tls = tmp_path / "solo" if is_tls else None
    with served(tmp_path, solo_config(), tls=tls, limits=Limits(most=3)) as (_, address):
        held = [socket.create_connection(address) for _ in range(6)]
        for each in held:
            each.settimeout(30)
        assert [_is_closed(each) for each in held[:3]] == [True] * 3  # the newest stay
        for each in held:
            each.close()
        context = ssl._create_unverified_context() if is_tls else None
        client = Client(address, scheme="https" if is_tls else "http", context=context)
        assert wait_until(lambda: _answers(client))


def _is_closed(sock):
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def _answers(client):
    try:
        return client.ask("/healthz")[0] == 200
    except (urllib.error.URLError, ConnectionError, http.client.HTTPException):
        return False


def test_a_connection_that_asks_nothing_is_closed(tmp_path):
    limits = Limits(head=0.2)
    with served(tmp_path, solo_config(), is_started=False, limits=limits) as (_, address):
        with socket.create_connection(address, timeout=30) as silent:
            silent.sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
            assert _is_closed(silent)
        assert Client(address).ask("/healthz")[0] == 503
