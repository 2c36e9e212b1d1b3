"""A unit: some trials of one combination of a sweep, which any worker can run.

The results of a unit depend on the unit alone, not on the worker. Seeds come from the sweep's seed
and the number of the trial, every unit runs on one thread, and the worker checks that it has the
data and the code that the unit was planned with.
"""

import time
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from domkl import rng
from domkl.algorithms.base import Algorithm
from domkl.core.features import RandomFeatures
from domkl.data.forecast import Prepared
from domkl.errors import DataError, WorkerError
from domkl.experiments.compare import draw_features, is_diverged, score
from domkl.experiments.data import dealt, read_data
from domkl.experiments.options import DataOptions, Setting
from domkl.experiments.store import (
    Results,
    algorithm_digest,
    code_digest,
    described,
    digest_of,
    key_of,
)
from domkl.graphs.graph import Graph
from domkl.graphs.kinds import KINDS
from domkl.sim.simulate import simulate
from domkl.typing import Floats, Real


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


def unit_code(algorithm: Algorithm) -> str:
    """Digest of the code that results depend on: domkl, the libraries, the user's algorithm."""
    return f"{code_digest()} {algorithm_digest(algorithm)}"


def run_unit(unit: Unit) -> Results:
    """Run a unit: the last MSE and CV of each trial, whether it diverged, and the time of all."""
    if unit.code != unit_code(unit.combination.algorithm):
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
