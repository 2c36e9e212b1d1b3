"""A neighbor with a valid certificate that floods a node, or has it hold memory.

On 0.1 frames of up to 16 MiB were taken where the model's have 7 kB, and buffers of dead links
waited for the collector: one neighbor that reconnected 120 times took a node from 212 to 781 MiB.
1.4 million empty frames in 6 s delayed answers by 3 s. `make attack` prints the figures.
"""

import asyncio
import gc
import weakref

import numpy as np
import pytest
from mesh_nets import Node, SocketNet, ZenohNet, story, wait_for
from mesh_node import made, solo_config, solo_folder

from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.protocol.wire import MAX_NAME, Frame, Kind, encode
from domkl.mesh.transports import tls
from domkl.mesh.transports.base import BURST, MAX_FRAME, RATE
from domkl.mesh.transports.zenoh import OVERHEAD, Inbox, Session


@pytest.fixture
def net(tmp_path):
    return SocketNet(tmp_path)


async def pair(net):
    """Two neighbors that are connected; a dials."""
    a, b = await net.start("a", ["b"]), await net.start("b", ["a"])
    await wait_for(lambda: "b" in a.up and "a" in b.up)
    return a, b


def test_frames_are_limited_by_the_model():
    """0.1: 16 MiB, whatever the model."""
    protocol = Protocol("a", solo_config().model(), ("b",), incarnation=1)
    longest = protocol.max_frame
    n_offer = protocol.edges.offers.n_bytes
    frame = Frame(Kind.OFFER, bytes(16), "x" * MAX_NAME, 1, 1, payload=bytes(n_offer))
    assert len(encode(frame)) <= longest < 20_000 < MAX_FRAME


@story
async def test_a_longer_frame_ends_the_connection(net):
    a, b = await pair(net)
    b.transport.limit_frames(1000)
    assert a.send("b", bytes(1000))
    assert a.send("b", bytes(1001))
    await wait_for(lambda: b.refused)
    assert b.refused[0] == ("a", "frame of 1001 bytes, at most 1000 allowed")
    assert [len(frame) for frame in b.heard("a")] == [1000]


@story
async def test_empty_frames_are_taken_at_a_limited_rate(net):
    """0.1: all at once, as fast as they come."""
    a, b = await pair(net)
    n, begun = 5 * BURST, asyncio.get_running_loop().time()
    data = (0).to_bytes(tls.HEADER, "big") * n
    a.transport._connections["b"]._transport.write(data)
    await wait_for(lambda: len(b.frames) == n)  # none is lost
    assert asyncio.get_running_loop().time() - begun >= (n - BURST) / RATE * 0.9
    assert b.refused == []


@story
async def test_the_loop_is_never_held_up_by_a_flood(net):
    """Between two turns of the loop, no more frames are delivered than a burst."""
    a, b = await pair(net)
    a.transport._connections["b"]._transport.write(bytes(tls.HEADER * 10 * BURST))
    most = before = 0
    while len(b.frames) < 4 * BURST:
        await asyncio.sleep(0)
        most, before = max(most, len(b.frames) - before), len(b.frames)
    assert most <= BURST + 1


@story
async def test_a_dead_link_frees_its_buffers_without_the_collector(net):
    """0.1: buffers of up to 16 MiB stayed until the collector came."""
    a, b = await pair(net)
    gc.collect()
    gc.disable()
    try:
        buffers = []
        for _ in range(3):
            connection = b.transport._connections["a"]
            buffers.append(weakref.ref(connection._transport._ssl_protocol))
            n = len(b.peers)
            del connection
            m = len(a.peers)
            a.transport._connections["b"].abort("cut")
            # down, and up again, at both ends
            await wait_for(lambda n=n, m=m: len(b.peers) >= n + 2 and len(a.peers) >= m + 2)
        await wait_for(lambda: all(each() is None for each in buffers))
    finally:
        gc.enable()


def test_empty_frames_count_in_zenohs_inbox(tmp_path):
    """0.1: frames without content were never dropped, however many waited."""

    class Sample:
        payload = type("Payload", (), {"__len__": lambda _: 0, "to_bytes": lambda _: b""})()

    async def main():
        net = ZenohNet(tmp_path)
        transport = net.make("a", {}, None, net.certificates("a"))
        node = Node(transport)
        inbox = Inbox(asyncio.get_running_loop(), max_bytes=2**22)
        session = Session(transport, inbox)
        heard = session._on_sample("b")
        for _ in range(10 * BURST):
            heard(Sample)
        assert 0 < inbox._bytes <= 2 * BURST * OVERHEAD
        assert node.frames == []

    asyncio.run(main())


def test_a_node_sets_the_limit_before_it_listens(tmp_path):
    class Heard:
        limits = ()

        def limit_frames(self, n_bytes):
            self.limits = (n_bytes,)

        async def start(self, *callbacks):
            assert self.limits

        async def stop(self):
            pass

        def traffic(self):
            return {}

    async def main():
        node = made(solo_folder(tmp_path))
        node.transport = Heard()
        await node.start()
        assert node.transport.limits == (node.protocol.max_frame,)
        assert np.isfinite(node.predict(np.array([0.5, 0.5]))[0])
        await node.close()

    asyncio.run(main())
