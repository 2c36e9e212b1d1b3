"""What is kept of the rounds of a cell: reduced to trials as they come, in full on request."""

from typing import Any

import numpy as np

from domkl.typing import Floats

MOST_ROUNDS = 256  # of a chunk
MOST_VALUES = 2_000_000  # of a name's rows in a chunk


class Records:
    """Per-learner rows of each round, in chunks; every full chunk is averaged over trials.

    A row is written in place, so that a round costs no more than the copies. Names:
    ``predictions`` and ``targets``; ``spread``, Σ_ℓ (f_k(x_k) − f_ℓ(x_k))² over the trial, and
    ``inside``, over the learner's component; ``gaps``, the squared discrepancy to neighbors;
    ``deviation``, the predictions' own. Chunks hold a multiple of ``at_once`` rounds.
    """

    def __init__(
        self,
        n_trials: int,
        n_learners: int,
        kept: tuple[str, ...],
        is_measured: bool,
        at_once: int = 1,
    ) -> None:
        n_rows = n_trials * n_learners
        self._chunk = max(1, min(MOST_ROUNDS, MOST_VALUES // n_rows) // at_once) * at_once
        measured = ("spread", "inside") if is_measured else ()
        names = {"predictions", "targets", *measured, *kept}
        self._rows: dict[str, Floats] = {name: np.zeros((self._chunk, n_rows)) for name in names}
        self._shape = (n_trials, n_learners)
        self._kept: dict[str, list[Floats]] = {name: [] for name in kept}
        self._error: list[Floats] = []
        self._n_labels: list[Any] = []
        self._disagreement: list[Floats] = []
        self._filled = 0
        self.n_rounds = 0

    def keeps(self, name: str) -> bool:
        """Whether all rows of this name are kept."""
        return name in self._kept

    def row(self, name: str) -> Floats:
        """This round's row (B·K,), to be written."""
        row: Floats = self._rows[name][self._filled]
        return row

    def rows(self, name: str, n_rounds: int) -> Floats:
        """The next rounds' rows (n, B·K), to be written; at most `n_free` of them."""
        return self._rows[name][self._filled : self._filled + n_rounds]

    @property
    def n_free(self) -> int:
        """Rows that can be had at once."""
        return self._chunk - self._filled

    def end_rounds(self, n_rounds: int = 1) -> None:
        """Go on to the next rows."""
        self._filled += n_rounds
        self.n_rounds += n_rounds
        if self._filled == self._chunk:
            self._reduce()

    def _reduce(self) -> None:
        rows = {name: values[: self._filled] for name, values in self._rows.items()}
        squares = (rows["predictions"] - rows["targets"]) ** 2
        is_known = ~np.isnan(squares)
        n_labels = is_known.reshape(len(squares), *self._shape).sum(axis=2)
        self._n_labels.append(n_labels)
        error = self._over_trials(squares)
        if not is_known.all():
            sums = np.where(is_known, squares, 0.0).reshape(len(squares), *self._shape).sum(axis=2)
            error = np.where(n_labels > 0, sums / np.maximum(n_labels, 1), np.nan)
        self._error.append(error)
        if "spread" in rows:
            partners = max(self._shape[1] - 1, 1)
            self._disagreement.append(self._over_trials(rows["spread"]) / partners)
        for name, chunks in self._kept.items():
            chunks.append(rows[name].copy())
        self._filled = 0

    def _over_trials(self, rows: Floats) -> Floats:
        return np.asarray(rows.reshape(len(rows), *self._shape).mean(axis=2))

    def squared_error(self) -> Floats:
        """Mean over the learners with a label of each round, (B, T); NaN where there is none."""
        return self._joined(self._error).T

    def n_labels(self) -> Floats:
        """Number of labels in each round, (B, T)."""
        return self._joined(self._n_labels).T

    def disagreement(self) -> Floats:
        """Mean over ordered pairs of learners of each round, (B, T); NaN if not measured."""
        if "spread" not in self._rows:
            return np.full((self._shape[0], self.n_rounds), np.nan)
        return self._joined(self._disagreement).T

    def kept(self, name: str) -> Floats | None:
        """All rows of a name that was kept, (B, T, K)."""
        if name not in self._kept:
            return None
        rows = self._joined(self._kept[name])
        return rows.reshape(len(rows), *self._shape).transpose(1, 0, 2)

    def _joined(self, chunks: list[Floats]) -> Floats:
        if self._filled:
            self._reduce()
        return np.concatenate(chunks)
