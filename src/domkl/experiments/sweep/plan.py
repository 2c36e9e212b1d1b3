"""From a sweep file to units: some trials of one combination each, which any worker can run.

The results of a unit depend on the unit alone, not on the worker. Seeds come from the sweep's seed
and the number of the trial, every unit runs on one thread, and the worker checks that it has the
data and the code that the unit was planned with.
"""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from domkl import rng
from domkl.algorithms.base import Algorithm
from domkl.core.features import RandomFeatures
from domkl.data.forecast import Prepared
from domkl.errors import DataError, ParameterError, WorkerError
from domkl.experiments.compare import cost_of, draw_features, is_diverged, score, suited_to
from domkl.experiments.data import dealt, graph_of, learners_of, read_data
from domkl.experiments.options import DataOptions, Setting
from domkl.experiments.store import Results, code_of, described, digest_of, key_of
from domkl.experiments.sweep.spec import Data, Method, Network, Spec, at, is_plain
from domkl.graphs.graph import Graph
from domkl.graphs.kinds import KINDS, NEAREST
from domkl.options import PARTITIONS
from domkl.sim.inputs import as_trials, check_algorithm
from domkl.sim.simulate import simulate
from domkl.typing import Floats, Real

#: microseconds that a unit should take on one core: much longer than it takes to send a unit, and
#: short enough that all workers end at about the same time
UNIT_COST = 200_000.0
#: columns of the table of results that are no labels
MEASURED = ("trial", "mse", "rmse", "mae", "r2", "cv", "diverged", "seconds")


@dataclass(frozen=True)
class Combination:
    """One combination of a sweep's axes: everything that its trials share."""

    data: DataOptions = field(compare=False)  # the digest says what was read
    samples: str  # digest of the samples before they are dealt
    partition: str
    n_rounds: int
    n_inputs: int
    kind: str
    n_learners: int
    network: tuple[tuple[str, Any], ...]
    algorithm: Algorithm
    bandwidth: float | None
    n_frequencies: int
    dtype: Real
    seed: int

    def graph(self, trial: int) -> Graph:
        """A trial's graph, which is the same for all algorithms and data."""
        seed = rng.child(self.seed, "graph", trial)
        kind = KINDS[self.kind]
        places = _samples(self.data, self.samples).places if kind.takes_places else None
        return kind.make(self.n_learners, seed, places, **dict(self.network))

    def features(self, trial: int) -> RandomFeatures:
        """A trial's features, which are the same for all algorithms with one dictionary."""
        setting = Setting(n_frequencies=self.n_frequencies, seed=self.seed)
        return draw_features(self.algorithm, self.n_inputs, trial, self.bandwidth, setting)

    def stream(self) -> tuple[Floats, Floats]:
        """X (T, K, d) and y (T, K)."""
        data = _samples(self.data, self.samples)
        X, y = dealt(data.X, data.y, self.n_learners, self.partition, seed=self.seed)
        return X[: self.n_rounds], y[: self.n_rounds]


@dataclass(frozen=True)
class Unit:
    """The trials first, first + 1, …, first + n_trials − 1 of a combination."""

    combination: Combination
    first: int
    n_trials: int
    cost: float  # approximate microseconds
    code: str  # digest of the code that planned it, the user's algorithm included

    @cached_property
    def key(self) -> str:
        """The key of its results in the store."""
        shared = {"combination": described(self.combination), "code": self.code}
        return key_of({"first": self.first, "trials": self.n_trials, **shared})


def run_unit(unit: Unit) -> Results:
    """Run a unit: the last MSE and CV of each trial, whether it diverged, and the time of all."""
    if unit.code != code_of(unit.combination.algorithm):
        raise WorkerError(
            "workers must run the same domkl, numpy, scipy and numba, and the same algorithm of"
            " your own, as the process that plans the sweep; install the same versions everywhere"
        )
    combination, trials = unit.combination, range(unit.first, unit.first + unit.n_trials)
    X, y = combination.stream()
    start = time.perf_counter()
    with np.errstate(over="ignore", invalid="ignore"):
        run = simulate(
            combination.algorithm,
            X,
            y,
            [combination.graph(trial) for trial in trials],
            [combination.features(trial) for trial in trials],
            dtype=combination.dtype,
            threads=1,
            keep_predictions=True,
            seed=int(rng.child(combination.seed, "pairs", unit.first).integers(2**32)),
        )
    divisor = _samples(combination.data, combination.samples).facts["target_divisor"]
    scores = score(np.asarray(run.predictions), np.asarray(y), divisor)
    return {
        "mse": run.mse[:, -1],
        "rmse": scores.rmse,
        "mae": scores.mae,
        "r2": scores.r2,
        "cv": run.cv[:, -1],
        "diverged": is_diverged(run.mse),
        "seconds": np.array(time.perf_counter() - start),
    }


def warm_up(combination: Combination) -> None:
    """Run one round, so that other processes find the compiled code on disk."""
    X, y = combination.stream()
    trial = combination.graph(0), combination.features(0)
    how: dict[str, Any] = {"dtype": combination.dtype, "threads": 1}
    simulate(combination.algorithm, X[:1], np.asarray(y[:1]), *trial, **how)


@lru_cache(maxsize=4)
def _samples(options: DataOptions, digest: str) -> Prepared:
    """Read the samples once per process, and check that they are those of the plan."""
    data = read_data(options)
    if digest_of(data.X, data.y) != digest:
        raise DataError(
            f"{data.name} must not change while a sweep runs, nor differ between workers"
        )
    return data


@dataclass(frozen=True)
class Point:
    """A combination, its labels in the table of results, and its units."""

    combination: Combination
    labels: dict[str, Any]
    units: tuple[Unit, ...]


@dataclass(frozen=True)
class SweepPlan:
    """All points of a sweep."""

    name: str
    points: tuple[Point, ...]

    @property
    def units(self) -> list[Unit]:
        """All units."""
        return [unit for point in self.points for unit in point.units]


def make_plan(spec: Spec) -> SweepPlan:
    """Read the data, and check that every combination can be run."""
    points: dict[Any, Point] = {}
    for data, method, made in _combinations(spec):
        labels = _labels(data, made, method)
        if (made, tuple(labels.items())) not in points:
            _check(made, method)
            units = _units(made, spec.n_trials)
            points[made, tuple(labels.items())] = Point(made, labels, units)
    return SweepPlan(spec.name, tuple(points.values()))


def _combinations(spec: Spec) -> Iterator[tuple[Data, Method, Combination]]:
    """Every combination that the file declares: its data and its algorithm beside it."""
    for data in spec.data:
        with at(f"data {data.label}"):
            read = read_data(data.options)
        samples, n_inputs = digest_of(read.X, read.y), read.X.shape[-1]
        for given, method in itertools.product(spec.networks, spec.methods):
            kind, n_learners, parameters = _network(data, read, given)
            n_rounds = _rounds(data, read.y, n_learners)
            algorithm = suited_to(read, method.algorithm)
            for n_frequencies, dtype in itertools.product(spec.frequencies, spec.dtypes):
                made = Combination(
                    data.options, samples, data.options.partition or PARTITIONS[0],
                    n_rounds, n_inputs,
                    kind, n_learners, parameters,
                    algorithm, method.bandwidth, n_frequencies, dtype, spec.seed,
                )  # fmt: skip
                yield data, method, made


def _network(
    data: Data, read: Prepared, given: Network
) -> tuple[str, int, tuple[tuple[str, Any], ...]]:
    """Kind, learners and parameters of a graph, with what the data decide."""
    with at(f"data {data.label}"):
        n_learners = learners_of(read, given.n_learners)
        if given.kind == NEAREST and read.places is None:
            raise ParameterError(f"a graph of kind {NEAREST} needs nodes with places")
    if given.kind is not None:
        return given.kind, n_learners, given.parameters
    kind = "empty" if n_learners == 1 else graph_of(read)
    return kind, n_learners, tuple(KINDS[kind].defaults.items())


def _rounds(data: Data, y: Floats, n_learners: int) -> int:
    n_rounds = len(y) if y.ndim == 2 else len(y) // n_learners
    if n_rounds == 0:
        raise DataError(
            f"{n_learners} learners need at least as many samples, {data.label} has {len(y)}"
        )
    return n_rounds if data.rounds is None else min(n_rounds, data.rounds)


def _check(made: Combination, method: Method) -> None:
    """Draw the first trial, and check that the algorithm accepts it."""
    with at(f"{method.name} on a {made.kind} graph of {made.n_learners} learners"):
        check_algorithm(made.algorithm, as_trials(made.graph(0), made.features(0)), made.dtype)


def _units(made: Combination, n_trials: int) -> tuple[Unit, ...]:
    """Cut the trials into units; where the cuts are does not depend on the number of trials."""
    code = code_of(made.algorithm)
    per_trial = cost_of(
        made.algorithm, made.n_rounds * made.n_learners, made.n_inputs, made.n_learners
    )
    size = max(1, round(UNIT_COST / per_trial))
    sizes = {first: min(size, n_trials - first) for first in range(0, n_trials, size)}
    return tuple(Unit(made, first, n, n * per_trial, code) for first, n in sizes.items())


def _labels(data: Data, made: Combination, method: Method) -> dict[str, Any]:
    """A combination's labels in the table of results."""
    before = {
        "data": data.label,
        **dict(data.given),
        "rounds": made.n_rounds,
        "graph": made.kind,
        "learners": made.n_learners,
        **dict(made.network),
        "algorithm": method.name,
    }
    parameters = plain(made.algorithm)
    after: dict[str, Any] = {} if made.bandwidth is None else {"bandwidth": made.bandwidth}
    after |= {"frequencies": made.n_frequencies, "dtype": made.dtype, "seed": made.seed}
    taken = sorted(parameters.keys() & {*before, *after, *MEASURED})
    if taken:
        raise ParameterError(
            f"{method.name}: parameter {taken[0]!r} must have another name, as the table of results"
            " has a column of this name"
        )
    return before | parameters | after


def plain(algorithm: Algorithm) -> dict[str, Any]:
    """Those of its parameters that a TOML file can express."""
    return {key: value for key, value in algorithm.parameters().items() if is_plain(value)}
