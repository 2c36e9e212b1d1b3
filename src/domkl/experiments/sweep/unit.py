"""A unit of work: some trials of one cell of a sweep, run by whichever process gets it.

The rules of this file: what a unit gives depends on what the unit is and on nothing else. Seeds
come from the sweep's seed and the number of the trial; every unit runs on one thread; the worker
makes sure that it has the data and the code that the unit was planned with.
"""

import time
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from domkl import rng
from domkl.algorithms.base import Algorithm
from domkl.core.features import RandomFeatures
from domkl.data.streams import deal
from domkl.errors import DataError, WorkerError
from domkl.experiments.compare import Setting, draw_features, is_diverged
from domkl.experiments.source import Choice, read_source
from domkl.experiments.store import Kept, code_digest, digest_of, file_digest, key_of
from domkl.experiments.sweep import networks
from domkl.experiments.sweep.networks import KINDS
from domkl.graphs.graph import Graph
from domkl.sim.simulate import simulate
from domkl.typing import Floats, Real


@dataclass(frozen=True)
class Cell:
    """One point of a sweep: all that its trials share."""

    choice: Choice
    samples: str  # digest of the stream before it is dealt
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

    @property
    def parts(self) -> dict[str, Any]:
        """What its outcomes depend on, besides the code."""
        return {
            "samples": self.samples,
            "partition": self.choice.partition,
            "rounds": self.n_rounds,
            "kind": self.kind,
            "learners": self.n_learners,
            "network": self.network,
            "algorithm": repr(self.algorithm),
            "bandwidth": self.bandwidth,
            "frequencies": self.n_frequencies,
            "dtype": self.dtype,
            "seed": self.seed,
        }

    def graph(self, trial: int) -> Graph:
        """A trial's graph: the same whatever the algorithm and the data."""
        seed = rng.child(self.seed, "graph", trial)
        return KINDS[self.kind].make(self.n_learners, seed, **dict(self.network))

    def features(self, trial: int) -> RandomFeatures:
        """A trial's features: the same for all algorithms with one dictionary."""
        setting = Setting(n_frequencies=self.n_frequencies, seed=self.seed)
        return draw_features(self.algorithm, self.n_inputs, trial, self.bandwidth, setting)

    def stream(self) -> tuple[Floats, Floats]:
        """X (T, K, d) and y (T, K)."""
        X, y = _samples(self.choice, self.samples)
        X, y = deal(X, y, self.n_learners, self.choice.partition, seed=self.seed)
        return X[: self.n_rounds], y[: self.n_rounds]


@dataclass(frozen=True)
class Unit:
    """Trials first, first + 1, … of a cell."""

    cell: Cell
    first: int
    n_trials: int
    cost: float  # microseconds, roughly
    code: str  # digest of the code that planned it

    @cached_property
    def key(self) -> str:
        """The name of its outcome."""
        return key_of(
            {"code": self.code, "first": self.first, "trials": self.n_trials, **self.cell.parts}
        )


def unit_code() -> str:
    """Digest the code and the libraries that outcomes depend on."""
    return f"{code_digest()} {file_digest(__file__)} {file_digest(networks.__file__)}"


def run_unit(unit: Unit) -> Kept:
    """Run its trials: the last MSE and CV of each, whether it diverged, and the time of all."""
    if unit.code != unit_code():
        raise WorkerError(
            "workers must run the same domkl, numpy, scipy and numba as the process that plans"
            " the sweep; install the same versions everywhere"
        )
    cell, trials = unit.cell, range(unit.first, unit.first + unit.n_trials)
    X, y = cell.stream()
    start = time.perf_counter()
    with np.errstate(over="ignore", invalid="ignore"):
        run = simulate(
            cell.algorithm,
            X,
            y,
            [cell.graph(trial) for trial in trials],
            [cell.features(trial) for trial in trials],
            dtype=cell.dtype,
            threads=1,
            keep_predictions=False,
            seed=int(rng.child(cell.seed, "pairs", unit.first).integers(2**32)),
        )
    return {
        "mse": run.mse[:, -1],
        "cv": run.cv[:, -1],
        "diverged": is_diverged(run.mse),
        "seconds": np.array(time.perf_counter() - start),
    }


def warm_up(cell: Cell) -> None:
    """Run one round, so that what must be compiled is, and lies on disk for all processes."""
    X, y = cell.stream()
    graph, features = cell.graph(0), cell.features(0)
    simulate(cell.algorithm, X[:1], y[:1], graph, features, dtype=cell.dtype, threads=1)


@lru_cache(maxsize=4)
def _samples(choice: Choice, digest: str) -> tuple[Floats, Floats]:
    """Read the stream once per process, and make sure that it is the one that was planned with."""
    source = read_source(choice)
    if digest_of(source.X, source.y) != digest:
        raise DataError(
            f"{source.name} must not change while a sweep runs, nor differ between workers"
        )
    return source.X, source.y
