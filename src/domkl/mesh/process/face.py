"""Serve HTTP inside the node's own loop."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from domkl.errors import MeshError, ParameterError
from domkl.mesh.certificates import NODE, NODE_KEY
from domkl.mesh.transports.base import Address
from domkl.mesh.transports.sockets import bind

GRACE = 3  # seconds for answers under way when the node stops
MOST = 1000  # connections at once
KEPT = 75  # seconds that an idle connection is kept


class _Server(uvicorn.Server):
    """A server that leaves signals to the node."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


class HttpFace:
    """The HTTP server of a node.

    Parameters
    ----------
    address : Address
        Port 0 lets the system choose one.
    folder : Path or None
        With the node's certificate and key; None: without TLS.
    """

    def __init__(self, address: Address, folder: Path | None) -> None:
        self.address = address
        self._folder = folder
        self._socket: socket.socket | None = None
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, app: FastAPI) -> None:
        """Listen; MeshError where the port is taken."""
        try:
            self._socket = await bind(self.address)
        except OSError as error:
            raise MeshError(f"cannot serve HTTP at {self.address}: {error.strerror}") from None
        # asyncio sets it for sockets of its own making only; else each answer waits 40 ms
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.address = Address(*self._socket.getsockname()[:2])
        folder = self._folder
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", ws="none", http="h11",
            server_header=False, timeout_graceful_shutdown=GRACE, timeout_keep_alive=KEPT,
            limit_concurrency=MOST,
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
