"""Errors of forecasts at the nodes of a real network, hour by hour, in the target's own units.

The rules of this file: what is kept are gaps, prediction minus label, NaN where there was no label
or no prediction, and never a label: data sets that may not be passed on stay out of the report.
Every label is learned ``horizon - 1`` rounds late, when a node could know it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from domkl.algorithms.base import Algorithm
from domkl.algorithms.baselines import Alone
from domkl.algorithms.registry import find
from domkl.data.forecast import Prepared
from domkl.experiments.compare import cost_of, draw_features, draw_graphs, suited_to
from domkl.experiments.data import read_forecasts
from domkl.experiments.options import DataOptions, Setting
from domkl.experiments.reproduce.session import Session
from domkl.experiments.reproduce.tasks import Report, Task
from domkl.experiments.rivals import maker, play, rivals
from domkl.experiments.store import Results
from domkl.graphs.graph import Graph
from domkl.sim.simulate import simulate
from domkl.typing import Floats


@dataclass(frozen=True, eq=False)
class Nodes:
    """What a task knows of the streams of nodes at one horizon."""

    X: Floats  # (T, K, d)
    y: Floats  # (T, K), a plain array, which does not know its delay
    places: Floats | None
    horizon: int  # ticks from the newest known value to the label
    divisor: float  # what labels were divided by
    offset: float

    @classmethod
    def of(cls, data: Prepared) -> "Nodes":
        """Those of a prepared set."""
        facts, y = data.facts, np.asarray(data.y)
        scale = float(facts["target_divisor"]), float(facts["target_offset"])
        return cls(data.X, y, data.places, int(facts["horizon"]), *scale)

    @property
    def delay(self) -> int:
        """Rounds until a label is known."""
        return max(self.horizon - 1, 0)

    def gaps(self, predictions: Floats) -> Floats:
        """Prediction minus label in the target's units."""
        return np.asarray((predictions - self.y) * self.divisor)

    def cost(self, algorithm: Algorithm) -> float:
        """Approximate microseconds of one trial."""
        n_rounds, n_nodes, n_inputs = self.X.shape
        return cost_of(algorithm, n_rounds * n_nodes, n_inputs, n_nodes)


def forecasts(session: Session, name: str, **options: Any) -> dict[int, Prepared]:
    """The streams of a set of nodes by horizon; the options are those of `DataOptions`."""

    def make() -> dict[int, Prepared]:
        found = read_forecasts(DataOptions(data=name, data_dir=session.data_dir, **options))
        session.used.setdefault(name, {**found[0].facts, "note": found[0].note})
        return {int(each.facts["horizon"]): each for each in found}

    return session.once((name, *sorted(options.items())), make)


def node_setting(session: Session, data: Prepared, at_most: int | None = None) -> Setting:
    """The session's setting for a set of nodes, on the set's own network."""
    return replace(
        session.setting, n_trials=session.n_trials(at_most), n_learners=len(data.stations),
        connection=None, topology=data.graph,
    )  # fmt: skip


def _label(data: Prepared, name: str) -> str:
    return f"{data.name} {data.facts['horizon']} ahead, {name}"


def node_errors(
    session: Session,
    data: Prepared,
    name: str,
    *,
    at_most: int | None = None,
    has_deviation: bool = False,
    has_predictions: bool = False,
    **parameters: Any,
) -> Task:
    """The task to run a named algorithm, a learner at each node; see `network_gaps`."""
    algorithm = suited_to(data, find(name).make().replaced(**parameters))
    setting, nodes = node_setting(session, data, at_most), Nodes.of(data)
    given = {"nodes": nodes, "algorithm": algorithm, "setting": setting}
    given |= {"has_deviation": has_deviation, "has_predictions": has_predictions}
    cost = nodes.cost(algorithm) * setting.n_trials
    return Task(network_gaps, given, _label(data, name), cost * (2 if has_deviation else 1))


def network_gaps(
    report: Report,
    nodes: Nodes,
    algorithm: Algorithm,
    setting: Setting,
    has_deviation: bool,
    has_predictions: bool,
) -> Results:
    """Gaps (B, T, K) of an algorithm, and if asked for its deviations and predictions."""
    n_inputs = nodes.X.shape[2]
    run = simulate(
        algorithm, nodes.X, nodes.y, draw_graphs(setting, nodes.places),
        [draw_features(algorithm, n_inputs, b, None, setting) for b in range(setting.n_trials)],
        cv="off", dtype=setting.dtype, delay=nodes.delay, threads=setting.threads,
        deviation=has_deviation, progress=lambda done, n: report(done / n if n else 1.0),
    )  # fmt: skip
    assert run.predictions is not None
    found: Results = {"gaps": nodes.gaps(run.predictions)}
    if has_deviation:
        assert run.deviation is not None
        found["deviation"] = run.deviation * nodes.divisor
    if has_predictions:
        found["predictions"] = run.predictions * nodes.divisor + nodes.offset
    return found


def node_rival(data: Prepared, name: str, is_pooled: bool) -> Task:
    """The task to run a model outside the network, one for all nodes or one for each."""
    costs = {"river forest": 900.0, "river neighbors": 2200.0, "lightgbm": 1000.0}  # measured
    given = {"nodes": Nodes.of(data), "name": name, "is_pooled": is_pooled}
    given["version"] = rivals()[name]
    cost = data.y.size * costs.get(name, 50.0)
    return Task(rival_gaps, given, _label(data, name), cost, is_python=True)


def rival_gaps(report: Report, nodes: Nodes, name: str, is_pooled: bool, version: str) -> Results:
    """Gaps (1, T, K): predict all nodes' samples of a round, then learn what is known by then."""
    make = maker(name, nodes.X.shape[2])
    given: dict[str, Any] = {"is_pooled": is_pooled, "delay": nodes.delay, "report": report}
    return {"gaps": nodes.gaps(play(make, nodes.X, nodes.y, **given))[None]}


def newcomer_task(
    session: Session, data: Prepared, algorithm: Algorithm, joins: tuple[int, ...], n_rounds: int
) -> Task:
    """The task to let each node join the others, which have learned before, at these rounds."""
    nodes, setting = Nodes.of(data), node_setting(session, data, at_most=1)
    given = {"nodes": nodes, "algorithm": algorithm, "setting": setting, "joins": joins}
    given["n_rounds"] = n_rounds
    share = (max(joins) + len(joins) * n_rounds) / len(nodes.y)
    cost = share * nodes.y.shape[1] * nodes.cost(algorithm)
    return Task(newcomer_gaps, given, _label(data, "a newcomer"), cost)


def newcomer_gaps(
    report: Report,
    nodes: Nodes,
    algorithm: Algorithm,
    setting: Setting,
    joins: tuple[int, ...],
    n_rounds: int,
) -> Results:
    """Gaps (J, K, n) of each node, joined with the others at J rounds; and of all of them alone.

    Before it joins, a node has no edges and no samples. When it does, its learner is as new as one
    that starts alone; only the sensor must have measured for as long as the lags look back.
    """
    n_nodes, n_inputs = nodes.X.shape[1:]
    graph = draw_graphs(replace(setting, n_trials=1), nodes.places)[0]
    features = draw_features(algorithm, n_inputs, 0, None, setting)

    def run(
        learner: Algorithm, part: slice, graph: Graph, absent: Sequence[int] = (), state: Any = None
    ) -> tuple[Floats, Any]:
        """The gaps (n, K) of these rounds, and the state after them."""
        X, y = nodes.X[part].copy(), nodes.y[part].copy()
        X[:, list(absent)] = np.nan
        y[:, list(absent)] = np.nan
        found = simulate(
            learner, X, y, graph, features, cv="off", dtype=setting.dtype, delay=nodes.delay,
            state=state, threads=1,
        )  # fmt: skip
        assert found.predictions is not None
        return (found.predictions - y) * nodes.divisor, found.state

    joined = np.empty((len(joins), n_nodes, n_rounds))
    alone = np.empty_like(joined)
    for k in range(n_nodes):
        kept = [edge for edge in graph.edges.tolist() if k not in edge]
        without, state, start = Graph.from_edges(n_nodes, kept), None, 0
        for place, join in enumerate(joins):
            _, state = run(algorithm, slice(start, join), without, (k,), state)
            gaps, _ = run(algorithm, slice(join, join + n_rounds), graph, (), state)
            joined[place, k], start = gaps[:, k], join
        report((k + 1) / n_nodes)
    for place, join in enumerate(joins):
        gaps, _ = run(Alone(algorithm), slice(join, join + n_rounds), Graph.empty(n_nodes))
        alone[place] = gaps.T
    return {"joined": joined, "alone": alone}


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
