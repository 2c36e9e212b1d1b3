"""Labels that come late: predictions of single rows wait, and are found again by their inputs."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np

from domkl.algorithms.base import Prediction
from domkl.learner.late import LateLabels
from domkl.typing import Floats, Ints

N_WAITING = 1000  # predictions that are kept; the label of an older one counts as never asked for


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
