"""Fuzzing by coverage: what strangers and damaged disks may hand to a node, mutated.

`TARGETS` says what is read and from which valid bytes to begin. A `Fuzzer` mutates them, keeps what
reaches lines that were not reached before, and collects what ends in anything but an error of
domkl, or breaks what must hold afterwards. Runs of one seed are equal.
"""

import copy
import gzip
import hashlib
import io
import json
import random
import shutil
import struct
import sys
import tarfile
import tempfile
import traceback
import zlib
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mesh_node import mesh_config, solo_config

import domkl
from domkl.data.nodes import read_nodes
from domkl.data.tables import load_table, read_ranges
from domkl.errors import DomklError
from domkl.mesh.config.file import as_text, read_config
from domkl.mesh.config.settings import Forecasting
from domkl.mesh.node.connections import unclear
from domkl.mesh.node.intake import Format, Inputs, loaded, parse
from domkl.mesh.operate import backup
from domkl.mesh.protocol.events import PeerUp, Received, Sample, Send, Tick
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.protocol.wire import HEADER, Frame, Kind, encode, encode_parts
from domkl.mesh.store import wal
from domkl.mesh.store.backlog import Backlog
from domkl.mesh.store.checkpoint import Checkpoints, Saved, going_on
from domkl.storage import Parts, pack, unpack

SOURCE = Path(domkl.__file__).parent
NUMBERS = (0, 1, 2, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**63, 2**64 - 1)
#: what JSON, TOML and tables have to do with
WORDS = (
    "null", "true", "NaN", "Infinity", "-1", "1e308", "1e400", "1e-400", "0x10", "1_0", "9" * 400,
    "[]", "{}", '""', '"\\ud800"', "\\u0000", "\x00", "\ufeff", "\u2028", "[" * 2000, '{"a":' * 500,
    ",", ":", "\n", "\r", "\t", ";", '"', "'", "=", "[[", "]]", "-0.0", "0.1.2", "2024-02-30",
    "2024-01-01T00:00:00Z", "25:61", "x" * 300, "é", "#", "\\", "inf", "nan", "99999-01-01",
)  # fmt: skip


class Target(NamedTuple):
    """Something that reads bytes."""

    seeds: tuple  # valid bytes
    read: object  # called with bytes; must raise nothing
    files: tuple  # of the package, whose lines count
    words: tuple = ()
    mended: object = lambda data, rng: data  # makes mutated bytes pass checksums, at times


class Finding(NamedTuple):
    """Bytes that should not end like this."""

    data: bytes
    error: str


class Fuzzer:
    """Runs one target; ``lines`` are those reached, ``findings`` one for each place of an error."""

    def __init__(self, target, seed=0):
        self.target, self.rng = target, random.Random(seed)
        self.n, self.lines, self.findings = 0, set(), {}
        self.corpus = list(target.seeds)
        for each in target.seeds:
            self._is_new(each)

    def run(self, n):
        for _ in range(n):
            self.step()
        return self

    def step(self):
        data = bytearray(self.rng.choice(self.corpus))
        for _ in range(self.rng.choice((1, 1, 2, 4, 8))):
            mutate(data, self.rng, self.corpus, self.target.words)
        made = self.target.mended(bytes(data), self.rng)
        if self._is_new(made):
            self.corpus.append(made)

    def _is_new(self, data):
        found = self._lines(data)
        is_new = not found <= self.lines
        self.lines |= found
        return is_new

    def _lines(self, data):
        found, self.n = set(), self.n + 1

        def line(frame, event, _):
            found.add((frame.f_code.co_filename, frame.f_lineno))
            return line

        before = sys.gettrace()
        sys.settrace(lambda frame, *_: line if frame.f_code.co_filename in self._files else None)
        try:
            self.target.read(data)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            key = type(error).__name__, place.filename, place.lineno
            text = "".join(traceback.format_exception(error))
            self.findings.setdefault(key, Finding(data, text))
        finally:
            sys.settrace(before)
        return found

    @cached_property
    def _files(self):
        return {str(SOURCE / name) for name in self.target.files}


def mutate(data, rng, corpus, words):
    """Change bytes in place."""
    place, n = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 4, 8, 16, 64))
    how = rng.randrange(9 if words else 7)
    if how == 0 and data:
        data[place % len(data)] ^= 1 << rng.randrange(8)
    elif how == 1:
        data[place : place + n] = rng.randbytes(n)
    elif how == 2:
        del data[place : place + n]
    elif how == 3:
        data[place:place] = data[place : place + n] * rng.choice((1, 2, 30))
    elif how == 4:
        size = rng.choice((1, 2, 4, 8))
        number = rng.choice(NUMBERS) % 2 ** (8 * size)
        data[place : place + size] = number.to_bytes(size, "little")
    elif how == 5:
        other = rng.choice(corpus)
        begin = rng.randrange(len(other) + 1)
        data[place : place + n] = other[begin : begin + rng.choice((n, 256))]
    elif how == 6:
        there = rng.randrange(len(data) + 1)
        data[place : place + n], data[there : there + n] = (
            data[there : there + n],
            data[place : place + n],
        )
    elif words:
        data[place : place + n * (how - 7)] = rng.choice(words).encode(errors="surrogatepass")


# frames between nodes


@cache
def _neighbors():
    """Protocol b, whose edge to a is open, and a's frames: all kinds, of this epoch."""
    algorithms = {"domkl": domkl.DOMKL(), "domkrls": domkl.DOMKRLS()}
    made = []
    for algorithm in algorithms.values():
        model = solo_config(algorithm=algorithm).model()
        a, b = (Protocol(x, model, [y], incarnation=1) for x, y in ("ab", "ba"))
        air, told = [("a", PeerUp("b")), ("b", PeerUp("a"))], []
        for k in range(1, 4):
            air += [(each, Sample(k, np.array([0.3, 0.1 * k]), 0.5)) for each in "ab"]
            while air:
                name, happened = air.pop(0)
                for effect in {"a": a, "b": b}[name].handle(happened, float(k)):
                    if isinstance(effect, Send):
                        air.append((effect.peer, Received(name, effect.data)))
                        told += [effect.data] if name == "a" else []
        edge = a.edges.by_peer["b"]
        epoch = edge.own_number, edge.peer_number
        head = model.fingerprint, "a", *epoch
        told += [encode(Frame(kind, *head, 4)) for kind in (Kind.ASK, Kind.ALIVE, Kind.BYE)]
        told.append(encode(Frame(Kind.REFUSE, *head, payload=b"because")))
        told.append(encode(Frame(Kind.HELLO, *head, payload=encode_parts(model.parts))))
        told.append(encode(Frame(Kind.HELLO, bytes(16), "a", *epoch, payload=b'{"rho": "3"}')))
        offer = a.edges.offers.repack(edge.newest)
        told += [encode(Frame(Kind.OFFER, *head, n, 2, offer)) for n in (3, 4, 5)]
        made.append((b, told))
    return made


def read_frame(data):
    """A learner that hears any bytes goes on, with a finite state."""
    for protocol, _ in _neighbors():
        heard = copy.deepcopy(protocol)
        heard.handle(Received("a", data), 4.0)
        heard.handle(Sample(heard.learned + heard.n_queued + 1, np.array([0.2, 0.7]), 0.4), 4.1)
        heard.handle(Tick(), 9.0)
        for name, values in heard.snapshot().arrays.items():
            assert values.dtype.kind != "f" or np.isfinite(values).all(), name


def mended_frame(data, rng):
    """At times, the lengths of a frame as they are."""
    if len(data) < HEADER.size or rng.random() < 0.3:
        return data
    *head, n_name, _ = HEADER.unpack_from(data)
    start = HEADER.size + n_name + (-(HEADER.size + n_name) % 8)
    return HEADER.pack(*head, n_name, max(len(data) - start, 0)) + data[HEADER.size :]


# what a node has on its disk


@cache
def _folder():
    place = Path("/dev/shm")
    made = tempfile.TemporaryDirectory(dir=place if place.is_dir() else None, prefix="domkl-fuzz-")
    return made, Path(made.name)


def _fresh():
    folder = _folder()[1] / "data"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def a_log():
    entries = [wal.Entry(np.array([k, -k], float), f"id-{k}") for k in range(1, 5)]
    rows = [wal.Entry(np.array([k, np.nan]), f"f.csv:{k}", True) for k in range(2)]
    frames = [wal._frame(7, k, [entry]) for k, entry in enumerate(entries, 1)]
    return wal._head(7, 2, 1) + b"".join(frames) + wal._frame(7, 5, rows)


def read_log(data):
    """A node starts from any log, if a loss is accepted; what it has then is sound."""
    folder = _fresh()
    (folder / "journal").mkdir()
    (folder / "journal" / "0000000000000001.log").write_bytes(data)
    mark = wal.Mark(folder / "acknowledged")
    mark.begin(6)
    mark.close()
    with suppress(DomklError):
        Backlog(folder, 2).log.close()
    try:
        backlog = Backlog(folder, 2, accept_loss=True)
    except DomklError as error:
        if "mesh.toml says 2" not in str(error):
            raise AssertionError("did not start") from error
        return
    numbers = [number for number, _ in backlog.log.after(backlog.position)]
    first = backlog.log.append([wal.Entry(np.zeros(2))])
    backlog.log.close()
    assert numbers == list(range(backlog.position + 1, first))


def mended_log(data, rng):
    """At times, with checksums that are right."""
    if len(data) < wal._HEAD.size or rng.random() < 0.3:
        return data
    _, _, salt, width, first = wal._HEAD.unpack_from(data)
    head, *frames = data[wal._HEAD.size :].split(wal.MARK)
    made = [wal._head(salt, 2 if rng.random() < 0.9 else width, first), head]
    for each in frames:
        if len(each) >= 20:
            tail, body = each[8:20], each[20:]
            checksum = zlib.crc32(tail + body, salt)
            made.append(wal.MARK + struct.pack("<II", checksum, len(body)) + tail + body)
        else:
            made.append(wal.MARK + each)
    return b"".join(made)


@cache
def _model():
    return solo_config().model()


@cache
def a_checkpoint():
    protocol = Protocol("a", _model(), [], incarnation=1)
    for k in range(1, 4):
        protocol.handle(Sample(k, np.array([0.3, 0.1 * k]), 0.5), float(k))
    saved = Saved(3, protocol.snapshot(), np.empty(0), {"f.csv": 2}, {"accepted": 3})
    folder = _fresh()
    Checkpoints(folder).save(saved)
    return (folder / "checkpoint-a.npz").read_bytes()


def read_checkpoint(data):
    """A checkpoint is damaged, or refused, or one from which a learner predicts and goes on."""
    folder = _fresh()
    (folder / "checkpoint-a.npz").write_bytes(data)
    found = Checkpoints(folder).load()
    if found is None:
        return
    with suppress(DomklError):
        with going_on():  # as a node does
            protocol = Protocol("a", _model(), [], incarnation=2, snapshot=found.state)
        protocol.handle(Sample(protocol.learned + 1, np.array([0.2, 0.7]), 0.4), 1.0)
        protocol.look(np.array([0.2, 0.7]))
        Checkpoints(folder).save(Saved(1, protocol.snapshot()))


def mended_checkpoint(data, rng):
    """At times, a whole archive whose header or arrays are changed."""
    if rng.random() < 0.2:
        return data
    try:
        parts = unpack("checkpoint", data)
    except DomklError:
        parts = unpack("checkpoint", a_checkpoint())
    header, arrays = copy.deepcopy(parts.header), dict(parts.arrays)
    for _ in range(rng.choice((1, 2, 3))):
        if rng.random() < 0.5 or not arrays:
            mutate_json(header, rng)
        else:
            name = rng.choice(sorted(arrays))
            with suppress(Exception):  # NumPy's own, of types that do not go together
                arrays[name] = other_array(arrays[name], rng)
    with suppress(Exception):  # it cannot be packed, so nobody can have packed it
        return pack("checkpoint", Parts(header, arrays))
    return data


def mutate_json(table, rng):
    """Change a value somewhere in a table."""
    key = rng.choice(sorted(table)) if table else "x"
    value = table.get(key)
    if isinstance(value, dict) and value and rng.random() < 0.8:
        mutate_json(value, rng)
    elif rng.random() < 0.2:
        table.pop(key, None)
    else:
        table[key] = rng.choice((None, -1, 0, 2**62, 2**70, 1.5, "x", [], {}, [[]], True, 1e300))


def other_array(values, rng):
    """Another shape, type or content."""
    how = rng.randrange(5)
    if how == 0:
        return values.reshape(-1)[: rng.randrange(values.size + 1)]
    if how == 1:
        return values.astype(rng.choice(("i1", "f4", "U3", "c16", "?", "M8[s]")))
    if how == 2:
        return np.stack([values, values])
    if how == 3:
        return np.full_like(values, rng.choice((0, 1, -1)))
    return values * rng.choice((-1, 1e10, 1e150)) if values.dtype.kind == "f" else values + 1


# what people and programs write


def read_mesh_file(data):
    """A mesh file is refused in one line, or what is written of it reads back the same."""
    path = _folder()[1] / "mesh.toml"
    path.write_bytes(data)
    try:
        config = read_config(path)
    except DomklError as error:
        if not str(error).isprintable():
            raise AssertionError("more than a line") from error
        return
    path.write_text(as_text(config))
    assert read_config(path) == config


def mesh_files():
    configs = (
        mesh_config(("a", "b"), (("a", "b"),)),
        solo_config(lags=3),
        solo_config(algorithm=domkl.DOMKRLS(), forecast=Forecasting(step="1h", horizons=(1, 6))),
    )
    return tuple(as_text(each).encode() for each in configs)


@cache
def formats():
    ahead = Forecasting(step="1h", horizons=(1, 6), lags=(1, 2), ahead=("b",))
    configs = (solo_config(), solo_config(lags=3), solo_config(forecast=ahead))
    return [Format(each.models()[0], each.lags, each.forecast, each.inputs) for each in configs]


def read_body(data):
    """Samples and inputs are refused, or are on disk as they are given."""
    for each in formats():
        with suppress(DomklError):
            for said in parse(data):
                entry = each.sample(said).entry
                again = wal._entries(wal._frame(7, 1, [entry])[24:], 1, len(entry.values))
                assert np.array_equal(again[0].values, entry.values, equal_nan=True)
                assert again[0].id == entry.id
        with suppress(DomklError):
            inputs = Inputs.read(loaded("body", data))
            if each.forecasting is not None:
                each.future(inputs.future, 5)
            if inputs.x is not None:
                assert np.isfinite(each.inputs(inputs.x)[0]).all()


BODIES = (
    b'{"x": [1.0, 0.5], "y": 20.0, "id": "s-1"}',
    b'[{"a": 1, "b": 0.5, "load": 20}, {"x": {"a": 2, "b": 0}, "y": 1e1}]',
    b'{"value": 5.0}', b'[{"y": 1}, 3.5]', b'{"x": [1, 2]}',
    b'{"time": "2024-01-01T00:00:00Z", "a": 1, "b": null, "load": 3}',
    b'{"future": [{"time": 1704067200, "x": {"b": 0.25}}]}',
)  # fmt: skip


def read_table_file(data):
    """A table is refused, or all that is read of it is a finite number."""
    path = _folder()[1] / "table.csv"
    path.write_bytes(data)
    with suppress(DomklError):
        table = load_table(path, "load", missing="drop")
        assert np.isfinite(table.X).all()
        assert np.isfinite(table.y).all()
    with suppress(DomklError):
        read_ranges(path)
    with suppress(DomklError):
        read_nodes(path, target="load")


TABLES = (
    b"a,b,load\n1,2,3\n4,5.5,-6e1\n,8,9\n1,2,3\n",
    b'when;"a";load\n2024-01-01 00:00;1,5;2\n2024-01-01 01:00;1,7;3\n2024-01-01 02:00;2;4\n',
    b"\xef\xbb\xbfwhen\tload\tkind\r\n01/02/2024 10:00\t1 000\tx\r\n01/02/2024 11:00\t2 000\ty\r\n",
    gzip.compress(b"a,load\n1,2\n3,4\n", mtime=0),
    "a,load\n1,\u22122\n".encode("utf-16"),
)


def an_archive(name="mesh.toml", data=b"x"):
    head = {"format": backup.FORMAT, "version": 1, "domkl": "0", "made": "now", "has_keys": False,
            "learners": {"a": 3}, "files": {name: hashlib.sha256(data).hexdigest()}}  # fmt: skip
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for inner, content in ((name, data), (backup.MANIFEST, json.dumps(head).encode())):
            member = tarfile.TarInfo(inner)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def read_archive(data):
    """An archive is refused, or restores what it may into the folder and nothing beside it."""
    folder = _fresh()
    (folder / "a.tar.gz").write_bytes(gzip.compress(data, 1, mtime=0))
    with suppress(DomklError):
        backup.restore(folder / "a.tar.gz", folder / "new")
    found = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    inside = [path.relative_to("new").as_posix() for path in found if path.parts[0] == "new"]
    assert len(found) == len(inside) + 1
    assert all(backup._NAME.fullmatch(name) for name in inside)


def mended_archive(data, rng):
    """At times, with checksums of the headers that are right."""
    made = bytearray(data)
    for begin in range(0, len(made) - 511, 512):
        if made[begin + 257 : begin + 262] == b"ustar" and rng.random() < 0.9:
            made[begin + 148 : begin + 156] = b" " * 8
            total = sum(made[begin : begin + 512])
            made[begin + 148 : begin + 156] = b"%06o\0 " % total
    return bytes(made)


def read_head(data):
    """The head of a request is looked at without an error."""
    assert unclear(data) is None or unclear(data).isprintable()


HEADS = (
    b"POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
)


def targets():
    """What is fuzzed, by name."""
    frames = tuple(dict.fromkeys(each for _, told in _neighbors() for each in told))
    edges = ("mesh/protocol/edges.py", "mesh/protocol/wire.py", "mesh/protocol/families.py")
    disk = ("mesh/store/wal.py", "mesh/store/recovery.py", "mesh/store/backlog.py")
    saved = ("mesh/store/checkpoint.py", "storage.py", "learner/restore.py",
             "mesh/protocol/protocol.py", "learner/local.py")  # fmt: skip
    toml = ("mesh/config/file.py", "mesh/config/settings.py", "text.py")
    cells = ("data/tables.py", "data/cells.py", "data/nodes.py", "data/clock.py", "text.py")
    return {
        "frames": Target(frames, read_frame, edges, (), mended_frame),
        "log": Target((a_log(),), read_log, disk, (), mended_log),
        "checkpoint": Target((a_checkpoint(),), read_checkpoint, saved, (), mended_checkpoint),
        "mesh.toml": Target(mesh_files(), read_mesh_file, toml, WORDS),
        "JSON": Target(BODIES, read_body, ("mesh/node/intake.py", "text.py"), WORDS),
        "tables": Target(TABLES, read_table_file, cells, WORDS),
        "archive": Target(
            (an_archive(),), read_archive, ("mesh/operate/backup.py",), (), mended_archive
        ),
        "HTTP": Target(HEADS, read_head, ("mesh/node/connections.py",), ("\r\n", "\n ", ": ")),
    }
