"""Mutual TLS over asyncio: one connection per edge, each end checked by name before any data.

Of two neighbors the one whose name sorts first dials, unless `dials` says otherwise. Strangers
cost a few sockets for a few seconds: at most `max_strangers` connections are in their handshake,
and a newer one pushes out the oldest, so that idle strangers cannot keep a neighbor out.

The rules of this file
----------------------
- The peer's certificate is judged before a byte is written or read.
- A connection is open when the peer's greeting has arrived, not before: in TLS 1.3 a client's
  handshake succeeds even if the server is about to refuse its certificate.
- After the greeting come frames, each with its length before it. A length is checked before memory
  is allocated for the frame.
- Nobody waits for a connection to drain: frames that do not fit in the buffer are dropped whole.
- A neighbor that sends faster than its allowance is not read from for a while; nothing is dropped.
- A connection that has ended refers to no buffer and no transport: they are freed at once.
"""

import asyncio
import contextlib
import logging
import random
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from domkl.errors import DataError, ParameterError
from domkl.mesh.config.certificates import check_certificate
from domkl.mesh.transports.base import (
    MAX_FRAME,
    NOT_A_NEIGHBOR,
    Address,
    Allowance,
    Endpoint,
    Joined,
    Transport,
    bind,
    is_full,
)

logger = logging.getLogger(__name__)

BACK_OFF = (0.05, 1.0)  # seconds before dialing again: at first, at most
FLUSH_SECONDS = 1.0  # to send what waits, when the node stops
SILENCE_MS = 3000  # a connection whose bytes are not acknowledged for so long is closed
GREETING = b"domkl-mesh/1\n"
HEADER = 4  # bytes of a frame's length, big-endian
PAUSE = 0.05  # seconds in which nothing is read from a neighbor that sends too fast

Connect = Callable[..., Awaitable[Any]]  # of the event loop: makes a connection


class TlsConnection(asyncio.Protocol):
    """Frames over one TLS connection, at either end.

    Parameters
    ----------
    transport : TlsTransport
        Its methods are called when something happens.
    expected : str or None
        The name that was dialed; None at the listening end.
    """

    def __init__(self, transport: "TlsTransport", expected: str | None = None) -> None:
        self._tls, self.expected = transport, expected
        self.name = self.why = ""
        self.is_open = False
        self.settled, self.ended = asyncio.Event(), asyncio.Event()  # settled: opened, or ended
        self._buffer = bytearray()
        self._transport: Joined | None = None
        self._allowance = Allowance()
        self._pause: asyncio.TimerHandle | None = None

    def send(self, frame: bytes) -> bool:
        """Write a frame; False if it does not fit in the buffer."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return False
        if is_full(transport.get_write_buffer_size(), frame):
            return False
        transport.write(len(frame).to_bytes(HEADER, "big") + frame)
        return True

    def close(self) -> None:
        """Send what waits, then close; this does not wait for the peer."""
        if self._transport is not None:
            self._transport.close()

    def abort(self, why: str) -> None:
        """Close at once."""
        self.why = self.why or why
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the peer, or close the connection if the peer is refused."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = Joined(transport)
        _set_options(transport.get_extra_info("socket"))
        self.name = _common_name(transport.get_extra_info("peercert"))
        why = self._tls.judge(self)
        if why is None:
            self._transport.write(GREETING)
        else:
            self._refuse(why)

    def data_received(self, data: bytes) -> None:
        """Take in the greeting, then frames."""
        if not self.why:
            self._buffer += data
            if self.is_open or self._is_greeted():
                self._take_frames()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the transport, once."""
        self.why = self.why or (f"connection lost: {exc}" if exc else "closed by the peer")
        was_open, self.is_open = self.is_open, False
        self._transport, self._buffer = None, bytearray()
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        self.settled.set()
        self.ended.set()
        if was_open:
            self._tls.lost(self, self.why)

    def _is_greeted(self) -> bool:
        """Whether the greeting has just arrived."""
        begin = bytes(self._buffer[: len(GREETING)])
        if not GREETING.startswith(begin):
            self._refuse("did not greet as a node of this version")
        if begin != GREETING:
            return False
        del self._buffer[: len(GREETING)]
        self.is_open = True
        self.settled.set()
        self._tls.opened(self)
        return True

    def _take_frames(self) -> None:
        """Deliver whole frames, as many as are allowed now; the rest stays in the buffer."""
        start, now = 0, asyncio.get_running_loop().time()
        while len(self._buffer) - start >= HEADER and not self.why and self._pause is None:
            length = int.from_bytes(self._buffer[start : start + HEADER], "big")
            stop = start + HEADER + length
            if length > self._tls.max_frame:
                self._refuse(self._tls._too_long(length))
            elif stop > len(self._buffer):
                break
            elif not self._allowance.take(now):
                self._hold()
            else:
                with memoryview(self._buffer) as view:
                    frame = bytes(view[start + HEADER : stop])
                start = stop
                self._tls.framed(self, frame)
        del self._buffer[:start]

    def _hold(self) -> None:
        """Read nothing for a while; then go on with what is in the buffer."""
        if self._transport is not None:
            self._transport.pause_reading()
            self._pause = asyncio.get_running_loop().call_later(PAUSE, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        self._take_frames()
        if self._pause is None and self._transport is not None:
            self._transport.resume_reading()

    def _refuse(self, why: str) -> None:
        self.abort(why)
        self._tls._refuse(self.name or "a certificate without a name", why)


class TlsTransport(Transport):
    """A node with a TLS 1.3 connection to each neighbor.

    Parameters
    ----------
    name, neighbors, max_frame, dials
        As in `Transport`.
    listen : Address or None
        Where to listen; None for a node that dials all its neighbors.
    certificates : Path
        Folder with `ca.pem`, `node.pem` and `node.key`.
    jitter : random.Random, optional
        Shortens waits before dialing by up to half, so that many nodes do not dial in step.
    handshake_seconds : float, default=5
        How long a connection may take until both ends have greeted.
    max_strangers : int, default=16
        Connections that may be in their handshake at once.
    """

    def __init__(
        self,
        name: str,
        neighbors: Mapping[str, Address],
        listen: Address | None,
        certificates: Path,
        *,
        dials: Collection[str] | None = None,
        max_frame: int = MAX_FRAME,
        jitter: random.Random | None = None,
        handshake_seconds: float = 5.0,
        max_strangers: int = 16,
    ) -> None:
        super().__init__(name, neighbors, max_frame=max_frame, dials=dials)
        if max_frame >= 2**32:
            raise ParameterError(f"max_frame must be < 2**32 bytes, got {max_frame}")
        self.certificates = certificates
        self.handshake_seconds, self.max_strangers = handshake_seconds, max_strangers
        self._listen, self._jitter = listen, jitter
        self._connections: dict[str, TlsConnection] = {}
        self._dialers: dict[str, asyncio.Task[None]] = {}
        self._strangers: dict[asyncio.Task[None], str] = {}  # oldest first
        self._listener: socket.socket | None = None
        self._acceptor: asyncio.Task[None] | None = None
        self.reload()

    @classmethod
    def at(cls, endpoint: Endpoint) -> "TlsTransport":
        """The transport of a node, as the registry makes it."""
        return cls(*endpoint[:4])

    @property
    def address(self) -> Address:
        """Where this node listens, with the port that the system chose."""
        if self._listener is None:
            raise RuntimeError(f"{self.name} does not listen; start it first")
        return Address(*self._listener.getsockname()[:2])

    def reload(self) -> None:
        """Read the certificates again, for new connections; on an error the old ones are kept."""
        check_certificate(self.certificates, self.name)
        contexts = [
            context(kind, self.certificates)
            for kind in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT)
        ]
        contexts[0].num_tickets = 0  # every connection is a full handshake
        self._server_context, self._client_context = contexts

    async def _begin(self) -> None:
        """Listen, and dial the neighbors."""
        if self._listen is not None:
            self._listener = await bind(self._listen)
            self._acceptor = asyncio.create_task(self._accept(self._listener))
        self._dial_all()

    async def set_neighbors(self, neighbors: Mapping[str, Address]) -> None:
        """Replace the list of neighbors; a neighbor with a new address is dialed there."""
        old = self.neighbors
        self._list(neighbors)
        for name in old:
            moved = self.neighbors.get(name) != old[name]
            if moved and name in self._dialers:
                self._dialers.pop(name).cancel()
            if name not in self.neighbors or (moved and self._is_dialed(name)):
                self._drop(name, "moved" if name in self.neighbors else "no longer a neighbor")
        if self._is_open:
            self._dial_all()

    async def stop(self) -> None:
        """Close everything; what waits is flushed for at most a second."""
        self._close()
        connections = list(self._connections.values())
        self._connections.clear()
        acceptor = [] if self._acceptor is None else [self._acceptor]
        tasks = [*self._dialers.values(), *self._strangers, *acceptor]
        for task in tasks:
            task.cancel()
        for connection in connections:
            connection.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                for connection in connections:
                    await connection.ended.wait()
        for connection in connections:
            connection.abort("stopped")
        await asyncio.gather(*tasks, return_exceptions=True)
        self._dialers.clear()
        if self._listener is not None:
            self._listener.close()
            self._listener = self._acceptor = None

    def _transmit(self, neighbor: str, frame: bytes) -> bool:
        return self._connections[neighbor].send(frame)

    # Called by the connections

    def judge(self, connection: TlsConnection) -> str | None:
        """Why the peer of a connection is refused, by the name in its certificate, or None."""
        name = connection.name
        if connection.expected is not None and name != connection.expected:
            return f"certificate is of {name or 'nobody'}, dialed was {connection.expected}"
        if name not in self.neighbors:
            return NOT_A_NEIGHBOR
        if connection.expected is None and self._is_dialed(name):
            return f"dials {self.name}, which dials it; only one end of an edge may dial"
        return None

    def opened(self, connection: TlsConnection) -> None:
        """Use a connection whose peer has greeted; an older one to the same peer is half-open."""
        if not self._is_open or self.judge(connection) is not None:
            connection.abort("no longer a neighbor")
            return
        self._drop(connection.name, "replaced by a newer connection")
        self._connections[connection.name] = connection
        self._mark(connection.name, True, "connected")

    def framed(self, connection: TlsConnection, frame: bytes) -> None:
        """Deliver a frame, if its connection is still the one in use."""
        if self._connections.get(connection.name) is connection:
            self._receive(connection.name, frame)

    def lost(self, connection: TlsConnection, why: str) -> None:
        """Note that an open connection has ended."""
        if self._connections.get(connection.name) is connection:
            del self._connections[connection.name]
            self._mark(connection.name, False, why)

    def _drop(self, name: str, why: str) -> None:
        connection = self._connections.get(name)
        if connection is not None:
            connection.abort(why)
            self.lost(connection, why)

    # Listening

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, address = await loop.sock_accept(listener)
            except OSError as error:  # no descriptors left: open connections go on
                logger.warning("%s cannot accept: %s", self.name, error)
                await asyncio.sleep(BACK_OFF[1])
                continue
            if len(self._strangers) >= self.max_strangers:
                oldest = next(iter(self._strangers))
                oldest.cancel()
                self._refuse(self._strangers.pop(oldest), "pushed out by newer connections")
            connection = TlsConnection(self)
            task = asyncio.create_task(self._welcome(connection, sock, str(address[0])))
            self._strangers[task] = str(address[0])
            task.add_done_callback(partial(self._welcomed, connection, sock))

    async def _welcome(self, connection: TlsConnection, sock: socket.socket, host: str) -> None:
        """Do the handshake of an incoming connection and wait for both greetings."""
        connect = asyncio.get_running_loop().connect_accepted_socket
        try:
            await self._settle(connection, connect, sock, ssl=self._server_context)
        except OSError as error:  # of TLS, of the time-out, of the connection
            self._refuse(connection.name or host, _reason(error))

    def _welcomed(
        self, connection: TlsConnection, sock: socket.socket, task: asyncio.Task[None]
    ) -> None:
        self._strangers.pop(task, None)
        if not connection.is_open:
            connection.abort("no greeting")
            sock.close()

    # Dialing

    def _dial_all(self) -> None:
        for name, address in self.neighbors.items():
            if self._is_dialed(name) and name not in self._dialers:
                self._dialers[name] = asyncio.create_task(self._dial(name, address))

    async def _dial(self, name: str, address: Address) -> None:
        """Dial a neighbor, and dial again whenever the connection ends, until cancelled."""
        loop = asyncio.get_running_loop()
        wait, said = BACK_OFF[0], ""
        while True:
            begin = loop.time()
            why = await self._dial_once(name, address)
            if loop.time() - begin > BACK_OFF[1]:
                wait = BACK_OFF[0]
            if why != said:
                logger.info("%s dials %s at %s: %s", self.name, name, address, why)
                said = why
            await asyncio.sleep(wait * (1 - self._jitter.random() / 2 if self._jitter else 1))
            wait = min(2 * wait, BACK_OFF[1])

    async def _dial_once(self, name: str, address: Address) -> str:
        """Connect, wait until the connection ends, and return why it did."""
        connection = TlsConnection(self, expected=name)
        connect = asyncio.get_running_loop().create_connection
        known = {"ssl": self._client_context, "server_hostname": name}
        try:
            await self._settle(connection, connect, *address, **known)
            await connection.ended.wait()
        except OSError as error:
            if isinstance(error, ssl.SSLCertVerificationError):
                self._refuse(f"{name} at {address}", _reason(error))
            return _reason(error)
        finally:
            if not connection.is_open:
                connection.abort("dialing ended")
        return connection.why

    async def _settle(
        self, connection: TlsConnection, connect: Connect, *where: Any, **known: Any
    ) -> None:
        """Do the handshake and wait for the other end's greeting, for a limited time."""
        limits = {
            "ssl_handshake_timeout": self.handshake_seconds,
            "ssl_shutdown_timeout": FLUSH_SECONDS,
        }
        async with asyncio.timeout(self.handshake_seconds):
            await connect(lambda: connection, *where, **known, **limits)
            await connection.settled.wait()


def context(kind: int, folder: Path) -> ssl.SSLContext:
    """TLS 1.3 with certificates at both ends, of the mesh's own authority only."""
    context = ssl.SSLContext(kind)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_verify_locations(folder / "ca.pem")
        context.load_cert_chain(folder / "node.pem", folder / "node.key")
    except (OSError, ssl.SSLError) as error:
        for name in ("ca.pem", "node.pem", "node.key"):
            if not (folder / name).exists():
                raise DataError(
                    f"{folder / name} is missing; copy the learner's whole folder"
                ) from None
        raise DataError(
            "certificates must be a folder with ca.pem, node.pem and node.key, "
            f"got {folder}: {error}"
        ) from error
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def _reason(error: OSError) -> str:
    """Why a connection failed, in a few words."""
    if isinstance(error, TimeoutError):
        return "no handshake and greeting in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate refused: {error.verify_message}"
    return str(error) or type(error).__name__


def _common_name(certificate: Mapping[str, Any] | None) -> str:
    """The common name in a peer's certificate, as `ssl` gives it; "" unless it has exactly one."""
    parts = (certificate or {}).get("subject", ())
    names = [value for part in parts for key, value in part if key == "commonName"]
    return str(names[0]) if len(names) == 1 else ""


def _set_options(sock: socket.socket) -> None:
    """Send without delay; notice a silent cut in about 3 s, if the platform can."""
    options = [
        (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
        (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", SILENCE_MS),
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPCNT", 2),
    ]
    with contextlib.suppress(OSError):  # the connection may be closed already
        for level, name, value in options:
            if hasattr(socket, name):
                sock.setsockopt(level, getattr(socket, name), value)
