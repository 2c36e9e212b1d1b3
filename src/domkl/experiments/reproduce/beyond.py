"""Beyond the paper: what a user would do without it, on the same axes."""

from domkl.algorithms.admm import DOMKL
from domkl.algorithms.base import Algorithm
from domkl.algorithms.baselines import Alone, LastValue, LinearRLS
from domkl.algorithms.diffusion import RFFDOMKL
from domkl.algorithms.least_squares import DOMKRLS
from domkl.algorithms.server import COMKL
from domkl.experiments.reproduce.document import (
    OURS,
    Cell,
    Claim,
    Figure,
    Line,
    Panel,
    Section,
    Table,
    joined,
    line,
    mean_of,
    verdict,
)
from domkl.experiments.reproduce.lab import SETS, Lab
from domkl.experiments.reproduce.works import river
from domkl.experiments.reproduce.works.base import Work
from domkl.experiments.reproduce.works.pooled import PooledLinear
from domkl.experiments.reproduce.works.river import RiverCurve

NETWORKED: dict[str, Algorithm] = {
    "comkl": COMKL(),
    "domkl": DOMKL(),
    "rff-domkl": RFFDOMKL(),
    "domkrls": DOMKRLS(),
}
ALONE = ("alone", "last-value", "linear-rls")
#: what the figure shows; the table has all
SHOWN = ("comkl", "domkl", "rff-domkl", "domkrls", *ALONE, "linear-rls pooled", "river forest")


def named_works(lab: Lab, data: str) -> dict[str, Work]:
    """Everything that is run on a data set, by its name in the table."""
    newest = 0 if lab.stream(data).is_series else None
    found: dict[str, Work] = {
        name: lab.curves(data, name, algorithm) for name, algorithm in NETWORKED.items()
    }
    found["alone"] = lab.curves(data, "alone", Alone(DOMKL()))
    found["domkrls alone"] = lab.curves(data, "domkrls alone", Alone(DOMKRLS()))
    # these draw nothing: one trial says all
    found["last-value"] = lab.curves(data, "last-value", LastValue(newest), at_most=1)
    found["linear-rls"] = lab.curves(data, "linear-rls", LinearRLS(), at_most=1)
    found["linear-rls pooled"] = PooledLinear(lab.stream(data), lab.setting.n_learners)
    if river.is_installed():
        for name in river.MODELS[:2] if lab.is_quick else river.MODELS:
            for is_pooled in (False, True):
                made = RiverCurve(lab.stream(data), name, lab.setting.n_learners, is_pooled)
                found[f"river {name}{' pooled' * is_pooled}"] = made
    return found


def works(lab: Lab) -> list[Work]:
    """All of it on all sets."""
    return [work for data in lab.available(SETS) for work in named_works(lab, data).values()]


def section(lab: Lab) -> Section:
    """The table, the curves, and what they say."""
    names = lab.available(SETS)
    made = Section("beyond", "Beyond the paper: what a user would do without it")
    made.text = [
        "'domkrls' is what domkl recommends, least squares in the features of each kernel."
        " 'alone' is DOMKL without neighbors, 'last-value' the learner's own previous label (the"
        " newest lag of a series), 'linear-rls' ridge regression of the inputs on the learner's own"
        " samples, updated with every sample; 'pooled' gets all learners' samples one after the"
        " other, which no learner could. rff-domkl is the extension that Remark 4 leaves to future"
        " work. River's models run with River's defaults and seed 1, each learner by itself, or"
        " pooled. MSE is without MSE(1) = 1.",
    ]
    if not river.is_installed():
        made.text.append("River is not installed here: `pip install 'domkl[river]'` adds its rows.")
    made.tables = [_table(lab, names)]
    panels = [Panel(data, "round t", "MSE(t)", _lines(lab, data)) for data in names]
    caption = "MSE(t) of learners and of simpler methods."
    made.figures = [Figure("beyond", caption, panels, n_columns=4)]
    made.claims = [_linear(lab, names), _network(lab, names), _server(lab, names)]
    made.claims += [_second_order(lab, names)]
    return made


def _lines(lab: Lab, data: str) -> list[Line]:
    found = named_works(lab, data)
    return [line(name, lab[found[name]]["mse"]) for name in SHOWN if name in found]


def _table(lab: Lab, names: list[str]) -> Table:
    by_set = {data: named_works(lab, data) for data in names}
    rows: list[list[Cell]] = []
    for method in by_set[names[0]]:
        rows.append([method, *(100 * mean_of(lab[by_set[data][method]]) for data in names)])
    note = "Numbers above 1e3 are models that diverge with the defaults of their library."
    return Table("Final MSE, times 100", ["method", *names], rows, [note])


def _ratios(lab: Lab, names: list[str], ours: str, theirs: str) -> dict[str, float]:
    found = {data: named_works(lab, data) for data in names}
    return {data: mean_of(lab[w[ours]]) / mean_of(lab[w[theirs]]) for data, w in found.items()}


def _list(ratios: dict[str, float]) -> str:
    return ", ".join(f"{data} {ratio:.2f}" for data, ratio in ratios.items())


def _linear(lab: Lab, names: list[str]) -> Claim:
    linear = _ratios(lab, names, "domkl", "linear-rls")
    last = _ratios(lab, names, "domkl", "last-value")
    text = "DOMKL predicts better than linear least squares without a network, or the last value."
    losses = [data for data, ratio in linear.items() if ratio > 1]
    evidence = (
        f"DOMKL's MSE over that of linear least squares alone: {_list(linear)}; over that of the"
        f" last value: {_list(last)}. Linear least squares is better on"
        f" {joined(losses) if losses else 'none'}."
    )
    is_true = max([*linear.values(), *last.values()]) <= 1
    return Claim("beyond-linear", text, OURS, evidence, verdict(is_true))


def _network(lab: Lab, names: list[str]) -> Claim:
    ratios = _ratios(lab, names, "domkl", "alone")
    text = "A learner is better off in the network than alone (in MSE)."
    losses = [data for data, ratio in ratios.items() if ratio > 1]
    evidence = f"DOMKL's MSE over the same learner's alone: {_list(ratios)}. " + (
        f"The network costs accuracy on {joined(losses)}: the penalty rho |N_k| slows every step."
        if losses
        else "The network pays everywhere."
    )
    return Claim("beyond-alone", text, OURS, evidence, verdict(not losses))


def _second_order(lab: Lab, names: list[str]) -> Claim:
    text = "DOMKRLS predicts better than linear least squares without a network, and than alone."
    linear = _ratios(lab, names, "domkrls", "linear-rls")
    pooled = _ratios(lab, names, "domkrls", "linear-rls pooled")
    alone = _ratios(lab, names, "domkrls", "domkrls alone")
    evidence = (
        f"DOMKRLS's MSE over that of linear least squares alone: {_list(linear)}; pooled:"
        f" {_list(pooled)}; over its own alone: {_list(alone)}."
    )
    is_true = max([*linear.values(), *alone.values()]) <= 1
    return Claim("beyond-domkrls", text, OURS, evidence, verdict(is_true))


def _server(lab: Lab, names: list[str]) -> Claim:
    text = "COMKL, with a server, predicts better than linear least squares without a network."
    alone = _ratios(lab, names, "comkl", "linear-rls")
    pooled = _ratios(lab, names, "comkl", "linear-rls pooled")
    evidence = (
        f"COMKL's MSE over that of linear least squares alone: {_list(alone)}; pooled:"
        f" {_list(pooled)}. COMKL takes gradient steps; least squares uses the curvature."
    )
    is_true = max(alone.values()) <= 1
    return Claim("beyond-server", text, OURS, evidence, verdict(is_true))
