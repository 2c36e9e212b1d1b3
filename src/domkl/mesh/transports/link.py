"""One connection between two nodes: authenticate, greet, then frames with a length before each.

The rules of this file
----------------------
- Whoever is at the other end is judged before a byte is written or read.
- A link is open when the other's greeting has come, not before: in TLS 1.3 a client's handshake
  succeeds although the server is about to refuse its certificate.
- A length is checked before room is made for it.
- Nobody waits for a link to drain: what does not fit is dropped, by whole frames.
"""

import asyncio
from typing import Protocol

from domkl.mesh.transports.sockets import common_name, set_options

GREETING = b"domkl-mesh/1\n"
HEADER = 4  # bytes of a frame's length, big-endian
BUFFER = 2**16
ROOM = 2**16  # bytes that may wait in a link, or two frames if that is more


class Owner(Protocol):
    """Whom a link tells."""

    max_frame: int

    def judge(self, link: "Link") -> str | None:
        """Why the peer of a link is refused, or None."""

    def opened(self, link: "Link") -> None:
        """The peer has greeted."""

    def framed(self, link: "Link", frame: bytes) -> None:
        """A whole frame came."""

    def refused(self, who: str, why: str) -> None:
        """A peer broke the rules; the link is closed."""

    def lost(self, link: "Link", why: str) -> None:
        """An open link has ended."""


class Link(asyncio.BufferedProtocol):
    """Frames over one TLS connection, at either end.

    Parameters
    ----------
    owner : Owner
    expected : str or None
        The name that was dialed; None at the end that listens.
    """

    def __init__(self, owner: Owner, expected: str | None = None) -> None:
        loop = asyncio.get_running_loop()
        self.owner, self.expected = owner, expected
        self.name = ""
        self.why = ""
        self.is_open = False
        self.settled: asyncio.Future[bool] = loop.create_future()  # opened, or ended before
        self.ended: asyncio.Future[None] = loop.create_future()
        self._buffer = bytearray(BUFFER)
        self._end = 0
        self._transport: asyncio.Transport | None = None

    def send(self, frame: bytes) -> bool:
        """Write a frame if it fits; False: the peer does not keep up."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return False
        waiting = transport.get_write_buffer_size()
        if waiting and waiting + len(frame) > max(ROOM, 2 * len(frame)):
            return False
        transport.write(len(frame).to_bytes(HEADER, "big") + frame)
        return True

    def close(self) -> None:
        """Flush what waits, say goodbye; the peer may take its time."""
        if self._transport is not None:
            self._transport.close()

    def abort(self, why: str) -> None:
        """End at once."""
        self.why = self.why or why
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Judge the peer; greet it or hang up."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        set_options(transport.get_extra_info("socket"))
        self.name = common_name(transport.get_extra_info("peercert"))
        why = self.owner.judge(self)
        if why is None:
            transport.write(GREETING)
        else:
            self._refuse(why)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Room for what comes next."""
        return memoryview(self._buffer)[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take out what is whole, and move the rest to the front."""
        self._end += nbytes
        start = self._greeted()
        if self.is_open:
            start = self._take_frames(start)
            if start and self._end > start:
                self._buffer[: self._end - start] = self._buffer[start : self._end]
            self._end -= start
            self._make_room()

    def eof_received(self) -> None:
        """Let the transport close."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the owner, once."""
        self.why = self.why or (f"connection lost: {exc}" if exc else "closed by the peer")
        was_open, self.is_open = self.is_open, False
        if not self.settled.done():
            self.settled.set_result(False)
        if not self.ended.done():
            self.ended.set_result(None)
        if was_open:
            self.owner.lost(self, self.why)

    def _greeted(self) -> int:
        """Where frames begin in the buffer, once the greeting has come."""
        if self.is_open or self.why:
            return 0
        begin = bytes(self._buffer[: min(self._end, len(GREETING))])
        if not GREETING.startswith(begin):
            self._refuse("did not greet as a node of this version")
        elif begin == GREETING:
            self.is_open = True
            if not self.settled.done():
                self.settled.set_result(True)
            self.owner.opened(self)
            return len(GREETING)
        return 0

    def _take_frames(self, start: int) -> int:
        """Deliver every whole frame; where the rest begins."""
        view = memoryview(self._buffer)
        while self._end - start >= HEADER and not self.why:
            length = int.from_bytes(view[start : start + HEADER], "big")
            if length > self.owner.max_frame:
                self._refuse(f"frame of {length} bytes, at most {self.owner.max_frame} allowed")
                break
            stop = start + HEADER + length
            if stop > self._end:
                break
            frame = bytes(view[start + HEADER : stop])
            start = stop
            self.owner.framed(self, frame)
        return start

    def _make_room(self) -> None:
        """Fit the buffer to the frame under way, whose length is checked by now."""
        size = BUFFER
        if self._end >= HEADER and not self.why:
            size = max(size, HEADER + int.from_bytes(self._buffer[:HEADER], "big"))
        if size != len(self._buffer):
            kept, self._buffer = self._buffer, bytearray(size)
            self._buffer[: self._end] = kept[: self._end]

    def _refuse(self, why: str) -> None:
        self.abort(why)
        self.owner.refused(self.name or "a certificate without a name", why)
