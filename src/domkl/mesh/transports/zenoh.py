"""Zenoh between neighbors: for relays, NAT and several sites. Needs the extra `zenoh`.

Each node is a peer with a link per edge, or a client of a router that relays. A neighbor is up
when it asks for this node's frames, which only its own certificate may do, and its link lives.
Zenoh calls from threads of its own; `Inbox` brings that to the event loop. A frame to a stuck link
blocks its caller until it is dropped; hence an `Outbox`, with a thread, for each neighbor.
What Zenoh refuses in the TLS handshake it does not tell; a stranger of the same authority is told.
"""

import asyncio
import contextlib
import ssl
import threading
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import zenoh

from domkl.errors import ParameterError
from domkl.mesh.config.certificates import check_certificate
from domkl.mesh.transports import zenoh_config
from domkl.mesh.transports.base import (
    MAX_FRAME,
    NOT_A_NEIGHBOR,
    Address,
    OnFrame,
    OnPeer,
    OnRefused,
    Transport,
)
from domkl.mesh.transports.boxes import Inbox
from domkl.mesh.transports.sockets import context
from domkl.mesh.transports.zenoh_session import Session, open_zenoh

CLOSE_SECONDS = 3.0
GRACE_SECONDS = 0.1  # Zenoh's news of a loss may overtake the last frames


class ZenohTransport(Transport):
    """A node that speaks through Zenoh, over TLS.

    Parameters
    ----------
    name, neighbors, max_frame
        As in `Transport`.
    listen : Address or None
        Where to listen; None for a node that dials all its neighbors, or has a router.
    certificates : Path
        Folder with `ca.pem`, `node.pem` and `node.key`. Zenoh compares the address that it dials
        with the certificate found there: issue them with their `hosts`.
    router : Address, optional
        The router to go through; then neighbors' addresses do not matter.
    router_name : str, default="router"
        The name in the router's certificate.
    dials : collection of str, optional
        As in `TlsTransport`.
    wait_before_drop : float, default=0.2
        Seconds that a frame may wait for its link before it is dropped; 0.001 suits learners that
        do not wait for each other.
    """

    def __init__(
        self,
        name: str,
        neighbors: Mapping[str, Address],
        listen: Address | None,
        certificates: Path,
        *,
        router: Address | None = None,
        router_name: str = "router",
        dials: Collection[str] | None = None,
        max_frame: int = MAX_FRAME,
        wait_before_drop: float = 0.2,
    ) -> None:
        super().__init__(name, neighbors, max_frame=max_frame)
        if wait_before_drop <= 0:
            raise ParameterError(f"wait_before_drop must be > 0 s, got {wait_before_drop}")
        check_certificate(certificates, name)
        self.certificates = certificates
        self._listen, self._router, self._router_name = listen, router, router_name
        self._dials = None if dials is None else frozenset(dials)
        self._limits = {"wait_before_drop": wait_before_drop, "max_frame": max_frame}
        self._changing = asyncio.Lock()
        self._session: Session | None = None
        self._falling: dict[str, asyncio.TimerHandle] = {}  # lost, but not told yet
        self._forget()

    async def start(self, on_frame: OnFrame, on_peer: OnPeer, on_refused: OnRefused) -> None:
        """Open a session."""
        self._open(on_frame, on_peer, on_refused)
        async with self._changing:
            try:
                await self._open_session()
            except zenoh.ZError:
                self._close()
                raise

    async def set_neighbors(self, neighbors: Mapping[str, Address]) -> None:
        """Change who may speak: every link is closed and opened anew, by new rules."""
        self._list(neighbors)
        await self.reload("neighbors changed")

    async def reload(self, why: str = "certificates reloaded") -> None:
        """Open the session again, with the certificates as they are now, if they are sound."""
        check_certificate(self.certificates, self.name)
        context(ssl.PROTOCOL_TLS_SERVER, self.certificates)  # Zenoh would find out too late
        async with self._changing:
            await self._close_session()
            for name in sorted(self._up):
                self._mark(name, False, why)
            if self._is_open:
                await self._open_session()

    async def stop(self) -> None:
        """Close the session, within seconds."""
        self._close()
        async with self._changing:
            await self._close_session()

    def _transmit(self, neighbor: str, frame: bytes) -> bool:
        if self._session is None or neighbor in self._falling:
            return False
        return self._session.send(neighbor, frame)

    def config(self) -> dict[str, Any]:
        """What Zenoh is told."""
        if self._router is not None:
            return zenoh_config.client(
                self.name,
                self._router,
                self._router_name,
                self.neighbors,
                self.certificates,
                **self._limits,
            )
        dialed = [self.neighbors[name] for name in self.neighbors if self._is_dialed(name)]
        return zenoh_config.peer(
            self.name, dialed, self.neighbors, self._listen, self.certificates, **self._limits
        )

    def _is_dialed(self, name: str) -> bool:
        return name > self.name if self._dials is None else name in self._dials

    def _forget(self) -> None:
        for timer in self._falling.values():
            timer.cancel()
        self._falling.clear()
        self._asked: set[str] = set()  # neighbors that want this node's frames
        self._links: Counter[str] = Counter()  # by the name in the certificate
        self._early: dict[str, deque[bytes]] = {}  # frames that came before their sender was up

    async def _open_session(self) -> None:
        loop = asyncio.get_running_loop()
        inbox = Inbox(loop, max_bytes=max(2**22, 2 * self.max_frame))
        self._session = Session(self, inbox)
        if self._router is None:
            await loop.run_in_executor(None, self._session.open, self.config())
        else:  # Zenoh would wait for the router
            self._session.open_patiently(self.config())

    async def _close_session(self) -> None:
        session, self._session = self._session, None
        self._forget()
        if session is not None:
            session.inbox.close()
            thread = threading.Thread(target=session.close, daemon=True)
            thread.start()
            await asyncio.get_running_loop().run_in_executor(None, thread.join, CLOSE_SECONDS)

    # What a session tells (Owner), in the loop's thread

    def framed(self, name: str, frame: bytes) -> None:
        """Deliver; what comes before its sender is up waits until it is."""
        if name in self._up:
            self._receive(name, frame)
        else:
            self._early.setdefault(name, deque(maxlen=8)).append(frame)

    def asked(self, name: str, does: bool) -> None:
        """A neighbor wants this node's frames, or no more."""
        (self._asked.add if does else self._asked.discard)(name)
        self._settle(name)

    def linked(self, name: str, is_up: bool) -> None:
        """A link came or went, with this name in its certificate."""
        self._links[name] += 1 if is_up else -1
        self._early.pop(name, None)  # of an older link
        if self._router is not None:
            for neighbor in self.neighbors:
                self._settle(neighbor)
        elif name in self.neighbors:
            self._settle(name)
        elif is_up:
            self._refuse(name, NOT_A_NEIGHBOR)

    def refused(self, who: str, why: str) -> None:
        """Count a peer that broke the rules."""
        self._refuse(who, why)

    def _settle(self, name: str) -> None:
        """Up is who asks for frames, over a link that lives; loss is told when frames have come."""
        is_linked = self._links[self._router_name if self._router is not None else name] > 0
        if is_linked and name in self._asked:
            self._fall(name)
            self._mark(name, True, "connected")
            for frame in self._early.pop(name, ()):
                self._receive(name, frame)
        elif name in self._up and name not in self._falling:
            later = asyncio.get_running_loop().call_later
            self._falling[name] = later(GRACE_SECONDS, self._fall, name)

    def _fall(self, name: str) -> None:
        """Tell a loss that is known, if there is one."""
        if name in self._falling:
            self._falling.pop(name).cancel()
            self._mark(name, False, "connection lost")


@contextlib.contextmanager
def open_router(
    listen: Address,
    certificates: Path,
    members: Collection[str],
    *,
    max_frame: int = MAX_FRAME,
    wait_before_drop: float = 0.2,
) -> Iterator[zenoh.Session]:
    """A router for nodes that cannot reach each other, for as long as the context lasts.

    It relays between nodes that name it as their `router`; each may publish only as itself, by its
    certificate. It reads what it relays: run it where you would run a node.
    """
    limits = {"max_frame": max_frame, "wait_before_drop": wait_before_drop}
    session = open_zenoh(zenoh_config.router(listen, members, certificates, **limits))
    try:
        yield session
    finally:
        thread = threading.Thread(target=session.close, daemon=True)
        thread.start()
        thread.join(CLOSE_SECONDS)


def run_router(
    listen: Address, certificates: Path, members: Collection[str], is_over: threading.Event
) -> None:
    """Run a router until the event is set."""
    with open_router(listen, certificates, members):
        is_over.wait()
