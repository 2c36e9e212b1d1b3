"""Figure 2: MSE and CV against the size of the network, on Twitter."""

from typing import NamedTuple

import numpy as np

from domkl.algorithms.admm import DOMKL
from domkl.algorithms.base import Algorithm
from domkl.algorithms.server import COMKL
from domkl.experiments.reproduce.document import (
    Cell,
    Claim,
    Figure,
    Line,
    Panel,
    Section,
    Table,
    numbers,
    points,
    unchecked,
    verdict,
)
from domkl.experiments.reproduce.session import Session
from domkl.experiments.reproduce.tasks.base import Task
from domkl.experiments.reproduce.tasks.curves import Curves
from domkl.typing import Floats

DATA = "twitter"
SIZES = (5, 10, 20, 50, 100)
MEAN_DEGREE = 5.0
SAME = 1.1
WHERE = "Figure 2, Section V-B"
SIZE_CLAIM = (
    "DOMKL has almost the same MSE whatever the size of the network"
    f" (we ask: largest over smallest at most {SAME}), and a CV that is small beside it."
)
CV_CLAIM = "With connection probability 0.5, CV gets better as the network grows."
OPPOSITE_CLAIM = "With a fixed mean number of neighbors, CV gets worse as the network grows."


class Series(NamedTuple):
    """A curve of the figure."""

    name: str
    algorithm: Algorithm
    is_fixed: bool  # the mean degree, rather than the connection probability


SERIES = (
    Series("domkl, probability 0.5", DOMKL(), False),
    Series("domkl, probability 5/K", DOMKL(), True),
    Series("comkl", COMKL(), False),
)


def task(session: Session, series: Series, size: int) -> Curves:
    """One size of a curve."""
    connection = min(MEAN_DEGREE / size, 1.0) if series.is_fixed else 0.5
    label = f"{series.name}, K = {size}"
    return session.curves(DATA, label, series.algorithm, n_learners=size, connection=connection)


def tasks(session: Session) -> list[Task]:
    """All sizes."""
    if not session.available([DATA]):
        return []
    return [task(session, series, size) for series in SERIES for size in SIZES]


def section(session: Session) -> Section:
    """MSE and CV against K, at each network's own T and at equal t."""
    made = Section("figure-2", "Figure 2: the size of the network")
    if not session.available([DATA]):
        claims = {"figure-2-size": SIZE_CLAIM, "figure-2-cv": CV_CLAIM}
        claims["figure-2-degree"] = OPPOSITE_CLAIM
        made.claims = [unchecked(key, text, WHERE, [DATA]) for key, text in claims.items()]
        return made
    n_samples = len(session.stream(DATA).y)
    shortest = n_samples // max(SIZES)
    made.text = [
        f"Twitter, {n_samples} samples (the paper has 98704, which could not be had),"
        f" {session.setting.n_trials} trials. A stream of N samples gives T = N/K rounds, so larger"
        " networks are stopped earlier: beside the value at each network's own T we show that at"
        f" the same round, t = {shortest}. Each network then has seen K t samples, so larger ones"
        " have seen more.",
    ]
    made.figures = [_figure(session, shortest)]
    made.tables = [_table(session, shortest)]
    made.claims = _claims(session, shortest)
    return made


def _at(session: Session, series: Series, curve: str, size: int, t: int | None) -> Floats:
    """Mean, low and high over trials at round t, or at the last."""
    values: Floats = session[task(session, series, size)][curve][:, -1 if t is None else t - 1]
    return values


def _lines(session: Session, curve: str, t: int | None) -> list[Line]:
    chosen = SERIES if curve == "mse" else SERIES[:2]
    return [
        points(s.name, list(SIZES), [_at(session, s, curve, size, t) for size in SIZES])
        for s in chosen
    ]


def _figure(session: Session, shortest: int) -> Figure:
    panels = [
        Panel(f"{when}", "learners K", label, _lines(session, curve, t))
        for curve, label in (("mse", "MSE"), ("cv", "CV"))
        for when, t in (("at T = N/K", None), (f"at t = {shortest}", shortest))
    ]
    return Figure("figure-2", "MSE and CV against the number of learners.", panels, n_columns=2)


def _table(session: Session, shortest: int) -> Table:
    rows: list[list[Cell]] = []
    for series in SERIES:
        for size in SIZES:
            n_rounds = int(session[task(session, series, size)]["mse"].shape[1])
            cells = [
                100 * float(_at(session, series, curve, size, t)[0])
                for t in (None, shortest)
                for curve in ("mse", "cv")
            ]
            rows.append([series.name, size, n_rounds, *cells])
    columns = ["curve", "K", "T", "MSE at T", "CV at T"]
    columns += [f"MSE at t = {shortest}", f"CV at t = {shortest}"]
    return Table("Figure 2 in numbers, times 100", columns, rows)


def _claims(session: Session, shortest: int) -> list[Claim]:
    half, fixed = SERIES[0], SERIES[1]

    def values(series: Series, curve: str, t: int | None) -> list[float]:
        return [float(_at(session, series, curve, size, t)[0]) for size in SIZES]

    own = {curve: values(half, curve, None) for curve in ("mse", "cv")}
    equal = {curve: values(half, curve, shortest) for curve in ("mse", "cv")}
    spread = {curve: max(v) / min(v) for curve, v in own.items()}
    is_same = spread["mse"] <= SAME and max(own["cv"]) <= 0.1 * min(own["mse"])
    size = (
        f"For K = {numbers(SIZES)}, times 100: MSE {_percent(own['mse'])}, CV {_percent(own['cv'])}"
        f" at each one's own T (largest over smallest {spread['mse']:.2f} and {spread['cv']:.2f});"
        f" MSE {_percent(equal['mse'])}, CV {_percent(equal['cv'])} at the same t = {shortest}."
        " What grows at the own T is the cold start, spread over fewer rounds; with the paper's"
        " 98704 samples T would be seven times as long, and the growth less."
    )
    degree = values(fixed, "cv", None)
    return [
        Claim("figure-2-size", SIZE_CLAIM, WHERE, size, verdict(is_same)),
        Claim(
            "figure-2-cv",
            CV_CLAIM,
            WHERE,
            f"CV times 100 at each network's own T: {_percent(own['cv'])}; at the same"
            f" t = {shortest}: {_percent(equal['cv'])}, which"
            f" {'falls' if _falls(equal['cv']) else 'does not fall'} throughout.",
            verdict(_falls(own["cv"])),
        ),
        Claim(
            "figure-2-degree",
            OPPOSITE_CLAIM,
            WHERE,
            f"With connection probability 5/K, CV times 100 at each network's own T:"
            f" {_percent(degree)}; at the same t = {shortest}:"
            f" {_percent(values(fixed, 'cv', shortest))}.",
            verdict(_falls(degree[::-1])),
        ),
    ]


def _falls(values: list[float]) -> bool:
    return bool(np.all(np.diff(values) <= 0))


def _percent(values: list[float]) -> str:
    return numbers(100 * value for value in values)
