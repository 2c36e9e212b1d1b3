"""What is measured of a learner and of its edges."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as attribute

import numpy as np

from domkl.learner.local import TOLD
from domkl.metrics.quantiles import pinball_loss
from domkl.typing import Floats

#: weight of the newest exchange in what is known of a neighbor
NEWEST = 0.02
#: shares of what a neighbor says that are let in: below the first it is suspicious, and above the
#: second no more
SUSPICIOUS, CLEARED = 0.1, 0.5


@dataclass
class Mean:
    """A running mean."""

    n: int = 0
    total: float = 0.0

    def add(self, value: float) -> None:
        """Include a value."""
        self.n += 1
        self.total += value

    @property
    def value(self) -> float | None:
        """The mean; None before the first value."""
        return self.total / self.n if self.n else None


@dataclass
class EdgeMeasures:
    """Measures of the edge to one neighbor, since this process started."""

    is_open: bool = False
    n_exchanged: int = 0  # completed exchanges, in all epochs
    n_asked: int = 0  # requests for an offer that had not come
    n_epochs: int = 0  # times that the edge was opened
    is_barred: bool = False  # whether the neighbor is not heeded, because it broke the rules
    n_barred: int = 0  # how often that was decided
    last_heard: float | None = None  # time, by the clock that `Protocol.handle` is given
    n_limited: int = 0  # exchanges of which not all was let in, see bounds.py
    share: float = 1.0  # of what it says, how much is let in; mean over the last exchanges
    is_suspicious: bool = False  # whether hardly anything of what it says is let in

    def add_share(self, share: float) -> bool:
        """Record how much of an exchange was let in; return whether it became suspicious by it."""
        self.n_limited += share < 1
        self.share += NEWEST * (share - self.share)
        was, limit = self.is_suspicious, CLEARED if self.is_suspicious else SUSPICIOUS
        self.is_suspicious = self.share < limit
        return self.is_suspicious and not was


@dataclass
class Measures:
    """Measures of a learner, in scaled units.

    Checkpoints keep them, except for ``refused`` and ``edges``, which begin with the process.
    """

    errors: Mean = attribute(default_factory=Mean)  # squared, of the predictions
    errors_alone: Mean = attribute(default_factory=Mean)  # of the same learner without neighbors
    errors_last_value: Mean = attribute(default_factory=Mean)  # of predicting the previous label
    errors_seasonal: Mean = attribute(default_factory=Mean)  # of the label one season before
    losses: Mean = attribute(default_factory=Mean)  # pinball, mean over the levels that are told
    gaps: Mean = attribute(default_factory=Mean)  # squared distances to the neighbors' predictions
    n_rounds: int = 0  # steps, with and without a sample
    n_waited: int = 0  # rounds that ended by time-out
    n_idle: int = 0  # steps without a sample
    refused: Counter[tuple[str, str]] = attribute(default_factory=Counter)  # by (peer, reason)
    edges: dict[str, EdgeMeasures] = attribute(default_factory=dict)  # by neighbor
    last_label: float = 0.0

    def judge(self, y: float, y_hat: float, gap: float | None) -> None:
        """Record a prediction of a label, and its squared distance to the neighbors' ones.

        Without a label, NaN, there is nothing to record.
        """
        if np.isnan(y):
            return
        self.errors.add(squared(y_hat - y))
        self.errors_last_value.add(squared(self.last_label - y))
        if gap is not None:
            self.gaps.add(gap)

    def judge_forecast(self, y: float, y_hat: float, naive: Floats) -> None:
        """Record a forecast, beside those by the last value and by the last season."""
        if np.isnan(y):
            return
        self.errors.add(squared(y_hat - y))
        for mean, said in zip((self.errors_last_value, self.errors_seasonal), naive, strict=True):
            if not np.isnan(said):
                mean.add(squared(float(said) - y))

    def judge_alone(self, y: float, y_hat: float) -> None:
        """Record what the learner without neighbors predicted."""
        if not np.isnan(y):
            self.errors_alone.add(squared(y_hat - y))

    def judge_quantiles(self, y: float, quantiles: Sequence[float] | None) -> None:
        """Record how good quantiles were, if they were known."""
        if quantiles is not None:
            loss = float(pinball_loss(y, quantiles, TOLD).mean())
            if np.isfinite(loss):
                self.losses.add(loss)

    def see(self, y: float) -> None:
        """Take note of a label that is known from now on."""
        if not np.isnan(y):
            self.last_label = y

    @property
    def n_learned(self) -> int:
        """Number of samples with a label that were predicted; with a delay, the last ones wait."""
        return self.errors.n

    @property
    def mse(self) -> float | None:
        """Mean squared error of the predictions made before each label was seen."""
        return self.errors.value

    @property
    def mse_alone(self) -> float | None:
        """The same of a learner without neighbors; None if it is not measured."""
        return self.errors_alone.value

    @property
    def mse_last_value(self) -> float | None:
        """The same of predicting the previous label."""
        return self.errors_last_value.value

    @property
    def mse_seasonal(self) -> float | None:
        """The same of the label one season before; None if it is not measured."""
        return self.errors_seasonal.value

    @property
    def pinball(self) -> float | None:
        """Mean pinball loss of the quantiles that were told; None if there are none."""
        return self.losses.value

    @property
    def neighbor_gap(self) -> float | None:
        """Mean squared distance between own and neighbors' predictions, with our kernel weights."""
        return self.gaps.value

    def saved(self) -> dict[str, list[float]]:
        """Return what a checkpoint keeps, ready for JSON."""
        means = {name: [mean.n, mean.total] for name, mean in self._means().items()}
        counts: list[float] = [self.n_rounds, self.n_waited, self.n_idle]
        return {**means, "counts": counts, "last": [self.last_label]}

    def restore(self, saved: dict[str, list[float]]) -> None:
        """Continue from what `saved` returned."""
        for name, mean in self._means().items():
            n, total = saved.get(
                name, (0, 0.0)
            )  # files of 0.1 have no seasonal one, those of 0.4 no losses
            mean.n, mean.total = int(n), float(total)
        self.last_label = float(saved["last"][0])
        self.n_rounds, self.n_waited, self.n_idle = (int(n) for n in saved["counts"])

    def _means(self) -> dict[str, Mean]:
        names = ("errors", "errors_alone", "errors_last_value", "errors_seasonal", "losses", "gaps")
        return {name: getattr(self, name) for name in names}


def squared(error: float) -> float:
    """The square; infinite where Python would raise OverflowError."""
    return error**2 if abs(error) < 1e154 else float("inf")
