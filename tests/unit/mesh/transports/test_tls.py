"""What is particular to TLS: strangers, certificates, ports under attack."""

import asyncio
import contextlib
import datetime as dt
import ssl
from pathlib import Path

import pytest
from mesh_nets import LOCALHOST, SocketNet, free_port, story, wait_for

from domkl.errors import DataError, ParameterError
from domkl.mesh.config import certificates
from domkl.mesh.transports.base import Address
from domkl.mesh.transports.tls import GREETING, TlsTransport, context


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mesh")


@pytest.fixture
def net(folder):
    return SocketNet(folder)


async def connect(net, node, folder, *, hostname, authority=None):
    """A client that speaks TLS by itself; trusts anybody's name."""
    tls = context(ssl.PROTOCOL_TLS_CLIENT, folder)
    if authority is not None:
        tls.load_verify_locations(authority / "ca.pem")
    address = net.address(node.name)
    return await asyncio.open_connection(*address, ssl=tls, server_hostname=hostname)


async def is_closed(reader):
    with contextlib.suppress(OSError):
        await reader.read()
    return True


def rogue(tmp_path, name, **options):
    """A certificate of another authority."""
    certificates.create_authority(tmp_path / "rogue-ca", "test")
    certificates.issue(tmp_path / "rogue-ca", name, tmp_path / name, **options)
    return tmp_path / name


@story
async def test_another_authority_is_refused_by_the_listener(net, tmp_path):
    b = await net.start("b", ["a"])
    with pytest.raises(ssl.SSLError):
        await connect(net, b, rogue(tmp_path, "a"), hostname="b")
    await wait_for(lambda: b.refused)
    reader, writer = await connect(
        net, b, tmp_path / "a", hostname="b", authority=net.folder / "ca"
    )
    await is_closed(reader)
    writer.transport.abort()
    await wait_for(lambda: any("self-signed" in why or "issuer" in why for _, why in b.refused))
    assert b.up == set()


@story
async def test_another_authority_is_refused_by_the_dialer(net, tmp_path):
    a = await net.start("a", ["b"])
    b = TlsTransport("b", {}, net.address("b"), rogue(tmp_path, "b"))
    await b.start(lambda *_: None, lambda *_: None, lambda *_: None)
    await wait_for(lambda: a.refused)
    assert a.refused[0][0].startswith("b at 127.0.0.1:")
    assert "certificate refused" in a.refused[0][1]
    await b.stop()


@story
async def test_an_expired_certificate_is_refused_at_both_ends(net, tmp_path):
    past = dt.datetime.now(dt.UTC) - dt.timedelta(days=40)
    net.certificates("a")
    for name in ("old", "z"):
        certificates.issue(net.folder / "ca", name, tmp_path / name, days=30, now=past)
    a = await net.start("a", ["z"])
    b = await net.start("b", ["old"])
    old = TlsTransport("old", {"b": net.address("b")}, None, tmp_path / "old", dials=["b"])
    z = TlsTransport("z", {"a": net.address("a")}, net.address("z"), tmp_path / "z")
    for each in (old, z):
        await each.start(lambda *_: None, lambda *_: None, lambda *_: None)
    await wait_for(lambda: a.refused and b.refused)
    assert "expired" in a.refused[0][1]
    assert "expired" in b.refused[0][1]
    assert not a.up | b.up
    await asyncio.gather(old.stop(), z.stop())


@story
async def test_the_certificate_of_one_neighbor_at_the_address_of_another(net):
    a = await net.start("a", ["b", "c"])
    await net.start("c", ["a"])
    await wait_for(lambda: "c" in a.up)
    await net.start("b", ["a"], identity="c")
    await wait_for(lambda: a.refused)
    assert a.refused[0][0].startswith("b at ")
    assert a.up == {"c"}


@story
async def test_a_host_name_that_is_also_a_nodes_name_opens_no_door(net, tmp_path):
    net.certificates("a")
    certificates.issue(net.folder / "ca", "c", tmp_path / "c", hosts=["b"])
    a = await net.start("a", ["b"])
    c = TlsTransport("c", {"a": net.address("a")}, net.address("b"), tmp_path / "c", dials=[])
    await c.start(lambda *_: None, lambda *_: None, lambda *_: None)
    await wait_for(lambda: a.refused)
    assert a.refused[0] == ("c", "certificate is of c, dialed was b")
    await c.stop()


@pytest.mark.parametrize(
    "garbage", [b"", b"\x00" * 70_000, b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01"]
)
@story
async def test_garbage_on_the_port_is_refused_and_harms_nobody(net, garbage):
    a = await net.start("a", ["b"])
    b = await net.start("b", ["a"], handshake_seconds=0.5)
    await wait_for(lambda: a.up and b.up)
    b.refused.clear()  # a on a busy machine, which then tries again
    reader, writer = await asyncio.open_connection(*net.address("b"))
    writer.write(garbage)
    assert await is_closed(reader)
    writer.transport.abort()
    await wait_for(lambda: b.refused)
    assert b.refused[0][0] == LOCALHOST
    assert a.send("b", b"still here")
    await wait_for(lambda: b.frames)


@story
async def test_a_stranger_of_the_same_authority_is_refused_by_name(net):
    b = await net.start("b", ["a"])
    reader, writer = await connect(net, b, net.certificates("stranger"), hostname="b")
    writer.write(GREETING)
    assert await is_closed(reader)
    writer.transport.abort()
    assert b.refused == [("stranger", "not a neighbor")]


@pytest.mark.parametrize("words", [b"HELLO", b"domkl-mesh/2\n"])
@story
async def test_a_neighbor_that_greets_wrongly_is_refused(net, words):
    b = await net.start("b", ["a"])
    reader, writer = await connect(net, b, net.certificates("a"), hostname="b")
    writer.write(words)
    assert await is_closed(reader)
    writer.transport.abort()
    assert b.refused == [("a", "did not greet as a node of this version")]
    assert b.peers == []


@story
async def test_a_neighbor_that_never_greets_is_not_up(net):
    b = await net.start("b", ["a"], handshake_seconds=2.0)
    reader, writer = await connect(net, b, net.certificates("a"), hostname="b")
    assert await reader.readexactly(len(GREETING)) == GREETING
    assert await is_closed(reader)
    writer.transport.abort()
    await wait_for(lambda: b.refused)
    assert b.refused == [("a", "no handshake and greeting in time")]
    assert b.peers == []


@story
async def test_a_length_beyond_the_limit_allocates_nothing(net):
    b = await net.start("b", ["a"])
    reader, writer = await connect(net, b, net.certificates("a"), hostname="b")
    writer.write(GREETING + b"\xff\xff\xff\xff" + bytes(100))
    await wait_for(lambda: b.refused)
    assert b.refused == [("a", "frame of 4294967295 bytes, at most 16777216 allowed")]
    assert [is_up for _, is_up, _ in b.peers] == [True, False]
    assert await is_closed(reader)
    writer.transport.abort()


@story
async def test_a_frame_in_crumbs_arrives_whole(net):
    b = await net.start("b", ["a"])
    _, writer = await connect(net, b, net.certificates("a"), hostname="b")
    for byte in GREETING + b"\0\0\0\5hello" + b"\0\0\0\0" + b"\0\0\0\1!":
        writer.write(bytes([byte]))
        await asyncio.sleep(0)
    await wait_for(lambda: len(b.frames) == 3)
    assert [frame for _, frame in b.frames] == [b"hello", b"", b"!"]
    writer.transport.abort()


@story
async def test_a_flood_of_strangers_keeps_no_neighbor_out(net):
    b = await net.start("b", ["a"], max_strangers=4, handshake_seconds=50)
    idle = [await asyncio.open_connection(*net.address("b")) for _ in range(40)]
    await wait_for(lambda: len(b.refused) == 36)
    assert {why for _, why in b.refused} == {"pushed out by newer connections"}
    assert len(b.transport._strangers) == 4
    async with asyncio.timeout(10):
        for reader, _ in idle[:36]:
            assert await is_closed(reader)
    a = await net.start("a", ["b"])
    await wait_for(lambda: a.up and b.up)
    for _, writer in idle:
        writer.transport.abort()


@story
async def test_a_newer_connection_replaces_one_that_is_half_open(net):
    b = await net.start("b", ["a"])
    old_reader, old = await connect(net, b, net.certificates("a"), hostname="b")
    old.write(GREETING)
    await wait_for(lambda: b.up)
    a = await net.start("a", ["b"])
    await wait_for(lambda: a.up and len(b.peers) == 3)
    assert b.peers[1] == ("a", False, "replaced by a newer connection")
    assert await is_closed(old_reader)
    old.transport.abort()
    assert b.send("a", b"new")
    await wait_for(lambda: a.frames)


@pytest.mark.parametrize("size", [1000, 14_000, 100_000])
@story
async def test_what_waits_for_a_slow_neighbor_is_bounded(net, size):
    a = await net.start("a", ["b"])
    await net.start("b", ["a"])
    await wait_for(lambda: a.up)
    net.edge("a", "b").hold()
    drops = most = 0
    while drops < 100:
        for _ in range(100):
            drops += not a.send("b", bytes(size))
        most = max(most, waiting(a.transport._connections["b"]))
        await asyncio.sleep(0)
    assert a.up
    # the rule's room, and as much again in the socket's transport below TLS
    assert most < 2 * max(2**16, 2 * size) + 2 * size


def waiting(connection):
    """Bytes in TLS and below it."""
    tls = connection._transport
    return tls.get_write_buffer_size() + tls._ssl_protocol._transport.get_write_buffer_size()


@story
async def test_two_ends_that_both_dial_are_told(net):
    a = await net.start("a", ["b"])
    b = TlsTransport(
        "b", {"a": net.address("a")}, net.address("b"), net.certificates("b"), dials=["a"]
    )
    await b.start(lambda *_: None, lambda *_: None, lambda *_: None)
    await wait_for(lambda: a.refused)
    assert "only one end of an edge may dial" in a.refused[0][1]
    await b.stop()


@story
async def test_the_other_end_may_dial_and_then_need_not_listen(net):
    a = await net.start("a", ["b"], dials=[])
    b = TlsTransport("b", {"a": net.address("a")}, None, net.certificates("b"), dials=["a"])
    got = []
    await b.start(lambda *frame: got.append(frame), lambda *_: None, lambda *_: None)
    await wait_for(lambda: a.up)
    assert a.send("b", b"hello")
    await wait_for(lambda: got == [("a", b"hello")])
    with pytest.raises(RuntimeError, match="does not listen"):
        _ = b.address
    await b.stop()


@story
async def test_the_system_may_choose_the_port(net):
    a = TlsTransport("a", {}, Address("localhost", 0), net.certificates("a"))
    await a.start(lambda *_: None, lambda *_: None, lambda *_: None)
    assert a.address.port > 0
    with pytest.raises(OSError, match="in use"):
        await TlsTransport("b", {}, a.address, net.certificates("b")).start(print, print, print)
    await a.stop()


@story
async def test_new_certificates_serve_new_connections(net, tmp_path):
    """After a change of the authority the old one is believed no more."""
    authority = tmp_path / "ca"
    certificates.create_authority(authority, "test")
    for name in ("a", "b"):
        certificates.issue(authority, name, tmp_path / name)
    net.folder = tmp_path
    a = await net.start("a", ["b"])
    b = await net.start("b", ["a"])
    await wait_for(lambda: a.up and b.up)
    certificates.rotate_authority(authority)
    certificates.retire_authority(authority)
    certificates.issue(authority, "a", tmp_path / "a")
    a.transport.reload()
    assert a.send("b", b"the old connection lasts")
    await wait_for(lambda: b.frames)
    net.edge("a", "b").cut()
    net.edge("a", "b").heal()
    await wait_for(lambda: a.refused)
    assert not a.up
    certificates.issue(authority, "b", tmp_path / "b")
    b.transport.reload()
    await wait_for(lambda: a.up and b.up)


@story
async def test_bad_files_change_nothing(net, tmp_path):
    net.certificates("a")
    for name in ("a", "b"):
        certificates.issue(net.folder / "ca", name, tmp_path / name)
    transport = TlsTransport("a", {}, None, tmp_path / "a")
    before = transport._client_context
    (tmp_path / "a" / "node.key").write_text("nothing")
    with pytest.raises(DataError, match=r"ca.pem, node.pem and node.key"):
        transport.reload()
    (tmp_path / "a" / "node.key").unlink()
    with pytest.raises(DataError, match=r"node.key is missing"):
        transport.reload()
    assert transport._client_context is before
    with pytest.raises(DataError, match="must be of 'a', got 'b'"):
        TlsTransport("a", {}, None, tmp_path / "b")
    with pytest.raises(DataError, match="readable"):
        TlsTransport("a", {}, None, Path("nowhere"))
    with pytest.raises(ParameterError, match="max_frame"):
        TlsTransport("a", {}, None, tmp_path / "a", max_frame=2**32)


@story
async def test_a_neighbor_that_moves_is_dialed_at_its_new_address(net):
    a = await net.start("a", ["b"])
    await net.start("b", ["a"])
    await wait_for(lambda: a.up)
    elsewhere = Address(LOCALHOST, free_port())
    b = TlsTransport("b", {"a": net.address("a")}, elsewhere, net.certificates("b"))
    await b.start(lambda *_: None, lambda *_: None, lambda *_: None)
    await a.transport.set_neighbors({"b": elsewhere})
    assert a.peers[-1] == ("b", False, "moved")
    await wait_for(lambda: a.up)
    await b.stop()


@story
async def test_a_neighbor_that_is_not_there_is_dialed_without_haste(net):
    class Chance:
        drawn = 0

        def random(self):
            self.drawn += 1
            return 0.0 if self.drawn > 5 else 0.999

    chance = Chance()
    a = await net.start("a", ["b"], jitter=chance)
    await wait_for(lambda: chance.drawn >= 4)
    await net.start("b", ["a"])
    await wait_for(lambda: a.up)
    assert chance.drawn < 12
