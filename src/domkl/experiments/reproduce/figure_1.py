"""Figure 1: MSE(t) and CV(t) on six data sets, and what the paper reads off it."""

from collections.abc import Callable
from dataclasses import replace

from domkl.algorithms.admm import DOKL, DOMKL
from domkl.algorithms.base import Algorithm
from domkl.algorithms.diffusion import RFFDOKL, RFFDOMKL
from domkl.algorithms.server import COMKL
from domkl.experiments.reproduce.document import (
    Cell,
    Claim,
    Figure,
    Panel,
    Section,
    Table,
    judged,
    line,
    mean_of,
)
from domkl.experiments.reproduce.session import PANELS, Session
from domkl.experiments.reproduce.tasks.base import Task
from domkl.experiments.reproduce.tasks.curves import Curves

ALGORITHMS: dict[str, Algorithm] = {
    "comkl": COMKL(),
    "domkl": DOMKL(),
    "dokl": DOKL(),
    "rff-dokl": RFFDOKL(),
}
NEAR = 1.25
WHERE = "Figure 1, Section V-B"


def task(session: Session, data: str, name: str) -> Curves:
    """One curve of a panel."""
    return session.curves(data, name, ALGORITHMS[name])


def tasks(session: Session) -> list[Task]:
    """Six panels of four algorithms, and the gradient ones with other steps."""
    found: list[Task] = []
    for data in session.available(PANELS):
        found += [task(session, data, name) for name in ALGORITHMS]
        found += _step_tasks(session, data)
    return found


def section(session: Session) -> Section:
    """The figure, its final values, and the claims read off it."""
    names = session.available(PANELS)
    made = Section("figure-1", "Figure 1: six data sets, four algorithms")
    made.text = [
        "K = 10 learners, connection probability 0.25,"
        f" {session.setting.n_trials} trials; DOKL and RFF-DOKL use a kernel with sigma^2 = 0.001"
        " in one half of the trials and 1000 in the other, as in the paper. Curves are running"
        " averages without MSE(1) = CV(1) = 1; bands are 95 % confidence intervals of the mean"
        " over trials. COMKL has one function for all learners, so its CV is 0. COMKL and RFF-DOKL"
        " use a step of 0.5 in the scale of eq. (5); the paper does not say which it used.",
    ]
    made.figures = [
        _figure(session, names, "mse", "MSE(t)"),
        _figure(session, names, "cv", "CV(t)"),
    ]
    made.tables = [_table(session, names)]
    made.tables.append(_step_table(session, names))
    made.claims = _claims(session, names)
    return made


def _figure(session: Session, names: list[str], curve: str, label: str) -> Figure:
    panels = []
    for data in names:
        lines = [line(name, session[task(session, data, name)][curve]) for name in ALGORITHMS]
        panels.append(Panel(data, "round t", label, lines))
    caption = f"{label} on {len(names)} data sets; both axes logarithmic."
    return Figure(f"figure-1-{curve}", caption, panels)


def _table(session: Session, names: list[str]) -> Table:
    rows: list[list[Cell]] = []
    for data in names:
        for name in ALGORITHMS:
            results = session[task(session, data, name)]
            finals = [100 * mean_of(results, c) for c in ("mse", "cv")]
            started = [100 * mean_of(results, c, paper_start=True) for c in ("mse", "cv")]
            rows.append([data, name, *finals, *started, int(results["mse"].shape[1])])
    columns = ["data", "algorithm", "MSE", "CV", "MSE, MSE(1) = 1", "CV, CV(1) = 1", "rounds"]
    return Table("Final values of Figure 1, times 100", columns, rows)


# a reading of one panel: what a claim asks for, at one step of COMKL and RFF-DOKL
Ratios = dict[str, float]
STEPS = (0.05, 0.1, 0.2, 0.5)
N_BY_STEP = 100  # trials at most


def by_step(session: Session, data: str, name: str, step: float | None = None) -> Curves:
    """A run with fewer trials; COMKL, RFF-DOKL and RFF-DOMKL with this step."""
    made = {**ALGORITHMS, "rff-domkl": RFFDOMKL()}[name]
    algorithm = made if step is None else replace(made, step=step)  # type: ignore[type-var]
    return session.curves(data, f"{name} step {step}", algorithm, at_most=N_BY_STEP)


def _step_tasks(session: Session, data: str) -> list[Task]:
    stepped = [
        by_step(session, data, name, step)
        for name in ("comkl", "rff-dokl", "rff-domkl")
        for step in STEPS
    ]
    return [*stepped, by_step(session, data, "domkl"), by_step(session, data, "dokl")]


def _ratios(session: Session, data: str, step: float) -> Ratios:
    """What the claims compare."""
    domkl, dokl = (session[by_step(session, data, name)] for name in ("domkl", "dokl"))
    comkl, rff = (session[by_step(session, data, name, step)] for name in ("comkl", "rff-dokl"))
    best = {c: min(mean_of(dokl, c), mean_of(rff, c)) for c in ("mse", "cv")}
    return {
        "domkl/comkl MSE": mean_of(domkl) / mean_of(comkl),
        "domkl/best single MSE": mean_of(domkl) / best["mse"],
        "domkl/best single CV": mean_of(domkl, "cv") / best["cv"],
        "dokl/rff-dokl MSE": mean_of(dokl) / mean_of(rff),
        "dokl/rff-dokl CV": mean_of(dokl, "cv") / mean_of(rff, "cv"),
    }


def _step_table(session: Session, names: list[str]) -> Table:
    found = {(data, step): _ratios(session, data, step) for data in names for step in STEPS}
    rows: list[list[Cell]] = [[*place, *ratios.values()] for place, ratios in found.items()]
    columns = ["data", "step", *next(iter(found.values()))]
    n_trials = min(N_BY_STEP, session.setting.n_trials)
    return Table(f"Ratios by the step of COMKL and RFF-DOKL, {n_trials} trials", columns, rows)


def _claims(session: Session, names: list[str]) -> list[Claim]:
    """Judged at every step: the paper does not say which it used."""
    found = {step: {data: _ratios(session, data, step) for data in names} for step in STEPS}
    asked: dict[str, tuple[str, Callable[[dict[str, Ratios]], bool]]] = {
        "figure-1-best": (
            "DOMKL has the lowest MSE and CV of the distributed algorithms on all data sets.",
            lambda sets: _all(sets, "domkl/best single MSE") and _all(sets, "domkl/best single CV"),
        ),
        "figure-1-near": (
            f"DOMKL comes near COMKL in MSE (we ask: within a factor of {NEAR}).",
            lambda sets: _all(sets, "domkl/comkl MSE", NEAR),
        ),
        "figure-1-cv": (
            "DOKL has a better CV than RFF-DOKL on all data sets.",
            lambda sets: _all(sets, "dokl/rff-dokl CV"),
        ),
        "figure-1-neither": (
            "Neither of DOKL and RFF-DOKL has the lower MSE on all data sets.",
            lambda sets: _differ([ratios["dokl/rff-dokl MSE"] < 1 for ratios in sets.values()]),
        ),
    }
    claims = []
    for claim_id, (text, holds) in asked.items():
        verdicts = {step: holds(sets) for step, sets in found.items()}
        claim = Claim(claim_id, text, WHERE, _evidence(claim_id, found, verdicts))
        if _differ(list(verdicts.values())):
            claims.append(claim)  # it cannot be checked
        else:
            claims.append(judged(claim, all(verdicts.values()), names, PANELS))
    return [*claims, _bound(session, names)]


SHOWN = {
    "figure-1-best": ("domkl/best single MSE", "domkl/best single CV"),
    "figure-1-near": ("domkl/comkl MSE",),
    "figure-1-cv": ("dokl/rff-dokl CV",),
    "figure-1-neither": ("dokl/rff-dokl MSE",),
}


def _evidence(
    claim_id: str, found: dict[float, dict[str, Ratios]], verdicts: dict[float, bool]
) -> str:
    """The range of the ratios over the sets, step by step."""
    parts = []
    for step, sets in found.items():
        spans = []
        for key in SHOWN[claim_id]:
            values = [ratios[key] for ratios in sets.values()]
            spans.append(f"{key} {min(values):.2f} to {max(values):.2f}")
        parts.append(f"step {step:g}: {', '.join(spans)} ({'so' if verdicts[step] else 'not so'})")
    text = f"Over the data sets, by the step of COMKL and RFF-DOKL: {'; '.join(parts)}."
    if _differ(list(verdicts.values())):
        text += " It depends on that step, and the paper does not say which it used."
    return text


def _bound(session: Session, names: list[str]) -> Claim:
    """COMKL against multiple-kernel rivals, each with its best step in hindsight."""
    ratios = {}
    for data in names:
        best = {
            name: min(mean_of(session[by_step(session, data, name, step)]) for step in STEPS)
            for name in ("comkl", "rff-domkl")
        }
        rivals = {
            "DOMKL": mean_of(session[by_step(session, data, "domkl")]),
            "RFF-DOMKL": best["rff-domkl"],
        }
        name = min(rivals, key=rivals.__getitem__)
        ratios[data] = (name, rivals[name] / best["comkl"])
    seen = ", ".join(f"{data} {ratio:.2f} ({name})" for data, (name, ratio) in ratios.items())
    evidence = (
        "MSE of the better of DOMKL and RFF-DOMKL over COMKL's, COMKL and RFF-DOMKL with the best"
        f" of the steps {', '.join(map(str, STEPS))} in hindsight: {seen}. Of methods that are not"
        " multiple-kernel ones, see 'Beyond the paper'."
    )
    text = (
        "COMKL's accuracy is the limit of all multiple kernel-based distributed online learning"
        " algorithms."
    )
    claim = Claim("comkl-bound", text, "Section V", evidence)
    return judged(claim, all(ratio >= 1 for _, ratio in ratios.values()), names, PANELS)


def _all(sets: dict[str, Ratios], key: str, limit: float = 1.0) -> bool:
    return all(ratios[key] <= limit for ratios in sets.values())


def _differ(values: list[bool]) -> bool:
    return any(values) and not all(values)
