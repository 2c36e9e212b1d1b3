"""MSE(t) of models outside the network: River's, and LightGBM."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from domkl.data.streams import deal
from domkl.experiments.reproduce.tasks.base import ReportProgress, Stream, Task
from domkl.experiments.rivals import maker, play, rivals
from domkl.experiments.store import Results
from domkl.metrics.curves import running_average
from domkl.typing import Floats


@dataclass(frozen=True, eq=False)
class RivalCurve(Task):
    """MSE(t) of a rival in one trial, one model for all learners or one for each."""

    stream: Stream
    name: str
    n_learners: int
    is_pooled: bool

    is_python = True

    @property
    def label(self) -> str:
        """Stream and model."""
        return f"{self.stream.name} {self.name}{' pooled' * self.is_pooled}"

    @property
    def parts(self) -> dict[str, Any]:
        """Samples, model, version of its library."""
        return {
            "stream": self.stream.digest,
            "model": self.name,
            "learners": self.n_learners,
            "pooled": self.is_pooled,
            "library": rivals()[self.name],
        }

    @property
    def cost(self) -> float:
        """Measured."""
        n_inputs = self.stream.X.shape[1]
        each = {"river linear": 10 + n_inputs, "river tree": 30 + 3 * n_inputs}
        each |= {"river neighbors": 2200, "lightgbm": 1000 if self.is_pooled else 4000}
        return len(self.stream.y) * float(each.get(self.name, 900 + 20 * n_inputs))

    def compute(self, report: ReportProgress) -> Results:
        """Predict all learners' samples of a round, then learn them."""
        X, y = deal(self.stream.X, self.stream.y, self.n_learners)
        make = maker(self.name, X.shape[2])
        predictions = play(make, X, y, is_pooled=self.is_pooled, report=report)
        with np.errstate(over="ignore"):
            return _one_trial((predictions - np.asarray(y)) ** 2)


def _one_trial(errors: Floats) -> Results:
    """The results of squared errors (T, K), in the form of `Curves` with a single trial."""
    mean = running_average(errors.mean(axis=1))
    return {"mse": np.stack([mean, mean, mean]), "mse_first": mean[:1], "mse_last": mean[-1:]}
