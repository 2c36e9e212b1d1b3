"""A toy set and a loopback server for what finds, fetches and checks data."""

import gzip
import io
import random
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from domkl.data.catalog import DATASETS, DataSet, Edition, Origin

TABLE = b"a,b,y\n1,2,3\n4,5,6\n7,8,9\n1,1,1\n"
PADDING = random.Random(7).randbytes(300_000)  # so that a body takes several reads


def _archive():
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("toy.csv", TABLE)
        archive.writestr("padding.bin", PADDING)
    return made.getvalue()


class _Handler(BaseHTTPRequestHandler):
    """Serve one body; how well behaved, the server's attributes say."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        server.requests.append(dict(self.headers))
        self.close_connection = True
        if server.status != 200:
            self.send_response(server.status)
            if server.location:
                self.send_header("Location", server.location)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body, start = server.body, 0
        if server.knows_range and "Range" in self.headers:
            is_same = self.headers.get("If-Range") in (None, server.etag)
            start = int(self.headers["Range"].removeprefix("bytes=")[:-1]) if is_same else 0
        if start >= len(body):
            self.send_response(416)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if server.etag:
            self.send_header("ETag", server.etag)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        stop = server.stops.pop(0) if server.stops else None
        self.wfile.write(body[start:stop])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as made:
        made.body = _archive()
        made.requests, made.status, made.location = [], 200, None
        made.etag, made.knows_range = '"one"', True
        made.stops = []  # where each of the next bodies breaks off
        made.address = f"http://127.0.0.1:{made.server_port}/toy.zip"
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The user's cache, empty, and no folder named by the environment."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DOMKL_DATA", raising=False)
    return tmp_path / "cache" / "domkl" / "data"


@pytest.fixture
def toy(server, monkeypatch, cache):
    """A set of four rows under the name of weather, with its archive on the loopback server."""
    edition = Edition(
        name="uci", file="toy.csv", state="a toy", rows=4, columns=("a", "b", "y"),
        target_bounds=(0, 10), is_in_archive=True,
    )  # fmt: skip
    made = DataSet(
        name="weather", title="A toy", task="regression", target="y", n_inputs=2, paper_rows=4,
        origin=Origin("Toy", 1, "10.0/toy", server.address, "Nobody, Nothing (1900)"),
        usable="4", editions=(edition,), ranges={"a": (0, 10), "b": (0, 10), "y": (0, 10)},
    )  # fmt: skip
    monkeypatch.setitem(DATASETS, "weather", made)
    return made


@pytest.fixture
def packed():
    return gzip.compress(TABLE)
