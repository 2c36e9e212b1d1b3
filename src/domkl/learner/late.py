"""Labels that come late: what was predicted waits until its label is known.

A sample is predicted on time. Then it waits together with what was predicted, because accounts of
losses are fed with the prediction that was made then. `LateLabels` is the queue of all hosts;
compiled ones keep its columns in arrays (sim/delay.py). Estimators are not told which prediction a
label belongs to: `AskedRows` finds it by its inputs.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np

from domkl.algorithms.base import Prediction
from domkl.errors import DataError
from domkl.learner.restore import notes_of_now
from domkl.typing import Array, Floats, Ints

#: predictions of an estimator that are kept; the label of an older one counts as never asked for
N_WAITING = 1000


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
        if "notes" in self._kind._fields:
            i, j = (self._kind._fields.index(name) for name in ("notes", "y_hat"))
            stored[i] = notes_of_now(stored[i], stored[j], like[i].shape[-1])
        for name, values, part in zip(names, stored, like, strict=True):
            if values.shape != (n, *part.shape[1:]):
                raise DataError(
                    f"{name} must have shape {(n, *part.shape[1:])}, got {values.shape}"
                )
        columns = [np.asarray(v, dtype=part.dtype) for v, part in zip(stored, like, strict=True)]
        self._rows.extend(self._kind(*(each[[i]] for each in columns)) for i in range(n))


class AskedRow(NamedTuple):
    """A prediction of a single row whose label is not known yet."""

    row: Floats  # (1, d)  as given; NaN stands for a missing value
    n_seen: Ints  # (1,)   number of samples learned before it was made
    y_hat: Floats  # (1, K)
    by_kernel: Floats  # (1, K, P)
    notes: Floats  # (1, K, N)

    @property
    def prediction(self) -> Prediction:
        """What was predicted."""
        return Prediction(self.y_hat[0], self.by_kernel[0], self.notes[0])


class AskedRows(LateLabels[AskedRow]):
    """Predictions that wait for their labels, oldest first, and how late labels come.

    Attributes
    ----------
    delay : int
        The number of labels learned between a prediction and its own label, where two labels in a
        row agree on it.
    """

    def __init__(self, delay: int = 0) -> None:
        super().__init__(AskedRow)
        self._rows: deque[AskedRow] = deque(maxlen=N_WAITING)
        self.delay = self._newest_delay = delay
        self._learned = b""  # the newest row whose label was learned

    def copy(self) -> Self:
        """An independent copy, without what waits while labels are prompt."""
        made = type(self)(self.delay)
        if self.delay:
            made._rows.extend(self._rows)
        return made

    def clear(self) -> None:
        """Let nothing wait."""
        self._rows = deque(maxlen=N_WAITING)

    def ask(self, row: Floats, n_seen: int, prediction: Prediction) -> None:
        """Keep the prediction for a row (1, d) that was made after so many samples.

        Not where its label is known, as of the row learned just now; and once if it is asked twice.
        """
        key = row.tobytes()
        if key == self._learned:
            return
        if self._rows and self.newest.n_seen[0] == n_seen and self.newest.row.tobytes() == key:
            return
        parts = (np.array(each)[None] for each in prediction)
        self.add(AskedRow(row.copy(), np.array([n_seen]), *parts))

    def find(
        self, row: Floats, n_seen: int, distance: Callable[[Floats], Floats]
    ) -> AskedRow | None:
        """Give what was predicted for a row (1, d) whose label has come; None if it is not known.

        Of several equal rows, the one that has waited about as long as labels do. A scaler in front
        of the learner changes rows a little between prediction and label; so if none is equal, the
        one whose turn it is may be near: ``distance`` of rows (n, d) is then at most 1.

        Rows that are predicted first and then learned one after the other, as when a model is
        judged on the samples that it learns next, are not late: None.
        """
        if not self._rows or (self.delay == 0 and self.newest.n_seen[0] != n_seen):
            return None

        def untimely(each: AskedRow) -> int:
            return abs(n_seen - int(each.n_seen[0]) - self.delay)

        key = row.tobytes()
        equal = [each for each in self if each.row.tobytes() == key]
        if equal:
            return min(equal, key=untimely)
        due = [self._rows[0], *(each for each in self if untimely(each) == 0)]
        apart = distance(np.concatenate([each.row for each in due]))
        nearest = int(apart.argmin())
        return due[nearest] if apart[nearest] <= 1 else None

    def learned(self, row: Floats, n_seen: int, found: AskedRow | None) -> None:
        """Note that the label of a row was learned, and how late it came if it was predicted."""
        self._learned = row.tobytes()
        if found is None:
            return
        self._rows = deque((each for each in self if each is not found), N_WAITING)
        delay = n_seen - int(found.n_seen[0])
        if delay == self._newest_delay:
            self.delay = delay
        self._newest_delay = delay
