"""Table I: MSE and CV of DOMKL as rho and eta_g change."""

from domkl.algorithms.admm import DOMKL
from domkl.experiments.reproduce import conductivity, paper
from domkl.experiments.reproduce.document import (
    Claim,
    Section,
    Table,
    joined,
    mean_of,
    numbers,
    unchecked,
    verdict,
)
from domkl.experiments.reproduce.session import Session
from domkl.experiments.reproduce.tasks.base import Task
from domkl.experiments.reproduce.tasks.curves import Curves

SETS = ("conductivity", "weather")
RHO = (10, 100, 1000)
WITHIN = 0.15
N_VARIANTS = 100  # trials at most
INSTEAD = 60  # the eta_g with which we come near what is printed for 100
RHO_CLAIM = "A larger rho buys consensus (a lower CV) with accuracy (a higher MSE)."


def learner(rho: float, eta_g: float, eta_l: float = paper.ETA_L) -> DOMKL:
    """DOMKL with parameters as the paper prints them."""
    return DOMKL(rho=rho / paper.UNSCALED, eta_l=eta_l / paper.UNSCALED, eta_g=eta_g)


def task(session: Session, name: str, eta_g: int, rho: int) -> Curves:
    """One cell of the table."""
    return session.curves(name, f"eta_g {eta_g} rho {rho}", learner(rho, eta_g))


def variants(session: Session) -> dict[str, Curves]:
    """Weather at (43) when one choice is made otherwise."""
    default = learner(paper.RHO, paper.ETA_G)
    streams = {
        "as above: authors' rows and scaling, target Next_Tmax, interleaved": {},
        "target Next_Tmin, as the text says": {"target": "Next_Tmin"},
        "without the file's two summary rows": {"rule": "clean"},
        "min-max scaling": {"scale": "minmax"},
    }
    found = {
        name: session.curves(
            session.stream("weather", **options), "variant", default, at_most=N_VARIANTS
        )
        for name, options in streams.items()
    }
    for partition in ("blocks", "shuffled"):
        found[f"partition: {partition}"] = session.curves(
            "weather", "variant", default, partition=partition, at_most=N_VARIANTS
        )
    return found


def tasks(session: Session) -> list[Task]:
    """All that this section needs."""
    found: list[Task] = [
        task(session, name, *cell) for name in session.available(SETS) for cell in paper.TABLE_1
    ]
    if session.available(["weather"]):
        found += variants(session).values()
        found += [task(session, "weather", INSTEAD, rho) for rho in RHO]
    return found + conductivity.tasks(session)


def section(session: Session) -> Section:
    """Ours beside the printed numbers."""
    names = session.available(SETS)
    made = Section("table-1", "Table I: the parameters rho and eta_g")
    made.text = [
        "MSE and CV (times 100) of DOMKL with K = 10 learners and connection probability 0.25,"
        f" means over {session.setting.n_trials} trials. As the paper does, the first round counts"
        " as MSE(1) = CV(1) = 1, which adds about 1/T; the columns 'plain' leave that out. rho is"
        " as printed, for features that are not divided by the root of M; in the scale of eq. (5)"
        " it is rho/50.",
    ]
    for name in names:
        made.tables.append(_table(session, name))
    if "weather" in names:
        made.claims.append(_weather(session))
        made.tables.append(_variants(session))
    else:
        made.claims.append(unchecked("table-1-weather", _WEATHER, "Table I", ["weather"]))
    absent = [name for name in SETS if name not in names]
    made.claims.append(
        unchecked("rho", RHO_CLAIM, "Section V, Table I", absent) if absent else _rho(session)
    )
    conductivity.extend(session, made)
    return made


def _table(session: Session, name: str) -> Table:
    rows: list[list[str | float | int | None]] = []
    for (eta_g, rho), expected in paper.TABLE_1.items():
        results = session[task(session, name, eta_g, rho)]
        cells: list[str | float | int | None] = [eta_g, rho]
        for curve, theirs in zip(("mse", "cv"), expected[name], strict=True):
            ours = 100 * mean_of(results, curve, paper_start=True)
            plain = 100 * mean_of(results, curve)
            cells += [theirs, ours, f"{100 * (ours / theirs - 1):+.0f} %", plain]
        rows.append(cells)
    columns = ["eta_g", "rho"]
    for curve in ("MSE", "CV"):
        columns += [f"{curve} paper", f"{curve} ours", "difference", f"{curve} ours, plain"]
    return Table(f"{name.capitalize()}, times 100", columns, rows)


_WEATHER = "The MSE printed for Weather with eta_g = 10 comes out again, within 15 %."


def _weather(session: Session) -> Claim:
    ratios = {}
    for (eta_g, rho), expected in paper.TABLE_1.items():
        ours = 100 * mean_of(session[task(session, "weather", eta_g, rho)], paper_start=True)
        ratios[eta_g, rho] = ours / expected["weather"][0]
    asked = [ratio for (eta_g, _), ratio in ratios.items() if eta_g == 10]
    others = [ratio for (eta_g, _), ratio in ratios.items() if eta_g != 10]
    instead = [
        100 * mean_of(session[task(session, "weather", INSTEAD, r)], paper_start=True) for r in RHO
    ]
    evidence = (
        f"Ours over the printed MSE: {numbers(asked)} for rho = 10, 100, 1000 at eta_g = 10, and"
        f" {numbers(others)} at eta_g = 100. What is printed for eta_g = 100 is nearly what we get"
        f" with eta_g = {INSTEAD}, an MSE of {numbers(instead)} times 0.01; why, we do not know."
        " Our CV, of which 1/T is the convention CV(1) = 1, is below the printed one in"
        f" {_below(session)} of 6 settings. Code that the authors published for a sister paper"
        " draws other frequencies at each learner and squares a signed mean over neighbors; the"
        " text, which we follow, does neither."
    )
    is_true = all(abs(ratio - 1) <= WITHIN for ratio in asked)
    return Claim("table-1-weather", _WEATHER, "Table I", evidence, verdict(is_true))


def _below(session: Session) -> int:
    ours = {
        cell: 100 * mean_of(session[task(session, "weather", *cell)], "cv", paper_start=True)
        for cell in paper.TABLE_1
    }
    return sum(ours[cell] < paper.TABLE_1[cell]["weather"][1] for cell in ours)


def _rho(session: Session) -> Claim:
    breaks, bends, seen = [], [], []
    for name in SETS:
        for eta_g in (10, 100):
            results = [session[task(session, name, eta_g, rho)] for rho in RHO]
            mse, cv = ([100 * mean_of(k, curve) for k in results] for curve in ("mse", "cv"))
            seen.append(f"{name}, eta_g = {eta_g}: MSE {numbers(mse)}, CV {numbers(cv)}")
            if not (mse[0] < mse[2] and cv[0] > cv[2]):
                breaks.append(f"{name} at eta_g = {eta_g}")
            elif not (mse[0] <= mse[1] <= mse[2] and cv[0] >= cv[1] >= cv[2]):
                bends.append(f"{name} at eta_g = {eta_g}")
    evidence = "For rho = 10, 100, 1000, times 100 and without MSE(1) = 1. " + "; ".join(seen) + "."
    if breaks:
        evidence += f" Not so from 10 to 1000: {joined(breaks)}."
    if bends:
        evidence += f" Not monotone in between: {joined(bends)}."
    evidence += (
        " In the printed table Conductivity's MSE falls from rho = 10 to 1000 (5.23 to 4.98, and"
        " 5.68 to 5.27), and Weather's CV falls and rises."
    )
    return Claim("rho", RHO_CLAIM, "Section V, Table I", evidence, verdict(not breaks))


def _variants(session: Session) -> Table:
    paper_mse, paper_cv = paper.TABLE_1[paper.ETA_G, paper.RHO]["weather"]
    rows: list[list[str | float | int | None]] = [["the paper", paper_mse, paper_cv]]
    for name, variant in variants(session).items():
        results = session[variant]
        rows.append([name, *(100 * mean_of(results, c, paper_start=True) for c in ("mse", "cv"))])
    return Table(
        "Weather at rho = 100, eta_g = 10 when one choice is made otherwise, times 100,"
        f" {min(N_VARIANTS, session.setting.n_trials)} trials",
        ["choice", "MSE", "CV"],
        rows,
        ["The text says that the minimum is predicted; the authors' array holds the maximum."],
    )
