"""Samples that do not come over HTTP: standard input, and a file replayed.

All go the same way in: checked, into the journal, then learned. A source waits where the queue or
the disk is full; nothing that it has taken is thrown away.
"""

import asyncio
import hashlib
import logging
import os
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import numpy as np

from domkl.data.loaders import read_columns
from domkl.errors import DataError
from domkl.mesh.node.intake import QueueFullError
from domkl.mesh.node.journal import JournalFullError
from domkl.mesh.node.node import INVALID, Node
from domkl.mesh.node.samples import MAX_BYTES, Desk, Prepared, parse
from domkl.mesh.node.segment import Entry
from domkl.mesh.node.telemetry import event
from domkl.typing import Floats

AT_ONCE = 256  # samples that share a sync
PAUSE = 0.05  # seconds before a full queue is tried again
FULL_PAUSE = 1.0  # the same for a full disk


async def accept(node: Node, items: Sequence[Prepared]) -> None:
    """Have samples accepted, however long there is no room."""
    rest = list(items)
    while rest:
        some = rest[: min(AT_ONCE, node.home.config.queue)]  # more would never find room
        try:
            await node.accept(some)
            rest = rest[len(some) :]
        except QueueFullError:
            await asyncio.sleep(PAUSE)
        except JournalFullError as error:
            event("disk full", logging.ERROR, text=str(error))
            await asyncio.sleep(FULL_PAUSE)


async def from_lines(node: Node, handle: int) -> None:
    """Take JSON lines, as of POST /learn, until the end; a bad line is reported and passed over."""
    number = 0
    async for lines in _batches(handle):
        items: list[Prepared] = []
        for line in lines:
            number += 1
            if line.strip():
                items += _checked(node, line, number)
        await accept(node, items)


def _checked(node: Node, line: bytes, number: int) -> list[Prepared]:
    try:
        if len(line) > MAX_BYTES:
            raise DataError(f"line must have at most {MAX_BYTES} bytes, got more")
        return [node.ledger.desk.sample(given) for given in parse(line)]
    except DataError as error:
        node.rejected[INVALID] += 1
        event("bad line", logging.WARNING, line=number, text=str(error))
        return []


async def _batches(handle: int) -> AsyncIterator[list[bytes]]:
    """Lines as they come, read in a thread: neither pipes nor files can hold up the loop."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[list[bytes] | None] = asyncio.Queue()
    room = threading.Semaphore(4)

    def read() -> None:
        for lines in _lines(handle):
            room.acquire()
            loop.call_soon_threadsafe(queue.put_nowait, lines)
        loop.call_soon_threadsafe(queue.put_nowait, None)

    # a daemon: at the end it may be waiting for input that never comes
    threading.Thread(target=read, name="lines", daemon=True).start()
    while (lines := await queue.get()) is not None:
        yield lines
        room.release()


def _lines(handle: int) -> Iterator[list[bytes]]:
    rest = b""
    while data := os.read(handle, 2**16):
        *lines, rest = (rest + data).split(b"\n")
        rest = rest[: MAX_BYTES + 1]  # the rest of a line that is too long is dropped
        if lines:
            yield lines
    if rest:
        yield [rest]


class Replay:
    """A CSV file with a header, row by row; each is learned once, whatever happens.

    Parameters
    ----------
    path : Path
    desk : Desk
        Its model names the columns.
    rows : slice
        Which rows: with several nodes on one file, each takes its own.
    missing : "error" or "drop"
        What to do with rows that have empty cells.
    """

    def __init__(
        self, path: Path, desk: Desk, rows: slice = slice(None), missing: str = "error"
    ) -> None:
        model = desk.model
        inputs = [] if desk.lags else [each.name for each in model.inputs]
        names = [*inputs, model.target.name]
        values, n_dropped = read_columns(path, names, missing=missing)
        self.values: Floats = values[rows]
        if not len(self.values):
            raise DataError(f"rows of {path} must be at least one, got none of {len(values)}")
        self._desk = desk
        self.key = hashlib.sha256(f"{names} {rows} {values[0].tolist()}".encode()).hexdigest()[:16]
        event("replay", file=str(path), rows=len(self.values), dropped=n_dropped)

    async def run(self, node: Node, rate: float) -> None:
        """Go on after the last row that was accepted; ``rate`` rows a second, 0: no pause."""
        loop = asyncio.get_running_loop()
        row = first = node.ledger.journal.rows.get(self.key, 0)
        begun = loop.time()
        while row < len(self.values):
            if rate > 0:
                await asyncio.sleep(max(0.0, begun + (row - first) / rate - loop.time()))
                due = first + int((loop.time() - begun) * rate) + 1
            else:
                due = len(self.values)
            end = min(due, row + AT_ONCE, len(self.values))
            await accept(node, self._items(node, row, end))
            row = end

    def _items(self, node: Node, start: int, end: int) -> list[Prepared]:
        items = []
        for row in range(start, end):
            entry = Entry(np.array(self.values[row]), f"{self.key}:{row + 1}", is_row=True)
            try:
                items.append(self._desk.prepared(entry))
            except DataError as error:
                node.rejected[INVALID] += 1
                event("bad row", logging.WARNING, row=row + 1, text=str(error))
        return items


def parse_rows(text: str) -> slice:
    """Read ``first:end:step`` as Python has it, such as ``0::4``: every fourth.

    Examples
    --------
    >>> parse_rows("1::4")
    slice(1, None, 4)
    """
    try:
        parts = [int(part) if part else None for part in text.split(":")]
    except ValueError:
        parts = []
    if not 2 <= len(parts) <= 3 or any(part is not None and part < 0 for part in parts):
        raise DataError(f"rows must be first:end:step, got {text!r}")
    if len(parts) == 3 and parts[2] == 0:
        raise DataError(f"step of rows must be >= 1, got {text!r}")
    return slice(*parts)


async def until_learned(node: Node) -> None:
    """Wait until all that was accepted is learned."""
    while not node.is_idle:
        await asyncio.sleep(PAUSE)
