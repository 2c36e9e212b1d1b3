"""Checkpoints of a node: two files that are written in turn, so that one is always whole.

The rules of this file
----------------------
- A save replaces the older of the two files atomically; the other one is not touched.
- A damaged file, or one with numbers that are not finite, is skipped and reported, and the node
  continues from the other one. Therefore the write-ahead log must keep all samples after the
  *older* checkpoint.
- A state that is not finite is not written: both files stay as they are.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domkl.errors import DataError, DomklError
from domkl.mesh.store.wal import FULL, WriteAheadLog
from domkl.storage import BROKEN, Parts, pack, sound, unpack, write

KIND = "checkpoint"
NAMES = ("checkpoint-a.npz", "checkpoint-b.npz")
STATE = "state."
MAX_EPOCH = 2**44  # frames have 64 bits for a number, and each start of a node uses up to 2**20


@dataclass(frozen=True)
class Saved:
    """The content of a checkpoint.

    Parameters
    ----------
    position : int
        Number in the write-ahead log of the last sample that is learned.
    state : Parts
        The protocol's state.
    lags : array
        Of a time series: the newest values up to the position, oldest first.
    rows : mapping
        The newest row of each file that was replayed, up to the position.
    counts : mapping
        Counters that go on over all starts of the node.
    """

    position: int = 0
    state: Parts = Parts({}, {})
    lags: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    rows: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


class Checkpoints:
    """The two files of a data folder.

    Attributes
    ----------
    saved : Saved or None
        What `load` found.
    damaged : list of Path
        Files that were found damaged by `load`.
    size : int
        Bytes of the newest checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self.saved: Saved | None = None
        self.damaged: list[Path] = []
        self.size = 0
        self._paths = [folder / name for name in NAMES]
        self._positions: dict[Path, int] = {}
        self._newest: Path | None = None

    @property
    def oldest(self) -> int:
        """Samples up to this position are not needed any more, even if one file is lost."""
        return min(self._positions.values()) if len(self._positions) == len(NAMES) else 0

    def load(self) -> Saved | None:
        """Read the newest whole checkpoint; None if there is none."""
        found = {path: saved for path in self._paths if (saved := self._read(path)) is not None}
        self._positions = {path: saved.position for path, saved in found.items()}
        if not found:
            return None
        self._newest = max(found, key=lambda p: (found[p].position, p.stat().st_mtime_ns))
        self.size, self.saved = self._newest.stat().st_size, found[self._newest]
        return self.saved

    def save(self, saved: Saved) -> None:
        """Write a checkpoint; it is on disk when this returns."""
        _check_finite(saved)
        with sound(KIND):  # the header's numbers must be finite, too
            data = pack(KIND, _parts(saved))
        path = next(path for path in self._paths if path != self._newest)
        write(path, data, mode=0o600)
        self._positions[path], self._newest, self.size = saved.position, path, len(data)

    def _read(self, path: Path) -> Saved | None:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            with sound(KIND):
                found = _saved(unpack(KIND, data))
            _check_finite(found)
            return found
        except DataError:
            self.damaged.append(path)
            return None


class Saver:
    """Writes checkpoints in another thread, one at a time, and then shortens the write-ahead log.

    A checkpoint that cannot be written is reported, and the node goes on.

    Parameters
    ----------
    checkpoints : Checkpoints
    log : WriteAheadLog
    position : int
        Of the checkpoint that the node started from.
    alarm : callable
        Told ("checkpoint", "", what went wrong).

    Attributes
    ----------
    position : int
        Of the newest checkpoint.
    n_failed : int
        Checkpoints that could not be written.
    is_busy : bool
        Whether a checkpoint is being written.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        log: WriteAheadLog,
        position: int,
        alarm: Callable[[str, str, str], None],
    ) -> None:
        self.position, self.n_failed, self.is_busy = position, 0, False
        self._checkpoints, self._log, self._alarm = checkpoints, log, alarm
        self._task: asyncio.Task[None] | None = None

    def begin(self, saved: Saved) -> None:
        """Start to write a checkpoint; none may be under way."""
        assert not self.is_busy
        self.is_busy, self._task = True, asyncio.create_task(self._save(saved))

    async def wait(self) -> None:
        """Wait until no checkpoint is being written."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _save(self, saved: Saved) -> None:
        try:
            await asyncio.to_thread(self._write, saved)
            self.position = saved.position
        except (DomklError, OSError) as error:
            self.n_failed += 1
            self._alarm("checkpoint", "", f"cannot be written: {error}")
        finally:
            self.is_busy = False

    def _write(self, saved: Saved) -> None:
        self._checkpoints.save(saved)
        self._log.reserve = 2 * self._checkpoints.size
        self._log.drop(self._checkpoints.oldest)


@contextlib.contextmanager
def going_on() -> Iterator[None]:
    """Turn what a whole checkpoint of another form than a node writes causes into DataError."""
    try:
        yield
    except DomklError:
        raise
    except BROKEN as error:
        text = f"checkpoint must be one that a node wrote, got {type(error).__name__}: {error}"
        raise DataError(f"{text}; move {NAMES[0]} and {NAMES[1]} away, or restore them") from None


def next_epoch(path: Path, milliseconds: int) -> int:
    """A number that grows with each start of the node; it is on disk before it is used.

    On a full disk the file is overwritten in place. If even that fails, the clock must be ahead of
    all numbers before.
    """
    try:
        last = int(path.read_text())
    except FileNotFoundError:
        last = 0
    except ValueError:
        raise DataError(f"{path} must hold a number; delete it if the clock is right") from None
    if last >= MAX_EPOCH:  # frames have no room for it, so it was never used
        last = 0
    epoch = max(milliseconds, last + 1)
    if epoch >= MAX_EPOCH:
        raise DataError(f"{path} must hold a number below {MAX_EPOCH - 1}, got {last}; delete it"
                        " when all neighbors have stopped")  # fmt: skip
    text = f"{epoch}\n".encode()
    try:
        write(path, text, mode=0o600)
    except OSError as error:
        if error.errno not in FULL or not (_overwrite(path, text) or milliseconds > last):
            raise
    return epoch


def _overwrite(path: Path, text: bytes) -> bool:
    """Whether a number could be written over an older one with as many digits."""
    try:
        with path.open("r+b", buffering=0) as file:
            is_as_long = len(file.read()) == len(text)
            if is_as_long:
                os.pwrite(file.fileno(), text, 0)
                os.fsync(file.fileno())
            return is_as_long
    except OSError:
        return False


def _check_finite(saved: Saved) -> None:
    for name, values in {**saved.state.arrays, "lags": saved.lags}.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise DataError(f"state must be finite to be saved, got {name} that is not")


def _parts(saved: Saved) -> Parts:
    header = {
        "position": saved.position,
        "state": saved.state.header,
        "rows": dict(saved.rows),
        "counts": dict(saved.counts),
    }
    arrays = {STATE + name: values for name, values in saved.state.arrays.items()}
    return Parts(header, {**arrays, "lags": np.asarray(saved.lags, dtype=np.float64)})


def _saved(parts: Parts) -> Saved:
    header, arrays = parts
    state = {name.removeprefix(STATE): a for name, a in arrays.items() if name.startswith(STATE)}
    return Saved(
        position=int(header["position"]),
        state=Parts(dict(header["state"]), state),
        lags=arrays["lags"].astype(np.float64),
        rows={str(name): int(row) for name, row in header["rows"].items()},
        counts={str(name): int(n) for name, n in header["counts"].items()},
    )
