"""What a node measures of itself while it runs."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Mean:
    """A running mean."""

    n: int = 0
    total: float = 0.0

    def add(self, value: float) -> None:
        """Count a value in."""
        self.n += 1
        self.total += value

    @property
    def value(self) -> float | None:
        """None before the first."""
        return self.total / self.n if self.n else None


@dataclass
class EdgeMeasures:
    """Of one neighbor."""

    is_open: bool = False
    epoch: tuple[int, int] = (0, 0)  # own number, the neighbor's
    n_exchanged: int = 0  # pairs of messages, in all epochs
    n_asked: int = 0  # for what did not come
    n_epochs: int = 0
    last_heard: float | None = None  # in the clock of `Protocol.handle`


@dataclass
class Measures:
    """Of a learner, in scaled units, since it was first started but for edges and refusals."""

    errors: Mean = field(default_factory=Mean)
    errors_alone: Mean = field(default_factory=Mean)
    errors_last_value: Mean = field(default_factory=Mean)
    gaps: Mean = field(default_factory=Mean)
    n_rounds: int = 0
    n_waited: int = 0  # rounds that ended by time-out
    n_idle: int = 0  # steps without a sample
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)  # (neighbor, reason)
    edges: dict[str, EdgeMeasures] = field(default_factory=dict)
    last_label: float = 0.0

    def judge(self, y: float, y_hat: float, gap: float | None) -> None:
        """Count in what was said of a label, and how far from what neighbors would have said."""
        self.errors.add((y_hat - y) ** 2)
        self.errors_last_value.add((self.last_label - y) ** 2)
        self.last_label = y
        if gap is not None:
            self.gaps.add(gap)

    @property
    def n_learned(self) -> int:
        """Samples."""
        return self.errors.n

    @property
    def mse(self) -> float | None:
        """Mean squared error of the predictions made before each label was seen."""
        return self.errors.value

    @property
    def mse_alone(self) -> float | None:
        """Of the same learner without neighbors; None where it is not measured."""
        return self.errors_alone.value

    @property
    def mse_last_value(self) -> float | None:
        """Of the previous label."""
        return self.errors_last_value.value

    @property
    def neighbor_gap(self) -> float | None:
        """Mean squared distance between own and neighbors' predictions, kernels weighed as here."""
        return self.gaps.value

    def saved(self) -> dict[str, list[float]]:
        """What a checkpoint keeps."""
        means = {name: [mean.n, mean.total] for name, mean in self._means().items()}
        counts: list[float] = [self.n_rounds, self.n_waited, self.n_idle]
        return {**means, "counts": counts, "last": [self.last_label]}

    def restore(self, saved: dict[str, list[float]]) -> None:
        """Go on from there."""
        for name, mean in self._means().items():
            mean.n, mean.total = int(saved[name][0]), float(saved[name][1])
        self.last_label = float(saved["last"][0])
        self.n_rounds, self.n_waited, self.n_idle = (int(n) for n in saved["counts"])

    def _means(self) -> dict[str, Mean]:
        names = "errors", "errors_alone", "errors_last_value", "gaps"
        return {name: getattr(self, name) for name in names}
