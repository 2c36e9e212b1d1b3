"""Linear least squares of all learners' samples in one place."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from domkl.algorithms.baselines import LinearRLS
from domkl.core.features import RandomFeatures
from domkl.data.streams import deal
from domkl.experiments.reproduce.works.base import Report, Stream, Work
from domkl.experiments.store import Kept
from domkl.graphs.graph import Graph
from domkl.metrics.curves import running_average
from domkl.sim.simulate import simulate


@dataclass(frozen=True, eq=False)
class PooledLinear(Work):
    """MSE(t) of one LinearRLS that gets all streams, one sample after the other."""

    stream: Stream
    n_learners: int

    @property
    def label(self) -> str:
        """Stream."""
        return f"{self.stream.name} linear-rls pooled"

    @property
    def parts(self) -> dict[str, Any]:
        """Samples and learners."""
        return {"stream": self.stream.digest, "learners": self.n_learners}

    @property
    def cost(self) -> float:
        """A call for every sample."""
        return 100.0 * len(self.stream.y)

    def compute(self, report: Report) -> Kept:
        """Run one learner for T K rounds; average them by K."""
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
        mean = running_average(errors.mean(axis=1))
        return {"mse": np.stack([mean, mean, mean]), "mse_first": mean[:1], "mse_last": mean[-1:]}
