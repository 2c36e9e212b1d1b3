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
from domkl.experiments.reproduce.session import SETS, Session
from domkl.experiments.reproduce.tasks.base import Task
from domkl.experiments.reproduce.tasks.rivals import (
    RIVER_MODELS,
    PooledLinear,
    RiverCurve,
    river_version,
)

NETWORKED: dict[str, Algorithm] = {
    "comkl": COMKL(),
    "domkl": DOMKL(),
    "rff-domkl": RFFDOMKL(),
    "domkrls": DOMKRLS(),
}
ALONE = ("alone", "last-value", "linear-rls")
#: what the figure shows; the table has all
SHOWN = ("comkl", "domkl", "rff-domkl", "domkrls", *ALONE, "linear-rls pooled", "river forest")


def named_tasks(session: Session, data: str) -> dict[str, Task]:
    """Everything that is run on a data set, by its name in the table."""
    newest = 0 if session.stream(data).is_series else None
    found: dict[str, Task] = {
        name: session.curves(data, name, algorithm) for name, algorithm in NETWORKED.items()
    }
    found["alone"] = session.curves(data, "alone", Alone(DOMKL()))
    found["domkrls alone"] = session.curves(data, "domkrls alone", Alone(DOMKRLS()))
    # these draw nothing: one trial says all
    found["last-value"] = session.curves(data, "last-value", LastValue(newest), at_most=1)
    found["linear-rls"] = session.curves(data, "linear-rls", LinearRLS(), at_most=1)
    found["linear-rls pooled"] = PooledLinear(session.stream(data), session.setting.n_learners)
    if river_version() is not None:
        for name in RIVER_MODELS[:2] if session.is_quick else RIVER_MODELS:
            for is_pooled in (False, True):
                made = RiverCurve(session.stream(data), name, session.setting.n_learners, is_pooled)
                found[f"river {name}{' pooled' * is_pooled}"] = made
    return found


def tasks(session: Session) -> list[Task]:
    """All of it on all sets."""
    return [
        task for data in session.available(SETS) for task in named_tasks(session, data).values()
    ]


def section(session: Session) -> Section:
    """The table, the curves, and what they say."""
    names = session.available(SETS)
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
    if river_version() is None:
        made.text.append("River is not installed here: `pip install 'domkl[river]'` adds its rows.")
    made.tables = [_table(session, names)]
    panels = [Panel(data, "round t", "MSE(t)", _lines(session, data)) for data in names]
    caption = "MSE(t) of learners and of simpler methods."
    made.figures = [Figure("beyond", caption, panels, n_columns=4)]
    made.claims = [_linear(session, names), _network(session, names), _server(session, names)]
    made.claims += [_second_order(session, names)]
    return made


def _lines(session: Session, data: str) -> list[Line]:
    found = named_tasks(session, data)
    return [line(name, session[found[name]]["mse"]) for name in SHOWN if name in found]


def _table(session: Session, names: list[str]) -> Table:
    by_set = {data: named_tasks(session, data) for data in names}
    rows: list[list[Cell]] = []
    for method in by_set[names[0]]:
        rows.append([method, *(100 * mean_of(session[by_set[data][method]]) for data in names)])
    note = "Numbers above 1e3 are models that diverge with the defaults of their library."
    return Table("Final MSE, times 100", ["method", *names], rows, [note])


def _ratios(session: Session, names: list[str], ours: str, theirs: str) -> dict[str, float]:
    found = {data: named_tasks(session, data) for data in names}
    return {
        data: mean_of(session[w[ours]]) / mean_of(session[w[theirs]]) for data, w in found.items()
    }


def _list(ratios: dict[str, float]) -> str:
    return ", ".join(f"{data} {ratio:.2f}" for data, ratio in ratios.items())


def _linear(session: Session, names: list[str]) -> Claim:
    linear = _ratios(session, names, "domkl", "linear-rls")
    last = _ratios(session, names, "domkl", "last-value")
    text = "DOMKL predicts better than linear least squares without a network, or the last value."
    losses = [data for data, ratio in linear.items() if ratio > 1]
    evidence = (
        f"DOMKL's MSE over that of linear least squares alone: {_list(linear)}; over that of the"
        f" last value: {_list(last)}. Linear least squares is better on"
        f" {joined(losses) if losses else 'none'}."
    )
    is_true = max([*linear.values(), *last.values()]) <= 1
    return Claim("beyond-linear", text, OURS, evidence, verdict(is_true))


def _network(session: Session, names: list[str]) -> Claim:
    ratios = _ratios(session, names, "domkl", "alone")
    text = "A learner is better off in the network than alone (in MSE)."
    losses = [data for data, ratio in ratios.items() if ratio > 1]
    evidence = f"DOMKL's MSE over the same learner's alone: {_list(ratios)}. " + (
        f"The network costs accuracy on {joined(losses)}: the penalty rho |N_k| slows every step."
        if losses
        else "The network pays everywhere."
    )
    return Claim("beyond-alone", text, OURS, evidence, verdict(not losses))


def _second_order(session: Session, names: list[str]) -> Claim:
    text = "DOMKRLS predicts better than linear least squares without a network, and than alone."
    linear = _ratios(session, names, "domkrls", "linear-rls")
    pooled = _ratios(session, names, "domkrls", "linear-rls pooled")
    alone = _ratios(session, names, "domkrls", "domkrls alone")
    evidence = (
        f"DOMKRLS's MSE over that of linear least squares alone: {_list(linear)}; pooled:"
        f" {_list(pooled)}; over its own alone: {_list(alone)}."
    )
    is_true = max([*linear.values(), *alone.values()]) <= 1
    return Claim("beyond-domkrls", text, OURS, evidence, verdict(is_true))


def _server(session: Session, names: list[str]) -> Claim:
    text = "COMKL, with a server, predicts better than linear least squares without a network."
    alone = _ratios(session, names, "comkl", "linear-rls")
    pooled = _ratios(session, names, "comkl", "linear-rls pooled")
    evidence = (
        f"COMKL's MSE over that of linear least squares alone: {_list(alone)}; pooled:"
        f" {_list(pooled)}. COMKL takes gradient steps; least squares uses the curvature."
    )
    is_true = max(alone.values()) <= 1
    return Claim("beyond-server", text, OURS, evidence, verdict(is_true))
