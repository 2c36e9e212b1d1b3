"""Assumption (a4): how far apart neighbors' weights are."""

import math

import numpy as np

from domkl import rng
from domkl.data.streams import deal
from domkl.data.synthetic import star
from domkl.experiments.reproduce.document import Cell, Claim, Section, Table, verdict
from domkl.experiments.reproduce.lab import PANELS, Lab
from domkl.experiments.reproduce.works.base import Work
from domkl.experiments.reproduce.works.weights import WeightGaps

N_TRIALS = 10
TWO_KERNELS = (1e-3, 1e3)
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
    rise = math.log(values[-1] / max(values[0], 1e-300))
    return rise / math.log(rounds[-1] / rounds[0])


def works(lab: Lab) -> list[Work]:
    """All that is needed."""
    return [work for group in _gaps(lab).values() for work in group]


def extend(lab: Lab, section: Section) -> None:
    """Put table and claim into a section."""
    section.tables.append(_gap_table(lab))
    section.claims.append(_a4(lab))


def _gaps(lab: Lab) -> dict[str, list[WeightGaps]]:
    """Data sets on random networks, and a star whose learners disagree."""
    n_trials, seed = min(N_TRIALS, lab.setting.n_trials), lab.setting.seed
    found: dict[str, list[WeightGaps]] = {}
    for data in lab.available(PANELS):
        stream = lab.stream(data)
        X, y = deal(stream.X, stream.y, lab.setting.n_learners)
        cuts = [len(y) // n for n in (8, 4, 2, 1)]
        found[f"{data}, random"] = [
            WeightGaps(data, X[:n], y[:n], "random", None, n_trials, seed) for n in cuts
        ]
    name = "the star above"
    found[name] = []
    for n_rounds in horizons(lab)[:3]:
        X, y = star(n_rounds, rng.generator(seed, "star", n_rounds))
        found[name].append(WeightGaps("star", X, y, "star", TWO_KERNELS, 1, seed))
    return found


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
    powers, rates = {}, {}
    for name, group in _gaps(lab).items():
        rounds = [len(work.y) for work in group]
        squares = [float(np.mean(lab[work]["squares"])) for work in group]
        powers[name], rates[name] = growth(rounds, squares), squares[-1] / np.sqrt(rounds[-1])
    seen = ", ".join(f"{name} {power:.2f}" for name, power in powers.items())
    *data, star_rate = rates.values()
    evidence = (
        f"Power of T with which Σ ε_t² grows, rho = eta_l = √T/50, eta_g = √T (1/2 is √T, 1"
        f" linear): {seen}. The gaps themselves are small on the data sets (Σ ε_t²/√T at most"
        f" {max(data, default=0.0):.2g} at the end; on the star it is {star_rate:.2g}). On a"
        " complete graph ε_t = 0. It is an assumption on data and graph together, and fails where"
        " neighborhoods favor different kernels."
    )
    text = "Assumption (a4), Σ ε_t² = O(√T), is easily satisfied in practical networks."
    is_true = all(power <= SUBLINEAR for power in powers.values())
    return Claim("a4", text, "Section IV", evidence, verdict(is_true))
