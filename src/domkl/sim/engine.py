"""The round loop: map, predict, measure, step, exchange, merge."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from domkl.algorithms.base import Algorithm, Inputs, Sizes
from domkl.algorithms.baselines import Alone
from domkl.core.features import FeatureStack, RandomFeatures
from domkl.graphs.graph import Graph
from domkl.sim.measure import Disagreement
from domkl.sim.network import Network
from domkl.typing import Floats

Rounds = Iterable[tuple[Floats, Floats]]


@dataclass(frozen=True)
class Options:
    """How a simulation is run and what is kept of it."""

    dtype: DTypeLike
    cv: str
    discrepancy: bool
    keep_rounds: bool  # predictions and each learner's consensus violation, (T, K)
    seed: int


@dataclass
class Cell:
    """A few trials that share a stream and run together, and what came of them.

    Lists hold one array a round, over the learners (B·K,) or the trials (B,) of the cell.
    """

    graphs: list[Graph]
    maps: list[RandomFeatures]
    state: Any = None
    predictions: list[Floats] = field(default_factory=list)
    spread: list[Floats] = field(default_factory=list)
    inside: list[Floats] = field(default_factory=list)
    gaps: list[Floats] = field(default_factory=list)
    squared_error: list[Floats] = field(default_factory=list)
    disagreement: list[Floats] = field(default_factory=list)
    variance: list[Floats] = field(default_factory=list)


def run_cell(
    cell: Cell,
    algorithm: Algorithm,
    rounds: Rounds,
    options: Options,
    after_round: Callable[[], None],
) -> None:
    """Run every round of the stream, from the cell's state or from the beginning."""
    network = _network(cell, algorithm)
    stack = FeatureStack(cell.maps)
    n_trials, n_learners, first = network.n_trials, network.n_learners, cell.maps[0]
    z, energy = first.empty(n_trials, n_learners, options.dtype)
    x_all = np.empty((n_trials, n_learners, first.n_inputs))
    y_all = np.empty((n_trials, n_learners))
    inputs = Inputs(_joined(x_all), _joined(z), _joined(energy))
    y = y_all.ravel()
    state = cell.state
    if state is None:
        state = first_state(cell, algorithm, options.dtype)
    disagreement = Disagreement(
        algorithm, network, options.cv, options.discrepancy, options.seed
    )
    for x_round, y_round in rounds:
        stack.write(x_round, z, energy)
        x_all[:], y_all[:] = x_round, y_round
        prediction = algorithm.predict(state, inputs)
        disagreement.update(state, inputs, prediction)
        _record(cell, prediction.y_hat, y_all, disagreement, options)
        state, message = algorithm.local_step(state, inputs, y, prediction, network.net)
        state = algorithm.merge(state, network.deliver(algorithm, message), network.net)
        after_round()
    cell.state = state


def _joined(values: Any) -> Any:
    """Trials and learners on one axis: a view."""
    return values.reshape(-1, *values.shape[2:])


def first_state(cell: Cell, algorithm: Algorithm, dtype: DTypeLike) -> Any:
    """The state before the first round."""
    network, features = _network(cell, algorithm), cell.maps[0]
    n_learners, n_edges = network.graph.n_learners, len(network.wires.indices)
    return algorithm.init(
        Sizes(n_learners, features.n_kernels, features.n_features, n_edges, dtype)
    )


def _network(cell: Cell, algorithm: Algorithm) -> Network:
    return Network(cell.graphs, is_alone=isinstance(algorithm, Alone))


def _record(
    cell: Cell, y_hat: Floats, y: Floats, disagreement: Disagreement, options: Options
) -> None:
    error = y_hat.reshape(y.shape) - y
    cell.squared_error.append(np.einsum("bk,bk->b", error, error) / y.shape[1])
    cell.disagreement.append(disagreement.trial_mean)
    cell.variance.append(disagreement.trial_variance)
    if options.keep_rounds:
        cell.predictions.append(y_hat)
        if options.cv == "exact":
            cell.spread.append(disagreement.spread.copy())
            cell.inside.append(disagreement.inside.copy())
    if options.discrepancy:
        cell.gaps.append(disagreement.gaps.copy())
