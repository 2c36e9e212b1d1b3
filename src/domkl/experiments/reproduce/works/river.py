"""River's models on the same streams, each learner by itself or all in one."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from domkl.data.streams import deal
from domkl.experiments.reproduce.works.base import Report, Stream, Work
from domkl.experiments.store import Kept, file_digest
from domkl.metrics.curves import running_average

MODELS = ("linear", "tree", "forest", "neighbors")


def is_installed() -> bool:
    """Whether River can be imported."""
    from importlib.util import find_spec

    return find_spec("river") is not None


def version() -> str | None:
    """Of River."""
    if not is_installed():
        return None
    from importlib.metadata import version as of

    return of("river")


def _make(name: str) -> Callable[[], Any]:
    """River's models with its own defaults; what needs scaled inputs gets River's scaler."""
    from river import forest, linear_model, neighbors, preprocessing, tree

    scaler = preprocessing.StandardScaler
    return {
        "linear": lambda: scaler() | linear_model.LinearRegression(),
        "tree": lambda: tree.HoeffdingAdaptiveTreeRegressor(seed=1),
        "forest": lambda: forest.ARFRegressor(seed=1),
        "neighbors": lambda: scaler() | neighbors.KNNRegressor(),
    }[name]


@dataclass(frozen=True, eq=False)
class RiverCurve(Work):
    """MSE(t) of one of River's regressors, in one trial: what draws, draws with seed 1."""

    stream: Stream
    name: str
    n_learners: int
    is_pooled: bool

    is_python = True

    @property
    def label(self) -> str:
        """Stream and model."""
        return f"{self.stream.name} river {self.name}{' pooled' * self.is_pooled}"

    @property
    def parts(self) -> dict[str, Any]:
        """Samples, model, version; of our code this file alone."""
        return {
            "code": file_digest(__file__),
            "stream": self.stream.digest,
            "model": self.name,
            "learners": self.n_learners,
            "pooled": self.is_pooled,
            "river": version(),
        }

    @property
    def cost(self) -> float:
        """As measured."""
        n_inputs = self.stream.X.shape[1]
        each = {"linear": 10 + n_inputs, "tree": 30 + 3 * n_inputs, "neighbors": 2200}
        return len(self.stream.y) * float(each.get(self.name, 900 + 20 * n_inputs))

    def compute(self, report: Report) -> Kept:
        """Predict, then learn, sample by sample."""
        X, y = deal(self.stream.X, self.stream.y, self.n_learners)
        n_rounds, n_learners, n_inputs = X.shape
        make, names = _make(self.name), [f"x{i}" for i in range(n_inputs)]
        models = [make() for _ in range(1 if self.is_pooled else n_learners)]
        errors = np.zeros((n_rounds, n_learners))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # overflow, where a model diverges
            for t in range(n_rounds):
                for k in range(n_learners):
                    model = models[0 if self.is_pooled else k]
                    x, label = dict(zip(names, X[t, k].tolist(), strict=True)), float(y[t, k])
                    errors[t, k] = _square(model.predict_one(x) - label)
                    model.learn_one(x, label)
                report((t + 1) / n_rounds)
        mean = running_average(errors.mean(axis=1))
        return {"mse": np.stack([mean, mean, mean]), "mse_first": mean[:1], "mse_last": mean[-1:]}


def _square(value: float) -> float:
    try:
        return value**2
    except OverflowError:
        return math.inf
