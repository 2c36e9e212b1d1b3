"""Assumption (a4): how far apart neighbors' weights are."""

import math

import numpy as np

from domkl import rng
from domkl.data.streams import deal
from domkl.data.synthetic import star
from domkl.experiments.reproduce.document import Cell, Claim, Section, Table, verdict
from domkl.experiments.reproduce.session import PANELS, Session
from domkl.experiments.reproduce.tasks.base import Stream, Task
from domkl.experiments.reproduce.tasks.regrets import WeightGaps

N_TRIALS = 10
TWO_KERNELS = (1e-3, 1e3)
LONG = "traffic, the whole clean series"
STAR = "the star above"
HORIZONS = (250, 1000, 4000, 16000)
QUICK_HORIZONS = (125, 500)
#: up to this exponent of T, growth from the first to the last horizon is taken for √T
SUBLINEAR = 0.75


def horizons(session: Session) -> tuple[int, ...]:
    """How long the streams without an end are run."""
    return QUICK_HORIZONS if session.is_quick else HORIZONS


def growth(rounds: list[int], values: list[float]) -> float:
    """Power of T with which values grow, from the first to the last T; ½ is √T, 1 is linear."""
    if values[-1] <= 0:
        return -math.inf
    if values[0] <= 0:
        return math.nan
    return math.log(values[-1] / values[0]) / math.log(rounds[-1] / rounds[0])


def tasks(session: Session) -> list[Task]:
    """All that is needed."""
    return [task for group in _gaps(session).values() for task in group]


def extend(session: Session, section: Section) -> None:
    """Put table and claim into a section."""
    section.tables.append(_gap_table(session))
    section.claims.append(_a4(session))


def _gaps(session: Session) -> dict[str, list[WeightGaps]]:
    """Data sets on random networks; a series of 40 000 values; a star whose learners disagree."""
    n_trials, seed = min(N_TRIALS, session.setting.n_trials), session.setting.seed
    found: dict[str, list[WeightGaps]] = {}
    for data in session.available(PANELS):
        found[f"{data}, random"] = _cut(session, session.stream(data), (8, 4, 2, 1), n_trials)
    parts = (16, 8) if session.is_quick else (16, 4, 1)
    clean = session.stream("traffic", rule="clean")
    found[LONG] = _cut(session, clean, parts, min(n_trials, 3))
    found[STAR] = []
    for n_rounds in horizons(session)[:3]:
        X, y = star(n_rounds, rng.generator(seed, "star", n_rounds))
        found[STAR].append(WeightGaps("star", X, y, "star", TWO_KERNELS, 1, seed))
    return found


def _cut(
    session: Session, stream: Stream, parts: tuple[int, ...], n_trials: int
) -> list[WeightGaps]:
    """A stream cut at these parts of its rounds."""
    X, y = deal(stream.X, stream.y, session.setting.n_learners)
    cuts = [len(y) // part for part in parts]
    seed = session.setting.seed
    return [WeightGaps(stream.name, X[:n], y[:n], "random", None, n_trials, seed) for n in cuts]


def _gap_table(session: Session) -> Table:
    rows: list[list[Cell]] = []
    for name, group in _gaps(session).items():
        for task in group:
            results, n = session[task], len(task.y)
            squares = float(np.mean(results["squares"]))
            rows.append([name, n, squares, squares / np.sqrt(n), float(results["largest"].max())])
    columns = ["stream and network", "T", "Σ ε²", "Σ ε² / √T", "largest ε"]
    caption = "(a4): ε_t, the largest gap between neighbors' weights, eta_g = √T"
    return Table(caption, columns, rows)


def _a4(session: Session) -> Claim:
    powers, largest = {}, {}
    for name, group in _gaps(session).items():
        rounds = [len(task.y) for task in group]
        squares = [float(np.mean(session[task]["squares"])) for task in group]
        powers[name] = growth(rounds, squares)
        largest[name] = max(float(session[task]["largest"].max()) for task in group)
    seen = ", ".join(f"{name} {power:.2f}" for name, power in powers.items())
    evidence = (
        "Power of T with which Σ ε_t² grows, rho = eta_l = √T/50, eta_g = √T (1/2 is √T, 1"
        f" linear; we take up to {SUBLINEAR} as √T, and judge by the long series): {seen}. The"
        f" largest ε_t is {largest[LONG]:.2g} there and {largest[STAR]:.2g} on the star; on a"
        " complete graph it is 0. It is an assumption on data and graph together."
    )
    text = "Assumption (a4), Σ ε_t² = O(√T), is easily satisfied in practical networks."
    return Claim("a4", text, "Section IV", evidence, verdict(powers[LONG] <= SUBLINEAR))
