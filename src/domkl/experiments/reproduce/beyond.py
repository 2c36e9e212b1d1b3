"""Beyond the paper: what a user would do without it, on the same axes."""

from math import gcd
from typing import Any

from domkl.algorithms.admm import DOMKL
from domkl.algorithms.base import Algorithm
from domkl.algorithms.baselines import Alone, LastValue, LinearRLS, PooledLinearRLS, SeasonalNaive
from domkl.algorithms.diffusion import RFFDOMKL
from domkl.algorithms.least_squares import DOMKRLS
from domkl.algorithms.server import COMKL
from domkl.experiments.figures import Figure, Panel
from domkl.experiments.reproduce.document import (
    ReportTable,
    Section,
    joined,
    line,
    listed,
    mean_of,
    percent,
)
from domkl.experiments.reproduce.session import SETS, Runs, Session
from domkl.experiments.reproduce.tasks import rival_task
from domkl.experiments.rivals import REFIT_EVERY, rivals
from domkl.experiments.store import Results

#: what the figure shows; the table has all
SHOWN = (
    "comkl", "domkl", "rff-domkl", "domkrls", "alone", "last-value", "linear-rls",
    "linear-rls pooled", "river forest",
)  # fmt: skip
#: what a quick run takes
QUICK = ("river linear", "river tree")
#: hours of the season of the series, which are hourly
DAY = 24

Found = dict[Any, Results]


def runs(session: Session) -> Runs:
    """By set and name."""
    found: Runs = {}
    n_learners = session.setting.n_learners
    for data in session.available(SETS):
        stream = session.stream(data)
        newest = 0 if stream.is_series else None
        ours = DOMKRLS(newest_lag=newest)
        drawn: dict[str, Algorithm] = {
            "comkl": COMKL(), "domkl": DOMKL(), "rff-domkl": RFFDOMKL(), "domkrls": ours,
            "alone": Alone(DOMKL()), "domkrls alone": Alone(ours),
        }  # fmt: skip
        # these draw nothing: one trial says all
        simple: dict[str, Algorithm] = {"last-value": LastValue(newest)}
        if stream.is_series:  # dealt in turn: a learner's rounds are K hours apart
            simple["seasonal-naive"] = SeasonalNaive(DAY // gcd(DAY, n_learners))
        simple |= {"linear-rls": LinearRLS(), "linear-rls pooled": PooledLinearRLS()}
        for name, algorithm in {**drawn, **simple}.items():
            at_most = 1 if name in simple else None
            found[data, name] = session.curves(stream, name, algorithm, at_most=at_most)
        for name in rivals():
            for is_pooled in (False, True) if name in QUICK or not session.is_quick else ():
                made = rival_task(stream, name, n_learners, is_pooled)
                found[data, f"{name}{' pooled' * is_pooled}"] = made
    return found


def section(session: Session) -> Section:
    """The table, the curves, and what they say."""
    names, found = session.available(SETS), session.results(runs(session))
    made = Section.of("beyond", refit=REFIT_EVERY)
    for package in sorted({"river", "lightgbm"} - {name.split()[0] for name in rivals()}):
        made.text.append(
            f"{package} is not installed here: `pip install 'domkl[{package}]'` adds its rows."
        )
    rows = [
        [method, *(percent(found[d, method]) if (d, method) in found else "–" for d in names)]
        for method in dict.fromkeys(method for _, method in found)
    ]
    note = "Numbers above 1e3 are models that diverge with the defaults of their library."
    made.tables = [ReportTable("Final MSE, times 100", ["method", *names], rows, [note])]
    panels = [
        Panel(data, "round t", "MSE(t)", [
            line(name, found[data, name]["mse"]) for name in SHOWN if (data, name) in found
        ])
        for data in names
    ]  # fmt: skip
    caption = "MSE(t) of learners and of simpler methods."
    made.figures = [Figure("beyond", caption, panels, n_columns=4)]
    _judge(found, made, names)
    return made


def _judge(found: Found, made: Section, names: list[str]) -> None:
    def over(ours: str, theirs: str) -> dict[str, float]:
        """Ratio of the MSE of two methods on each set."""
        return {d: mean_of(found[d, ours]) / mean_of(found[d, theirs]) for d in names}

    def judge(claim: str, ratios: dict[str, dict[str, float]], *decide: str, **more: str) -> None:
        """Whether no ratio is above 1, of those that decide; all are told."""
        is_true = all(value <= 1 for key in decide for value in ratios[key].values())
        told = {key: listed(each) for key, each in ratios.items()}
        made.judge(f"beyond-{claim}", is_true, **told, **more)

    def losses(ratios: dict[str, float]) -> str:
        return joined(data for data, ratio in ratios.items() if ratio > 1)

    ratios = {"linear": over("domkl", "linear-rls"), "last": over("domkl", "last-value")}
    judge("linear", ratios, "linear", "last", losses=losses(ratios["linear"]) or "none")
    alone = over("domkl", "alone")
    where = losses(alone)
    costs = f"The network costs accuracy on {where}: the penalty rho |N_k| slows every step."
    result = costs if where else "The network pays everywhere."
    judge("alone", {"alone": alone}, "alone", result=result)
    linear, pooled = ("linear-rls", "linear-rls pooled")
    ratios = {"linear": over("comkl", linear), "pooled": over("comkl", pooled)}
    judge("server", ratios, "linear")
    ratios = {"linear": over("domkrls", linear), "pooled": over("domkrls", pooled)}
    judge("domkrls", ratios | {"alone": over("domkrls", "domkrls alone")}, "linear", "alone")
