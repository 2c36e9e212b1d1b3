"""Samples that do not come over HTTP: lines of standard input, and rows of a file.

They enter as all others do, through `Intake`. A source waits while the queue or the disk is full;
it throws nothing away. MQTT has a file of its own (mqtt.py), for it needs an extra.
"""

import asyncio
import hashlib
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from domkl.data.nodes import Form, NodeTable, read_nodes
from domkl.data.rows import RowPlan
from domkl.data.tables import read_columns
from domkl.errors import DataError, ParameterError
from domkl.mesh.node import registry
from domkl.mesh.node.intake import (
    INVALID,
    MAX_BYTES,
    Format,
    OrderError,
    Prepared,
    QueueFullError,
    parse,
)
from domkl.mesh.node.node import Node
from domkl.mesh.process_log import event
from domkl.mesh.store.wal import BusyError, DiskFullError, Entry
from domkl.text import parse_names, parse_rows
from domkl.typing import Floats

AT_ONCE = 256  # samples that share a sync
PAUSE = 0.05  # seconds before a full queue is tried again
FULL_PAUSE = 1.0  # the same for a full disk
NO_FORM = Form()
GROUPED = 0.25  # seconds of rows, at a given rate, that share a sync


async def accept(node: Node, items: Sequence[Prepared]) -> None:
    """Have samples accepted; wait while there is no room."""
    rest = list(items)
    while rest:
        some = rest[: min(AT_ONCE, node.intake.capacity)]  # more would never find room
        try:
            some = some[:1] if node.intake.late(some) else some
            await node.intake.accept(some)
            rest = rest[len(some) :]
        except OrderError as error:
            event("bad sample", logging.WARNING, text=str(error))
            rest = rest[1:]
        except QueueFullError:
            await asyncio.sleep(PAUSE)
        except (DiskFullError, BusyError) as error:
            event("cannot accept", logging.ERROR, text=str(error))
            await asyncio.sleep(FULL_PAUSE)


def lines_of(options: registry.LineOptions) -> "registry.Source":
    """Standard input as a source."""
    return lambda node: partial(from_lines, node, sys.stdin.fileno())


def rows_of(options: registry.Table) -> "registry.Source":
    """A CSV file as a source."""
    rate, rows, times = options.rate, parse_rows(options.rows), parse_names(options.time)
    if not 0 <= rate < float("inf"):
        raise ParameterError(f"rate must be >= 0, got {rate}")
    form = Form(time=times or (), nodes=options.nodes)
    assert options.csv is not None
    path = options.csv

    def opened(node: Node) -> Callable[[], Awaitable[None]]:
        replay = Replay(path, node.format, rows, options.missing, form, node.folder.name)
        return partial(replay.run, node, rate)

    return opened


async def from_lines(node: Node, handle: int) -> None:
    """Take JSON lines, as of POST /learn, until the end; bad lines are logged and skipped."""
    number = 0
    async for lines in _batches(handle):
        items: list[Prepared] = []
        for line in lines:
            number += 1
            if line.strip():
                items += checked(node, line, "bad line", line=number)
        await accept(node, items)


def checked(node: Node, text: bytes, what: str, **where: Any) -> list[Prepared]:
    """The samples in a JSON text; none, and a line in the log, if the text is wrong."""
    try:
        return [node.format.sample(said) for said in parse(text)]
    except DataError as error:
        node.intake.rejected[INVALID] += 1
        event(what, logging.WARNING, **where, text=str(error))
        return []


async def _batches(handle: int) -> AsyncIterator[list[bytes]]:
    """Lines as they arrive; they are read in a thread, so that the loop is never blocked."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[list[bytes] | None] = asyncio.Queue()
    room = threading.Semaphore(4)

    def read() -> None:
        for lines in _lines(handle):
            room.acquire()
            loop.call_soon_threadsafe(queue.put_nowait, lines)
        loop.call_soon_threadsafe(queue.put_nowait, None)

    # a daemon thread: at the end it may still wait for input
    threading.Thread(target=read, name="lines", daemon=True).start()
    while (lines := await queue.get()) is not None:
        yield lines
        room.release()


def _lines(handle: int) -> Iterator[list[bytes]]:
    rest = b""
    while data := os.read(handle, 2**16):
        *lines, rest = (rest + data).split(b"\n")
        rest = rest[: MAX_BYTES + 1]  # enough to see that the line is too long
        if lines:
            yield lines
    if rest:
        yield [rest]


class Replay:
    """A CSV file with a header, row by row; each row is learned once, also after a kill.

    Parameters
    ----------
    path : Path
    sample_format : Format
        Its names are the columns.
    rows : slice
        Which rows; several nodes can share a file.
    missing : "error" or "drop"
        What to do with rows that have empty cells.
    form : Form
        Of a node that forecasts: where the file has its times and nodes.
    node : str, optional
        Of a file with several nodes, this learner's; or a part of the file's name.
    """

    def __init__(
        self,
        path: Path,
        sample_format: Format,
        rows: slice = slice(None),
        missing: str = "error",
        form: Form = NO_FORM,
        node: str | None = None,
    ) -> None:
        names, plan = sample_format.names, sample_format.plan
        is_timed = plan is not None and plan.clock.is_dated
        if plan is not None and is_timed:
            values, n_dropped = _clocked(path, plan, form, node)
        else:
            values, n_dropped = read_columns(path, names, missing=missing)
        self.values: Floats = values[rows]
        if not len(self.values):
            raise DataError(f"rows of {path} must be at least one, got none of {len(values)}")
        self._format = sample_format
        self.key = hashlib.sha256(f"{names} {rows} {values[0].tolist()}".encode()).hexdigest()[:16]
        event("replay", file=str(path), rows=len(self.values), dropped=n_dropped)
        if plan is not None and is_timed:
            _warn_if_short(path, plan, self.values)

    async def run(self, node: Node, rate: float) -> None:
        """Continue after the last accepted row; ``rate`` rows a second, or 0 for no pause."""
        loop = asyncio.get_running_loop()
        row = first = node.backlog.log.rows.get(self.key, 0)
        begun = loop.time()
        while row < len(self.values):
            if rate > 0:
                n_grouped = int(GROUPED * rate) if row > first else 0
                await asyncio.sleep(
                    max(0.0, begun + (row - first + n_grouped) / rate - loop.time())
                )
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
                items.append(self._format.prepared(entry))
            except DataError as error:
                node.intake.rejected[INVALID] += 1
                event("bad row", logging.WARNING, row=row + 1, text=str(error))
        return items


def _clocked(path: Path, plan: RowPlan, form: Form, node: str | None) -> tuple[Floats, int]:
    """Times and values of this node's rows, on the mesh's clock; ticks without any are left out."""
    if not form.time:
        raise DataError("time must be given for a mesh that forecasts: --time COLUMN")
    place = Path(str(path).replace("{node}", node or ""))
    form = replace(form, step=plan.clock.step)
    table: NodeTable = read_nodes(place, plan.target, inputs=plan.columns[1:], form=form)
    names = table.nodes
    if len(names) > 1 and node not in names:
        raise DataError(f"{path} must have rows of {node}, got {', '.join(map(str, names[:5]))}")
    k = names.index(node) if len(names) > 1 and node is not None else 0
    values = np.stack([table.column(name)[:, k] for name in plan.columns], axis=1)
    is_known = ~np.isnan(values).all(axis=1)
    times = np.array([table.clock.time(t) for t in range(len(values))], dtype=np.float64)
    rows = np.column_stack([times, values])[is_known]
    return rows, int((~is_known).sum())


def _warn_if_short(path: Path, plan: RowPlan, values: Floats) -> None:
    """Tell of horizons beyond the file; no error, because other values may follow."""
    first, last = (plan.clock.tick(int(values[row, 0])) for row in (0, -1))
    n_steps, longest = last - first + 1, max(plan.horizons)
    if n_steps <= longest:
        event(
            "short file",
            logging.WARNING,
            text=f"horizon must be below the {n_steps} steps of {path} to be scored, got {longest};"
            " forecasts are made, and scored when later values come",
        )
