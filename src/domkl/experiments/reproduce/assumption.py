"""Assumption (a4): how far apart neighbors' weights are."""

import math

import numpy as np

from domkl import rng
from domkl.data.streams import deal
from domkl.data.synthetic import star
from domkl.experiments.reproduce.document import Cell, Claim, Section, Table, verdict
from domkl.experiments.reproduce.lab import PANELS, Lab
from domkl.experiments.reproduce.works.base import Stream, Work
from domkl.experiments.reproduce.works.weights import WeightGaps

N_TRIALS = 10
TWO_KERNELS = (1e-3, 1e3)
LONG = "traffic, the whole clean series"
STAR = "the star above"
HORIZONS = (250, 1000, 4000, 16000)
#: up to this exponent of T, growth from the first to the last horizon is taken for √T
SUBLINEAR = 0.75


def horizons(lab: Lab) -> tuple[int, ...]:
    """How long the streams without an end are run."""
    return HORIZONS[:2] if lab.is_quick else HORIZONS


def growth(rounds: list[int], values: list[float]) -> float:
    """Power of T with which values grow, from the first to the last T; ½ is √T, 1 is linear."""
    if values[-1] <= 0:
        return -math.inf
    if values[0] <= 0:
        return math.nan
    return math.log(values[-1] / values[0]) / math.log(rounds[-1] / rounds[0])


def works(lab: Lab) -> list[Work]:
    """All that is needed."""
    return [work for group in _gaps(lab).values() for work in group]


def extend(lab: Lab, section: Section) -> None:
    """Put table and claim into a section."""
    section.tables.append(_gap_table(lab))
    section.claims.append(_a4(lab))


def _gaps(lab: Lab) -> dict[str, list[WeightGaps]]:
    """Data sets on random networks; a series of 40 000 values; a star whose learners disagree."""
    n_trials, seed = min(N_TRIALS, lab.setting.n_trials), lab.setting.seed
    found: dict[str, list[WeightGaps]] = {}
    for data in lab.available(PANELS):
        found[f"{data}, random"] = _cut(lab, lab.stream(data), (8, 4, 2, 1), n_trials)
    parts = (16, 8) if lab.is_quick else (16, 4, 1)
    clean = lab.stream("traffic", rule="clean")
    found[LONG] = _cut(lab, clean, parts, min(n_trials, 3))
    found[STAR] = []
    for n_rounds in horizons(lab)[:3]:
        X, y = star(n_rounds, rng.generator(seed, "star", n_rounds))
        found[STAR].append(WeightGaps("star", X, y, "star", TWO_KERNELS, 1, seed))
    return found


def _cut(lab: Lab, stream: Stream, parts: tuple[int, ...], n_trials: int) -> list[WeightGaps]:
    """A stream cut at these parts of its rounds."""
    X, y = deal(stream.X, stream.y, lab.setting.n_learners)
    cuts = [len(y) // part for part in parts]
    seed = lab.setting.seed
    return [WeightGaps(stream.name, X[:n], y[:n], "random", None, n_trials, seed) for n in cuts]


def _gap_table(lab: Lab) -> Table:
    rows: list[list[Cell]] = []
    for name, group in _gaps(lab).items():
        for work in group:
            kept, n = lab[work], len(work.y)
            squares = float(np.mean(kept["squares"]))
            rows.append([name, n, squares, squares / np.sqrt(n), float(kept["largest"].max())])
    columns = ["stream and network", "T", "Σ ε²", "Σ ε² / √T", "largest ε"]
    caption = "(a4): ε_t, the largest gap between neighbors' weights, eta_g = √T"
    return Table(caption, columns, rows)


def _a4(lab: Lab) -> Claim:
    powers, largest = {}, {}
    for name, group in _gaps(lab).items():
        rounds = [len(work.y) for work in group]
        squares = [float(np.mean(lab[work]["squares"])) for work in group]
        powers[name] = growth(rounds, squares)
        largest[name] = max(float(lab[work]["largest"].max()) for work in group)
    seen = ", ".join(f"{name} {power:.2f}" for name, power in powers.items())
    evidence = (
        "Power of T with which Σ ε_t² grows, rho = eta_l = √T/50, eta_g = √T (1/2 is √T, 1"
        f" linear; we take up to {SUBLINEAR} as √T, and judge by the long series): {seen}. The"
        f" largest ε_t is {largest[LONG]:.2g} there and {largest[STAR]:.2g} on the star; on a"
        " complete graph it is 0. It is an assumption on data and graph together."
    )
    text = "Assumption (a4), Σ ε_t² = O(√T), is easily satisfied in practical networks."
    return Claim("a4", text, "Section IV", evidence, verdict(powers[LONG] <= SUBLINEAR))
