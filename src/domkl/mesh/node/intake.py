"""Samples from all faces, one way in: known ids, a bounded queue, one sync for many requests."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from domkl.errors import MeshError
from domkl.mesh.node.journal import Journal
from domkl.mesh.node.samples import Prepared


class QueueFullError(MeshError):
    """Too many samples wait to be learned: nothing was accepted; try again later."""


class _Group(NamedTuple):
    """Samples of one request that are new."""

    items: list[Prepared]
    first: "asyncio.Future[int]"


class _Place(NamedTuple):
    """Where the number of a sample will be known from."""

    first: "asyncio.Future[int]"
    offset: int


class Intake:
    """Accepts samples: when `accept` returns they are on disk.

    Requests that come while a sync is under way share the next one.

    Parameters
    ----------
    journal : Journal
    room : callable
        How many samples the queue can still take, those not counted that are being written.
    on_accepted : callable
        Told of the number of the first and of the samples, in order, in the loop's thread.
    """

    def __init__(
        self,
        journal: Journal,
        room: Callable[[], int],
        on_accepted: Callable[[int, Sequence[Prepared]], None],
    ) -> None:
        self.n_repeated = 0
        self._journal, self._room, self._on_accepted = journal, room, on_accepted
        self._waiting: list[_Group] = []
        self._n_waiting = 0
        self._coming: dict[str, _Place] = {}
        self._writer: asyncio.Task[None] | None = None

    async def accept(self, items: Sequence[Prepared]) -> list[int]:
        """Give each sample's number; a sample whose id is known keeps the number it had."""
        places = self._sort(items)
        return [each if isinstance(each, int) else await _number(each) for each in places]

    async def close(self) -> None:
        """Wait for what is being written."""
        while self._writer is not None:
            await asyncio.wait([self._writer])

    def _sort(self, items: Sequence[Prepared]) -> list[int | _Place]:
        first: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        fresh: dict[str, _Place] = {}
        new: list[Prepared] = []
        places: list[int | _Place] = []
        for item in items:
            name = "" if item.entry.is_row else item.entry.id
            known = self._journal.ids.get(name) or self._coming.get(name) or fresh.get(name)
            if known is None:
                known = _Place(first, len(new))
                new.append(item)
                if name:
                    fresh[name] = known
            places.append(known)
        if new:
            self._check_room(len(new))
            self._coming |= fresh
            self._enter(_Group(new, first))
        self.n_repeated += len(items) - len(new)
        return places

    def _check_room(self, n: int) -> None:
        room = self._room() - self._n_waiting
        if n > room:
            raise QueueFullError(
                f"queue must have room for {n} samples, got {max(0, room)}; try again later"
            )

    def _enter(self, group: _Group) -> None:
        group.first.add_done_callback(lambda first: first.cancelled() or first.exception())
        self._waiting.append(group)
        self._n_waiting += len(group.items)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            groups, self._waiting = self._waiting, []
            items = [item for group in groups for item in group.items]
            entries = [item.entry for item in items]
            try:
                first = await loop.run_in_executor(None, self._journal.append, entries)
                self._on_accepted(first, items)
            except Exception as error:  # whoever waits must hear of it
                for group in groups:
                    group.first.set_exception(error)
            else:
                for group in groups:
                    group.first.set_result(first)
                    first += len(group.items)
            self._n_waiting -= len(items)
            for item in items:
                self._coming.pop(item.entry.id, None)
        self._writer = None


async def _number(place: _Place) -> int:
    # shielded: a client that goes away must not cancel what others wait for
    return await asyncio.shield(place.first) + place.offset
