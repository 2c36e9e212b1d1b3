"""Table I: MSE and CV of DOMKL as rho and eta_g change, and how Conductivity may be prepared."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from domkl import rng
from domkl.algorithms.admm import DOMKL
from domkl.data.streams import scaled
from domkl.experiments.reproduce import paper
from domkl.experiments.reproduce.document import Section, joined, limit, numbers, percent
from domkl.experiments.reproduce.session import Runs, Session
from domkl.experiments.reproduce.tasks import Stream
from domkl.experiments.store import Results
from domkl.typing import Floats, Ints

NEEDED = SETS = ("conductivity", "weather")
N_VARIANTS = 100  # trials at most
INSTEAD = 60  # the eta_g with which we come near what is printed for 100
#: Weather at (43) when one choice is made otherwise: options of the stream, and the partition
VARIANTS: dict[str, tuple[dict[str, str], str]] = {
    "as above: authors' rows and scaling, target Next_Tmax, interleaved": ({}, "interleaved"),
    "target Next_Tmin, as the text says": ({"target": "Next_Tmin"}, "interleaved"),
    "without the file's two summary rows": ({"rule": "clean"}, "interleaved"),
    "min-max scaling": ({"scale": "minmax"}, "interleaved"),
    "partition: blocks": ({}, "blocks"),
    "partition: shuffled": ({}, "shuffled"),
}
#: Conductivity: rows that the authors may have taken, and how features may have been scaled
N_ROWS = 11_000
N_PREPARED = 20  # trials at most
ROWS: dict[str, Callable[[int], Ints]] = {
    "first": lambda n: np.arange(N_ROWS),
    "last": lambda n: np.arange(n - N_ROWS, n),
    "evenly spread": lambda n: np.linspace(0, n - 1, N_ROWS).astype(np.int64),
    "random": lambda n: rng.generator(0, "conductivity").permutation(n)[:N_ROWS],
}
FEATURES: dict[str, Callable[[Floats], Floats]] = {
    "each column by itself": lambda X: scaled(X, "authors").values,
    "all columns together": lambda X: scaled(X.ravel(), "authors").values.reshape(X.shape),
    "each column min-max": lambda X: scaled(X, "minmax").values,
}
#: rows, scaling of the features, partition
CHOICES = list(product(ROWS, FEATURES, ("interleaved", "blocks")))

Found = dict[Any, Results]


def learner(rho: float, eta_g: float, eta_l: float = paper.ETA_L) -> DOMKL:
    """DOMKL with parameters as the paper prints them."""
    return DOMKL(rho=rho / paper.UNSCALED, eta_l=eta_l / paper.UNSCALED, eta_g=eta_g)


def runs(session: Session) -> Runs:
    """By set, eta_g and rho; variants by name; preparations of Conductivity by choice and rho."""
    found: Runs = {}
    names = session.available(SETS)
    for name in names:
        more = [(INSTEAD, rho) for rho in paper.RHOS] if name == "weather" else []
        for eta_g, rho in (*paper.TABLE_1, *more):
            label = f"eta_g {eta_g} rho {rho}"
            found[name, eta_g, rho] = session.curves(name, label, learner(rho, eta_g))
    for variant, (options, partition) in VARIANTS.items() if "weather" in names else ():
        found[variant] = session.curves(
            session.stream("weather", **options), "variant", learner(paper.RHO, paper.ETA_G),
            at_most=N_VARIANTS, how={"partition": partition},
        )  # fmt: skip
    for choice, rho in product(CHOICES, paper.RHOS) if "conductivity" in names else ():
        found[choice, rho] = session.curves(
            _prepared(session, *choice[:2]), "preparation", learner(rho, paper.ETA_G),
            at_most=N_PREPARED, how={"partition": choice[2]},
        )  # fmt: skip
    return found


def _prepared(session: Session, rows: str, features: str) -> Stream:
    def make() -> Stream:
        raw = session.stream("conductivity", rule="clean", scale="none")
        kept = ROWS[rows](len(raw.y))
        X, y = FEATURES[features](raw.X[kept]), scaled(raw.y[kept], "authors").values
        return Stream("conductivity", X, y)

    return session.once(("conductivity", rows, features), make)


def section(session: Session) -> Section:
    """Ours beside the printed numbers."""
    names, found = session.available(SETS), session.results(runs(session))
    made = Section.of("table-1", n_trials=session.setting.n_trials)
    for name in names:
        made.table("table-1", _rows(found, name), data=name.capitalize())
    if "weather" in names:
        rows: list[list[Any]] = [["the paper", *paper.TABLE_1[paper.ETA_G, paper.RHO]["weather"]]]
        rows += [[variant, *_pair(found[variant])] for variant in VARIANTS]
        made.table("variants", rows, n_trials=session.n_trials(N_VARIANTS))
    _weather(found, made, [name for name in names if name == "weather"])
    _rho(found, made, names)
    if "conductivity" in names:
        _preparations(session, found, made)
    return made


def _pair(results: Results) -> list[float]:
    """MSE and CV as the paper counts them."""
    return [percent(results, curve, paper_start=True) for curve in ("mse", "cv")]


def _rows(found: Found, name: str) -> list[list[Any]]:
    rows = []
    for cell, expected in paper.TABLE_1.items():
        results, row = found[name, *cell], list[Any](cell)
        for curve, theirs, ours in zip(("mse", "cv"), expected[name], _pair(results), strict=True):
            off = f"{100 * (ours / theirs - 1):+.0f} %"
            row += [theirs, ours, off, percent(results, curve)]
        rows.append(row)
    return rows


def _weather(found: Found, made: Section, names: list[str]) -> None:
    if not names:
        made.judge("table-1-weather", True)
        return
    theirs = {cell: printed["weather"] for cell, printed in paper.TABLE_1.items()}
    ours = {cell: _pair(found["weather", *cell]) for cell in theirs}
    asked, others = (
        [ours[cell][0] / theirs[cell][0] for cell in ours if (cell[0] == paper.ETA_G) is is_asked]
        for is_asked in (True, False)
    )
    got = [_pair(found["weather", INSTEAD, rho])[0] for rho in paper.RHOS]
    within = limit("table-1-weather") / 100
    made.judge(
        "table-1-weather", all(abs(ratio - 1) <= within for ratio in asked), names,
        asked=numbers(asked), others=numbers(others), instead=INSTEAD, got=numbers(got),
        below=sum(ours[cell][1] < theirs[cell][1] for cell in ours),
    )  # fmt: skip


def _rho(found: Found, made: Section, names: list[str]) -> None:
    breaks, bends, seen = [], [], []
    for name, eta_g in product(names, (10, 100)):
        mse, cv = (
            [percent(found[name, eta_g, rho], curve) for rho in paper.RHOS]
            for curve in ("mse", "cv")
        )
        seen.append(f"{name}, eta_g = {eta_g}: MSE {numbers(mse)}, CV {numbers(cv)}")
        if not (mse[0] < mse[2] and cv[0] > cv[2]):
            breaks.append(f"{name} at eta_g = {eta_g}")
        elif not (mse[0] <= mse[1] <= mse[2] and cv[0] >= cv[1] >= cv[2]):
            bends.append(f"{name} at eta_g = {eta_g}")
    made.judge(
        "rho", not breaks, names, seen="; ".join(seen),
        breaks=f" Not so from 10 to 1000: {joined(breaks)}." if breaks else "",
        bends=f" Not monotone in between: {joined(bends)}." if bends else "",
    )  # fmt: skip


def _preparations(session: Session, found: Found, made: Section) -> None:
    """Which of the plausible preparations comes nearest to what the paper prints, nearest first."""
    theirs = np.array([paper.TABLE_1[paper.ETA_G, rho]["conductivity"] for rho in paper.RHOS])
    ours = {c: np.array([_pair(found[c, rho]) for rho in paper.RHOS]) for c in CHOICES}
    ratios = {choice: pairs / theirs for choice, pairs in ours.items()}  # (3, 2), MSE and CV
    distance = {c: float(np.sqrt(np.mean(np.log(each[:, 0]) ** 2))) for c, each in ratios.items()}
    order = sorted(CHOICES, key=distance.__getitem__)
    rows: list[list[Any]] = [["the paper", "", "", *theirs.ravel().tolist(), 0.0]]
    rows += [[*choice, *ours[choice].ravel().tolist(), distance[choice]] for choice in order]
    made.table("preparations", rows, n_trials=session.n_trials(N_PREPARED))
    nearest, (mse, cv) = order[0], ratios[order[0]].T
    made.text += Section.of(
        "preparations", n=len(order), rows=nearest[0], scaling=nearest[1], partition=nearest[2],
        percent=", ".join(f"{100 * (ratio - 1):+.0f} %" for ratio in mse), cv=cv,
    ).text  # fmt: skip
