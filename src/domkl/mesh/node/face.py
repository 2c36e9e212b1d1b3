"""Serve HTTP inside the node's own loop."""

import asyncio
import contextlib
import socket
import ssl
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from domkl.errors import MeshError, ParameterError
from domkl.mesh.config.certificates import NODE, NODE_KEY
from domkl.mesh.transports.base import Address
from domkl.mesh.transports.sockets import bind

GRACE = 3  # seconds for answers under way when the node stops
MOST = 256  # connections at once: neighbors, journal and checkpoints need descriptors, too
ASKED = 10  # seconds for a new connection to ask something
KEPT = 75  # seconds that an idle connection is kept


class _Server(uvicorn.Server):
    """A server that leaves signals to the node."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


class _Listener(socket.socket):
    """A listening socket that hangs up on whoever is one too many, before any handshake."""

    def __init__(self, listener: socket.socket, most: int) -> None:
        super().__init__(fileno=listener.detach())
        self.setblocking(False)
        self._most = most
        self._open: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def accept(self) -> tuple[socket.socket, Any]:
        """As a socket does; BlockingIOError tells the loop that nobody is there."""
        connection, address = super().accept()
        if len(self._open) >= self._most:  # those that are closed may linger in it
            self._open = weakref.WeakSet(each for each in self._open if each.fileno() >= 0)
        if len(self._open) >= self._most:
            connection.close()
            raise BlockingIOError
        self._open.add(connection)
        return connection, address


class _Connection(H11Protocol):
    """A connection that must not stay without asking."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, for a while."""
        super().connection_made(transport)
        self.loop.call_later(ASKED, self._hang_up)

    def _hang_up(self) -> None:
        cycle: Any = self.cycle  # None before the first request
        if cycle is None:
            self.transport.abort()


class HttpFace:
    """The HTTP server of a node.

    Parameters
    ----------
    address : Address
        Port 0 lets the system choose one.
    folder : Path or None
        With the node's certificate and key; None: without TLS.
    most : int
        Connections at once; whoever comes then is hung up on.
    """

    def __init__(self, address: Address, folder: Path | None, most: int = MOST) -> None:
        self.address = address
        self._most = most
        self._folder = folder
        self._socket: socket.socket | None = None
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, app: FastAPI) -> None:
        """Listen; MeshError where the port is taken."""
        try:
            self._socket = _Listener(await bind(self.address), self._most)
        except OSError as error:
            raise MeshError(f"cannot serve HTTP at {self.address}: {error.strerror}") from None
        # asyncio sets it for sockets of its own making only; else each answer waits 40 ms
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.address = Address(*self._socket.getsockname()[:2])
        folder = self._folder
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", ws="none", http=_Connection,
            server_header=False, timeout_graceful_shutdown=GRACE, timeout_keep_alive=KEPT,
            ssl_certfile=None if folder is None else folder / NODE,
            ssl_keyfile=None if folder is None else folder / NODE_KEY,
        )  # fmt: skip
        try:
            config.load()
        except (OSError, ssl.SSLError) as error:
            raise ParameterError(
                f"http beyond loopback must have TLS, with the node's certificate: {error}"
            ) from None
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve([self._socket]))
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0.005)

    def reload(self) -> None:
        """Read certificate and key again, for new connections."""
        if self._server is not None and self._folder is not None:
            context = self._server.config.ssl
            if context is not None:
                context.load_cert_chain(self._folder / NODE, self._folder / NODE_KEY)

    async def stop(self) -> None:
        """Finish answers under way, and close."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await asyncio.wait([self._task])
        if self._socket is not None:
            self._socket.close()
