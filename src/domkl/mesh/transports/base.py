"""The interface of transports: they move whole frames between authenticated neighbors.

The rules of this file
----------------------
- Every callback runs in the thread of the event loop, none inside `send`, none after `stop`.
- `on_peer(j, True, ...)` comes before the first frame of j; up and down alternate.
- A frame arrives whole or not at all, and in order while a connection lasts. Frames are neither
  acknowledged nor sent again; the protocol does that.
- Frames are accepted from listed neighbors only, and each neighbor can send only as itself.
- Frames to a neighbor that does not read wait in a buffer of limited size; then they are dropped.
- Frames of a neighbor are taken at a limited rate, and memory for it ends with its connection.
- An exception in a callback goes to the loop's exception handler; the transport goes on.
"""

import asyncio
import dataclasses
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, NamedTuple

from domkl.errors import ParameterError

MAX_FRAME = 16 * 2**20  # bytes
NOT_A_NEIGHBOR = "not a neighbor"
BACKLOG = 128  # connections that may wait to be accepted
RATE = 2000  # frames a second that are taken from a neighbor; one a round is what learners need
BURST = 256  # frames that are taken at once
ROOM = 2**16  # bytes that may wait for a neighbor, or two frames if that is more

OnFrame = Callable[[str, bytes], None]  # (neighbor, frame)
OnPeer = Callable[[str, bool, str], None]  # (neighbor, is_up, why)
OnRefused = Callable[[str, str], None]  # (who, why): a stranger or a bad certificate


class Address(NamedTuple):
    """Where a node listens; with port 0 the system chooses one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read `host:port`; an IPv6 host stands in brackets.

        >>> Address.parse("[::1]:7447")
        Address(host='::1', port=7447)
        """
        match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\s:\[\]]+)):(\d{1,5})", text, re.ASCII)
        if match is None or int(match[3]) > 65535:
            raise ParameterError(
                f"address must be host:port with a port up to 65535, got {text!r}; "
                "write an IPv6 host in brackets, as [::1]:7447"
            )
        return cls(match[1] or match[2], int(match[3]))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the host."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Endpoint(NamedTuple):
    """What a node's transport is made from; `registry.make` does it."""

    name: str  # of the node, as in its certificate
    neighbors: Mapping[str, Address]  # who may speak with it, and where each listens
    listen: Address
    certificates: Path  # folder with ca.pem, node.pem and node.key
    router: Address | None = None  # for transports that can use one
    mode: Literal["lockstep", "async"] = "lockstep"


@dataclass(slots=True)
class Traffic:
    """Frames and bytes exchanged with a neighbor since it was listed; bytes without framing."""

    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    received_bytes: int = 0
    dropped: int = 0


class Allowance:
    """How many frames of a neighbor may be taken now: so many at once, and so many a second.

    Examples
    --------
    >>> allowance = Allowance(rate=10, burst=2)
    >>> [allowance.take(now) for now in (0.0, 0.0, 0.0, 0.1, 0.1)]
    [True, True, False, True, False]
    """

    def __init__(self, rate: float = RATE, burst: int = BURST) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._when = float(burst), 0.0

    def take(self, now: float) -> bool:
        """Whether another frame may be taken, by a clock in seconds; if so, count it."""
        self._left = min(self._burst, self._left + self._rate * (now - self._when))
        self._when = now
        is_left = self._left >= 1
        self._left -= is_left
        return is_left


def check_name(name: str) -> str:
    """The name, if it can be used in certificates, keys and paths; else ParameterError."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name):
        raise ParameterError(
            f"name must be 1 to 63 of a-z, 0-9 and -, and not begin with -, got {name!r}"
        )
    return name


class Transport(ABC):
    """Moves frames between neighbors; it does not look into them.

    Parameters
    ----------
    name : str
        This node's name, as in its certificate.
    neighbors : mapping of name to Address
        Who may speak with this node, and where each listens.
    max_frame : int, default=16 MiB
        Bytes of the longest frame; checked on receipt before memory is allocated for it.
    dials : collection of str, optional
        The neighbors that this node dials, now or once listed; default those whose names sort
        after its own. The other end of each such edge must not dial.
    """

    def __init__(
        self,
        name: str,
        neighbors: Mapping[str, Address],
        *,
        max_frame: int = MAX_FRAME,
        dials: Collection[str] | None = None,
    ) -> None:
        if max_frame < 1:
            raise ParameterError(f"max_frame must be >= 1 byte, got {max_frame}")
        self.name = check_name(name)
        self.max_frame = max_frame
        self._dials = None if dials is None else frozenset(dials)
        self.neighbors = self._checked(neighbors)
        self._traffic = {neighbor: Traffic() for neighbor in self.neighbors}
        self._up: set[str] = set()
        self._is_open = False

    async def start(self, on_frame: OnFrame, on_peer: OnPeer, on_refused: OnRefused) -> None:
        """Listen, and connect to the neighbors; lost connections are made again until `stop`."""
        self._open(on_frame, on_peer, on_refused)
        try:
            await self._begin()
        except Exception:  # each transport has errors of its own
            self._close()
            raise

    @abstractmethod
    async def _begin(self) -> None:
        """Listen, and begin to connect; if this raises, the transport is not started."""

    @abstractmethod
    async def set_neighbors(self, neighbors: Mapping[str, Address]) -> None:
        """Replace the list of neighbors; connections to others are closed."""

    @abstractmethod
    async def stop(self) -> None:
        """Close everything, within seconds whatever the neighbors do; may be called again."""

    @abstractmethod
    def _transmit(self, neighbor: str, frame: bytes) -> bool:
        """Send a frame to a neighbor that is up; False if its buffer is full."""

    def send(self, neighbor: str, frame: bytes) -> bool:
        """Send without waiting; False if dropped: the neighbor is down or its buffer is full."""
        if len(frame) > self.max_frame:
            raise ParameterError(
                f"frame must have at most {self.max_frame} bytes, got {len(frame)}"
            )
        traffic = self._traffic.get(neighbor)
        if traffic is None:
            return False
        if neighbor not in self._up or not self._transmit(neighbor, frame):
            traffic.dropped += 1
            return False
        traffic.sent += 1
        traffic.sent_bytes += len(frame)
        return True

    def limit_frames(self, n_bytes: int) -> None:
        """Have frames of at most so many bytes; before `start`."""
        self.max_frame = min(self.max_frame, n_bytes)

    def reload(self) -> Awaitable[None] | None:
        """Read the certificates again, if the transport has any; await the result unless None."""
        return None

    def traffic(self) -> Mapping[str, Traffic]:
        """Frames and bytes per neighbor, up to now."""
        return {name: dataclasses.replace(each) for name, each in self._traffic.items()}

    def _open(self, on_frame: OnFrame, on_peer: OnPeer, on_refused: OnRefused) -> None:
        if self._is_open:
            raise RuntimeError(f"transport of {self.name} is started already")
        self._on_frame, self._on_peer, self._on_refused = on_frame, on_peer, on_refused
        self._is_open = True

    def _close(self) -> None:
        self._is_open = False
        self._up.clear()

    def _list(self, neighbors: Mapping[str, Address]) -> None:
        """Replace the list of neighbors; those who stay keep their counts."""
        self.neighbors = self._checked(neighbors)
        old = self._traffic
        self._traffic = {name: old.get(name) or Traffic() for name in self.neighbors}

    def _checked(self, neighbors: Mapping[str, Address]) -> dict[str, Address]:
        if self.name in neighbors:
            raise ParameterError(f"neighbors must not hold the node itself, got {self.name!r}")
        return {check_name(name): Address(*neighbors[name]) for name in sorted(neighbors)}

    def _is_dialed(self, neighbor: str) -> bool:
        return neighbor > self.name if self._dials is None else neighbor in self._dials

    def _mark(self, neighbor: str, is_up: bool, why: str) -> None:
        """Report that a neighbor is up or down, if that is news and the transport is open."""
        if self._is_open and is_up != (neighbor in self._up):
            (self._up.add if is_up else self._up.discard)(neighbor)
            _call(self._on_peer, neighbor, is_up, why)

    def _receive(self, neighbor: str, frame: bytes) -> None:
        """Deliver a frame, if it is not too long, and its sender is still a neighbor and up."""
        traffic = self._traffic.get(neighbor)
        if len(frame) > self.max_frame:
            self._refuse(neighbor, self._too_long(len(frame)))
        elif self._is_open and neighbor in self._up and traffic is not None:
            traffic.received += 1
            traffic.received_bytes += len(frame)
            _call(self._on_frame, neighbor, frame)

    def _too_long(self, length: int) -> str:
        return f"frame of {length} bytes, at most {self.max_frame} allowed"

    def _refuse(self, who: str, why: str) -> None:
        if self._is_open:
            _call(self._on_refused, who, why)


class Joined:
    """A transport of asyncio that writes once in a turn of the loop: each write is a system call.

    Head and body of an answer leave together, and so do the frames of several horizons.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write with whatever else is written in this turn."""
        if not self._parts:
            asyncio.get_running_loop().call_soon(self._flush)
        self._parts.append(data)

    def get_write_buffer_size(self) -> int:
        """Bytes that wait, those of this turn included."""
        return sum(map(len, self._parts)) + self._transport.get_write_buffer_size()

    def close(self) -> None:
        """Write what is left, and close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        data, self._parts = b"".join(self._parts), []
        if data and not self._transport.is_closing():
            self._transport.write(data)


async def bind(address: Address) -> socket.socket:
    """A listening socket."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, _, _, _, where = found[0]
    listener = socket.create_server(where[:2], family=family, backlog=BACKLOG)
    listener.setblocking(False)
    return listener


def is_full(waiting: int, frame: bytes) -> bool:
    """Whether a buffer in which so many bytes wait has no room for another frame."""
    return bool(waiting) and waiting + len(frame) > max(ROOM, 2 * len(frame))


def _call(callback: Callable[..., None], *values: object) -> None:
    try:
        callback(*values)
    except Exception as error:
        context = {"message": f"callback {callback!r} failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)
