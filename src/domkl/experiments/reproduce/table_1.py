"""Table I: MSE and CV of DOMKL as rho and eta_g change."""

from typing import Any

from domkl.algorithms.admm import DOMKL
from domkl.experiments.reproduce import conductivity, paper
from domkl.experiments.reproduce.document import (
    Section,
    Value,
    joined,
    limit,
    numbers,
    percent,
)
from domkl.experiments.reproduce.session import Runs, Session
from domkl.experiments.store import Results

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


def learner(rho: float, eta_g: float, eta_l: float = paper.ETA_L) -> DOMKL:
    """DOMKL with parameters as the paper prints them."""
    return DOMKL(rho=rho / paper.UNSCALED, eta_l=eta_l / paper.UNSCALED, eta_g=eta_g)


def runs(session: Session) -> Runs:
    """By set, eta_g and rho; the variants by name; and the preparations of Conductivity."""
    found: Runs = {}
    for name in session.available(SETS):
        more = [(INSTEAD, rho) for rho in paper.RHOS] if name == "weather" else []
        for eta_g, rho in (*paper.TABLE_1, *more):
            label = f"eta_g {eta_g} rho {rho}"
            found[name, eta_g, rho] = session.curves(name, label, learner(rho, eta_g))
    for variant, (options, partition) in VARIANTS.items():
        if session.available(["weather"]):
            found[variant] = session.curves(
                session.stream("weather", **options), "variant", learner(paper.RHO, paper.ETA_G),
                at_most=N_VARIANTS, how={"partition": partition},
            )  # fmt: skip
    return found | conductivity.runs(session)


def section(session: Session) -> Section:
    """Ours beside the printed numbers."""
    names, found = session.available(SETS), session.results(runs(session))
    made = Section.of("table-1", n_trials=session.setting.n_trials)
    for name in names:
        made.table("table-1", _rows(found, name), data=name.capitalize())
    if "weather" in names:
        rows: list[list[Value]] = [["the paper", *paper.TABLE_1[paper.ETA_G, paper.RHO]["weather"]]]
        for name in VARIANTS:
            values = [percent(found[name], curve, paper_start=True) for curve in ("mse", "cv")]
            rows.append([name, *values])
        made.table("variants", rows, n_trials=session.n_trials(N_VARIANTS))
    _weather(found, made, [name for name in names if name == "weather"])
    _rho(found, made, names)
    if "conductivity" in names:
        conductivity.extend(session, found, made)
    return made


def _rows(found: dict[Any, Results], name: str) -> list[list[Value]]:
    rows: list[list[Value]] = []
    for (eta_g, rho), expected in paper.TABLE_1.items():
        results = found[name, eta_g, rho]
        row: list[Value] = [eta_g, rho]
        for curve, theirs in zip(("mse", "cv"), expected[name], strict=True):
            ours = percent(results, curve, paper_start=True)
            off = f"{100 * (ours / theirs - 1):+.0f} %"
            row += [theirs, ours, off, percent(results, curve)]
        rows.append(row)
    return rows


def _weather(found: dict[Any, Results], made: Section, names: list[str]) -> None:
    if not names:
        made.judge("table-1-weather", True)
        return
    mse, cv = (
        {cell: percent(found["weather", *cell], curve, paper_start=True) for cell in paper.TABLE_1}
        for curve in ("mse", "cv")
    )
    theirs = {cell: printed["weather"] for cell, printed in paper.TABLE_1.items()}
    ratios = {cell: ours / theirs[cell][0] for cell, ours in mse.items()}
    asked = [ratio for (eta_g, _), ratio in ratios.items() if eta_g == paper.ETA_G]
    others = [ratio for (eta_g, _), ratio in ratios.items() if eta_g != paper.ETA_G]
    got = [percent(found["weather", INSTEAD, rho], paper_start=True) for rho in paper.RHOS]
    within = limit("table-1-weather") / 100
    made.judge(
        "table-1-weather", all(abs(ratio - 1) <= within for ratio in asked), names,
        asked=numbers(asked), others=numbers(others), instead=INSTEAD, got=numbers(got),
        below=sum(cv[cell] < theirs[cell][1] for cell in cv),
    )  # fmt: skip


def _rho(found: dict[Any, Results], made: Section, names: list[str]) -> None:
    breaks, bends, seen = [], [], []
    for name in names:
        for eta_g in (10, 100):
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
