"""MSE(t) of methods outside the network: pooled linear least squares, and River's models."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

from domkl.algorithms.baselines import LinearRLS
from domkl.core.features import RandomFeatures
from domkl.data.streams import deal
from domkl.experiments.reproduce.tasks.base import ReportProgress, Stream, Task
from domkl.experiments.store import Results
from domkl.graphs.graph import Graph
from domkl.metrics.curves import running_average
from domkl.sim.simulate import simulate
from domkl.typing import Floats

RIVER_MODELS = ("linear", "tree", "forest", "neighbors")


@dataclass(frozen=True, eq=False)
class PooledLinear(Task):
    """MSE(t) of one LinearRLS that gets all streams, one sample after the other."""

    stream: Stream
    n_learners: int

    @property
    def label(self) -> str:
        """Stream and method."""
        return f"{self.stream.name} linear-rls pooled"

    @property
    def parts(self) -> dict[str, Any]:
        """Samples and learners."""
        return {"stream": self.stream.digest, "learners": self.n_learners}

    @property
    def cost(self) -> float:
        """There is one interpreted round per sample."""
        return 100.0 * len(self.stream.y)

    def compute(self, report: ReportProgress) -> Results:
        """Run one learner for T K rounds; average its errors K by K."""
        X, y = deal(self.stream.X, self.stream.y, self.n_learners)
        n_rounds, n_learners, n_inputs = X.shape
        rows = X.reshape(n_rounds * n_learners, 1, n_inputs)
        no_features = RandomFeatures(np.zeros((1, 1, n_inputs)))
        run = simulate(
            LinearRLS(),
            rows,
            y.reshape(-1, 1),
            Graph.empty(1),
            no_features,
            progress=lambda done, total: report(done / (total or done)),
        )
        assert run.squared_errors is not None
        errors = run.squared_errors.reshape(n_rounds, n_learners)
        return _one_trial(errors)


def river_version() -> str | None:
    """The version of River; None if it is not installed."""
    return None if find_spec("river") is None else version("river")


def _make(name: str) -> Callable[[], Any]:
    """A River model with River's defaults, behind River's scaler where it needs scaled inputs."""
    from river import forest, linear_model, neighbors, preprocessing, tree

    scaler = preprocessing.StandardScaler
    return {
        "linear": lambda: scaler() | linear_model.LinearRegression(),
        "tree": lambda: tree.HoeffdingAdaptiveTreeRegressor(seed=1),
        "forest": lambda: forest.ARFRegressor(seed=1),
        "neighbors": lambda: scaler() | neighbors.KNNRegressor(),
    }[name]


@dataclass(frozen=True, eq=False)
class RiverCurve(Task):
    """MSE(t) of one of River's regressors, in one trial; models that draw numbers use seed 1."""

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
        """Samples, model, version of River."""
        return {
            "stream": self.stream.digest,
            "model": self.name,
            "learners": self.n_learners,
            "pooled": self.is_pooled,
            "river": river_version(),
        }

    @property
    def cost(self) -> float:
        """Measured."""
        n_inputs = self.stream.X.shape[1]
        each = {"linear": 10 + n_inputs, "tree": 30 + 3 * n_inputs, "neighbors": 2200}
        return len(self.stream.y) * float(each.get(self.name, 900 + 20 * n_inputs))

    def compute(self, report: ReportProgress) -> Results:
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
        return _one_trial(errors)


def _one_trial(errors: Floats) -> Results:
    """The results of squared errors (T, K), in the form of `Curves` with a single trial."""
    mean = running_average(errors.mean(axis=1))
    return {"mse": np.stack([mean, mean, mean]), "mse_first": mean[:1], "mse_last": mean[-1:]}


def _square(value: float) -> float:
    try:
        return value**2
    except OverflowError:
        return math.inf
