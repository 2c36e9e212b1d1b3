"""What a learner measures of itself and of its edges while it runs."""

from collections import Counter
from dataclasses import dataclass, field


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
    epoch: tuple[int, int] = (0, 0)  # own number, the neighbor's
    n_exchanged: int = 0  # completed exchanges, in all epochs
    n_asked: int = 0  # requests for an offer that had not come
    n_epochs: int = 0  # times that the edge was opened
    last_heard: float | None = None  # time, by the clock that `Protocol.handle` is given


@dataclass
class Measures:
    """Measures of a learner, in scaled units.

    Checkpoints keep them, except for ``refused`` and ``edges``, which begin with the process.
    """

    errors: Mean = field(default_factory=Mean)  # squared, of the predictions
    errors_alone: Mean = field(default_factory=Mean)  # of the same learner without neighbors
    errors_last_value: Mean = field(default_factory=Mean)  # of predicting the previous label
    gaps: Mean = field(default_factory=Mean)  # squared distances to the neighbors' predictions
    n_rounds: int = 0  # steps, with and without a sample
    n_waited: int = 0  # rounds that ended by time-out
    n_idle: int = 0  # steps without a sample
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)  # by (peer, reason)
    edges: dict[str, EdgeMeasures] = field(default_factory=dict)  # by neighbor
    last_label: float = 0.0

    def judge(self, y: float, y_hat: float, gap: float | None) -> None:
        """Record a prediction of a label, and its squared distance to the neighbors' ones."""
        self.errors.add((y_hat - y) ** 2)
        self.errors_last_value.add((self.last_label - y) ** 2)
        self.last_label = y
        if gap is not None:
            self.gaps.add(gap)

    @property
    def n_learned(self) -> int:
        """Number of samples learned."""
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
            mean.n, mean.total = int(saved[name][0]), float(saved[name][1])
        self.last_label = float(saved["last"][0])
        self.n_rounds, self.n_waited, self.n_idle = (int(n) for n in saved["counts"])

    def _means(self) -> dict[str, Mean]:
        names = "errors", "errors_alone", "errors_last_value", "gaps"
        return {name: getattr(self, name) for name in names}
