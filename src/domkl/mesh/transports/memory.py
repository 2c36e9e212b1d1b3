"""Transports within one event loop, for tests: no sockets, no clock, deterministic order."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

from domkl.errors import ParameterError
from domkl.mesh.transports.base import MAX_FRAME, NOT_A_NEIGHBOR, Address, Transport

Edge = tuple[str, str]  # from, to; a link is the edge in sorted order


def _never(source: str, target: str, frame: bytes) -> bool:
    return False


class MemoryHub:
    """The network of one test: its nodes, its cuts, and the frames under way.

    Parameters
    ----------
    capacity : int, default=64
        Frames that may wait on an edge in one direction; further ones are dropped.
    is_lost : callable, optional
        Whether the network silently loses a frame, by (source, target, frame).
    """

    def __init__(
        self, *, capacity: int = 64, is_lost: Callable[[str, str, bytes], bool] = _never
    ) -> None:
        if capacity < 1:
            raise ParameterError(f"capacity must be >= 1 frame, got {capacity}")
        self.capacity, self.is_lost = capacity, is_lost
        self._members: dict[str, MemoryTransport] = {}
        self._links: dict[Edge, tuple[MemoryTransport, MemoryTransport]] = {}
        self._refused: dict[Edge, tuple[MemoryTransport, MemoryTransport]] = {}
        self._queues: dict[Edge, deque[bytes]] = {}
        self._cut: set[frozenset[str]] = set()
        self._held: set[Edge] = set()

    def cut(self, a: str, b: str) -> None:
        """Cut the connection of two nodes; frames under way are lost."""
        self._cut.add(frozenset((a, b)))
        self._settle_soon()

    def heal(self, a: str, b: str) -> None:
        """Undo `cut`."""
        self._cut.discard(frozenset((a, b)))
        self._settle_soon()

    def hold(self, source: str, target: str) -> None:
        """Deliver no frames from the source to the target."""
        self._held.add((source, target))

    def release(self, source: str, target: str) -> None:
        """Undo `hold`: the frames that waited arrive."""
        self._held.discard((source, target))
        for _ in self._queues.get((source, target), ()):
            asyncio.get_running_loop().call_soon(self._deliver, (source, target))

    def waiting(self, source: str, target: str) -> int:
        """The number of frames that wait on an edge."""
        return len(self._queues.get((source, target), ()))

    def join(self, member: "MemoryTransport") -> None:
        """Add a node; a newer one of the same name replaces the older."""
        if member.identity != member.name:
            for name in member.neighbors:
                if name in self._members:
                    self._members[name]._refuse(member.identity, f"speaks for {member.name}")
            return
        self._members[member.name] = member
        self._settle_soon()

    def leave(self, member: "MemoryTransport") -> None:
        """Remove a node."""
        if self._members.get(member.name) is member:
            del self._members[member.name]
            self._settle_soon()

    def transmit(self, source: str, target: str, frame: bytes) -> bool:
        """Put a frame on its edge; False if the edge is full."""
        queue = self._queues.get((source, target))
        if queue is None or len(queue) >= self.capacity:
            return False
        if not self.is_lost(source, target, frame):
            queue.append(frame)
            if (source, target) not in self._held:
                asyncio.get_running_loop().call_soon(self._deliver, (source, target))
        return True

    def _deliver(self, edge: Edge) -> None:
        queue, target = self._queues.get(edge), self._members.get(edge[1])
        if queue and target is not None and edge not in self._held:
            target._receive(edge[0], queue.popleft())

    def _settle_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._settle)

    def _settle(self) -> None:
        """Update the links: both nodes are there, list each other, and are not cut off."""
        wanted, refused = {}, {}
        for a, node in sorted(self._members.items()):
            for b in node.neighbors:
                other = self._members.get(b)
                if other is None or frozenset((a, b)) in self._cut:
                    continue
                if a not in other.neighbors:
                    refused[a, b] = (node, other)
                elif a < b:
                    wanted[a, b] = (node, other)
        gone = [edge for edge, ends in self._links.items() if wanted.get(edge) != ends]
        new = [edge for edge, ends in wanted.items() if self._links.get(edge) != ends]
        denied = [edge for edge, ends in refused.items() if self._refused.get(edge) != ends]
        old, self._links, self._refused = self._links, wanted, refused
        for edge in gone:
            self._switch(edge, old[edge], False)
        for edge in new:
            self._switch(edge, wanted[edge], True)
        for a, b in denied:
            refused[a, b][1]._refuse(a, NOT_A_NEIGHBOR)

    def _switch(
        self, edge: Edge, ends: "tuple[MemoryTransport, MemoryTransport]", is_up: bool
    ) -> None:
        """Make or end a link, with its queues, and tell both ends."""
        (a, b), (first, second) = edge, ends
        if is_up:
            self._queues |= {(a, b): deque(), (b, a): deque()}
        else:
            del self._queues[a, b], self._queues[b, a]
        why = "linked" if is_up else "connection lost"
        first._mark(b, is_up, why)
        second._mark(a, is_up, why)


class MemoryTransport(Transport):
    """A node on a `MemoryHub`.

    Parameters
    ----------
    hub : MemoryHub
    name, neighbors, max_frame
        As in `Transport`; addresses are ignored.
    identity : str, optional
        The name in this node's certificate; any other than `name` is refused.
    """

    def __init__(
        self,
        hub: MemoryHub,
        name: str,
        neighbors: Mapping[str, Address],
        *,
        max_frame: int = MAX_FRAME,
        identity: str | None = None,
    ) -> None:
        super().__init__(name, neighbors, max_frame=max_frame)
        self.hub, self.identity = hub, identity or name

    async def _begin(self) -> None:
        self.hub.join(self)

    async def set_neighbors(self, neighbors: Mapping[str, Address]) -> None:
        """Replace the list of neighbors."""
        self._list(neighbors)
        self.hub._settle_soon()

    async def stop(self) -> None:
        """Leave the hub."""
        if self._is_open:
            self._close()
            self.hub.leave(self)

    def _transmit(self, neighbor: str, frame: bytes) -> bool:
        return self.hub.transmit(self.name, neighbor, frame)
