"""The round loop: map, predict, measure, step, exchange, merge.

`run_cell` interprets it, for any algorithm and several trials at once; `play_trial` hands whole
stretches of it to core/rounds.py, for one trial of an algorithm that is a chain; sim/passes.py runs
a network of any size in another order. All call the same laws, and agree to the bit.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from domkl import rng
from domkl.algorithms.base import Algorithm, Inputs, Sizes
from domkl.core.features import FeatureStack, RandomFeatures
from domkl.core.rounds import Map, Rows, Wires, play
from domkl.errors import ParameterError
from domkl.graphs.graph import Graph
from domkl.sim.cv import Disagreement
from domkl.sim.inputs import Stream
from domkl.sim.mpi.shard import Place
from domkl.sim.network import Network
from domkl.sim.recorder import Records
from domkl.typing import Floats


@dataclass(frozen=True)
class Options:
    """How a simulation is run and what is kept of it."""

    dtype: DTypeLike
    cv: str
    kept: tuple[str, ...]  # names in sim/recorder.py
    seed: int
    threads: int = 1  # for each cell


@dataclass
class Cell:
    """A few trials that share a stream and run together, and what came of them."""

    graphs: list[Graph]
    maps: list[RandomFeatures]
    first_trial: int = 0
    place: Place | None = None  # of a network that is spread over several
    state: Any = None
    records: Records | None = None
    sampled_mean: Floats | None = None  # (T, B), of a sampled cv
    sampled_variance: Floats | None = None


def run_cell(
    cell: Cell,
    algorithm: Algorithm,
    stream: Stream,
    options: Options,
    after_rounds: Callable[[int], None],
) -> None:
    """Run every round of the stream, from the cell's state or from the beginning."""
    network, stack, first = network_of(cell, algorithm), FeatureStack(cell.maps), cell.maps[0]
    n_trials, n_learners = network.n_trials, network.n_learners
    is_measured = options.cv in ("exact", "moments")
    records = Records(n_trials, n_learners, options.kept, is_measured)
    pairs = [rng.child(options.seed, "cv", cell.first_trial + b) for b in range(n_trials)]
    disagreement = Disagreement(algorithm, network, records, options.cv, pairs)
    z, energy = first.empty(n_trials, n_learners, options.dtype)
    x_all = np.empty((n_trials, n_learners, first.n_inputs))
    y_all = np.empty((n_trials, n_learners))
    inputs, y = Inputs(_joined(x_all), _joined(z), _joined(energy)), y_all.ravel()
    state = cell.state
    if state is None:
        state = first_state(cell, algorithm, options.dtype)
    for x_round, y_round in stream.rounds():
        if algorithm.uses_features:
            stack.write(x_round, z, energy)
        x_all[:], y_all[:] = x_round, y_round
        prediction = algorithm.predict(state, inputs)
        if np.shape(prediction.y_hat) != y.shape:
            raise ParameterError(
                f"predict must give y_hat of shape {y.shape}, got {np.shape(prediction.y_hat)}"
            )
        disagreement.update(state, inputs, prediction)
        if records.keeps("deviation"):
            records.row("deviation")[:] = _deviation(algorithm, state, inputs)
        records.row("predictions")[:] = prediction.y_hat
        records.row("targets")[:] = y
        records.end_rounds()
        state, message = algorithm.local_step(state, inputs, y, prediction, network.net)
        state = algorithm.merge(state, network.deliver(algorithm, message), network.net)
        after_rounds(1)
    cell.state, cell.records = state, records
    if options.cv == "sampled":
        cell.sampled_mean, cell.sampled_variance = disagreement.pairs.sampled()


def _deviation(algorithm: Algorithm, state: Any, inputs: Inputs) -> Floats:
    found = algorithm.deviation(state, inputs)
    if found is None:
        raise ParameterError(f"deviation must be False for {type(algorithm).__name__}: it has none")
    return found


STRETCH = 20_000  # learner-steps between two reports, some 60 ms


def play_trial(
    cell: Cell,
    algorithm: Algorithm,
    stream: Stream,
    options: Options,
    after_rounds: Callable[[int], None],
) -> None:
    """Run every round of X (T, K, d), y (T, K) on a cell of one trial."""
    assert stream.arrays is not None, "simulate plays arrays only"
    inputs, targets = stream.arrays
    network, features, n_learners = network_of(cell, algorithm), cell.maps[0], targets.shape[1]
    is_measured = options.cv == "exact"
    records = Records(1, n_learners, options.kept, is_measured)
    if cell.state is None:
        cell.state = first_state(cell, algorithm, options.dtype)
    chain = algorithm.chain(cell.state)
    assert chain is not None, "simulate plays chains only"
    wires = Wires(
        network.wires.indptr,
        network.wires.indices,
        network.weight,
        network.net.degree,
        network.graph.component,
        int(network.net.size[0]),
    )
    maps = Map(features.turns[None], features.n_frequencies, features.linear)
    block = 4 // math.gcd(n_learners, 4) if n_learners <= 32 else 1  # whole groups of four rows
    per_round = n_learners * (1 + n_learners / 10 if is_measured else 1)  # CV sees all pairs
    start, n_rounds = 0, len(targets)
    while start < n_rounds:
        n = max(1, min(records.n_free, n_rounds - start, int(STRETCH / per_round)))
        x, y = inputs[start : start + n], targets[start : start + n]
        # where CV is not measured its rows do not exist, and are not written: any will do
        names = Rows._fields if is_measured else ("predictions",) * 3
        rows = Rows(*(records.rows(name, n) for name in names))
        play(chain, x, y, wires, maps, rows, is_measured, block)
        records.rows("targets", n)[:] = y
        records.end_rounds(n)
        after_rounds(n)
        start += n
    cell.records = records


def first_state(cell: Cell, algorithm: Algorithm, dtype: DTypeLike) -> Any:
    """The state before the first round."""
    network, features = network_of(cell, algorithm), cell.maps[0]
    n_learners, n_edges = network.graph.n_learners, len(network.wires.indices)
    sizes = (n_learners, features.n_kernels, features.n_features, features.n_inputs)
    return algorithm.init(Sizes(*sizes, n_edges, dtype, features.n_frequencies, features.linear))


def network_of(cell: Cell, algorithm: Algorithm) -> Network:
    """The cell's graphs, as the algorithm uses them."""
    return Network(cell.graphs, is_alone=algorithm.is_alone, place=cell.place)


def _joined(values: Any) -> Any:
    """Trials and learners on one axis: a view."""
    return values.reshape(-1, *values.shape[2:])
