"""Records what happens in a node: predictions into the history, newest samples, events.

The node tells it of every prediction and event, and once in a while of the time. Whatever goes to
disk is written in another thread. A disk that refuses loses history, and stops nothing.
"""

import asyncio
import json
import math
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from domkl.mesh.protocol.events import Predicted
from domkl.mesh.store.history import (
    SAMPLE,
    TRUST,
    History,
    HistoryRows,
    Records,
    Ring,
    plus,
    sums_of,
)
from domkl.mesh.store.wal import DiskFullError, check_room
from domkl.storage import write
from domkl.text import from_json

FOLDER, EVENTS = "history", "events.jsonl"
N_SAMPLES, N_EVENTS = 1000, 500
WINDOWS = {"hour": 3600, "day": 86400, "week": 7 * 86400}  # seconds
COUNTS = (100, 1000)  # samples
REFRESHED = 1.0  # seconds between two computations of the windows


class Gauges(NamedTuple):
    """What a node is like at the end of a second; bytes are counted since its start."""

    queued: int
    n_open: int
    n_listed: int
    sent: float
    received: float
    weights: Sequence[float] = ()
    trust: Mapping[str, float] | None = None


class Second(NamedTuple):
    """What has happened in a second that is over."""

    record: Any
    samples: Mapping[int, Records]  # by horizon


class Event(NamedTuple):
    """Something that happened: ``number`` ascends over all starts."""

    number: int
    time: float
    kind: str
    peer: str
    text: str


class Recorder:
    """What a node remembers of itself.

    Parameters
    ----------
    folder : Path
        The node's data folder.
    gauges : callable
        Asked once a second.
    alarm : callable
        Told ("history", "", what went wrong) when the disk refuses.
    horizons : sequence of int
    n_weights : int
        Kernels.
    reserve : callable
        Bytes that must stay free on the disk, for what matters more than history.
    clock : callable
        Seconds since 1970.
    """

    def __init__(
        self,
        folder: Path,
        gauges: Callable[[], Gauges],
        alarm: Callable[[str, str, str], None],
        *,
        horizons: Sequence[int] = (1,),
        n_weights: int = 0,
        reserve: Callable[[], int] = lambda: 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.horizons, self.clock = tuple(horizons), clock
        self.history = History(folder / FOLDER, len(self.horizons), n_weights)
        self._resumed = self.history.last_number  # samples up to this one are recorded
        self._rings = {
            h: Ring(folder / FOLDER / f"samples-{h}", SAMPLE, N_SAMPLES) for h in self.horizons
        }
        self._samples = {h: ring.newest() for h, ring in self._rings.items()}
        self._fresh: dict[int, list[tuple[float, ...]]] = {h: [] for h in self.horizons}
        self._scored = dict.fromkeys(self.horizons, sums_of(np.empty(0, SAMPLE)))
        self._events_file = folder / FOLDER / EVENTS
        self.events = _read_events(self._events_file)
        self._n_lines = 2 * N_EVENTS  # unknown: the first write shortens the file
        self._gauges, self._alarm, self._reserve = gauges, alarm, reserve
        self._place = {h: k for k, h in enumerate(self.horizons)}
        self._record = self.history.begun(int(clock()))
        self._moved = (0.0, 0.0)  # bytes sent and received, up to the last record
        self._unwritten: list[Second] = []
        self._unlogged: list[Event] = []
        self._task: asyncio.Task[None] | None = None
        self._windows: dict[int, dict[str, Any]] = {}
        self._windows_time = -math.inf

    @property
    def last_time(self) -> float | None:
        """When the newest sample was learned."""
        return self.history.last_time or None

    def begin(self, n_accepted: int) -> None:
        """Go on after the newest sample, unless the node has begun anew and has fewer."""
        if n_accepted < self.history.last_number:
            self.history.last_number = 0
        self._resumed = self.history.last_number

    def predicted(self, effect: Predicted) -> None:
        """Take in a prediction, except one that is made again after a restart."""
        history, h = self.history, effect.horizon
        if effect.number <= self._resumed or h not in self._place:
            return
        history.last_number = max(history.last_number, effect.number)
        now = history.last_time = self.clock()
        alone, deviation = effect.y_alone, effect.deviation
        if alone is None:
            alone = math.nan
        if deviation is None or not math.isfinite(deviation):
            deviation = math.nan
        seen = (effect.number, 0, h, now, effect.y, effect.y_hat, effect.y_last, alone, deviation)
        self._fresh[h].append(seen)
        if effect.gap is not None:
            self._record["n_gaps"] += 1
            self._record["gaps"] += effect.gap

    def note(self, kind: str, peer: str, text: str) -> None:
        """Take in an event."""
        number = self.events[-1].number + 1 if self.events else 1
        happened = Event(number, round(self.clock(), 3), kind, peer, text)
        self.events.append(happened)
        self._unlogged.append(happened)

    def tick(self) -> None:
        """End the record of a second that is over, and have it written."""
        second = int(self.clock())
        if second == int(self._record["index"]):
            return
        self._end()
        self._record = self.history.begun(second)
        if self._task is None:
            self._task = asyncio.create_task(self._write())

    async def close(self) -> None:
        """Write what is left, and close the files."""
        if self._task is not None:
            await asyncio.wait([self._task])
        self._end()
        await self._write()
        self.history.close()
        for ring in self._rings.values():
            ring.close()

    def samples(self, horizon: int, after: int = 0) -> Records:
        """The newest samples, those with a number above ``after``."""
        found = self._newest(horizon)
        return found[found["index"] > after]

    def scored(self, horizon: int) -> Any:
        """Sums over all samples of this process."""
        return plus(self._scored[horizon], sums_of(self._fresh_of(horizon)))

    def unwritten(self) -> Records:
        """The records that may not be on disk yet, that of this second included."""
        known = [each.record for each in self._unwritten]
        return np.stack([*known, self._completed(self._record.copy())])

    def rows(self, since: float, step: float) -> HistoryRows:
        """The history since a time, in steps of at least so many seconds."""
        return self.history.rows(since, step, self.clock(), self.unwritten())

    def seconds_after(self, second: int) -> Records:
        """The records of seconds after this one that are over."""
        known = [each.record for each in self._unwritten if each.record["index"] > second]
        end = int(known[0]["index"]) if known else int(self._record["index"])
        found = self.history.seconds(second + 1, end)
        return np.concatenate([found, np.stack(known)]) if known else found

    def windows(self) -> dict[int, dict[str, Any]]:
        """Sums by horizon and window: hour, day, week, last 100 and 1000; a second old at most."""
        now = self.clock()
        if not 0 <= now - self._windows_time < REFRESHED:
            unwritten = self.unwritten()
            totals = {name: self.history.total(s, now, unwritten) for name, s in WINDOWS.items()}
            self._windows = {
                h: {name: total["by"][k] for name, total in totals.items()}
                | {f"last {n}": sums_of(self._newest(h)[-n:]) for n in COUNTS}
                for h, k in self._place.items()
            }
            self._windows_time = now
        return self._windows

    def _fresh_of(self, horizon: int) -> Records:
        return np.array(self._fresh[horizon], SAMPLE)

    def _newest(self, horizon: int) -> Records:
        return np.concatenate([self._samples[horizon], self._fresh_of(horizon)])[-N_SAMPLES:]

    def _completed(self, record: Any) -> Any:
        """Add this second's samples to a record, and what the node is like now."""
        for h, k in self._place.items():
            record["by"][k] = plus(record["by"][k], sums_of(self._fresh_of(h)))
        seen = self._gauges()
        record["queued"], record["n_open"], record["n_listed"] = seen[:3]
        record["sent"] += max(seen.sent - self._moved[0], 0.0)
        record["received"] += max(seen.received - self._moved[1], 0.0)
        if len(seen.weights) == len(record["weights"]):
            record["weights"] = seen.weights
        record["trust"] = [(seen.trust or {}).get(name, math.nan) for name in TRUST]
        record["seconds"] = 1.0
        record["last_number"] = self.history.last_number
        record["last_time"] = self.history.last_time
        return record

    def _end(self) -> None:
        """End the record of this second."""
        samples = {h: self._fresh_of(h) for h in self.horizons}
        self._unwritten.append(Second(self._completed(self._record), samples))
        seen = self._gauges()
        self._moved = (seen.sent, seen.received)
        for h in self.horizons:
            self._scored[h] = self.scored(h)
            self._samples[h], self._fresh[h] = self._newest(h), []

    async def _write(self) -> None:
        """Write in another thread what has come up to now."""
        seconds, events, self._unlogged = list(self._unwritten), self._unlogged, []
        try:
            await asyncio.to_thread(self._to_disk, seconds, events)
        except (DiskFullError, OSError) as error:
            self._alarm("history", "", f"cannot be written: {error}; the node goes on without")
        finally:
            del self._unwritten[: len(seconds)]
            self._task = None

    def _to_disk(self, seconds: list[Second], events: list[Event]) -> None:
        check_room(self._events_file.parent, self._reserve())
        for record, samples in seconds:
            self.history.write(record)
            for h, found in samples.items():
                self._rings[h].write(found[-N_SAMPLES:])
        if events:
            self._log(events)

    def _log(self, events: list[Event]) -> None:
        """Append events; a file that is twice as long as it must be is written anew."""
        self._n_lines += len(events)
        if self._n_lines > 2 * N_EVENTS:
            kept = list(self.events)
            lines = "".join(json.dumps(each) + "\n" for each in kept)
            write(self._events_file, lines.encode(), mode=0o600)
            self._n_lines = len(kept)
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        file = os.open(self._events_file, flags, 0o600)
        try:
            os.write(file, "".join(json.dumps(each) + "\n" for each in events).encode())
        finally:
            os.close(file)


def _read_events(path: Path) -> deque[Event]:
    """The events of earlier processes; a line that a kill has torn is left out."""
    found: deque[Event] = deque(maxlen=N_EVENTS)
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return found
    for line in lines:
        try:
            number, moment, kind, peer, text = from_json(line)
            found.append(Event(int(number), float(moment), str(kind), str(peer), str(text)))
        except (ValueError, TypeError):
            continue
    return found
