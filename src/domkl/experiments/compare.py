"""Compare algorithms on one stream: all run in the same trials, with equal graphs and features."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from domkl import rng
from domkl.algorithms.base import Algorithm
from domkl.core.features import RandomFeatures
from domkl.core.kernels import gaussian_bank
from domkl.data.forecast import Prepared
from domkl.errors import ParameterError
from domkl.experiments.options import Setting
from domkl.graphs.graph import Graph
from domkl.graphs.kinds import KINDS, NEAREST
from domkl.learner.local import LocalLearner
from domkl.metrics.intervals import Interval, interval
from domkl.metrics.quantiles import coverage
from domkl.sim.result import Run
from domkl.sim.simulate import simulate
from domkl.typing import Floats, Ints


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
    scores: "Scores | None" = None  # errors in the target's own units
    bands: "Bands | None" = None  # where quantiles were asked for

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


class Scores(NamedTuple):
    """Errors over all samples that are scored, of each trial, in the target's own units."""

    rmse: Floats  # (B,)
    mae: Floats  # (B,)
    r2: Floats  # (B,)
    wrong: Floats  # (B,) share of predictions with the sign of the other class
    node_rmse: Floats  # (B, K)

    @property
    def means(self) -> dict[str, Any]:
        """Means over trials."""
        return {name: getattr(self, name).mean(axis=0) for name in self._fields}


def score(predictions: Floats, y: Floats, divisor: float) -> Scores:
    """Errors of predictions (B, T, K) of labels (T, K) that were divided by ``divisor``.

    Missing labels count for nothing. R² is 1 - Σ(f - y)²/Σ(y - mean y)², over all nodes together.

    Examples
    --------
    >>> found = score(np.array([[[1.0], [2.0], [5.0]]]), np.array([[1.0], [2.0], [3.0]]), 10.0)
    >>> found.rmse.round(3)
    array([11.547])
    """
    gaps = (predictions - y) * divisor
    n = np.count_nonzero(~np.isnan(gaps), axis=(1, 2))
    squares = np.nansum(gaps**2, axis=1)  # (B, K)
    with np.errstate(divide="ignore", invalid="ignore"):
        known = y[~np.isnan(gaps).all(axis=0)]
        spread = np.sum((known - known.mean()) ** 2) * divisor**2
        wrong = np.where(np.isnan(gaps), np.nan, (predictions > 0) != (y > 0))
        return Scores(
            np.sqrt(squares.sum(axis=1) / n),
            np.nansum(np.abs(gaps), axis=(1, 2)) / n,
            1 - squares.sum(axis=1) / spread,
            np.nansum(wrong, axis=(1, 2)) / n,
            np.sqrt(squares / np.count_nonzero(~np.isnan(gaps), axis=1)),
        )


class Bands(NamedTuple):
    """How good quantiles were, over all trials; NaN of an algorithm without deviations."""

    pinball: float  # mean over levels, in the target's own units
    held: dict[float, float]  # share of labels in each central band, by the share that is meant


def judge(run: Run, levels: Sequence[float], divisor: float) -> Bands:
    """Judge the quantiles of a run by its labels, which were divided by ``divisor``.

    Levels α and 1 - α are the ends of a central band. What has no label, or infinite quantiles
    because nothing was known yet, counts for nothing.
    """
    ends = {
        round(high - low, 12): (i, j)
        for j, high in enumerate(levels)
        for i, low in enumerate(levels[:j])
        if math.isclose(low + high, 1)
    }
    q, y = run.quantiles, run.targets
    if q is None or y is None:
        return Bands(math.nan, dict.fromkeys(ends, math.nan))
    y = np.where(np.isfinite(q).all(axis=-1), y, np.nan)
    held = {share: coverage(y, q[..., i], q[..., j]) for share, (i, j) in ends.items()}
    losses = None if np.isnan(y).all() else run.pinball
    return Bands(math.nan if losses is None else float(losses.mean()) * divisor, held)


#: called with a label, how much is done, and the total if it is known
Progress = Callable[[str, float, float | None], None]


def is_diverged(mse: Floats) -> NDArray[np.bool_]:
    """Whether trials (B, T) end with over 1000 times the error of the first round, or with NaN."""
    return ~(mse[:, -1] <= 1000 * mse[:, 0] + 1)


def cost_of(algorithm: Algorithm, n_samples: int, n_inputs: int, n_learners: int) -> float:
    """Approximate microseconds of a trial on one core, all pairs for CV.

    docs/explanation/speed.md has the measurements.
    """
    kernels = 1 if algorithm.single_kernel else 17
    pairs = 0.012 * n_learners
    per_step = algorithm.relative_cost * kernels * (0.3 + pairs + 0.003 * n_inputs)
    return float(n_samples * max(per_step, 1.0))


def suited_to(data: Prepared, algorithm: Algorithm) -> Algorithm:
    """Set what an algorithm must know of the data, unless the user has set it.

    In a time series, and in the streams of stations, the first input is the newest value. Streams
    of nodes with a clock have the period of a day, or of a week.
    """
    return algorithm.suited(newest_lag=data.newest_lag, period=data.period)


def draw_graphs(setting: Setting, places: Floats | None = None) -> list[Graph]:
    """Draw a connected random graph for each trial; without a probability, join near places."""
    kind = setting.kind
    given = dict(KINDS[kind].defaults)
    if kind == NEAREST:
        if places is None:
            raise ParameterError(
                "topology nearest is for nodes with places, got none; give --places, or another"
            )
        given["neighbors"] = min(given["neighbors"], setting.n_learners - 1)
    if "connect" in given and setting.connection is not None:
        given["connect"] = setting.connection
    if setting.n_learners == 1:
        return [Graph.empty(1)] * setting.n_trials
    seeds = (rng.child(setting.seed, "graph", b) for b in range(setting.n_trials))
    return [KINDS[kind].make(setting.n_learners, seed, places, **given) for seed in seeds]


def compare(
    algorithms: dict[str, Algorithm],
    X: Floats,
    y: Floats,
    graphs: list[Graph],
    setting: Setting,
    progress: Progress | None = None,
    divisor: float = 1.0,
) -> list[Outcome]:
    """Run each named algorithm on the stream X (T, K, d), y (T, K) in every trial.

    A trial is a graph and a draw of the features. The graphs are the same for all algorithms, and
    the features are the same for all that use the same dictionary, so that differences can be
    paired. Call `compile_for` first if the times matter. The labels were divided by ``divisor``:
    scores are in units of before. ``progress`` is told of the rounds of all trials and algorithms.
    """
    outcomes: list[Outcome] = []
    size = len(y) * len(graphs)

    def report(done: float, _: float | None) -> None:
        if progress is not None:
            progress(name, len(outcomes) * size + done, len(algorithms) * size)

    for name, algorithm in algorithms.items():
        shares = _shares(algorithm, setting)
        bandwidths = [bandwidth for bandwidth, n in shares for _ in range(n)]
        maps = [
            draw_features(algorithm, X.shape[2], b, bandwidths[b], setting)
            for b in range(len(graphs))
        ]
        how = {"threads": setting.threads, **_how(algorithm, maps[0], setting)}
        start = time.perf_counter()
        run = simulate(algorithm, X, y, graphs, maps, progress=report, **how)
        seconds = time.perf_counter() - start
        used = tuple((bandwidth, n) for bandwidth, n in shares if bandwidth is not None)
        weights = None if run.weights is None else run.weights.mean(axis=(0, 1))
        scores = None if run.predictions is None else score(run.predictions, np.asarray(y), divisor)
        bands = judge(run, setting.quantiles, divisor) if setting.quantiles else None
        told = (run.mse, run.cv, run.cv_mode, seconds, weights, scores, bands)
        outcomes.append(Outcome(name, plain_parameters(algorithm), used, *told))
    return outcomes


def compile_for(algorithms: dict[str, Algorithm], X: Floats, y: Floats, setting: Setting) -> None:
    """Run one round of each algorithm, so that compilation does not count as time of the run."""
    for algorithm in algorithms.values():
        bandwidth, _ = _shares(algorithm, setting)[0]
        features = draw_features(algorithm, X.shape[2], 0, bandwidth, setting)
        graph = Graph.empty(setting.n_learners)
        samples = (X[:1], np.asarray(y[:1]), [graph], [features])  # without a delay
        simulate(algorithm, *samples, **_how(algorithm, features, setting), interpreted=False)


def _how(algorithm: Algorithm, features: RandomFeatures, setting: Setting) -> dict[str, Any]:
    """Options of `simulate`: quantiles that were asked for, where the algorithm has them."""
    how: dict[str, Any] = {"dtype": setting.dtype}
    if setting.quantiles:
        learner = LocalLearner(algorithm, features, setting.dtype)
        if learner.quantiles(*learner.look(np.zeros(features.n_inputs))) is not None:
            how["quantiles"] = setting.quantiles
    return how


def _shares(algorithm: Algorithm, setting: Setting) -> list[tuple[float | None, int]]:
    """Pairs (bandwidth, number of trials); without a bandwidth, the whole bank is used."""
    if not algorithm.single_kernel:
        return [(None, setting.n_trials)]
    places = np.array_split(np.arange(setting.n_trials), len(setting.bandwidths))
    pairs = zip(setting.bandwidths, (len(part) for part in places), strict=True)
    return [(bandwidth, n) for bandwidth, n in pairs if n > 0]


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
