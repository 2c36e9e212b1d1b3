"""Beyond the paper: what a user would do without it, on the same axes."""

from math import gcd

from domkl.algorithms.admm import DOMKL
from domkl.algorithms.base import Algorithm
from domkl.algorithms.baselines import (
    Alone,
    LastValue,
    LinearRLS,
    PooledLinearRLS,
    SeasonalNaive,
)
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
from domkl.experiments.reproduce.tasks.rivals import RivalCurve
from domkl.experiments.rivals import REFIT_EVERY, rivals

NETWORKED: dict[str, Algorithm] = {
    "comkl": COMKL(),
    "domkl": DOMKL(),
    "rff-domkl": RFFDOMKL(),
    "domkrls": DOMKRLS(),
}
ALONE = ("alone", "last-value", "linear-rls")
#: what the figure shows; the table has all
SHOWN = ("comkl", "domkl", "rff-domkl", "domkrls", *ALONE, "linear-rls pooled", "river forest")
#: what a quick run takes
QUICK = ("river linear", "river tree")
#: hours of the season of the series, which are hourly
DAY = 24


def named_tasks(session: Session, data: str) -> dict[str, Task]:
    """Everything that is run on a data set, by its name in the table."""
    newest = 0 if session.stream(data).is_series else None
    ours = DOMKRLS(newest_lag=newest)
    networked = {**NETWORKED, "domkrls": ours}
    found: dict[str, Task] = {
        name: session.curves(data, name, algorithm) for name, algorithm in networked.items()
    }
    found["alone"] = session.curves(data, "alone", Alone(DOMKL()))
    found["domkrls alone"] = session.curves(data, "domkrls alone", Alone(ours))
    # these draw nothing: one trial says all
    simple: dict[str, Algorithm] = {"last-value": LastValue(newest)}
    if session.stream(data).is_series:  # dealt in turn: a learner's rounds are K hours apart
        simple["seasonal-naive"] = SeasonalNaive(DAY // gcd(DAY, session.setting.n_learners))
    simple |= {"linear-rls": LinearRLS(), "linear-rls pooled": PooledLinearRLS()}
    for name, algorithm in simple.items():
        found[name] = session.curves(data, name, algorithm, at_most=1)
    for name in rivals():
        for is_pooled in (False, True) if name in QUICK or not session.is_quick else ():
            made = RivalCurve(session.stream(data), name, session.setting.n_learners, is_pooled)
            found[f"{name}{' pooled' * is_pooled}"] = made
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
        " newest lag of a series), 'seasonal-naive' its label of the same hour of an earlier day,"
        " 'linear-rls' ridge regression of the inputs on the learner's own samples, updated with"
        " every sample. 'pooled' is one model that gets all learners' samples, which no learner"
        " could; it predicts all samples of a round before it learns any of them. rff-domkl is the"
        " extension that Remark 4 leaves to future work. River's models run with River's defaults"
        f" and seed 1; LightGBM, with its defaults, is fitted to all samples so far every"
        f" {REFIT_EVERY} rounds. MSE is without MSE(1) = 1.",
    ]
    for package in sorted({"river", "lightgbm"} - {name.split()[0] for name in rivals()}):
        made.text.append(
            f"{package} is not installed here: `pip install 'domkl[{package}]'` adds its rows."
        )
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
    for method in dict.fromkeys(method for found in by_set.values() for method in found):
        found = (by_set[data].get(method) for data in names)
        each = ["–" if task is None else 100 * mean_of(session[task]) for task in found]
        rows.append([method, *each])
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
