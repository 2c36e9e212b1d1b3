"""The data structure of a report: sections of claims, tables and figures.

Everything here can be turned into JSON. Pages and figures are made from this JSON alone, so that
they can be made again from a file, and contain no number that is not in it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from domkl.experiments.store import Results
from domkl.typing import Floats

Verdict = Literal["holds", "does not hold", "cannot be checked here"]
Cell = str | float | int | None

OURS = "not in the paper"  # the place of a claim that we have added
DIGITS = 5  # significant digits of numbers in JSON
N_POINTS = 70  # number of points of a drawn curve


@dataclass
class Claim:
    """A claim of the paper, and what we found."""

    id: str
    claim: str
    where: str  # in the paper
    evidence: str
    verdict: Verdict = "cannot be checked here"


@dataclass
class Table:
    """A table with its caption and notes."""

    caption: str
    columns: list[str]
    rows: list[list[Cell]]
    notes: list[str] = field(default_factory=list)


@dataclass
class Line:
    """A curve with its band."""

    name: str
    x: list[float]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


@dataclass
class Panel:
    """A plot: a pair of axes with lines."""

    title: str
    x_label: str
    y_label: str
    lines: list[Line]
    x_log: bool = True
    y_log: bool = True


@dataclass
class Map:
    """A panel with places, the edges between them, and a value at each."""

    title: str
    value_label: str
    names: list[str]
    x: list[float]  # kilometres east
    y: list[float]  # and north
    values: list[float]
    edges: list[list[int]]
    lines: list[Line] = field(default_factory=list)  # none; other panels have some


@dataclass
class Figure:
    """Panels side by side."""

    id: str
    caption: str
    panels: Sequence[Panel | Map]
    n_columns: int = 3
    panel_size: tuple[float, float] | None = None  # inches


@dataclass
class Section:
    """A part of the report."""

    id: str
    title: str
    text: list[str] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Plain values, rounded; numbers that are not finite become null."""
        rounded: dict[str, Any] = plain(asdict(self))
        return rounded


def plain(value: Any) -> Any:
    """Turn numbers and arrays into what JSON can hold."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


def verdict(is_true: bool) -> Verdict:
    """The verdict for a claim that could be checked."""
    return "holds" if is_true else "does not hold"


def judged(claim: Claim, is_true: bool, names: Sequence[str], wanted: Sequence[str]) -> Claim:
    """Decide a claim about the ``wanted`` data sets by those that are there.

    One counterexample is enough to refute a claim; confirming it takes all data sets.
    """
    absent = [name for name in wanted if name not in names]
    if absent and (is_true or not names):
        return unchecked(claim.id, claim.claim, claim.where, absent)
    return replace(claim, verdict=verdict(is_true))


def unchecked(claim_id: str, claim: str, where: str, missing: Iterable[str]) -> Claim:
    """A claim that cannot be checked because data sets are missing."""
    names = ", ".join(missing)
    why = f"data sets not found: {names}; `domkl data fetch` them, or set DOMKL_DATA"
    return Claim(claim_id, claim, where, why)


def line(name: str, curve: Floats) -> Line:
    """A curve (3, T) of means and bands over rounds, thinned to `N_POINTS` points."""
    n_rounds = curve.shape[1]
    rounds = np.unique(np.geomspace(1, n_rounds, N_POINTS).round().astype(int))
    mean, low, high = (list(values[rounds - 1]) for values in curve)
    return Line(name, [float(t) for t in rounds], mean, low, high)


def points(name: str, x: Sequence[float], found: Sequence[Floats]) -> Line:
    """One point per (mean, low, high)."""
    mean, low, high = ([float(values[i]) for values in found] for i in range(3))
    return Line(name, [float(value) for value in x], list(mean), list(low), list(high))


def last(results: Results, curve: str = "mse", *, paper_start: bool = False) -> Floats:
    """The final value of every trial, if asked for with the paper's MSE(1) = CV(1) = 1."""
    values: Floats = results[f"{curve}_last"]
    if paper_start:
        values = values + (1 - results[f"{curve}_first"]) / results[curve].shape[1]
    return values


def mean_of(results: Results, curve: str = "mse", *, paper_start: bool = False) -> float:
    """Mean over trials of the final value."""
    return float(np.mean(last(results, curve, paper_start=paper_start)))


def numbers(values: Iterable[float], between: str = " / ") -> str:
    """Numbers with three significant digits, as text."""
    return between.join(f"{value:.3g}" for value in values)


def joined(names: Iterable[str]) -> str:
    """``a, b and c``."""
    names = list(names)
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
