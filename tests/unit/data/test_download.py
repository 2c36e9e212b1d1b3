"""Downloads over loopback: complete, continued, refused; tables in archives; what stays."""

import gzip
import io
import json
import socket
import tarfile
import zipfile

import pytest

import domkl
from domkl.data import download
from domkl.data.cache import cached, digest, fetch

TABLE = b"a,b,y\n1,2,3\n4,5,6\n7,8,9\n1,1,1\n"
INNER = {"./in/toy.csv": TABLE}


def left(cache):
    return sorted(path.name for path in cache.iterdir() if path.name != ".lock")


def make_zip(members):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


def make_tar_gz(members):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def test_a_set_is_fetched_whole(toy, cache, server):
    seen = []
    kept = fetch(toy, progress=lambda done, total: seen.append((done, total)))
    assert kept.path.read_bytes() == TABLE
    assert left(cache) == ["manifest.json", "toy.csv"]
    facts = json.loads((cache / "manifest.json").read_text())["files"]["toy.csv"]
    assert facts["sha256"] == digest(TABLE) == kept.sha256
    assert (facts["set"], facts["edition"], facts["size"]) == ("weather", "uci", len(TABLE))
    assert facts["origin"] == server.address
    assert facts["checked"][-1] == "sha256 recorded; the catalog has none"
    assert seen[0] == (0, len(server.body))
    assert seen[-1] == (len(server.body), len(server.body))
    made = domkl.load_set("weather", scale="none")
    assert made.y.tolist() == [3, 6, 9, 1]
    assert cached(toy) == kept


def ranges(server):
    return [request.get("Range") for request in server.requests]


def test_a_lost_connection_goes_on(toy, cache, server):
    server.stops = [100_000, 200_000]
    seen = []
    kept = fetch(toy, progress=lambda done, total: seen.append((done, total)))
    assert kept.path.read_bytes() == TABLE
    assert ranges(server) == [None, "bytes=100000-", "bytes=200000-"]
    assert server.requests[-1]["If-Range"] == '"one"'
    assert {total for _, total in seen} == {len(server.body)}
    assert left(cache) == ["manifest.json", "toy.csv"]


def test_a_connection_that_is_lost_too_often(toy, cache, server):
    server.stops = [1000, 2000, 3000, 4000, 5000]
    with pytest.raises(domkl.DataError, match=r"has \d+ bytes, got 5000; run it again"):
        fetch(toy)
    assert len(server.requests) == download.ATTEMPTS == 5
    assert left(cache) == []


def test_a_connection_that_brings_nothing_more(toy, server):
    server.stops = [1000, 1000, 1000]
    with pytest.raises(domkl.DataError, match="got 1000; run it again"):
        fetch(toy)
    assert len(server.requests) == 2


def test_an_interrupt_leaves_nothing_behind(toy, cache):
    def interrupt(done, total):
        if done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(toy, progress=interrupt)
    assert left(cache) == []
    assert fetch(toy).path.read_bytes() == TABLE


def test_another_file_by_now_is_taken_from_the_start(toy, server):
    def change(done, total):
        if done and server.etag == '"one"':
            server.etag = '"two"'
            server.body = make_zip({"toy.csv": TABLE.replace(b"1,1,1", b"2,2,2")})

    server.stops = [100_000]
    assert fetch(toy, progress=change).path.read_bytes().endswith(b"2,2,2\n")
    assert ranges(server) == [None, "bytes=100000-"]


def test_a_file_that_is_shorter_by_now(toy, server):
    def change(done, total):
        if done:
            server.body = make_zip({"toy.csv": TABLE})

    server.stops = [100_000]
    assert fetch(toy, progress=change).path.read_bytes() == TABLE  # 416, then from the start
    assert ranges(server) == [None, "bytes=100000-", None]


def test_a_server_that_ignores_ranges(toy, server):
    server.stops, server.knows_range = [100_000], False
    assert fetch(toy).path.read_bytes() == TABLE
    assert ranges(server) == [None, "bytes=100000-"]


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_a_validator_it_starts_again(toy, server, etag):
    server.stops, server.etag = [100_000], etag
    assert fetch(toy).path.read_bytes() == TABLE
    assert ranges(server) == [None, None]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (b"a,b,y\n1,2,3\n", "toy.csv of toy.zip must have 4 rows, got 1"),
        (TABLE.replace(b"9", b"99"), r"column 'y' must lie in \[0, 10\], got 99"),
        (TABLE.replace(b"y", b"z"), "has no column 'y'; it has a, b, z"),
        (TABLE.replace(b"5", b"inf"), "line 3, column 'b': must be finite, got 'inf'"),
        (TABLE.replace(b"5", b""), "line 3, column 'b' must be a finite number, got nan"),
        (TABLE.replace(b"5", b"five"), "line 3, column 'b': must be a number, got 'five'"),
        (b"<html>not here</html>", "must have rows, got none"),
        (b"\xff\xfe\0", "must be text in UTF-8"),
    ],
)
def test_wrong_content_leaves_nothing_behind(toy, cache, server, table, message):
    server.body = make_zip({"toy.csv": table})
    with pytest.raises(domkl.DataError, match=message.replace("4 rows", "(about )?4 rows")):
        fetch(toy)
    assert left(cache) == []


def test_a_failure_leaves_the_file_that_was_there(toy, cache, server):
    fetch(toy)
    before = (cache / "manifest.json").read_text()
    server.body = b"not an archive"
    with pytest.raises(domkl.DataError):
        fetch(toy, server.address)
    assert (cache / "toy.csv").read_bytes() == TABLE
    assert (cache / "manifest.json").read_text() == before


def test_answers_that_are_no_file(toy, cache, server):
    server.status = 404
    with pytest.raises(domkl.DataError, match=r"toy\.zip answered 404 Not Found; run it again"):
        fetch(toy)
    server.status, server.location = 302, "file:///etc/hostname"
    with pytest.raises(domkl.DataError, match="answered 302"):
        fetch(toy)
    assert left(cache) == []


def test_a_refused_connection(toy, cache):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(domkl.DataError, match=r"cannot download .*refused; run it again"):
        fetch(toy, f"http://127.0.0.1:{port}/toy.zip")
    assert left(cache) == []


def test_a_download_that_never_ends(toy, server, monkeypatch):
    monkeypatch.setattr(download, "MAX_DOWNLOAD", 1000)
    with pytest.raises(domkl.DataError, match="must have at most 1000 bytes, got 3"):
        fetch(toy)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("toy.csv", TABLE),
        ("toy.csv.gz", gzip.compress(TABLE)),
        ("other-name.csv", TABLE),
        ("a.zip", make_zip({"readme.txt": b"hello", "data/toy.csv": TABLE})),
        ("a.zip", make_zip({"toy.csv.gz": gzip.compress(TABLE)})),
        ("a.zip", make_zip({"a.gz": gzip.compress(b"x"), "b.tar.gz": make_tar_gz(INNER)})),
        ("a.tgz", make_tar_gz({"toy.csv": TABLE})),
    ],
    ids=["table", "gz", "other name", "zip", "gz in zip", "tar.gz in zip", "tgz"],
)
def test_a_file_that_is_there_already(toy, cache, tmp_path, name, raw):
    (tmp_path / name).write_bytes(raw)
    kept = fetch(toy, str(tmp_path / name))
    assert kept.path.read_bytes() == TABLE
    assert kept.origin == name
    assert left(cache) == ["manifest.json", "toy.csv"]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (make_zip({"toy.csv": TABLE})[:40], "a whole archive, got one that is cut off or damaged"),
        (gzip.compress(TABLE)[:-9], "a whole archive, got one that is cut off or damaged"),
        (make_zip({"../toy.csv": TABLE}), r"plain relative paths, got '\.\./toy\.csv'"),
        (make_zip({"/toy.csv": TABLE}), "plain relative paths, got '/toy.csv'"),
        (make_tar_gz({"../toy.csv": TABLE}), "plain relative paths"),
        (make_zip({"readme.txt": b"hello"}), "must have the file toy.csv in it, got none"),
        (make_zip({}), "must have the file toy.csv in it, got none"),
        (b"", "must have rows|has no column"),
    ],
    ids=["cut zip", "cut gz", "up", "absolute", "up in tar", "other file", "no file", "empty"],
)
def test_archives_that_cannot_be_used(toy, cache, tmp_path, raw, message):
    (tmp_path / "a.bin").write_bytes(raw)
    with pytest.raises(domkl.DataError, match=message):
        fetch(toy, str(tmp_path / "a.bin"))
    assert left(cache) == []


@pytest.mark.parametrize(
    "make",
    [make_zip, make_tar_gz, lambda members: gzip.compress(members["toy.csv"])],
    ids=["zip", "tar.gz", "gz"],
)
def test_a_file_that_unpacks_to_more_than_it_may(toy, tmp_path, monkeypatch, make):
    monkeypatch.setattr(download, "MAX_UNPACKED", 1 << 16)
    (tmp_path / "a.bin").write_bytes(make({"toy.csv": TABLE + b"1,1,1\n" * (1 << 16)}))
    with pytest.raises(domkl.DataError, match="must unpack to at most 65536 bytes"):
        fetch(toy, str(tmp_path / "a.bin"))


def test_archives_within_archives_have_an_end(toy, tmp_path):
    raw = make_zip({"toy.csv": TABLE})
    for _ in range(9):
        raw = make_zip({"a.zip": raw})
    (tmp_path / "a.zip").write_bytes(raw)
    with pytest.raises(domkl.DataError, match="so deep within archives"):
        fetch(toy, str(tmp_path / "a.zip"))


@pytest.mark.parametrize("source", ["ftp://example.org/a.zip", "file:///etc/hostname"])
def test_other_addresses_are_refused(toy, source):
    with pytest.raises(domkl.ParameterError, match=r"must be a file or an http\(s\) address"):
        fetch(toy, source)
