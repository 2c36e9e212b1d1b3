"""Figure 2: MSE and CV against the size of the network, on Twitter."""

from typing import Any

import numpy as np

from domkl.algorithms.admm import DOMKL
from domkl.algorithms.base import Algorithm
from domkl.algorithms.server import COMKL
from domkl.experiments.figures import Figure, Panel
from domkl.experiments.reproduce.document import (
    Section,
    Value,
    limit,
    numbers,
    points,
)
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
    for name, (algorithm, is_fixed) in SERIES.items() if session.available(NEEDED) else ():
        for size in SIZES:
            connection = min(5 / size, 1.0) if is_fixed else 0.5
            found[name, size] = session.curves(
                NEEDED[0], f"{name}, K = {size}", algorithm,
                n_learners=size, connection=connection,
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
    made.table("figure-2", _rows(found, shortest), shortest=shortest)
    _judge(found, made, shortest)
    return made


def _at(found: dict[Any, Results], name: str, curve: str, t: int | None) -> Floats:
    """Mean, low and high over trials at round t, or at the last, for each size."""
    return np.array([found[name, size][curve][:, -1 if t is None else t - 1] for size in SIZES])


def _rows(found: dict[Any, Results], shortest: int) -> list[list[Value]]:
    rows: list[list[Value]] = []
    for name in SERIES:
        ends = [(t, curve) for t in (None, shortest) for curve in CURVES]
        values = [100 * _at(found, name, curve, t)[:, 0] for t, curve in ends]
        for size, row in zip(SIZES, np.transpose(values).tolist(), strict=True):
            rows.append([name, size, int(found[name, size]["mse"].shape[1]), *row])
    return rows


def _judge(found: dict[Any, Results], made: Section, shortest: int) -> None:
    def values(name: str, curve: str, t: int | None = None) -> Floats:
        return _at(found, name, curve, t)[:, 0]

    def percents(values: Floats) -> str:
        return numbers(100 * values)

    (mse, cv), (equal_mse, equal_cv) = (
        [values(HALF, curve, t) for curve in CURVES] for t in (None, shortest)
    )
    mse_spread, cv_spread = mse.max() / mse.min(), cv.max() / cv.min()
    made.judge(
        "figure-2-size",
        bool(mse_spread <= limit("figure-2-size") and cv.max() <= 0.1 * mse.min()),
        NEEDED,
        sizes=numbers(SIZES), mse=percents(mse), cv=percents(cv), mse_spread=mse_spread,
        cv_spread=cv_spread, equal_mse=percents(equal_mse), equal_cv=percents(equal_cv),
        shortest=shortest,
    )  # fmt: skip
    made.judge(
        "figure-2-cv", _falls(cv), NEEDED, cv=percents(cv), shortest=shortest,
        equal_cv=percents(equal_cv), falls="falls" if _falls(equal_cv) else "does not fall",
    )  # fmt: skip
    degree, equal = (values(FIXED, "cv", t) for t in (None, shortest))
    made.judge(
        "figure-2-degree", _falls(degree[::-1]), NEEDED,
        cv=percents(degree), shortest=shortest, equal_cv=percents(equal),
    )  # fmt: skip


def _falls(values: Floats) -> bool:
    return bool(np.all(np.diff(values) <= 0))
