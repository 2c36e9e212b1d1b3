"""What is particular to Zenoh: rights by certificate, traffic along the graph, routers."""

import asyncio
import contextlib
import datetime as dt
import threading

import pytest
import zenoh
from mesh_nets import LOCALHOST, Node, ZenohNet, free_port, story, wait_for

from domkl.errors import DataError, ParameterError
from domkl.mesh.config import certificates
from domkl.mesh.transports import zenoh_config
from domkl.mesh.transports.base import Address
from domkl.mesh.transports.zenoh import (
    Inbox,
    Outbox,
    ZenohTransport,
    open_router,
    open_zenoh,
    run_router,
)

LIMITS = {"wait_before_drop": 0.2, "max_frame": 10**6}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mesh")


@pytest.fixture
def net(folder):
    return ZenohNet(folder)


@contextlib.asynccontextmanager
async def raw(folder, *, dials, mode="peer"):
    """A session that keeps to no rules of its own."""
    config = zenoh_config.peer("x", [dials], [], None, folder, **LIMITS)
    config["access_control"] = {"enabled": False}
    session = await asyncio.to_thread(open_zenoh, config | {"mode": mode})
    try:
        yield session
    finally:
        await asyncio.to_thread(session.close)


def put(session, key, frame):
    session.put(key, frame, express=True, congestion_control=zenoh.CongestionControl.BLOCK)


def listen(session, key, log):
    session.declare_subscriber(
        key, lambda sample: log.append(bytes(sample.payload)), allowed_origin=zenoh.Locality.REMOTE
    )


@story
async def test_a_neighbor_may_publish_only_as_itself(net):
    b = await net.start("b", ["0", "a"])
    async with raw(net.certificates("0"), dials=net.address("b")) as session:
        own = []
        listen(session, "mesh/b/to/0", own)
        a = await net.start("a", ["b"])
        await wait_for(lambda: b.up == {"0", "a"} and a.up)
        stolen = []
        listen(session, "mesh/b/to/a", stolen)
        listen(session, "mesh/**", stolen)
        for key in ("mesh/a/to/b", "mesh/0/to/a", "mesh/b/to/a", "mesh/0/to/b"):
            await asyncio.to_thread(put, session, key, key.encode())
        assert b.send("a", b"for a only")
        await wait_for(lambda: b.frames and a.frames)
        assert b.frames == [("0", b"mesh/0/to/b")]
        assert a.frames == [("b", b"for a only")]
        assert b.send("0", b"its own")
        await wait_for(lambda: own == [b"its own"])
        assert set(stolen) <= {b"its own"}


@story
async def test_a_stranger_of_the_same_authority_hears_and_says_nothing(net):
    b = await net.start("b", ["a"])
    async with raw(net.certificates("stranger"), dials=net.address("b")) as session:
        heard = []
        listen(session, "mesh/b/to/a", heard)
        await wait_for(lambda: b.refused)
        assert b.refused[0] == ("stranger", "not a neighbor")
        await asyncio.to_thread(put, session, "mesh/a/to/b", b"as a")
        a = await net.start("a", ["b"])
        await wait_for(lambda: a.up and b.up)
        assert a.send("b", b"a")
        assert b.send("a", b"b")
        await wait_for(lambda: a.frames and b.frames)
        assert b.frames == [("a", b"a")]
        assert heard == []


@pytest.mark.parametrize("fault", ["another authority", "expired", "garbage"])
@story
async def test_who_fails_the_handshake_harms_nobody(net, tmp_path, fault):
    b = await net.start("b", ["0", "a"])
    if fault == "garbage":
        reader, writer = await asyncio.open_connection(*net.address("b"))
        writer.write(b"GET / HTTP/1.1\r\n\r\n" * 1000)
        with contextlib.suppress(OSError):
            await reader.read()
        writer.transport.abort()
    else:
        authority, past = net.folder / "ca", dt.datetime.now(dt.UTC)
        if fault == "expired":
            past -= dt.timedelta(days=40)
        else:
            authority = tmp_path / "ca"
            certificates.create_authority(authority, "test")
        certificates.issue(authority, "0", tmp_path / "0", days=30, now=past, hosts=[LOCALHOST])
        (tmp_path / "0" / "ca.pem").write_bytes((net.folder / "ca" / "ca.pem").read_bytes())
        bad = ZenohTransport("0", {"b": net.address("b")}, None, tmp_path / "0")
        net.nodes.append(Node(bad))
        await net.nodes[-1].start()
    a = await net.start("a", ["b"])
    await wait_for(lambda: a.up and b.up)
    assert a.send("b", b"hello")
    await wait_for(lambda: b.frames)
    assert b.up == {"a"}
    assert not net.nodes[1].up or net.nodes[1] is a


@story
async def test_links_follow_the_graph(net):
    path = {"a": ["b"], "b": ["a", "c"], "c": ["b", "d"], "d": ["c"]}
    nodes = [await net.start(name, neighbors) for name, neighbors in path.items()]
    await wait_for(lambda: all(node.up == set(path[node.name]) for node in nodes))
    for node in nodes:
        assert {name for name, n in node.transport._links.items() if n} == set(path[node.name])
        assert len(node.transport._session._zenoh.info.peers_zid()) == len(path[node.name])


@story
async def test_new_certificates_are_read_when_told(net, tmp_path):
    net.certificates("b")
    certificates.issue(net.folder / "ca", "a", tmp_path / "a", hosts=[LOCALHOST])
    b = await net.start("b", ["a"])
    transport = ZenohTransport("a", {"b": net.address("b")}, None, tmp_path / "a")
    a = Node(transport)
    net.nodes.append(await a.start())
    await wait_for(lambda: a.up and b.up)
    certificates.issue(net.folder / "ca", "a", tmp_path / "a", hosts=[LOCALHOST])
    await transport.reload()
    assert a.peers[1] == ("b", False, "certificates reloaded")
    await wait_for(lambda: a.up and b.up)
    certificates.issue(net.folder / "ca", "c", tmp_path / "a")
    with pytest.raises(DataError, match="must be of 'a'"):
        await transport.reload()
    assert a.up
    certificates.issue(net.folder / "ca", "a", tmp_path / "a", hosts=[LOCALHOST])
    certificates.issue(net.folder / "ca", "a", tmp_path / "half", hosts=[LOCALHOST])
    (tmp_path / "half" / "node.key").replace(tmp_path / "a" / "node.key")  # copied half-way
    with pytest.raises(DataError, match=r"ca.pem, node.pem and node.key"):
        await transport.reload()
    assert a.up


@story
async def test_a_busy_port_is_an_error_and_leaves_nothing(net):
    await net.start("b", ["a"])
    other = ZenohTransport("c", {}, net.address("b"), net.certificates("c"))
    with pytest.raises(zenoh.ZError):
        await other.start(print, print, print)
    await other.stop()
    with pytest.raises(ParameterError, match="wait_before_drop"):
        ZenohTransport("c", {}, None, net.certificates("c"), wait_before_drop=0)


@contextlib.asynccontextmanager
async def routed(net, address, *, name="router", members=("a", "b")):
    router = open_router(address, net.certificates(name), members)
    await asyncio.to_thread(router.__enter__)
    try:
        yield
    finally:
        await asyncio.to_thread(router.__exit__, None, None, None)


async def client(net, name, neighbors, router):
    where = dict.fromkeys(neighbors, Address("unreachable.invalid", 1))
    node = Node(ZenohTransport(name, where, None, net.certificates(name), router=router))
    net.nodes.append(node)
    return await node.start()


@story
async def test_nodes_meet_through_a_router_and_find_it_again(net):
    address = Address(LOCALHOST, free_port())
    async with routed(net, address):
        a = await client(net, "a", ["b"], address)
        b = await client(net, "b", ["a"], address)
        await wait_for(lambda: a.up and b.up)
        assert a.send("b", b"1")
        assert b.send("a", b"2")
        await wait_for(lambda: a.frames == [("b", b"2")] and b.frames == [("a", b"1")])
        await b.transport.stop()
        await wait_for(lambda: not a.up)
        b = await client(net, "b", ["a"], address)
        await wait_for(lambda: a.up and b.up)
    await wait_for(lambda: not a.up and not b.up)
    async with routed(net, address):
        await wait_for(lambda: a.up and b.up)
        assert a.send("b", b"3")
        await wait_for(lambda: b.frames == [("a", b"3")])


@story
async def test_nodes_may_start_before_their_router_and_stop_without_it(net):
    address, is_over = Address(LOCALHOST, free_port()), threading.Event()
    a = await client(net, "a", ["b"], address)
    b = await client(net, "b", ["a"], address)
    lonely = await client(net, "c", ["a"], Address(LOCALHOST, free_port()))
    await lonely.transport.stop()
    router = net.certificates("router")
    running = asyncio.create_task(asyncio.to_thread(run_router, address, router, "ab", is_over))
    await wait_for(lambda: a.up and b.up)
    is_over.set()
    await running


@story
async def test_a_client_of_a_router_may_publish_only_as_itself(net):
    address = Address(LOCALHOST, free_port())
    async with routed(net, address, members=("a", "b", "mallory")):
        b = await client(net, "b", ["a", "mallory"], address)
        async with raw(net.certificates("mallory"), dials=address, mode="client") as session:
            own, stolen = [], []
            listen(session, "mesh/b/to/mallory", own)
            listen(session, "mesh/b/to/a", stolen)
            listen(session, "mesh/**", stolen)
            await wait_for(lambda: "mallory" in b.up)
            await asyncio.to_thread(put, session, "mesh/a/to/b", b"as a")
            await asyncio.to_thread(put, session, "mesh/mallory/to/b", b"as itself")
            await wait_for(lambda: b.frames)
            a = await client(net, "a", ["b"], address)
            await wait_for(lambda: a.up and "a" in b.up)
            assert b.send("a", b"for a only")
            await wait_for(lambda: a.frames)
            assert b.send("mallory", b"its own")
            await wait_for(lambda: own == [b"its own"])
            assert b.frames == [("mallory", b"as itself")]
            assert set(stolen) <= {b"its own"}


@story
async def test_a_stranger_at_the_router_and_a_false_router_get_nothing(net):
    true, false = Address(LOCALHOST, free_port()), Address(LOCALHOST, free_port())
    async with routed(net, true), routed(net, false, name="mallory"):
        b = await client(net, "b", ["a", "c"], true)
        c = await client(net, "c", ["b"], true)  # no member
        lost = await client(net, "a", ["b"], false)
        a = await client(net, "a", ["b"], true)
        await wait_for(lambda: a.up and "a" in b.up)
        assert a.send("b", b"a")
        await wait_for(lambda: b.frames)
        assert b.up == {"a"}
        assert not c.up
        assert not lost.up


class Sink:
    def send(self, neighbor, frame):
        return True


@story
async def test_news_that_overtakes_frames_loses_none(net):
    """Zenoh tells of a link's end in another thread than that of its last frames."""
    node = Node(ZenohTransport("a", {"b": Address("nowhere", 1)}, None, net.certificates("a")))
    a = node.transport
    a._open(node._on_frame, node._on_peer, node._on_refused)
    a._session = Sink()
    a.framed("b", b"early")
    a.linked("b", True)
    a.framed("b", b"also early")
    a.asked("b", True)
    assert node.frames == [("b", b"also early")]  # the first may be of an older link
    a.linked("b", False)
    assert not node.send("b", b"to nobody")
    a.framed("b", b"late")
    assert node.heard("b")[-1] == b"late"
    a.linked("b", True)
    assert [is_up for _, is_up, _ in node.peers] == [True, False, True]
    assert node.send("b", b"again")
    a.asked("b", False)
    await wait_for(lambda: not node.up)
    a._session = None
    await a.stop()


def test_what_comes_from_threads_is_handled_in_the_loop_in_order_and_bounded():
    async def main():
        inbox = Inbox(asyncio.get_running_loop(), max_bytes=3)
        got = []

        def handle(name, value):
            got.append((threading.get_ident(), name, value))

        def speak():
            for number in range(5):
                inbox.put(handle, "frame", number, size=1)
            inbox.put(handle, "news", 5)

        await asyncio.to_thread(speak)
        await asyncio.sleep(0)
        here = threading.get_ident()
        # the loop may have run between two frames, then more than three got in
        values = [value for _, _, value in got]
        assert values == sorted(values)
        assert values[-1] == 5
        assert {ident for ident, _, _ in got} == {here}
        return inbox, handle, got

    inbox, handle, got = asyncio.run(main())
    inbox.put(handle, "after the loop", 6)
    assert got[-1][2] == 5


def test_frames_beyond_the_bound_are_dropped_while_the_loop_is_busy():
    async def main():
        inbox, got = Inbox(asyncio.get_running_loop(), max_bytes=3), []
        for number in range(5):
            inbox.put(lambda _, value: got.append(value), "frame", number, size=1)
        inbox.put(lambda _, value: got.append(value), "news", 5)
        await asyncio.sleep(0)
        inbox.put(lambda _, value: got.append(value), "frame", 6, size=3)
        await asyncio.sleep(0)
        inbox.put(lambda _, value: got.append(value), "frame", 7, size=1)
        inbox.close()
        await asyncio.sleep(0)
        return got

    assert asyncio.run(main()) == [0, 1, 2, 5, 6]


def test_a_call_that_blocks_fills_a_bounded_box_and_nobody_waits():
    gate, got = threading.Event(), []

    def call(frame):
        gate.wait(10)
        got.append(frame)

    box = Outbox(call, "test")
    taken = 0
    while box.put(bytes(10_000)):
        taken += 1
        assert taken < 20
    gate.set()
    box.close()
    assert not box.put(b"late")
    box.join(10)
    assert len(got) == taken


def test_a_call_that_fails_does_not_end_the_thread():
    got = []

    def call(frame):
        got.append(frame)
        raise OSError("closed")

    box = Outbox(call, "test")
    assert box.put(b"1")
    assert box.put(b"2")
    box.close()
    box.join(10)
    assert got == [b"1", b"2"]
