"""Figure 1: MSE(t) and CV(t) on six data sets, and what the paper reads off it."""

from collections.abc import Callable
from itertools import product
from typing import Any

from domkl.algorithms.admm import DOKL, DOMKL
from domkl.algorithms.base import Algorithm
from domkl.algorithms.diffusion import RFFDOKL, RFFDOMKL
from domkl.algorithms.server import COMKL
from domkl.experiments.figures import Figure, Panel
from domkl.experiments.reproduce.document import Section, limit, line, mean_of, percent
from domkl.experiments.reproduce.session import PANELS, Runs, Session
from domkl.experiments.store import Results

ALGORITHMS: dict[str, Algorithm] = {
    "comkl": COMKL(),
    "domkl": DOMKL(),
    "dokl": DOKL(),
    "rff-dokl": RFFDOKL(),
}
#: steps of the gradient methods: the paper does not say which it used
STEPS = (0.05, 0.1, 0.2, 0.5)
STEPPED: dict[str, Algorithm] = {"comkl": COMKL(), "rff-dokl": RFFDOKL(), "rff-domkl": RFFDOMKL()}
N_BY_STEP = 100  # trials at most

Found = dict[Any, Results]


def runs(session: Session) -> Runs:
    """By set and algorithm; and with fewer trials by set, algorithm and step, None without one."""
    found: Runs = {}
    for data in session.available(PANELS):
        for name, algorithm in ALGORITHMS.items():
            found[data, name] = session.curves(data, name, algorithm)
        for name, step in (*product(STEPPED, STEPS), *product(("domkl", "dokl"), [None])):
            algorithm = STEPPED[name].replaced(step=step) if step else ALGORITHMS[name]
            label = f"{name} step {step}"
            found[data, name, step] = session.curves(data, label, algorithm, at_most=N_BY_STEP)
    return found


def section(session: Session) -> Section:
    """The figure, its final values, and the claims read off it."""
    names, found = session.available(PANELS), session.results(runs(session))
    made = Section.of("figure-1", n_trials=session.setting.n_trials)
    made.figures = [_figure(found, names, curve, f"{curve.upper()}(t)") for curve in ("mse", "cv")]
    ratios = {step: {data: _ratios(found, data, step) for data in names} for step in STEPS}
    pairs = product(names, ALGORITHMS)
    made.table("figure-1", [_finals(*pair, found[pair]) for pair in pairs])
    rows = [[data, step, *ratios[step][data].values()] for data in names for step in STEPS]
    made.table("steps", rows, n_trials=session.n_trials(N_BY_STEP))
    _judge(made, ratios, names)
    _bound(found, made, names)
    return made


def _figure(found: Found, names: list[str], curve: str, label: str) -> Figure:
    panels = []
    for data in names:
        lines = [line(name, found[data, name][curve]) for name in ALGORITHMS]
        panels.append(Panel(data, "round t", label, lines))
    caption = f"{label} on {len(names)} data sets; both axes logarithmic."
    return Figure(f"figure-1-{curve}", caption, panels)


def _finals(data: str, name: str, results: Results) -> list[Any]:
    ends = product((False, True), ("mse", "cv"))
    finals = [percent(results, curve, paper_start=start) for start, curve in ends]
    return [data, name, *finals, int(results["mse"].shape[1])]


#: what the claims compare, in one panel and at one step of COMKL and RFF-DOKL
Ratios = dict[str, float]


def _ratios(found: Found, data: str, step: float) -> Ratios:
    domkl, dokl = (found[data, name, None] for name in ("domkl", "dokl"))
    comkl, rff = (found[data, name, step] for name in ("comkl", "rff-dokl"))
    best = {c: min(mean_of(dokl, c), mean_of(rff, c)) for c in ("mse", "cv")}
    return {
        "domkl/comkl MSE": mean_of(domkl) / mean_of(comkl),
        "domkl/best single MSE": mean_of(domkl) / best["mse"],
        "domkl/best single CV": mean_of(domkl, "cv") / best["cv"],
        "dokl/rff-dokl MSE": mean_of(dokl) / mean_of(rff),
        "dokl/rff-dokl CV": mean_of(dokl, "cv") / mean_of(rff, "cv"),
    }


def _at_most(largest: float) -> Callable[[list[float]], bool]:
    return lambda values: all(value <= largest for value in values)


#: each claim: the ratios that it is about, and what it says of their values on all data sets
CLAIMS: dict[str, tuple[tuple[str, ...], Callable[[list[float]], bool]]] = {
    "figure-1-best": (("domkl/best single MSE", "domkl/best single CV"), _at_most(1)),
    "figure-1-near": (("domkl/comkl MSE",), _at_most(limit("figure-1-near"))),
    "figure-1-cv": (("dokl/rff-dokl CV",), _at_most(1)),
    "figure-1-neither": (("dokl/rff-dokl MSE",), lambda values: min(values) < 1 <= max(values)),
}


def _judge(made: Section, ratios: dict[float, dict[str, Ratios]], names: list[str]) -> None:
    """Judge at every step; what depends on the step cannot be checked."""
    for claim_id, (keys, holds) in CLAIMS.items():
        verdicts, parts = [], []
        for step, sets in ratios.items():
            values = {key: [each[key] for each in sets.values()] for key in keys}
            verdicts.append(holds([value for each in values.values() for value in each]))
            spans = [f"{key} {min(v):.2f} to {max(v):.2f}" for key, v in values.items()]
            so = "so" if verdicts[-1] else "not so"
            parts.append(f"step {step:g}: {', '.join(spans)} ({so})")
        differ = any(verdicts) and not all(verdicts)
        note = " It depends on that step, and the paper does not say which it used."
        made.judge(
            claim_id, None if differ else verdicts[0], names,
            steps="; ".join(parts), note=note if differ else "",
        )  # fmt: skip


def _bound(found: Found, made: Section, names: list[str]) -> None:
    """COMKL against multiple-kernel rivals, each with its best step in hindsight."""
    seen, is_true = [], True
    for data in names:
        comkl, rff = (
            min(mean_of(found[data, name, step]) for step in STEPS)
            for name in ("comkl", "rff-domkl")
        )
        best, name = min((mean_of(found[data, "domkl", None]), "DOMKL"), (rff, "RFF-DOMKL"))
        seen.append(f"{data} {best / comkl:.2f} ({name})")
        is_true = is_true and best / comkl >= 1
    steps = ", ".join(map(str, STEPS))
    made.judge("comkl-bound", is_true, names, steps=steps, seen=", ".join(seen))
