"""What a rank keeps on disk of a long run, so that a rank that dies loses few rounds.

Each rank writes a file of its own, under another name first, so that it is there as a whole or not
at all. Older ones go when all ranks have the newer.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np

from domkl import storage
from domkl.errors import DataError
from domkl.sim.delay import Waiting
from domkl.typing import Floats


class Kept:
    """The files of one rank in a folder."""

    def __init__(self, folder: Path, rank: int, n_ranks: int, fingerprint: str) -> None:
        self._folder, self._prefix = folder, f"rank{rank}of{n_ranks}"
        self._fingerprint = fingerprint
        folder.mkdir(parents=True, exist_ok=True)

    def rounds(self) -> set[int]:
        """After how many rounds there is a file."""
        pattern = re.compile(rf"{self._prefix}-(\d+)\.npz")
        found = (pattern.fullmatch(path.name) for path in self._folder.iterdir())
        return {int(match[1]) for match in found if match}

    def write(
        self, n_rounds: int, state: Any, sums: Floats, waiting: Waiting | None = None
    ) -> None:
        """Keep the state after so many rounds, what waits, and what was summed in each round."""
        with storage.replacing(self._path(n_rounds)) as file:
            parts = {"state": state} | ({} if waiting is None else {"waiting": waiting})
            fields = {f"{part}.{n}": v for part in parts for n, v in parts[part]._asdict().items()}
            np.savez(file, fingerprint=self._fingerprint, sums=sums, **fields)

    def read(self, n_rounds: int) -> tuple[dict[str, Any], Floats, Waiting | None]:
        """The state's fields, the sums, and what waits if labels come late."""
        path = self._path(n_rounds)
        with np.load(path, allow_pickle=False) as file:
            if str(file["fingerprint"]) != self._fingerprint:
                raise DataError(
                    f"{path} must come from this run, got one of another algorithm, graph,"
                    " features or dtype; name another folder"
                )
            fields = {name[6:]: file[name] for name in file.files if name.startswith("state.")}
            waits = [f"waiting.{name}" for name in Waiting._fields]
            is_late = waits[0] in file.files
            waiting = Waiting(*(file[name] for name in waits)) if is_late else None
            return fields, file["sums"], waiting

    def forget_before(self, n_rounds: int) -> None:
        """Remove older files."""
        for older in self.rounds():
            if older < n_rounds:
                self._path(older).unlink()

    def _path(self, n_rounds: int) -> Path:
        return self._folder / f"{self._prefix}-{n_rounds}.npz"
