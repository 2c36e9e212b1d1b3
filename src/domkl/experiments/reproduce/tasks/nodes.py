"""Errors of forecasts at the nodes of a real network, hour by hour, in the target's own units.

The rules of this file: what is kept are gaps, prediction minus label, NaN where there was no label
or no prediction, and never a label: data sets that may not be passed on stay out of the report.
Every label is learned ``horizon - 1`` rounds late, when a node could know it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from domkl.algorithms.base import Algorithm
from domkl.algorithms.baselines import Alone
from domkl.data.forecast import Prepared
from domkl.experiments.compare import Setting, cost_of, draw_features, draw_graphs
from domkl.experiments.reproduce.tasks.base import ReportProgress, Task
from domkl.experiments.rivals import maker, play, rivals
from domkl.experiments.store import Results, algorithm_digest, digest_of
from domkl.graphs.graph import Graph
from domkl.sim.simulate import simulate
from domkl.typing import Floats


@dataclass(frozen=True, eq=False)
class NodeTask(Task):
    """What all tasks on the streams of nodes share."""

    data: Prepared  # of one horizon
    name: str

    @property
    def label(self) -> str:
        """Set, horizon and method."""
        return f"{self.data.name} {self.horizon} ahead, {self.name}"

    @property
    def parts(self) -> dict[str, Any]:
        """The samples."""
        return {"stream": self.stream, "horizon": self.horizon, "divisor": self.divisor}

    @cached_property
    def stream(self) -> str:
        """Digest of the samples."""
        return digest_of(self.data.X, self.labels)

    @property
    def labels(self) -> Floats:
        """The labels as a plain array, which does not know its delay."""
        return np.asarray(self.data.y)

    @property
    def horizon(self) -> int:
        """Ticks from the newest known value to the label."""
        return int(self.data.facts["horizon"])

    @property
    def delay(self) -> int:
        """Rounds until a label is known."""
        return max(self.horizon - 1, 0)

    @property
    def divisor(self) -> float:
        """What labels were divided by."""
        return float(self.data.facts["target_divisor"])

    def gaps(self, predictions: Floats) -> Floats:
        """Prediction minus label in the target's units."""
        return np.asarray((predictions - self.labels) * self.divisor)


@dataclass(frozen=True, eq=False)
class NodeErrors(NodeTask):
    """Gaps (B, T, K) of an algorithm, a learner at each node, and if asked for its deviations."""

    algorithm: Algorithm
    setting: Setting
    has_deviation: bool = False
    has_predictions: bool = False

    @property
    def parts(self) -> dict[str, Any]:
        """Samples, algorithm, setting and network."""
        setting = {key: value for key, value in asdict(self.setting).items() if key != "threads"}
        kept = [self.has_deviation, self.has_predictions]
        return {
            **super().parts,
            "algorithm": algorithm_digest(self.algorithm),
            "setting": setting,
            "graph": [graph.edges.tolist() for graph in self.graphs],
            "kept": kept,
        }

    @cached_property
    def graphs(self) -> list[Graph]:
        """The network of each trial."""
        return draw_graphs(self.setting, self.data.places)

    @property
    def cost(self) -> float:
        """The cost of all trials; an interpreted run takes about twice as long."""
        n_rounds, n_nodes, n_inputs = self.data.X.shape
        each = cost_of(self.algorithm, n_rounds * n_nodes, n_inputs, n_nodes)
        return each * self.setting.n_trials * (2 if self.has_deviation else 1)

    def compute(self, report: ReportProgress) -> Results:
        """Run all trials."""
        n_inputs = self.data.X.shape[2]
        trials = range(self.setting.n_trials)
        run = simulate(
            self.algorithm, self.data.X, self.labels, self.graphs,
            [draw_features(self.algorithm, n_inputs, b, None, self.setting) for b in trials],
            cv="off", dtype=self.setting.dtype, delay=self.delay, threads=self.setting.threads,
            deviation=self.has_deviation, progress=lambda done, n: report(done / n if n else 1.0),
        )  # fmt: skip
        assert run.predictions is not None
        found: Results = {"gaps": self.gaps(run.predictions)}
        if self.has_deviation:
            assert run.deviation is not None
            found["deviation"] = run.deviation * self.divisor
        if self.has_predictions:
            offset = self.data.facts["target_offset"]
            found["predictions"] = run.predictions * self.divisor + offset
        return found


@dataclass(frozen=True, eq=False)
class NodeRival(NodeTask):
    """Gaps (1, T, K) of a model outside the network, one for all nodes or one for each."""

    is_pooled: bool

    is_python = True

    @property
    def parts(self) -> dict[str, Any]:
        """Samples, model, version of its library."""
        own = {"model": self.name, "pooled": self.is_pooled, "library": rivals()[self.name]}
        return super().parts | own

    @property
    def cost(self) -> float:
        """Measured, for some thousand hours of twelve stations."""
        each = {"river forest": 900, "river neighbors": 2200, "lightgbm": 1000}
        return self.data.y.size * float(each.get(self.name, 50))

    def compute(self, report: ReportProgress) -> Results:
        """Predict all nodes' samples of a round, then learn what is known by then."""
        make = maker(self.name, self.data.X.shape[2])
        predictions = play(
            make, self.data.X, self.labels,
            is_pooled=self.is_pooled, delay=self.delay, report=report,
        )  # fmt: skip
        return {"gaps": self.gaps(predictions)[None]}


@dataclass(frozen=True, eq=False)
class Newcomer(NodeTask):
    """Gaps (J, K, n) of each node, joining the others, which have learned before, at J rounds.

    Before it joins, a node has no edges and no samples. When it does, its learner is as new as one
    that starts alone; only the sensor must have measured for as long as the lags look back.
    """

    algorithm: Algorithm
    setting: Setting
    joins: tuple[int, ...]  # rounds
    n_rounds: int

    @property
    def parts(self) -> dict[str, Any]:
        """Samples, algorithm, network, and when nodes join."""
        own = {"algorithm": algorithm_digest(self.algorithm), "seed": self.setting.seed}
        own |= {"joins": self.joins, "rounds": self.n_rounds, "dtype": self.setting.dtype}
        return {**super().parts, **own, "graph": self.graph.edges.tolist()}

    @cached_property
    def graph(self) -> Graph:
        """The network with everybody in it."""
        return draw_graphs(replace(self.setting, n_trials=1), self.data.places)[0]

    @property
    def cost(self) -> float:
        """A run for each node, and a month for each time."""
        n_rounds = max(self.joins) + len(self.joins) * self.n_rounds
        _, n_nodes, n_inputs = self.data.X.shape
        return float(n_nodes) * cost_of(self.algorithm, n_rounds * n_nodes, n_inputs, n_nodes)

    def compute(self, report: ReportProgress) -> Results:
        """Let each node join in turn; and let all of them begin alone, at the same times."""
        n_nodes = self.data.X.shape[1]
        joined = np.empty((len(self.joins), n_nodes, self.n_rounds))
        for k in range(n_nodes):
            joined[:, k] = self._joining(k)
            report((k + 1) / n_nodes)
        alone = np.empty_like(joined)
        for place, join in enumerate(self.joins):
            part = slice(join, join + self.n_rounds)
            found = self._run(Alone(self.algorithm), part, Graph.empty(n_nodes))
            alone[place] = found[0].T
        return {"joined": joined, "alone": alone}

    def _joining(self, k: int) -> Floats:
        """The gaps (J, n) of one node in the network that it joins."""
        n_nodes = self.data.X.shape[1]
        kept = [edge for edge in self.graph.edges.tolist() if k not in edge]
        without = Graph.from_edges(n_nodes, kept)
        found, state, start = [], None, 0
        for join in self.joins:
            _, state = self._run(self.algorithm, slice(start, join), without, (k,), state)
            part = slice(join, join + self.n_rounds)
            gaps, _ = self._run(self.algorithm, part, self.graph, (), state)
            found.append(gaps[:, k])
            start = join
        return np.stack(found)

    def _run(
        self,
        algorithm: Algorithm,
        part: slice,
        graph: Graph,
        absent: Sequence[int] = (),
        state: Any = None,
    ) -> tuple[Floats, Any]:
        """The gaps (n, K) of these rounds, and the state after them."""
        X, y = self.data.X[part].copy(), self.labels[part].copy()
        X[:, list(absent)] = np.nan
        y[:, list(absent)] = np.nan
        features = draw_features(self.algorithm, X.shape[2], 0, None, self.setting)
        run = simulate(
            algorithm, X, y, graph, features, cv="off", dtype=self.setting.dtype, delay=self.delay,
            state=state, threads=1,
        )  # fmt: skip
        assert run.predictions is not None
        return (run.predictions - y) * self.divisor, run.state


def mean_square(gaps: Floats, axis: int | tuple[int, ...] | None = None) -> Floats:
    """Mean of the squared gaps that there are; NaN where there is none."""
    n = np.count_nonzero(~np.isnan(gaps), axis=axis)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(np.square(gaps), axis=axis) / n)


def rmse(gaps: Floats, axis: int | tuple[int, ...] | None = None) -> Floats:
    """Root of the mean squared gap, of all by default.

    Examples
    --------
    >>> float(rmse(np.array([3.0, np.nan, 4.0])).round(3))
    3.536
    """
    return np.asarray(np.sqrt(mean_square(gaps, axis)))
