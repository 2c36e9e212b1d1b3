"""Labels that come late: what was predicted waits until its label is known.

A sample is predicted on time. Then it waits together with what was predicted, because accounts of
losses are fed with the prediction that was made then. `LateLabels` is the queue of all hosts;
compiled ones keep its columns in arrays (sim/delay.py).
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from domkl.algorithms.base import Prediction
from domkl.errors import DataError
from domkl.typing import Array, Floats


class Sample(NamedTuple):
    """Inputs, their label and what was predicted, of one learner or of several."""

    x: Floats  # (K, d)
    y: Floats  # (K,)
    y_hat: Floats  # (K,)
    by_kernel: Floats  # (K, P)
    notes: Floats  # (K, N)

    @classmethod
    def copied(cls, x: Floats, y: Floats, prediction: Prediction) -> "Sample":
        """What a host's buffers hold now."""
        return cls(*(np.array(each) for each in (x, y, *prediction)))

    @property
    def prediction(self) -> Prediction:
        """What was predicted."""
        return Prediction(*self[2:])


Row = TypeVar("Row", bound=tuple[Any, ...])


class LateLabels(Generic[Row]):
    """What was predicted and has no label yet, oldest first.

    Parameters
    ----------
    kind : NamedTuple class of arrays
        Of each entry, such as `Sample`.
    """

    def __init__(self, kind: type[Row]) -> None:
        self._kind: Any = kind
        self._rows: deque[Row] = deque()

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def add(self, row: Row) -> None:
        """Let an entry wait."""
        self._rows.append(row)

    def take(self, delay: int) -> Row | None:
        """Take the oldest entry, if more than ``delay`` wait."""
        return self._rows.popleft() if len(self._rows) > delay else None

    @property
    def newest(self) -> Row:
        """The entry that was added last."""
        return self._rows[-1]

    @property
    def oldest(self) -> Row | None:
        """The entry that has waited longest; None if there is none."""
        return self._rows[0] if self._rows else None

    def saved(self, prefix: str) -> dict[str, Array]:
        """Return one array for each field, with an entry per row; nothing if nothing waits."""
        columns = zip(*self._rows, strict=True)
        names = (f"{prefix}.{field}" for field in self._kind._fields)
        return {name: np.concatenate(each) for name, each in zip(names, columns, strict=False)}

    def restore(self, prefix: str, arrays: Mapping[str, Array], like: Row, most: int) -> None:
        """Continue with what `saved` returned: at most so many entries, of shapes as ``like``."""
        self._rows.clear()
        names = [f"{prefix}.{field}" for field in self._kind._fields]
        stored = [arrays[name] for name in names if name in arrays]
        if not stored:
            return
        n = len(stored[0])
        if len(stored) != len(names) or not 0 < n <= most:
            raise DataError(f"{prefix} must hold at most {most} whole samples")
        for name, values, part in zip(names, stored, like, strict=True):
            if values.shape != (n, *part.shape[1:]):
                raise DataError(
                    f"{name} must have shape {(n, *part.shape[1:])}, got {values.shape}"
                )
        columns = [np.asarray(v, dtype=part.dtype) for v, part in zip(stored, like, strict=True)]
        self._rows.extend(self._kind(*(each[[i]] for each in columns)) for i in range(n))
