"""Figure 2: MSE and CV against the size of the network, on Twitter."""

from itertools import product
from typing import Any

import numpy as np

from domkl.algorithms.admm import DOMKL
from domkl.algorithms.base import Algorithm
from domkl.algorithms.server import COMKL
from domkl.experiments.figures import Figure, Panel, points
from domkl.experiments.reproduce.document import Section, limit, numbers
from domkl.experiments.reproduce.session import Runs, Session
from domkl.experiments.store import Results
from domkl.typing import Floats

NEEDED = ("twitter",)
SIZES = (5, 10, 20, 50, 100)
HALF, FIXED = "domkl, probability 0.5", "domkl, probability 5/K"
#: a curve's algorithm, and whether its mean degree is fixed, not the connection probability
SERIES: dict[str, tuple[Algorithm, bool]] = {
    HALF: (DOMKL(), False),
    FIXED: (DOMKL(), True),
    "comkl": (COMKL(), False),
}
CURVES = ("mse", "cv")


def runs(session: Session) -> Runs:
    """By curve and size."""
    found: Runs = {}
    for name, size in product(SERIES, SIZES) if session.available(NEEDED) else ():
        algorithm, is_fixed = SERIES[name]
        found[name, size] = session.curves(
            NEEDED[0], f"{name}, K = {size}", algorithm,
            n_learners=size, connection=min(5 / size, 1.0) if is_fixed else 0.5,
        )  # fmt: skip
    return found


def section(session: Session) -> Section:
    """MSE and CV against K, at each network's own T and at equal t."""
    found = session.results(runs(session))
    if not found:
        made = Section("figure-2", "Figure 2: the size of the network")
        for claim in ("figure-2-size", "figure-2-cv", "figure-2-degree"):
            made.judge(claim, True)
        return made
    n_samples = len(session.stream(NEEDED[0]).y)
    shortest = n_samples // max(SIZES)
    given = {"n_samples": n_samples, "n_trials": session.setting.n_trials, "shortest": shortest}
    made = Section.of("figure-2", **given)
    panels = []
    for curve in CURVES:
        for when, t in (("at T = N/K", None), (f"at t = {shortest}", shortest)):
            names = [name for name in SERIES if curve == "mse" or name != "comkl"]
            lines = [points(name, SIZES, _at(found, name, curve, t)) for name in names]
            panels.append(Panel(when, "learners K", curve.upper(), lines))
    caption = "MSE and CV against the number of learners."
    made.figures = [Figure("figure-2", caption, panels, n_columns=2)]
    rows = []
    for name in SERIES:
        values = [_percent(found, name, curve, t) for t in (None, shortest) for curve in CURVES]
        for size, *row in zip(SIZES, *values, strict=True):
            rows.append([name, size, int(found[name, size]["mse"].shape[1]), *row])
    made.table("figure-2", rows, shortest=shortest)
    _judge(found, made, shortest)
    return made


def _at(found: dict[Any, Results], name: str, curve: str, t: int | None) -> Floats:
    """Mean, low and high over trials at round t, or at the last, for each size."""
    return np.array([found[name, size][curve][:, -1 if t is None else t - 1] for size in SIZES])


def _percent(found: dict[Any, Results], name: str, curve: str, t: int | None) -> Floats:
    """Means over trials times 100, for each size."""
    return 100 * _at(found, name, curve, t)[:, 0]


def _judge(found: dict[Any, Results], made: Section, shortest: int) -> None:
    (mse, cv), (equal_mse, equal_cv) = (
        [_percent(found, HALF, curve, t) for curve in CURVES] for t in (None, shortest)
    )
    degree, equal_degree = (_percent(found, FIXED, "cv", t) for t in (None, shortest))
    spread = mse.max() / mse.min()
    told = {"cv": numbers(cv), "equal_cv": numbers(equal_cv), "shortest": shortest}
    is_small = bool(spread <= limit("figure-2-size") and cv.max() <= 0.1 * mse.min())
    made.judge(
        "figure-2-size", is_small, NEEDED, **told, sizes=numbers(SIZES), mse=numbers(mse),
        mse_spread=spread, cv_spread=cv.max() / cv.min(), equal_mse=numbers(equal_mse),
    )  # fmt: skip
    falls = "falls" if _falls(equal_cv) else "does not fall"
    made.judge("figure-2-cv", _falls(cv), NEEDED, **told, falls=falls)
    told |= {"cv": numbers(degree), "equal_cv": numbers(equal_degree)}
    made.judge("figure-2-degree", _falls(degree[::-1]), NEEDED, **told)


def _falls(values: Floats) -> bool:
    return bool(np.all(np.diff(values) <= 0))
