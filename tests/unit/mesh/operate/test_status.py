"""What nodes answer becomes a row each; who does not answer is down."""

import json
import ssl
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from domkl.mesh.config import certificates
from domkl.mesh.config.file import Member, MeshConfig
from domkl.mesh.config.settings import members_at
from domkl.mesh.operate.status import as_table, ask, ask_all, code_of, in_words, rows_of
from domkl.mesh.operate.verdict import verdict_of
from domkl.mesh.protocol.model import Range
from domkl.mesh.transports.base import Address

EDGE = {"is_open": True, "received_bytes": 1000, "sent_bytes": 2_500_000}
STATE = {
    "is_ready": True, "n_rounds": 12, "n_learned": 11, "mse": 0.0123456, "mse_alone": 0.02,
    "mse_last_value": None, "neighbor_gap": 1e-5, "strangers": {"not a neighbor": 2},
    "refused": [{"peer": "b", "reason": "old", "n": 3}],
    "neighbors": {"b": EDGE, "c": EDGE | {"is_open": False}}, "pid": 99, "n_queued": 3,
    "target": "y", "sample_age": 2.5, "expires": "2999-01-01T00:00:00+00:00",
    "recent": {"1": {"hour": {"n": 200, "rmse": 1.5, "rmse_alone": 2.0, "rmse_last_value": 3.0}}},
}  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *args):
        pass


@pytest.fixture
def node():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.asked, server.status, server.body = [], 200, json.dumps(STATE).encode()
        threading.Thread(target=server.serve_forever).start()
        yield server
        server.shutdown()


@pytest.fixture
def config(node):
    a, b = members_at("ab", ["127.0.0.1"])
    here = Address("127.0.0.1", node.server_port)
    there = Address("127.0.0.1", _closed_port())
    members = (Member("a", a.address, here), Member("b", b.address, there))
    return MeshConfig(members, (("a", "b"),), Range("y", 0.0, 1.0), lags=1)


def _closed_port():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        return server.server_port


def test_rows(node, config, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "token").write_text("secret\n")
    states = ask_all(config, tmp_path)
    assert node.asked == [("/state", "Bearer secret")]
    up, down = rows_of(config, states, {"a": 77, "b": None})
    assert up.pop("certificate_seconds") > 1e9
    assert up == {
        "learner": "a", "is_up": True, "pid": 77, "round": 12, "samples": 11, "mse": 0.0123456,
        "alone": 0.02, "last_value": None, "gap": 1e-5, "n_open": 1, "n_listed": 1,
        "received": 2000, "sent": 5_000_000, "refused": 5, "verdict": "worth it",
        "says": verdict_of(STATE).says, "exchanges": True, "learns": True, "is_worth_it": True,
        "unit": "y", "error": 1.5, "error_alone": 2.0, "error_last_value": 3.0, "sample_age": 2.5,
        "queued": 3,
    }  # fmt: skip
    up["certificate_seconds"] = 1e9
    assert down == dict.fromkeys(up) | {
        "learner": "b", "is_up": False, "n_listed": 1, "verdict": "down", "unit": "y",
        "says": "it does not answer",
    }  # fmt: skip
    lines = as_table([up, down]).splitlines()
    words = "a 77 worth it 11 1.5 2 3 2 s ago 3 1/1 2.0 kB 5.0 MB 5"
    assert lines[2].split()[:-2] == words.split()
    assert " ".join(lines[3].split()) == "b - down - - - - - - -/1 - - - -"
    assert in_words([up, down]).splitlines() == [
        "a: worth it; last hour: it errs by 1.5 y, the last value by 3, alone by 2:"
        " the network saves 25.0 %; 1 of 2 edges silent",
        "b: down; it does not answer",
        "1 of 2 are up, 1 exchange, 1 learn, for 1 the network is worth it",
    ]
    assert rows_of(config, states)[0]["pid"] == 99  # what it says itself


def test_the_exit_code_is_the_first_rung_that_is_missing(config):
    def code(**changes):
        return code_of(rows_of(config, {"a": STATE, "b": STATE | changes}))

    assert code() == 0
    assert code(is_ready=False) == 4
    assert code(neighbors={"a": EDGE | {"is_open": False}}) == 5
    assert code(sample_age=1e6) == 6
    worse = {"n": 200, "rmse": 3.5, "rmse_alone": 2.0, "rmse_last_value": 3.0}
    assert code(recent={"1": {"hour": worse}}) == 6
    costly = {"n": 200, "rmse": 2.5, "rmse_alone": 2.0, "rmse_last_value": 3.0}
    assert code(recent={"1": {"hour": costly}}) == 0  # it learns; the network is another matter
    assert code(sample_age=None, recent={}) == 0  # nobody has sent it a sample yet
    assert code_of(rows_of(config, {"a": STATE})) == 4


def test_beyond_loopback_only_the_learner_itself_is_believed(node, config, tmp_path):
    certificates.create_authority(tmp_path / "authority", "mesh")
    for name in "ab":
        certificates.issue(tmp_path / "authority", name, tmp_path / name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "a" / "node.pem", tmp_path / "a" / "node.key")
    node.socket = context.wrap_socket(node.socket, server_side=True)
    a, b = (
        replace(config.member(name), http=Address("0.0.0.0", node.server_port)) for name in "ab"
    )
    assert ask(a, tmp_path) == STATE
    assert ask(b, tmp_path) is None  # it is a's certificate
    assert len(node.asked) == 1


@pytest.mark.parametrize(("status", "body"), [(503, b"{}"), (200, b"no JSON"), (200, b"")])
def test_an_answer_that_is_none(node, config, tmp_path, status, body):
    node.status, node.body = status, body
    assert ask(config.member("a"), tmp_path) is None


def test_a_node_that_starts_is_not_up(config):
    row = rows_of(config, {"a": {"is_ready": False}})[0]
    assert not row["is_up"]
    assert "starting" in as_table([row])
