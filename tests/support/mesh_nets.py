"""Small networks for the tests of the transports: nodes that write down what happens to them."""

import asyncio
import contextlib
import functools
import itertools
import os
import socket
import ssl

from domkl.mesh.config import certificates
from domkl.mesh.transports.base import Address
from domkl.mesh.transports.memory import MemoryHub, MemoryTransport
from domkl.mesh.transports.tls import TlsTransport, context
from domkl.mesh.transports.zenoh import ZenohTransport

LOCALHOST = "127.0.0.1"
PORTS = itertools.count(18000 + os.getpid() * 53 % 14000)  # below those the system hands out


def free_port():
    while True:
        port = next(PORTS)
        with (
            contextlib.suppress(OSError),
            socket.create_server((LOCALHOST, 18000 + port % 14000)) as s,
        ):
            return s.getsockname()[1]


DEADLINE = 60  # seconds, on a machine that is busy with other things


async def wait_for(condition):
    """Poll until the condition holds; the deadline is for what never comes."""
    deadline = asyncio.get_running_loop().time() + DEADLINE
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "waited in vain"
        await asyncio.sleep(0.005)


def story(test):
    """Run a coroutine test in a loop of its own, then close its network."""

    @functools.wraps(test)
    def run(**fixtures):
        faults = []

        async def whole():
            asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
            try:
                async with asyncio.timeout(5 * DEADLINE):
                    await test(**fixtures)
            finally:
                await fixtures["net"].close()

        asyncio.run(whole())
        assert faults == []

    return run


class Node:
    """A transport and the log of its callbacks."""

    def __init__(self, transport):
        self.transport, self.name = transport, transport.name
        self.frames, self.peers, self.refused, self.up = [], [], [], set()
        self.is_sending = False

    async def start(self):
        await self.transport.start(self._on_frame, self._on_peer, self._on_refused)
        return self

    def send(self, neighbor, frame):
        self.is_sending = True
        try:
            return self.transport.send(neighbor, frame)
        finally:
            self.is_sending = False

    def heard(self, neighbor):
        return [frame for name, frame in self.frames if name == neighbor]

    def _on_frame(self, neighbor, frame):
        assert not self.is_sending
        assert neighbor in self.up
        self.frames.append((neighbor, frame))

    def _on_peer(self, neighbor, is_up, why):
        assert not self.is_sending
        assert is_up != (neighbor in self.up)
        (self.up.add if is_up else self.up.discard)(neighbor)
        self.peers.append((neighbor, is_up, why))

    def _on_refused(self, who, why):
        self.refused.append((who, why))


class Proxy:
    """Forwards TCP between a dialer and a listener, until told otherwise."""

    def __init__(self, target):
        self.port, self.target = free_port(), target
        self.may_pass = asyncio.Event()
        self.may_pass.set()
        self.is_cut = False
        self.writers, self.tasks = [], set()

    async def start(self):
        self.server = await asyncio.start_server(self._serve, LOCALHOST, self.port, limit=2**16)

    async def _serve(self, reader, writer):
        self.writers.append(writer)
        try:
            if self.is_cut:
                raise ConnectionError
            far_reader, far_writer = await asyncio.open_connection(*self.target, limit=2**16)
        except OSError:
            writer.transport.abort()
            return
        self.writers.append(far_writer)
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self.tasks.add(task)

    async def _pump(self, source, sink):
        with contextlib.suppress(OSError):
            while data := await source.read(2**16):
                await self.may_pass.wait()
                sink.write(data)
                await sink.drain()
        sink.close()

    def hold(self):
        self.may_pass.clear()

    def release(self):
        self.may_pass.set()

    def cut(self):
        self.is_cut = True
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()

    def heal(self):
        self.is_cut = False

    async def close(self):
        self.server.close()
        self.may_pass.set()
        self.cut()
        await asyncio.gather(*self.tasks, return_exceptions=True)


class Net:
    def has_tried(self, node, name):
        """Whether somebody with the certificate of a neighbor has been at the door of a node."""
        return node.refused or "replaced" in str(node.peers)


class MemoryNet(Net):
    """Nodes on a hub."""

    def __init__(self, folder):
        self.hub, self.nodes = MemoryHub(), []

    def node(self, name, neighbors, *, identity=None, **options):
        addresses = dict.fromkeys(neighbors, Address("nowhere", 1))
        transport = MemoryTransport(self.hub, name, addresses, identity=identity, **options)
        self.nodes.append(Node(transport))
        return self.nodes[-1]

    async def addresses(self, name, neighbors):
        return dict.fromkeys(neighbors, Address("nowhere", 1))

    async def start(self, name, neighbors, **options):
        return await self.node(name, neighbors, **options).start()

    def edge(self, a, b):
        return MemoryEdge(self.hub, a, b)

    async def close(self):
        for node in self.nodes:
            await node.transport.stop()


class MemoryEdge:
    def __init__(self, hub, a, b):
        self.hub, self.ends = hub, (a, b)

    def hold(self):
        self.hub.hold(*self.ends)

    def release(self):
        self.hub.release(*self.ends)

    def cut(self):
        self.hub.cut(*self.ends)

    def heal(self):
        self.hub.heal(*self.ends)


class SocketNet(Net):
    """Nodes on the loopback device; every edge passes through a proxy."""

    make = staticmethod(TlsTransport)

    def __init__(self, folder):
        self.folder, self.nodes, self.ports, self.proxies = folder, [], {}, {}

    def certificates(self, name):
        """The folder of a node, with a certificate of the mesh's authority."""
        if not (self.folder / "ca").exists():
            certificates.create_authority(self.folder / "ca", "test")
        if not (self.folder / name).exists():
            certificates.issue(self.folder / "ca", name, self.folder / name, hosts=[LOCALHOST])
        return self.folder / name

    def address(self, name):
        if name not in self.ports:
            self.ports[name] = free_port()
        return Address(LOCALHOST, self.ports[name])

    async def addresses(self, name, neighbors):
        """Where a node dials its neighbors: at the proxies."""
        for each in neighbors:
            edge = frozenset((name, each))
            if edge not in self.proxies:
                self.proxies[edge] = Proxy(self.address(max(edge)))
                await self.proxies[edge].start()
        return {
            each: Address(LOCALHOST, self.proxies[frozenset((name, each))].port)
            for each in neighbors
        }

    async def start(self, name, neighbors, *, identity=None, **options):
        addresses = await self.addresses(name, neighbors)
        node = Node(
            self.make(name, addresses, self.address(name), self.certificates(name), **options)
        )
        if identity is not None:
            self.disguise(node.transport, self.certificates(identity))
        self.nodes.append(node)
        return await node.start()

    def disguise(self, transport, folder):
        """Give a node a certificate that is not of its name, past its own check."""
        transport._server_context = context(ssl.PROTOCOL_TLS_SERVER, folder)
        transport._client_context = context(ssl.PROTOCOL_TLS_CLIENT, folder)

    def edge(self, a, b):
        return self.proxies[frozenset((a, b))]

    async def close(self):
        await asyncio.gather(*(node.transport.stop() for node in self.nodes))
        for proxy in self.proxies.values():
            await proxy.close()


class ZenohNet(SocketNet):
    """The same, with Zenoh."""

    make = staticmethod(ZenohTransport)

    def disguise(self, transport, folder):
        transport.certificates = folder

    def has_tried(self, node, name):
        return node.refused or node.transport._links[name] == 2


NETS = {"memory": MemoryNet, "tls": SocketNet, "zenoh": ZenohNet}
