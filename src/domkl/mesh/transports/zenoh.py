"""Zenoh between neighbors: for relays, NAT and several sites. Needs the extra `zenoh`.

Each node is a peer with a link per edge, or a client of a router that relays. A neighbor is up
when it subscribes to this node's frames, which only its own certificate may do, and its link lives.

Zenoh calls from threads of its own; an `Inbox` brings these calls to the event loop. To send a
frame over a link that is stuck blocks until the frame is dropped; therefore each neighbor has an
`Outbox` with a thread. Zenoh does not report certificates that it refuses in the TLS handshake;
a stranger with a certificate of the same authority is reported.
"""

import asyncio
import contextlib
import json
import logging
import ssl
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import zenoh

from domkl.errors import ParameterError
from domkl.mesh.config.certificates import check_certificate
from domkl.mesh.transports import zenoh_config
from domkl.mesh.transports.base import (
    MAX_FRAME,
    NOT_A_NEIGHBOR,
    Address,
    Allowance,
    Endpoint,
    Transport,
    is_full,
)
from domkl.mesh.transports.tls import context

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 3.0
GRACE_SECONDS = 0.1  # Zenoh may report a loss before it has delivered the last frames
FLUSH_SECONDS = 0.5
RETRY_SECONDS = 0.2
OVERHEAD = 100  # bytes that a frame takes besides its content: empty ones count, too


class Inbox:
    """Brings calls from other threads to the loop's thread, in order.

    When more than `max_bytes` wait, calls that have a size (frames) are dropped; other calls never
    are.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, max_bytes: int) -> None:
        self._loop, self._max_bytes = loop, max_bytes
        self._lock = threading.Lock()
        self._bytes, self._is_closed = 0, False

    def put(self, call: Callable[[str, Any], None], name: str, value: Any, size: int = 0) -> None:
        """Have ``call(name, value)`` run in the loop's thread; may be used from any thread."""
        with self._lock:
            if self._is_closed or (size and self._bytes + size > self._max_bytes):
                return
            self._bytes += size
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._run, call, name, value, size)

    def close(self) -> None:
        """Drop what waits; nothing is called any more."""
        self._is_closed = True

    def _run(self, call: Callable[[str, Any], None], name: str, value: Any, size: int) -> None:
        with self._lock:
            self._bytes -= size
        if not self._is_closed:
            call(name, value)


class Outbox:
    """Passes frames to a function that may block, in a thread of its own."""

    def __init__(self, call: Callable[[bytes], object], name: str) -> None:
        self._call, self._is_closed = call, False
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()
        self._put = self._taken = 0  # bytes; each is counted in one thread only
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, frame: bytes) -> bool:
        """Append a frame without waiting; False if too much waits already."""
        if self._is_closed or is_full(self._put - self._taken, frame):
            return False
        self._put += len(frame)
        self._waiting.put(frame)
        return True

    def close(self) -> None:
        """Accept no more frames; those that wait are still passed on."""
        self._is_closed = True
        self._waiting.put(None)

    def join(self, seconds: float) -> None:
        """Wait until all frames are passed on, for at most so many seconds."""
        self._thread.join(seconds)

    def _run(self) -> None:
        while (frame := self._waiting.get()) is not None:
            self._taken += len(frame)
            with contextlib.suppress(Exception):  # the session may close meanwhile
                self._call(frame)


class ZenohTransport(Transport):
    """A node that uses Zenoh, over TLS.

    Parameters
    ----------
    name, neighbors, max_frame, dials
        As in `Transport`.
    listen : Address or None
        Where to listen; None for a node that dials all its neighbors, or has a router.
    certificates : Path
        Folder with `ca.pem`, `node.pem` and `node.key`. Zenoh compares the address that it dials
        with the peer's certificate: issue certificates with their `hosts`.
    router : Address, optional
        The router to use; then the neighbors' addresses do not matter.
    router_name : str, default="router"
        The name in the router's certificate.
    wait_before_drop : float, default=0.2
        Seconds that a frame may wait for its link before it is dropped.
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
        super().__init__(name, neighbors, max_frame=max_frame, dials=dials)
        if wait_before_drop <= 0:
            raise ParameterError(f"wait_before_drop must be > 0 s, got {wait_before_drop}")
        check_certificate(certificates, name)
        self.certificates = certificates
        self._listen, self._router, self._router_name = listen, router, router_name
        self._limits = {"wait_before_drop": wait_before_drop, "max_frame": max_frame}
        self._changing = asyncio.Lock()
        self._session: Session | None = None
        self._falling: dict[str, asyncio.TimerHandle] = {}  # lost, but not reported yet
        self._forget()

    @classmethod
    def at(cls, endpoint: Endpoint) -> "ZenohTransport":
        """The transport of a node, as the registry makes it."""
        patience = 0.2 if endpoint.mode == "lockstep" else 0.001  # async learners do not wait
        return cls(*endpoint[:4], router=endpoint.router, wait_before_drop=patience)

    def limit_frames(self, n_bytes: int) -> None:
        """Have frames of at most so many bytes; Zenoh gets the same limit."""
        super().limit_frames(n_bytes)
        self._limits["max_frame"] = self.max_frame

    async def _begin(self) -> None:
        async with self._changing:
            await self._open_session()

    async def set_neighbors(self, neighbors: Mapping[str, Address]) -> None:
        """Replace the list of neighbors: the session is opened anew, with other access rules."""
        self._list(neighbors)
        await self.reload("neighbors changed")

    async def reload(self, why: str = "certificates reloaded") -> None:
        """Open the session anew with the certificates as they are now, if they are sound."""
        check_certificate(self.certificates, self.name)
        # Checked here, for Zenoh would fail only after the old session is closed.
        context(ssl.PROTOCOL_TLS_SERVER, self.certificates)
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
        """The configuration for Zenoh."""
        near, folder, router = self.neighbors, self.certificates, self._router
        if router is not None:
            name = self._router_name
            return zenoh_config.client(self.name, router, name, near, folder, **self._limits)
        dialed = [address for name, address in near.items() if self._is_dialed(name)]
        return zenoh_config.peer(self.name, dialed, near, self._listen, folder, **self._limits)

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

    # Called by the session, in the loop's thread

    def framed(self, name: str, frame: bytes) -> None:
        """Deliver a frame; if its sender is not up yet, keep it until it is."""
        if name in self._up:
            self._receive(name, frame)
        else:
            self._early.setdefault(name, deque(maxlen=8)).append(frame)

    def asked(self, name: str, does: bool) -> None:
        """A neighbor has subscribed to this node's frames, or has ended that."""
        (self._asked.add if does else self._asked.discard)(name)
        self._settle(name)

    def linked(self, name: str, is_up: bool) -> None:
        """A link was made or lost, with this name in the peer's certificate."""
        self._links[name] += 1 if is_up else -1
        self._early.pop(name, None)  # of an older link
        if self._router is not None:
            for neighbor in self.neighbors:
                self._settle(neighbor)
        elif name in self.neighbors:
            self._settle(name)
        elif is_up:
            self._refuse(name, NOT_A_NEIGHBOR)

    def _settle(self, name: str) -> None:
        """Report who is up: it subscribes and its link lives. Losses are reported after a pause."""
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
        """Report a loss that was held back, if there is one."""
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
    """A router for nodes that cannot reach each other, while the context lasts.

    It relays between nodes that name it as their `router`; by its certificate, each node may
    publish only as itself. TLS ends at the router: run it where you would run a node.
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


class Session:
    """One opening of Zenoh; all but `send` and `open_patiently` may block, outside the loop."""

    def __init__(self, transport: "ZenohTransport", inbox: Inbox) -> None:
        self._transport, self.inbox = transport, inbox
        self.name, self.neighbors = transport.name, tuple(transport.neighbors)
        self._outboxes: dict[str, Outbox] = {}
        self._declared: list[Any] = []  # Zenoh drops them when nothing refers to them
        self._zenoh: zenoh.Session | None = None
        self._changing = threading.Lock()
        self._is_over = threading.Event()

    def open(self, config: zenoh_config.Config) -> None:
        """Connect; declare what is published and subscribed to."""
        with self._changing:
            if not self._is_over.is_set():
                self._zenoh = open_zenoh(config)
                self._declare(self._zenoh)

    def open_patiently(self, config: zenoh_config.Config) -> None:
        """Open in a thread; try again until it succeeds or the session is closed."""

        def run() -> None:
            said = ""
            while not self._is_over.is_set():
                try:
                    self.open(config)
                    return
                except zenoh.ZError as error:
                    if str(error) != said:
                        logger.warning("%s cannot reach its router: %s", self.name, error)
                        said = str(error)
                    self._is_over.wait(RETRY_SECONDS)

        threading.Thread(target=run, name=f"{self.name}-opens", daemon=True).start()

    def send(self, neighbor: str, frame: bytes) -> bool:
        """Pass a frame to the neighbor's thread; False if too much waits there."""
        outbox = self._outboxes.get(neighbor)
        return outbox is not None and outbox.put(frame)

    def close(self) -> None:
        """Send what waits, then close."""
        self._is_over.set()
        with self._changing:
            for outbox in self._outboxes.values():
                outbox.close()
            for outbox in self._outboxes.values():
                outbox.join(FLUSH_SECONDS / len(self._outboxes))
            if self._zenoh is not None:
                with contextlib.suppress(zenoh.ZError):
                    self._zenoh.close()  # type: ignore[no-untyped-call]

    def _declare(self, session: zenoh.Session) -> None:
        self._declared.append(
            session.info.declare_link_events_listener(self._on_link, history=True)
        )
        for name in self.neighbors:
            publisher = session.declare_publisher(
                zenoh_config.key(self.name, name),
                congestion_control=zenoh.CongestionControl.DROP,
                express=True,
            )
            self._outboxes[name] = Outbox(publisher.put, f"to-{name}")
            subscriber = session.declare_subscriber(
                zenoh_config.key(name, self.name), self._on_sample(name)
            )
            matching = publisher.declare_matching_listener(partial(self._on_matching, name))
            self._declared += [publisher, subscriber, matching]
            is_asked: Any = publisher.matching_status  # the stub says bool, which is wrong
            if is_asked.matching:
                self.inbox.put(self._transport.asked, name, True)

    def _on_sample(self, name: str) -> Callable[[zenoh.Sample], None]:
        allowance = Allowance()

        def heard(sample: zenoh.Sample) -> None:
            # Zenoh cannot be told to wait; the protocol asks again for what is missing
            if allowance.take(time.monotonic()):
                frame = sample.payload.to_bytes()
                self.inbox.put(self._transport.framed, name, frame, size=len(frame) + OVERHEAD)

        return heard

    def _on_matching(self, name: str, status: zenoh.MatchingStatus) -> None:
        self.inbox.put(self._transport.asked, name, status.matching)

    def _on_link(self, event: zenoh.LinkEvent) -> None:
        name = event.link.auth_identifier or "unknown"
        self.inbox.put(self._transport.linked, name, event.kind == zenoh.SampleKind.PUT)


def open_zenoh(config: Mapping[str, Any]) -> zenoh.Session:
    """A session with these settings."""
    return zenoh.open(zenoh.Config.from_json5(json.dumps(config)))
