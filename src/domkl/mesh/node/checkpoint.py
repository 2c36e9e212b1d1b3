"""A node's state on disk: two files in turn, so that one is always whole.

The rules of this file
----------------------
- A save goes over the older of the two, whole or not at all; the other stays as it is.
- A damaged file is passed over and reported: the older one is then what the node goes on from. So
  the journal must keep all samples after the *older* one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domkl.errors import DataError
from domkl.storage import Parts, pack, sound, unpack, write

KIND = "checkpoint"
NAMES = ("checkpoint-a.npz", "checkpoint-b.npz")
STATE = "state."


@dataclass(frozen=True)
class Saved:
    """What a node needs to go on.

    Parameters
    ----------
    position : int
        Number in the journal of the last sample that is learned.
    state : Parts
        Of the protocol.
    lags : array
        Of a series: the newest values up to the position, oldest first.
    rows : mapping
        The newest row of each file that was replayed, up to the position.
    counts : mapping
        What is counted over all starts.
    """

    position: int
    state: Parts
    lags: NDArray[Any]
    rows: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


class Checkpoints:
    """The two files of a folder.

    Attributes
    ----------
    damaged : list of Path
        Found on loading, and passed over.
    size : int
        Bytes of the newest.
    """

    def __init__(self, folder: Path) -> None:
        self.damaged: list[Path] = []
        self.size = 0
        self._paths = [folder / name for name in NAMES]
        self._positions: dict[Path, int] = {}
        self._newest: Path | None = None

    @property
    def oldest(self) -> int:
        """The position up to which samples are needed no more, whichever file gets lost."""
        return min(self._positions.values()) if len(self._positions) == len(NAMES) else 0

    def load(self) -> Saved | None:
        """Read the newest that is whole; None where there is none."""
        found = {path: saved for path in self._paths if (saved := self._read(path)) is not None}
        self._positions = {path: saved.position for path, saved in found.items()}
        if not found:
            return None
        self._newest = max(found, key=lambda path: found[path].position)
        self.size = self._newest.stat().st_size
        return found[self._newest]

    def save(self, saved: Saved) -> None:
        """Have it on disk."""
        data = pack(KIND, _parts(saved))
        path = next(path for path in self._paths if path != self._newest)
        write(path, data)
        self._positions[path], self._newest, self.size = saved.position, path, len(data)

    def _read(self, path: Path) -> Saved | None:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            with sound(KIND):
                return _saved(unpack(KIND, data))
        except DataError:
            self.damaged.append(path)
            return None


def next_epoch(path: Path, milliseconds: int) -> int:
    """A number that is greater at each start, and on disk before it is used."""
    try:
        last = int(path.read_text())
    except FileNotFoundError:
        last = 0
    except ValueError:
        raise DataError(f"{path} must hold a number; delete it if the clock is right") from None
    epoch = max(milliseconds, last + 1)
    write(path, f"{epoch}\n".encode())
    return epoch


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
