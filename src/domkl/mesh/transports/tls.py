"""Mutual TLS over asyncio: one connection per edge, each end checked by name before any data.

Of two neighbors the one whose name sorts first dials, unless `dials` says otherwise. Strangers
cost a few sockets for a few seconds: at most `max_strangers` connections are in their handshake,
and a newer one pushes out the oldest, so that idle strangers cannot keep a neighbor out.
"""

import asyncio
import logging
import random
import socket
import ssl
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path

from domkl.errors import ParameterError
from domkl.mesh.config.certificates import check_certificate
from domkl.mesh.transports.base import (
    MAX_FRAME,
    NOT_A_NEIGHBOR,
    Address,
    OnFrame,
    OnPeer,
    OnRefused,
    Transport,
)
from domkl.mesh.transports.link import Link
from domkl.mesh.transports.sockets import bind, context, reason

logger = logging.getLogger(__name__)

BACK_OFF = (0.05, 1.0)  # seconds before dialing again: at first, at most
FLUSH_SECONDS = 1.0  # to stop


class TlsTransport(Transport):
    """A node that speaks TLS 1.3 with each neighbor.

    Parameters
    ----------
    name, neighbors, max_frame
        As in `Transport`.
    listen : Address or None
        Where to listen; None for a node that dials all its neighbors.
    certificates : Path
        Folder with `ca.pem`, `node.pem` and `node.key`.
    dials : collection of str, optional
        The neighbors that this node dials, now or once listed; default those whose names sort
        after its own. The other end of each such edge must not dial.
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
        super().__init__(name, neighbors, max_frame=max_frame)
        if max_frame >= 2**32:
            raise ParameterError(f"max_frame must be < 2**32 bytes, got {max_frame}")
        self.certificates = certificates
        self.handshake_seconds, self.max_strangers = handshake_seconds, max_strangers
        self._listen = listen
        self._dials = None if dials is None else frozenset(dials)
        self._jitter = jitter
        self._links: dict[str, Link] = {}
        self._dialers: dict[str, asyncio.Task[None]] = {}
        self._strangers: dict[asyncio.Task[None], str] = {}  # oldest first
        self._listener: socket.socket | None = None
        self._acceptor: asyncio.Task[None] | None = None
        self.reload()

    @property
    def address(self) -> Address:
        """Where this node listens, with the port that the system chose."""
        if self._listener is None:
            raise RuntimeError(f"{self.name} does not listen; start it first")
        return Address(*self._listener.getsockname()[:2])

    def reload(self) -> None:
        """Read the certificates again, for new connections; on an error the old ones stay."""
        check_certificate(self.certificates, self.name)
        contexts = [
            context(kind, self.certificates)
            for kind in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT)
        ]
        contexts[0].num_tickets = 0  # every connection is a full handshake
        self._server_context, self._client_context = contexts

    async def start(self, on_frame: OnFrame, on_peer: OnPeer, on_refused: OnRefused) -> None:
        """Listen, and dial."""
        self._open(on_frame, on_peer, on_refused)
        try:
            if self._listen is not None:
                self._listener = await bind(self._listen)
        except OSError:
            self._close()
            raise
        if self._listener is not None:
            self._acceptor = asyncio.create_task(self._accept(self._listener))
        self._dial_all()

    async def set_neighbors(self, neighbors: Mapping[str, Address]) -> None:
        """Change who may speak; a neighbor with a new address is dialed there."""
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
        links = list(self._links.values())
        self._links.clear()
        tasks = [*self._dialers.values(), *self._strangers]
        if self._acceptor is not None:
            tasks.append(self._acceptor)
        for task in tasks:
            task.cancel()
        for link in links:
            link.close()
        if links:
            await asyncio.wait([link.ended for link in links], timeout=FLUSH_SECONDS)
        for link in links:
            link.abort("stopped")
        await asyncio.gather(*tasks, return_exceptions=True)
        self._dialers.clear()
        if self._listener is not None:
            self._listener.close()
            self._listener = self._acceptor = None

    def _transmit(self, neighbor: str, frame: bytes) -> bool:
        return self._links[neighbor].send(frame)

    # What a link tells (Owner)

    def judge(self, link: Link) -> str | None:
        """Who is at the other end, by its certificate, and whether that may be."""
        name = link.name
        if link.expected is not None and name != link.expected:
            return f"certificate is of {name or 'nobody'}, dialed was {link.expected}"
        if name not in self.neighbors:
            return NOT_A_NEIGHBOR
        if link.expected is None and self._is_dialed(name):
            return f"dials {self.name}, which dials it; only one end of an edge may dial"
        return None

    def opened(self, link: Link) -> None:
        """Take a link that is up; it replaces an older one, which is half-open then."""
        if not self._is_open or self.judge(link) is not None:
            link.abort("no longer a neighbor")
            return
        self._drop(link.name, "replaced by a newer connection")
        self._links[link.name] = link
        self._mark(link.name, True, "connected")

    def framed(self, link: Link, frame: bytes) -> None:
        """Pass a frame on, if its link is still the one of its neighbor."""
        if self._links.get(link.name) is link:
            self._receive(link.name, frame)

    def refused(self, who: str, why: str) -> None:
        """Count a peer that broke the rules."""
        self._refuse(who, why)

    def lost(self, link: Link, why: str) -> None:
        """Forget a link that has ended."""
        if self._links.get(link.name) is link:
            del self._links[link.name]
            self._mark(link.name, False, why)

    def _drop(self, name: str, why: str) -> None:
        link = self._links.get(name)
        if link is not None:
            link.abort(why)
            self.lost(link, why)

    # Listening

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, address = await loop.sock_accept(listener)
            except OSError as error:  # no descriptors left: what is connected goes on
                logger.warning("%s cannot accept: %s", self.name, error)
                await asyncio.sleep(BACK_OFF[1])
                continue
            if len(self._strangers) >= self.max_strangers:
                oldest = next(iter(self._strangers))
                oldest.cancel()
                self._refuse(self._strangers.pop(oldest), "pushed out by newer connections")
            link = Link(self)
            task = asyncio.create_task(self._welcome(link, sock, str(address[0])))
            self._strangers[task] = str(address[0])
            task.add_done_callback(partial(self._welcomed, link, sock))

    async def _welcome(self, link: Link, sock: socket.socket, host: str) -> None:
        """See one connection through to both greetings."""
        try:
            async with asyncio.timeout(self.handshake_seconds):
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: link,
                    sock,
                    ssl=self._server_context,
                    ssl_handshake_timeout=self.handshake_seconds,
                    ssl_shutdown_timeout=FLUSH_SECONDS,
                )
                await link.settled
        except OSError as error:  # of TLS, of time, of the connection
            self._refuse(link.name or host, reason(error))

    def _welcomed(self, link: Link, sock: socket.socket, task: asyncio.Task[None]) -> None:
        self._strangers.pop(task, None)
        if not link.is_open:
            link.abort("no greeting")
            sock.close()

    # Dialing

    def _is_dialed(self, name: str) -> bool:
        return name > self.name if self._dials is None else name in self._dials

    def _dial_all(self) -> None:
        for name, address in self.neighbors.items():
            if self._is_dialed(name) and name not in self._dialers:
                self._dialers[name] = asyncio.create_task(self._dial(name, address))

    async def _dial(self, name: str, address: Address) -> None:
        """Keep a connection to one neighbor, for as long as the task lives."""
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
        """Connect and stay until the connection ends; why it did."""
        link = Link(self, expected=name)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.handshake_seconds):
                await loop.create_connection(
                    lambda: link,
                    address.host,
                    address.port,
                    ssl=self._client_context,
                    server_hostname=name,
                    ssl_handshake_timeout=self.handshake_seconds,
                    ssl_shutdown_timeout=FLUSH_SECONDS,
                )
                await link.settled
            await link.ended
        except ssl.SSLError as error:
            if isinstance(error, ssl.SSLCertVerificationError):
                self._refuse(f"{name} at {address}", reason(error))
            return reason(error)
        except OSError as error:
            return reason(error)
        finally:
            if not link.is_open:
                link.abort("dialing ended")
        return link.why
