"""Compare algorithms on one stream: all run in the same trials, with equal graphs and features."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domkl import checks, rng
from domkl.algorithms.base import Algorithm
from domkl.core.features import RandomFeatures
from domkl.core.kernels import gaussian_bank
from domkl.data.sets import Prepared
from domkl.errors import ParameterError
from domkl.graphs.graph import Graph
from domkl.graphs.kinds import KINDS, NEAREST
from domkl.metrics.intervals import Interval, interval
from domkl.sim.simulate import simulate
from domkl.typing import Floats, Ints, Real

#: σ² of the single-kernel algorithms in the paper's Figure 1, each in half of the trials
FIGURE_1_BANDWIDTHS = (1e-3, 1e3)


@dataclass(frozen=True)
class Setting:
    """The settings that all algorithms of a comparison share."""

    n_learners: int = 10
    connection: float | None = 0.25  # None: the graph is given by the data
    n_trials: int = 20
    n_frequencies: int = 50
    bandwidths: tuple[float, ...] = FIGURE_1_BANDWIDTHS
    seed: int = 1
    dtype: Real = "float64"
    threads: int | None = None

    def __post_init__(self) -> None:
        checks.whole("learners", self.n_learners, 1)
        if self.connection is not None:
            checks.fraction("connect", self.connection)
        checks.whole("trials", self.n_trials, 1)
        checks.whole("frequencies", self.n_frequencies, 1)
        checks.whole("seed", self.seed, 0)
        if self.threads is not None:
            checks.whole("threads", self.threads, 1)
        for bandwidth in self.bandwidths:
            checks.positive("bandwidth", bandwidth)


@dataclass(frozen=True)
class Outcome:
    """One algorithm's curves over all trials."""

    algorithm: str
    parameters: dict[str, Any]
    shares: tuple[tuple[float, int], ...]  # single-kernel algorithms: bandwidth, trials
    mse: Floats  # (B, T)
    cv: Floats  # (B, T)
    cv_mode: str
    seconds: float
    weights: Floats | None = None  # (P,)  final, mean over trials and learners

    def interval(self, curve: str) -> Interval:
        """Mean over trials of a curve in every round, with its interval."""
        return interval(getattr(self, curve), groups=self._kinds)

    def final(self, curve: str) -> Interval:
        """Mean over trials of a curve's last value, with its interval."""
        return interval(getattr(self, curve)[:, -1], groups=self._kinds)

    @property
    def _kinds(self) -> Ints | None:
        """Which bandwidth each trial has."""
        if not self.shares:
            return None
        return np.repeat(np.arange(len(self.shares)), [n for _, n in self.shares])

    @property
    def n_diverged(self) -> int:
        """The number of trials that diverged."""
        return int(np.sum(is_diverged(self.mse)))


Progress = Callable[[str, int, int | None], None]


def is_diverged(mse: Floats) -> NDArray[np.bool_]:
    """Whether trials (B, T) end with over 1000 times the error of the first round, or with NaN."""
    return ~(mse[:, -1] <= 1000 * mse[:, 0] + 1)


def cost_of(algorithm: Algorithm, n_samples: int, n_inputs: int, n_learners: int) -> float:
    """Approximate microseconds of a trial on one core, as in docs/speed.md, all pairs for CV."""
    kernels = 1 if algorithm.single_kernel else 17
    pairs = 0.012 * n_learners
    per_step = algorithm.relative_cost * kernels * (0.3 + pairs + 0.003 * n_inputs)
    return float(n_samples * max(per_step, 1.0))


def suited_to(data: Prepared, algorithm: Algorithm) -> Algorithm:
    """Set what an algorithm must know of the data, unless the user has set it.

    In a time series, and in the streams of stations, the first input is the newest value.
    """
    newest = data.newest_lag
    if newest is not None and algorithm.parameters().get("newest_lag", 0) is None:
        return algorithm.replaced(newest_lag=newest)
    return algorithm


def draw_graphs(setting: Setting, places: Floats | None = None) -> list[Graph]:
    """Draw a connected random graph for each trial; without a probability, join near places."""
    if setting.connection is None:
        if places is None:
            raise ParameterError("connect must be a number for learners without places, got None")
        return [KINDS[NEAREST].make(len(places), places=places)] * setting.n_trials
    seeds = (rng.child(setting.seed, "graph", b) for b in range(setting.n_trials))
    return [Graph.random(setting.n_learners, setting.connection, seed=seed) for seed in seeds]


def compare(
    algorithms: dict[str, Algorithm],
    X: Floats,
    y: Floats,
    graphs: list[Graph],
    setting: Setting,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Run each named algorithm on the stream X (T, K, d), y (T, K) in every trial.

    A trial is a graph and a draw of the features. The graphs are the same for all algorithms, and
    the features are the same for all that use the same dictionary, so that differences can be
    paired. Call `compile_for` first if the times matter.
    """
    outcomes = []
    for name, algorithm in algorithms.items():
        shares = _shares(algorithm, setting)
        report = None if progress is None else _named(progress, name)
        outcomes.append(_run(name, algorithm, X, y, graphs, shares, setting, report))
    return outcomes


def compile_for(algorithms: dict[str, Algorithm], X: Floats, y: Floats, setting: Setting) -> None:
    """Run one round of each algorithm, so that compilation does not count as time of the run."""
    for algorithm in algorithms.values():
        bandwidth, _ = _shares(algorithm, setting)[0]
        features = draw_features(algorithm, X.shape[2], 0, bandwidth, setting)
        graph = Graph.empty(setting.n_learners)
        samples = (X[:1], np.asarray(y[:1]), [graph], [features])  # without a delay
        simulate(algorithm, *samples, dtype=setting.dtype, interpreted=False)


def _shares(algorithm: Algorithm, setting: Setting) -> list[tuple[float | None, int]]:
    """Pairs (bandwidth, number of trials); without a bandwidth, the whole bank is used."""
    if not algorithm.single_kernel:
        return [(None, setting.n_trials)]
    places = np.array_split(np.arange(setting.n_trials), len(setting.bandwidths))
    pairs = zip(setting.bandwidths, (len(part) for part in places), strict=True)
    return [(bandwidth, n) for bandwidth, n in pairs if n > 0]


def _run(
    name: str,
    algorithm: Algorithm,
    X: Floats,
    y: Floats,
    graphs: list[Graph],
    shares: list[tuple[float | None, int]],
    setting: Setting,
    report: Callable[[int, int | None], None] | None,
) -> Outcome:
    bandwidths = [bandwidth for bandwidth, n in shares for _ in range(n)]
    maps = [
        draw_features(algorithm, X.shape[2], b, bandwidths[b], setting) for b in range(len(graphs))
    ]
    start = time.perf_counter()
    run = simulate(
        algorithm, X, y, graphs, maps, dtype=setting.dtype, threads=setting.threads, progress=report
    )
    seconds = time.perf_counter() - start
    used = tuple((bandwidth, n) for bandwidth, n in shares if bandwidth is not None)
    weights = None if run.weights is None else run.weights.mean(axis=(0, 1))
    curves = (run.mse, run.cv, run.cv_mode)
    return Outcome(name, plain_parameters(algorithm), used, *curves, seconds, weights)


def draw_features(
    algorithm: Algorithm, n_inputs: int, trial: int, bandwidth: float | None, setting: Setting
) -> RandomFeatures:
    """Draw a trial's features: those of one kernel, or of the algorithm's dictionary."""
    bank = algorithm.bank() if bandwidth is None else gaussian_bank([bandwidth])
    seed = rng.child(setting.seed, "features", trial)
    return RandomFeatures.draw(bank, n_inputs, setting.n_frequencies, seed=seed)


def plain_parameters(algorithm: Algorithm) -> dict[str, Any]:
    """Its parameters; those that are neither numbers nor words as their repr."""
    return {
        key: value if isinstance(value, (int, float, str)) or value is None else repr(value)
        for key, value in algorithm.parameters().items()
    }


def _named(progress: Progress, name: str) -> Callable[[int, int | None], None]:
    return lambda done, total: progress(name, done, total)
