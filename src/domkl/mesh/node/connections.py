"""Connections of a node's HTTP server: how many there are, how long a request may take to come.

The rules of this file
----------------------
- Handshake, head and body of every request have a deadline; a connection that misses one is closed.
- There is always room for a newcomer: when too many connections keep the node waiting, in all or
  from one address, the one that has done so longest is closed. One whose request is complete and
  being answered is never closed for that, unless its client does not read the answer, or asks more
  before it has come. Those being answered do not count, up to as many again: they are soon done.
- Bodies that are not complete take a limited number of bytes in all; the oldest must go first.
- Without file descriptors a newcomer is closed at once, and the node goes on.
- A request whose end another server could see elsewhere is answered by 400, and its connection is
  closed: a proxy before the node must not be made to pass on a second request inside of a body.
"""

import asyncio
import contextlib
import ctypes
import errno
import logging
import os
import re
import socket
from collections import Counter
from typing import Any, NamedTuple

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from domkl.mesh.process_log import event
from domkl.mesh.transports.base import Joined

LARGE = 2**22  # bytes of bodies, after which memory is given back to the system
PATIENCE = 1.0  # seconds for a request to come, before its connection may have to make room
HANDSHAKE, HEAD, BODY, BUSY, IDLE = "handshake", "head", "body", "busy", "idle"
END = re.compile(rb"\n\r?\n")  # of a head
#: what servers read in different ways: line ends other than CRLF, and lines that go on in the next
UNCLEAR = re.compile(rb"(?<!\r)\n|\r(?!\n)|\n[ \t]")
#: headers of which one must not follow another
ONCE = (b"content-length", b"transfer-encoding", b"authorization", b"origin", b"content-type")
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Limits(NamedTuple):
    """What connections may take; of both numbers twice as many with those being answered."""

    most: int = 256  # at once: neighbors, log and checkpoints need descriptors, too
    each: int = 128  # from one address
    handshake: float = 5.0  # seconds for that of TLS
    head: float = 5.0  # seconds for the head of a request
    body: float = 10.0  # seconds for its body
    bodies: int = 2**24  # bytes of all bodies that are not complete


class Visit:
    """One connection, from its acceptance on.

    Parameters
    ----------
    key : tuple
        Address and port of the other end.
    sock : socket
    now : float
        Seconds of the loop's clock.
    """

    def __init__(self, key: Any, sock: socket.socket, now: float) -> None:
        self.key, self.host, self.sock = key, str(key[0]), sock
        self.phase, self.since = HANDSHAKE, now
        self.n_body = 0
        self.connection: HttpConnection | None = None
        self.timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether its socket is."""
        return self.sock.fileno() >= 0

    @property
    def may_go(self) -> bool:
        """Whether it can be closed for others: it is greedy, or not being answered."""
        return self.phase != BUSY or (self.connection is not None and self.connection.is_greedy)

    def rank(self, now: float) -> tuple[int, float]:
        """The lower, the sooner it must go: requests that do not come, then idle connections."""
        is_patient = now - self.since > PATIENCE
        return (1 if self.phase == IDLE else 0 if is_patient else 2), self.since

    def close(self) -> None:
        """Close it at once."""
        if self.connection is not None:
            self.connection.transport.abort()
        else:  # TLS is at its handshake: it ends when nothing more can come
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)


class Doorkeeper:
    """Decides which connections stay."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._visits: dict[Any, Visit] = {}  # by the address and port of the other end
        self._n_bodies = self._most_bodies = 0

    def admit(self, sock: socket.socket, address: Any) -> bool:
        """Make room for a new connection; False if there is none."""
        loop = asyncio.get_running_loop()
        if len(self._visits) >= self.limits.each:
            for visit in [visit for visit in self._visits.values() if not visit.is_open]:
                self.leave(visit)
        same = [visit for visit in self._visits.values() if visit.host == str(address[0])]
        if not self._is_room(same, self.limits.each):
            return False
        if not self._is_room([*self._visits.values()], self.limits.most):
            return False
        visit = self._visits[address] = Visit(address, sock, loop.time())
        self._set_timer(visit, self.limits.handshake)
        return True

    def greet(self, connection: "HttpConnection") -> Visit:
        """The visit of a connection whose handshake is complete."""
        transport = connection.transport
        key = transport.get_extra_info("peername")
        visit = self._visits.get(key)
        if visit is None:  # closed meanwhile, as far as the doorkeeper knows
            sock = transport.get_extra_info("socket")
            visit = self._visits[key] = Visit(key, sock, connection.loop.time())
        visit.connection = connection
        return visit

    def enter(self, visit: Visit, phase: str) -> None:
        """Note that a connection has come to another part of its request."""
        if phase != visit.phase:
            self._count(visit, -visit.n_body)
            visit.phase, visit.since = phase, asyncio.get_running_loop().time()
            seconds = {HEAD: self.limits.head, BODY: self.limits.body}.get(phase)
            self._set_timer(visit, seconds)

    def received(self, visit: Visit, n_bytes: int) -> None:
        """Note bytes of a body that is not complete; there may be too many of them now."""
        self._count(visit, n_bytes)
        while self._n_bodies > self.limits.bodies:
            bodies = [each for each in self._visits.values() if each.n_body]
            oldest = min(bodies, key=lambda each: each.since)
            self._count(oldest, -oldest.n_body)
            oldest.close()

    def leave(self, visit: Visit) -> None:
        """Note that a connection has ended."""
        if self._visits.get(visit.key) is visit:
            del self._visits[visit.key]
        self._count(visit, -visit.n_body)
        self._set_timer(visit, None)
        visit.connection = None

    def _is_room(self, visits: list[Visit], limit: int) -> bool:
        """Close those of them that have kept the node waiting longest, until one more may come."""
        if len(visits) < limit:
            return True
        now = asyncio.get_running_loop().time()
        able = sorted((each for each in visits if each.may_go), key=lambda each: each.rank(now))
        n_beyond = max(len(able) - limit, len(visits) - 2 * limit) + 1
        for visit in able[: max(n_beyond, 0)]:
            visit.close()
            self.leave(visit)
        return n_beyond <= len(able)

    def _count(self, visit: Visit, n_bytes: int) -> None:
        visit.n_body += n_bytes
        self._n_bodies += n_bytes
        self._most_bodies = max(self._most_bodies, self._n_bodies)
        if not self._n_bodies and self._most_bodies > LARGE:
            self._most_bodies = 0
            asyncio.get_running_loop().call_later(PATIENCE, give_back)  # when they are freed

    def _set_timer(self, visit: Visit, seconds: float | None) -> None:
        if visit.timer is not None:
            visit.timer.cancel()
        loop = asyncio.get_running_loop()
        visit.timer = None if seconds is None else loop.call_later(seconds, visit.close)


def give_back() -> None:
    """Return memory that was freed to the system, where the C library can do that: glibc."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


class Listener(socket.socket):
    """A listening socket that asks the doorkeeper about each connection, before any handshake."""

    def __init__(self, listener: socket.socket, doorkeeper: Doorkeeper) -> None:
        super().__init__(fileno=listener.detach())
        self.setblocking(False)
        self._doorkeeper = doorkeeper
        self._spare: int | None = None
        self._keep_spare()

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept as a socket does; BlockingIOError tells the loop that there is no connection."""
        try:
            connection, address = super().accept()
        except OSError as error:
            if error.errno in NO_DESCRIPTORS:
                self._turn_away(error)
                raise BlockingIOError from None
            raise
        if not self._doorkeeper.admit(connection, address):
            connection.close()
            raise BlockingIOError
        return connection, address

    def close(self) -> None:
        """Close it, and the descriptor that is kept for hard times."""
        super().close()
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def _keep_spare(self) -> None:
        with contextlib.suppress(OSError):
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _turn_away(self, error: OSError) -> None:
        """Close the next connection, by the one descriptor that is left: else it would wait."""
        event("out of descriptors", logging.WARNING, text=f"cannot accept: {error.strerror}")
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
            with contextlib.suppress(OSError):
                super().accept()[0].close()
        self._keep_spare()


def unclear(head: bytes) -> str | None:
    """Why a head could be read in two ways; None if it cannot.

    >>> unclear(b"GET / HTTP/1.1\\r\\nOrigin: a\\r\\nOrigin: b\\r\\n\\r\\n")
    'origin must be given once'
    """
    if UNCLEAR.search(head):
        return "lines must end in CRLF, and must not go on in the next one"
    first, *lines = head.lower().split(b"\r\n")
    given = Counter(line.partition(b":")[0] for line in lines)
    for name in ONCE:
        if given[name] > 1:
            return f"{name.decode()} must be given once"
    if given[b"transfer-encoding"] and given[b"content-length"]:
        return "content-length must not come with transfer-encoding"
    if given[b"transfer-encoding"] and first.endswith(b"http/1.0"):
        return "transfer-encoding is not of HTTP/1.0"
    if any(line.startswith(b"content-length:") and b"," in line for line in lines):
        return "content-length must be one number"
    return None


class HttpConnection(H11Protocol):
    """One connection; tells the doorkeeper how far its request is."""

    doorkeeper: Doorkeeper  # of the subclass that a server makes
    _visit: Visit

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the first request."""
        super().connection_made(Joined(transport))  # type: ignore[arg-type]
        self._visit = self.doorkeeper.greet(self)
        self.doorkeeper.enter(self._visit, HEAD)

    def data_received(self, data: bytes) -> None:
        """Take what has come, and see how far the request is."""
        super().data_received(data)
        self._look()
        if self._visit.phase == BODY and self.conn.our_state is not h11.DONE:
            self.doorkeeper.received(self._visit, len(data))

    def handle_events(self) -> None:
        """Take a request only if all agree on where it ends."""
        if self.conn.their_state is h11.IDLE:
            waiting = self.conn.trailing_data[0]
            end = END.search(waiting)
            problem = None if end is None else unclear(waiting[: end.end()])
            if problem is not None:
                self.send_400_response(problem)
                return
        super().handle_events()

    def send_400_response(self, msg: str) -> None:
        """Answer, unless an answer is under way or given already; close in any case."""
        cycle: Any = self.cycle
        if cycle is not None:
            cycle.disconnected = True  # what is under way has nobody to answer to
        with contextlib.suppress(h11.LocalProtocolError):
            super().send_400_response(msg)
        self.transport.close()

    def on_response_complete(self) -> None:
        """Wait for the next request, which may have come in part already."""
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the doorkeeper know."""
        super().connection_lost(exc)
        self.doorkeeper.leave(self._visit)

    @property
    def is_greedy(self) -> bool:
        """Whether the client does not read its answer, or asks more before it has come."""
        return bool(self.flow.write_paused or self.conn.trailing_data[0])

    def _look(self) -> None:
        if not self.transport.is_closing():
            self.doorkeeper.enter(self._visit, self._phase())

    def _phase(self) -> str:
        cycle: Any = self.cycle  # None before the first request
        theirs = self.conn.their_state
        if theirs is h11.SEND_BODY:
            return BODY
        if theirs is h11.IDLE and (cycle is None or self.conn.trailing_data[0]):
            return HEAD
        return BUSY if cycle is not None and not cycle.response_complete else IDLE
