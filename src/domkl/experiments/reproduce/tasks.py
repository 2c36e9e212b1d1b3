"""Tasks: the calculations of a reproduction, each of which is done once and stored.

Curves of algorithms and of rivals; regrets at one horizon and gaps of weights, for the theorems;
and what a neighbor can compute from the messages that it receives.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from domkl import rng
from domkl.algorithms.admm import DOKL, DOMKL
from domkl.algorithms.base import Algorithm
from domkl.core.features import RandomFeatures
from domkl.core.kernels import gaussian_bank
from domkl.data.streams import deal
from domkl.experiments.compare import compare, compile_for, cost_of, draw_graphs
from domkl.experiments.options import Setting
from domkl.experiments.rivals import maker, play, rivals
from domkl.experiments.store import Results, described, digest_of, key_of
from domkl.graphs.graph import Graph
from domkl.graphs.kinds import KINDS
from domkl.metrics.curves import running_average
from domkl.sim.regret import regret
from domkl.sim.simulate import simulate
from domkl.typing import Array, Floats

Report = Callable[[float], None]  # called with the share that is done, from 0 to 1


@dataclass(frozen=True, eq=False)
class Stream:
    """Samples before they are dealt to learners."""

    name: str = field(compare=False)
    X: Floats = field(compare=False)  # (N, d)
    y: Floats = field(compare=False)  # (N,)
    is_series: bool = field(default=False, compare=False)
    digest: str = field(init=False)  # of the samples

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", digest_of(self.X, self.y))


@dataclass(frozen=True, eq=False)
class Task:
    """A calculation whose results depend on nothing but its function, arguments and our code."""

    function: Callable[..., Results]  # called with a `Report` and the arguments
    arguments: dict[str, Any]
    label: str  # text for the progress bar
    cost: float  # approximate microseconds on one core
    is_python: bool = False  # runs on one core, so that such tasks run in processes of their own

    @cached_property
    def key(self) -> str:
        """The key of its results in the store."""
        given = {name: described(value) for name, value in self.arguments.items()}
        return key_of({"task": described(self.function), **given})

    def compute(self, report: Report = lambda share: None) -> Results:
        """Do the calculation, and add the time that it took to its results."""
        start = time.perf_counter()
        results = self.function(report, **self.arguments)
        return {**results, "seconds": np.array(time.perf_counter() - start)}


def curves_task(
    stream: Stream, label: str, algorithm: Algorithm, setting: Setting, **how: Any
) -> Task:
    """The task to run an algorithm on a stream; see `curves` for the other arguments."""
    n_samples, n_inputs = stream.X.shape
    each = cost_of(algorithm, n_samples, n_inputs, setting.n_learners)
    given = {"stream": stream, "algorithm": algorithm, "setting": setting, **how}
    return Task(curves, given, f"{stream.name} {label}", setting.n_trials * each)


def curves(
    report: Report,
    stream: Stream,
    algorithm: Algorithm,
    setting: Setting,
    network: str = "random",
    partition: str = "interleaved",
) -> Results:
    """An algorithm's MSE(t) and CV(t), (3, T): mean over trials, low, high; and their ends.

    Trials with the same number have the same graph and features for every algorithm, so results
    can be paired. ``network`` is "random" or "tree".
    """
    X, y = deal(stream.X, stream.y, setting.n_learners, partition, seed=setting.seed)
    graphs = draw_graphs(setting)
    if network == "tree":
        seeds = [rng.child(setting.seed, "tree", b) for b in range(setting.n_trials)]
        graphs = [Graph.tree(setting.n_learners, seed=seed) for seed in seeds]
    named = {"": algorithm}
    compile_for(named, X, y, setting)

    def progress(_: str, done: float, total: float | None) -> None:
        report(done / total if total else 1.0)

    with np.errstate(over="ignore", invalid="ignore"):
        (outcome,) = compare(named, X, y, graphs, setting, progress)
    found: Results = {} if outcome.weights is None else {"weights": outcome.weights}
    for curve, values in (("mse", outcome.mse), ("cv", outcome.cv)):
        found[curve] = np.stack(outcome.interval(curve))
        found[f"{curve}_first"], found[f"{curve}_last"] = values[:, 0], values[:, -1]
    return found


def rival_task(stream: Stream, name: str, n_learners: int, is_pooled: bool) -> Task:
    """The task to run a model outside the network, one for all learners or one for each."""
    n_samples, n_inputs = stream.X.shape
    each = {  # microseconds, measured
        "river linear": 10 + n_inputs,
        "river tree": 30 + 3 * n_inputs,
        "river neighbors": 2200,
        "lightgbm": 1000 if is_pooled else 4000,
    }.get(name, 900 + 20 * n_inputs)
    given = {"stream": stream, "name": name, "n_learners": n_learners, "is_pooled": is_pooled}
    given["version"] = rivals()[name]
    label = f"{stream.name} {name}{' pooled' * is_pooled}"
    return Task(rival_curve, given, label, float(n_samples * each), is_python=True)


def rival_curve(
    report: Report, stream: Stream, name: str, n_learners: int, is_pooled: bool, version: str
) -> Results:
    """MSE(t) of a rival in one trial, in the form of `curves`."""
    X, y = deal(stream.X, stream.y, n_learners)
    predictions = play(maker(name, X.shape[2]), X, y, is_pooled=is_pooled, report=report)
    with np.errstate(over="ignore"):
        mean = running_average(((predictions - np.asarray(y)) ** 2).mean(axis=1))
    return {"mse": np.stack([mean, mean, mean]), "mse_first": mean[:1], "mse_last": mean[-1:]}


N_FREQUENCIES = 50  # of the paper


def growing(kind: str, n_rounds: int) -> Algorithm:
    """DOKL or DOMKL with rho = eta_l = eta_g = √T, for features not divided by √M.

    ``kind`` is "dokl", "domkl" or "domkl, message passing".
    """
    root = float(np.sqrt(n_rounds))
    rho = eta_l = root / N_FREQUENCIES
    if kind == "dokl":
        return DOKL(rho=rho, eta_l=eta_l)
    made = DOMKL(rho=rho, eta_l=eta_l, eta_g=root)
    return replace(made, weights="message-passing") if "message" in kind else made


def draw_features_of(
    bandwidths: tuple[float, ...] | None, n_inputs: int, seed: int, trial: int
) -> RandomFeatures:
    """Features of a dictionary, the paper's by default."""
    child = rng.child(seed, "features", trial)
    return RandomFeatures.draw(gaussian_bank(bandwidths), n_inputs, N_FREQUENCIES, seed=child)


@dataclass(frozen=True)
class Rounds:
    """Samples that are dealt already, and the trials to run on them."""

    X: Floats  # (T, K, d)
    y: Floats  # (T, K)
    network: str  # "random" with connection probability 0.25, "path", "star" or "complete"
    bandwidths: tuple[float, ...] | None  # the paper's seventeen by default
    n_trials: int
    seed: int
    kind: str = "domkl"  # see `growing`

    def task(self, function: Callable[..., Results], name: str) -> Task:
        """The task to calculate `regrets` or `weight_gaps`."""
        n_kernels = 17 if self.bandwidths is None else len(self.bandwidths)
        cost = (
            15.0 * self.y.size * n_kernels * self.n_trials  # mostly least squares, by kernel
            if function is regrets
            else len(self.y) * (1000.0 + 400.0 * self.n_trials)  # a call of `simulate` per round
        )
        label = f"{function.__name__} {name} {self.kind} T = {len(self.y)}"
        return Task(function, {"rounds": self}, label, cost)

    def trials(self) -> Iterator[tuple[Graph, RandomFeatures]]:
        """Graph and features of each trial."""
        n_learners, n_inputs = self.X.shape[1:]
        for b in range(self.n_trials):
            graph = KINDS[self.network].make(n_learners, rng.child(self.seed, "graph", b))
            yield graph, draw_features_of(self.bandwidths, n_inputs, self.seed, b)


def regrets(report: Report, rounds: Rounds) -> Results:
    """The regrets of accuracy and of discrepancy after all rounds, trial by trial."""
    X, y = rounds.X, rounds.y
    algorithm = growing(rounds.kind, len(y))
    found: dict[str, list[Any]] = {}
    for b, (graph, features) in enumerate(rounds.trials()):
        run = simulate(algorithm, X, y, graph, features, discrepancy=True)
        values = regret(run, X, y, features)._asdict()
        values["loss"] = getattr(run.state, "loss", np.zeros((X.shape[1], 1)))  # (K, P)
        for name, value in values.items():
            found.setdefault(name, []).append(value)
        report((b + 1) / rounds.n_trials)
    return {name: np.array(value) for name, value in found.items()}


def weight_gaps(report: Report, rounds: Rounds) -> Results:
    """ε_t of assumption (a4): the maximum over edges and kernels of |q_k − q_ℓ|."""
    n_rounds, n_learners, _ = rounds.X.shape
    graphs, maps = map(list, zip(*rounds.trials(), strict=True))
    edges = [(np.repeat(np.arange(n_learners), np.diff(g.indptr)), g.indices) for g in graphs]
    algorithm, state = growing(rounds.kind, n_rounds), None
    gaps = np.zeros((rounds.n_trials, n_rounds))  # the first weights are equal
    for t in range(n_rounds - 1):
        samples = rounds.X[t : t + 1], rounds.y[t : t + 1]
        # one round of each trial is less work than to start a second thread
        run = simulate(algorithm, *samples, graphs, maps, state=state, cv="off", threads=1)
        state = run.state
        assert run.weights is not None
        for b, (ours, theirs) in enumerate(edges):
            gaps[b, t + 1] = np.abs(run.weights[b][ours] - run.weights[b][theirs]).max()
        report((t + 1) / n_rounds)
    return {"squares": np.cumsum(gaps**2, axis=1)[:, -1], "largest": gaps.max(axis=1)}


def eavesdrop(report: Report, X: Floats, y: Floats, seed: int) -> Results:
    """Recover the samples of a leaf from its messages and those of its only neighbor.

    Whoever receives both knows everything in (11) but the sample:
    (η_l + ρ)θ⁺ − η_l θ − ρ(θ + θ_ℓ)/2 + λ = 2(y − zᵀθ⁺) z. That gives z up to a factor. In the
    widest kernel all cosines are positive, which gives the sign of the factor. The angles of the
    features give Vx, least squares give x, and the factor gives y.

    Returns the errors in x and y of the first learner of a path, by round.
    """
    n_rounds, n_learners, n_inputs = X.shape
    features = draw_features_of(None, n_inputs, seed, 0)
    frequencies, algorithm, state = features.frequencies[-1], DOMKL(), None
    before: Array = np.zeros((2, 2 * features.n_frequencies))  # θ of the leaf and its neighbor
    dual = np.zeros(before.shape[1])
    errors = np.zeros((2, n_rounds))
    for t in range(n_rounds):
        part = slice(t, t + 1)
        run = simulate(algorithm, X[part], y[part], Graph.path(n_learners), features, state=state)
        assert run.theta is not None
        state, heard = run.state, run.theta[:2, -1]
        found_x, found_y = _recovered(before, heard[0], dual, frequencies, algorithm)
        errors[:, t] = np.abs(found_x - X[t, 0]).max(), abs(found_y - y[t, 0])
        dual += algorithm.rho / 2 * (heard[0] - heard[1])
        before = heard.copy()
        report((t + 1) / n_rounds)
    return {"x_error": errors[0], "y_error": errors[1]}


def _recovered(
    before: Array, after: Array, dual: Floats, frequencies: Floats, algorithm: DOMKL
) -> tuple[Floats, float]:
    own, neighbor = before
    center = algorithm.eta_l * own + algorithm.rho * (own + neighbor) / 2 - dual
    pull = (algorithm.eta_l + algorithm.rho) * after - center  # 2(y − zᵀθ⁺) z
    sines, cosines = np.split(pull, 2)
    sign = np.sign(cosines.sum())
    x = np.linalg.lstsq(frequencies, np.arctan2(sign * sines, sign * cosines), rcond=None)[0]
    factor = sign * np.linalg.norm(pull)  # ‖z‖ = 1
    return x, float(sign * pull @ after / np.linalg.norm(pull) + factor / 2)
