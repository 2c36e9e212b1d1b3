"""Theorems 1 and 2, Lemma 3 and assumption (a4), measured.

Regrets and gaps of weights are calculated at several horizons T. A group is what is run at all of
them: a data set cut at parts of its rounds, or a stream that goes on as long as we like.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from domkl import rng
from domkl.data.streams import deal
from domkl.data.synthetic import star, two_neighbors
from domkl.experiments.figures import Figure, Panel, points
from domkl.experiments.reproduce.document import Section, limit, listed, numbers
from domkl.experiments.reproduce.session import PANELS, Runs, Session
from domkl.experiments.reproduce.tasks import Rounds, Stream, regrets, weight_gaps
from domkl.experiments.store import Results
from domkl.metrics.intervals import interval
from domkl.typing import Floats

N_TRIALS = 10  # at most
DOKL_BANDWIDTH = (1.0,)
TWO_KERNELS = (1e-3, 1e3)
HORIZONS = (250, 1000, 4000, 16000)
QUICK_HORIZONS = (125, 500)
#: up to this exponent of T, growth from the first to the last horizon is taken for √T
SUBLINEAR = limit("a4")
#: streams whose learners disagree: how they are made, the kind of algorithm, and the network
STREAMS: dict[str, tuple[Callable[..., tuple[Floats, Floats]], str, str]] = {
    "two neighbors": (two_neighbors, "domkl", "complete"),
    "star, weights (16)": (star, "domkl", "star"),
    "star, message passing": (star, "domkl, message passing", "star"),
    "complete graph": (star, "domkl", "complete"),
}
ONE_KERNEL = "two neighbors, one kernel"
LONG = "traffic, the whole clean series"
STAR = "the star above"

Group = dict[int, Results]  # by the number of rounds T


def runs(session: Session) -> Runs:
    """By group and T; the group of a data set is its name and "dokl", "domkl" or "gaps"."""
    found: Runs = {}
    seed, n_trials = session.setting.seed, session.n_trials(N_TRIALS)
    horizons = QUICK_HORIZONS if session.is_quick else HORIZONS

    def cut(group: Any, stream: Stream, parts: Iterable[int], function: Any, *given: Any) -> None:
        X, y = deal(stream.X, stream.y, session.setting.n_learners)
        for n in (len(y) // part for part in parts):
            found[group, n] = Rounds(X[:n], y[:n], "random", *given).task(function, stream.name)

    for data in session.available(PANELS):
        stream, parts = session.stream(data), (16, 8, 4) if session.is_quick else (16, 8, 4, 2, 1)
        cut((data, "dokl"), stream, parts, regrets, DOKL_BANDWIDTH, n_trials, seed, "dokl")
        cut((data, "domkl"), stream, parts, regrets, None, n_trials, seed)
        cut((data, "gaps"), stream, (8, 4, 2, 1), weight_gaps, None, n_trials, seed)
    clean = session.stream("traffic", rule="clean")
    ends = (16, 8) if session.is_quick else (16, 4, 1)
    cut(LONG, clean, ends, weight_gaps, None, min(n_trials, 3), seed)
    streams = {**STREAMS, ONE_KERNEL: (two_neighbors, "dokl", "complete")}
    for group, (make, kind, network) in streams.items():
        bandwidths = TWO_KERNELS[:1] if kind == "dokl" else TWO_KERNELS
        for n in horizons:
            samples = _samples(make, n, seed)
            rounds = Rounds(*samples, network, bandwidths, n_trials, seed, kind)
            found[group, n] = rounds.task(regrets, group)
    for n in horizons[:3]:
        rounds = Rounds(*_samples(star, n, seed), "star", TWO_KERNELS, 1, seed)
        found[STAR, n] = rounds.task(weight_gaps, "star")
    return found


def _samples(
    make: Callable[..., tuple[Floats, Floats]], n_rounds: int, seed: int
) -> tuple[Floats, Floats]:
    name = make.__name__.replace("_", " ")
    return make(n_rounds, rng.generator(seed, name, n_rounds))


#: how a regret is read: of all learners' regrets, or of the network's one
READINGS: dict[str, Callable[[Results], Floats]] = {
    "accuracy, worst learner": lambda results: results["accuracy"].max(axis=1),
    "accuracy, network": lambda results: results["network_accuracy"],
    "discrepancy, worst learner": lambda results: results["discrepancy"].max(axis=1),
    "discrepancy, network": lambda results: results["network_discrepancy"],
}


def section(session: Session) -> Section:
    """Regrets over √T against T, what is wrong with Lemma 3, and the gaps of (a4)."""
    groups: dict[Any, Group] = {}
    for (group, n), results in session.results(runs(session)).items():
        groups.setdefault(group, {})[n] = results
    names = session.available(PANELS)
    made = Section.of("theorems", n_trials=session.n_trials(N_TRIALS))
    made.figures = [
        _figure(kind, f"Regrets of {kind.upper()} over √T on the data sets.",
                {data: groups[data, kind] for data in names})
        for kind in ("dokl", "domkl")
    ]  # fmt: skip
    streams = {name: groups[name] for name in STREAMS}
    caption = "The same on streams whose learners disagree about the best kernel."
    made.figures.append(_figure("disagree", caption, streams))
    _theorems(groups, made, names)
    _lemma(groups["two neighbors"], made)
    _what_holds(streams, made)
    gaps = {f"{data}, random": groups[data, "gaps"] for data in names}
    _a4(gaps | {name: groups[name] for name in (LONG, STAR)}, made)
    return made


def _figure(name: str, caption: str, groups: dict[str, Group]) -> Figure:
    panels = []
    for title, reading in READINGS.items():
        lines = []
        for label, group in groups.items():
            found = [np.stack(interval(reading(r) / np.sqrt(n))) for n, r in group.items()]
            lines.append(points(label, list(group), found))
        panels.append(Panel(title, "rounds T", "regret / √T", lines))
    return Figure(f"theorems-{name}", caption, panels, n_columns=2)


def growth(rounds: list[int], values: list[float]) -> float:
    """Power of T with which values grow, from the first to the last T; ½ is √T, 1 is linear."""
    if values[-1] <= 0:
        return -math.inf
    if values[0] <= 0:
        return math.nan
    return math.log(values[-1] / values[0]) / math.log(rounds[-1] / rounds[0])


def _means(group: Group, reading: str) -> list[float]:
    return [float(np.mean(READINGS[reading](results))) for results in group.values()]


def _growth(group: Group, reading: str) -> float:
    return growth(list(group), _means(group, reading))


def _theorems(groups: dict[Any, Group], made: Section, names: list[str]) -> None:
    for number, kind, stream in ((1, "dokl", ONE_KERNEL), (2, "domkl", "two neighbors")):
        group = groups[stream]
        for part, regret in (("a", "accuracy"), ("b", "discrepancy")):
            reading = f"{regret}, worst learner"
            seen = listed({data: _growth(groups[data, kind], reading) for data in names})
            power = _growth(group, reading)
            rates = [mean / n for n, mean in zip(group, _means(group, reading), strict=True)]
            made.judge(
                f"theorem-{number}{part}", power <= SUBLINEAR, sublinear=SUBLINEAR, seen=seen,
                rates=numbers(rates, ", "), rounds=", ".join(map(str, group)), power=power,
            )  # fmt: skip


def _lemma(group: Group, made: Section) -> None:
    """zeta, the printed lower bound and the true one, of the first trial, where J is all."""
    rows, below, above = [], [], []
    for n, results in group.items():
        loss, eta_g = results["loss"][0], math.sqrt(n)  # (K, P)
        log_kernels = np.log(loss.shape[1])
        zeta = float(np.logaddexp.reduce(-loss.sum(axis=0) / eta_g) - log_kernels)
        printed = float(-loss.min(axis=1).sum() / eta_g - log_kernels)
        true = float(-loss.sum(axis=0).min() / eta_g - log_kernels)
        below.append(zeta - printed)
        above.append(zeta - true)
        rows.append([n, zeta, printed, below[-1], true, above[-1]])
    made.table("lemma-3", rows)
    given = {"below": numbers(below, ", "), "above": numbers(above, ", ")}
    made.judge("lemma-3", min(below) >= -1e-9, rounds=", ".join(map(str, group)), **given)


def _what_holds(streams: dict[str, Group], made: Section) -> None:
    rows: list[list[Any]] = []
    for name, group in streams.items():
        means = zip(*(_means(group, reading) for reading in READINGS), strict=True)
        rows += [
            [name, n, *(mean / n for mean in each)] for n, each in zip(group, means, strict=True)
        ]
    made.table("streams", rows)
    powers = {name: _growth(group, "accuracy, network") for name, group in streams.items()}
    is_true = all(power <= SUBLINEAR for power in powers.values())
    made.judge("network-regret", is_true, seen=listed(powers))


def _a4(gaps: dict[str, Group], made: Section) -> None:
    rows, powers, largest = [], {}, {}
    for name, group in gaps.items():
        squares = [float(np.mean(results["squares"])) for results in group.values()]
        tops = [float(results["largest"].max()) for results in group.values()]
        powers[name], largest[name] = growth(list(group), squares), max(tops)
        for n, square, top in zip(group, squares, tops, strict=True):
            rows.append([name, n, square, square / math.sqrt(n), top])
    made.table("a4", rows)
    seen, is_true = listed(powers), powers[LONG] <= SUBLINEAR
    made.judge("a4", is_true, seen=seen, long=largest[LONG], star=largest[STAR])
