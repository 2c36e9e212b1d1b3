"""Conductivity: which of the plausible preparations comes nearest to the paper's Table I."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from domkl import rng
from domkl.algorithms.admm import DOMKL
from domkl.data.streams import scaled
from domkl.experiments.reproduce import paper
from domkl.experiments.reproduce.document import Section, Value, percent
from domkl.experiments.reproduce.session import Runs, Session
from domkl.experiments.reproduce.tasks import Stream
from domkl.experiments.store import Results
from domkl.typing import Floats, Ints

N_ROWS = 11_000
N_TRIALS = 20

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


def runs(session: Session) -> Runs:
    """All preparations with eta_g = 10, by choice and rho."""
    found: Runs = {}
    for choice in CHOICES if session.available(["conductivity"]) else ():
        rows, features, partition = choice
        for rho in paper.RHOS:
            scale = paper.UNSCALED
            learner = DOMKL(rho=rho / scale, eta_l=paper.ETA_L / scale, eta_g=paper.ETA_G)
            found[choice, rho] = session.curves(
                _stream(session, rows, features), "preparation", learner,
                at_most=N_TRIALS, how={"partition": partition},
            )  # fmt: skip
    return found


def extend(session: Session, found: dict[Any, Results], section: Section) -> None:
    """Put the table of preparations, nearest first, into a section."""

    def values(choice: tuple[str, str, str], curve: str) -> list[float]:
        return [percent(found[choice, rho], curve, paper_start=True) for rho in paper.RHOS]

    mse, cv = ({choice: values(choice, curve) for choice in CHOICES} for curve in ("mse", "cv"))
    theirs = [paper.TABLE_1[paper.ETA_G, rho]["conductivity"] for rho in paper.RHOS]
    printed_mse, printed_cv = np.transpose(theirs)
    distance = {
        c: float(np.sqrt(np.mean(np.log(np.divide(values, printed_mse)) ** 2)))
        for c, values in mse.items()
    }
    order = sorted(CHOICES, key=distance.__getitem__)
    rows: list[list[Value]] = [["the paper", "", "", *(v for pair in theirs for v in pair), 0.0]]
    for choice in order:
        pairs = zip(mse[choice], cv[choice], strict=True)
        rows.append([*choice, *(v for pair in pairs for v in pair), distance[choice]])
    section.table("preparations", rows, n_trials=session.n_trials(N_TRIALS))
    nearest = order[0]
    ratios = np.divide(mse[nearest], printed_mse)
    section.text += Section.of(
        "preparations", n=len(order), rows=nearest[0], scaling=nearest[1], partition=nearest[2],
        percent=", ".join(f"{100 * (ratio - 1):+.0f} %" for ratio in ratios),
        cv=np.divide(cv[nearest], printed_cv),
    ).text  # fmt: skip


def _stream(session: Session, rows: str, features: str) -> Stream:
    def make() -> Stream:
        raw = session.stream("conductivity", rule="clean", scale="none")
        kept = ROWS[rows](len(raw.y))
        X, y = FEATURES[features](raw.X[kept]), scaled(raw.y[kept], "authors").values
        return Stream("conductivity", X, y)

    return session.once(("conductivity", rows, features), make)
