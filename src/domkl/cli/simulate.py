"""`domkl simulate`: compare algorithms on a stream; write a table, curves and data."""

import argparse
import json
import sys
from typing import TYPE_CHECKING

from domkl.algorithms.registry import ALGORITHMS, find
from domkl.cli.options import (
    Group,
    add_fields,
    defaults_of,
    made_from,
    names_in,
    option,
    shown,
    switch,
)
from domkl.cli.output import Bar, add_out_argument, out_folder, outbox, tell
from domkl.errors import ParameterError
from domkl.experiments.options import DataOptions, Setting
from domkl.graphs.kinds import KINDS
from domkl.text import counted

if TYPE_CHECKING:
    from domkl.algorithms.base import Algorithm
    from domkl.data.forecast import Prepared
    from domkl.experiments.report import Part

SUMMARY = "run algorithms on a stream of samples and compare them"
DESCRIPTION = """\
Run the algorithms of the paper, domkrls, three baselines and algorithms of your own on a network
of learners, with a data set of the catalog or with your own data.

Without options, it runs nine algorithms on the paper's Traffic series with five lags: ten learners,
connection probability 0.25, 20 trials. Prints a table of errors (RMSE, MAE and R^2 in the target's
units, MSE and CV in scaled units; means over trials), and writes the curves as PNG and CSV and the
results as JSON.

  domkl simulate
  domkl simulate --data temperature --algorithm domkl --algorithm last-value
  domkl simulate --data beijing-air --horizon 6 --trials 1 --algorithm domkrls
  domkl simulate --csv table.csv --target price
  domkl simulate --csv log.csv --series load --lags 24 --learners 4
  domkl simulate --csv 'data/{node}.csv' --time date --target load --lags 1,2,24 --horizon 1,24
  domkl simulate --data parking --trials 1
  domkl simulate --algorithm my_file:MyAlgorithm --algorithm domkl
"""


#: parameters of algorithms that have an option: metavar and help
PARAMETERS = {
    "rho": ("R", "penalty"),
    "eta_l": ("E", "proximal weight"),
    "eta_g": ("G", "temperature of the kernel weights"),
    "step": ("S", "step of the gradient"),
    "forget": ("F", "forgetting factor; below 1, older samples count less"),
    "period": ("N", "season in rounds, which domkrls looks for if none is given"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_fields(parser.add_argument_group("data"), DataOptions, "data")
    own = parser.add_argument_group("nodes with streams of their own (with --csv)")
    add_fields(own, DataOptions, "nodes")
    network = parser.add_argument_group("network and trials")
    learners = (
        f"number of learners (default: {Setting.n_learners}, or the number of nodes that have"
        " their own streams)"
    )
    option(network, "--learners", "K", learners, type=int)
    kinds = (
        f"kind of network: {', '.join(KINDS)} (default: that of the data set, otherwise nearest"
        " if the nodes have places, otherwise random)"
    )
    option(network, "--topology", "KIND", kinds, choices=KINDS)
    connect = (
        "probability of an edge between two learners of a random network (default:"
        f" {Setting.connection})"
    )
    option(network, "--connect", "A", connect, type=float)
    add_fields(network, DataOptions, "network")
    add_fields(network, Setting, "network")
    add_fields(network, Setting, "run")
    _add_algorithm_arguments(parser.add_argument_group("algorithms"))
    output = parser.add_argument_group("output")
    quantiles = (
        "also judge quantiles of the labels, of these levels: their mean pinball loss, and the"
        " share of labels in the central bands that they span, of algorithms that have them, such"
        " as domkrls; their rounds are interpreted, which is slower, mostly with few learners"
        " (without levels: the median, and the ends of the bands of 50, 80 and 95 %%)"
    )
    option(output, "--quantiles", "A,B,C", quantiles, nargs="?", const=True)
    add_out_argument(output)
    switch(output, "--json", "print the results as one JSON object")


def _add_algorithm_arguments(group: Group) -> None:
    """Declare the options that name algorithms, and those of their parameters."""
    *others, last = (name for name, entry in ALGORITHMS.items() if not entry.is_default)
    names = (
        f"one of {', '.join(ALGORITHMS)}, or module:Name for a class of your own (default: all of"
        f" these except {', '.join(others)} and {last})"
    )
    group.add_argument("--algorithm", metavar="NAME", action="append", help=f"repeatable; {names}")
    usual, *more = names_in("domkl.core.losses:LOSSES")
    losses = (
        f"{', '.join([usual, *more])} or module:Name; logistic is for a target of two values"
        f" (default: {usual})"
    )
    option(group, "--loss", "NAME", losses)
    known = {name: defaults_of(entry.home) for name, entry in ALGORITHMS.items()}
    for parameter, (metavar, text) in PARAMETERS.items():
        found = {name: each[parameter] for name, each in known.items() if parameter in each}
        values = [value for value in dict.fromkeys(found.values()) if value is not None]
        told = f"{text}, of {', '.join(found)} (default: {', '.join(map(shown, values))})"
        option(group, f"--{parameter.replace('_', '-')}", metavar, told, type=type(values[0]))
    narrow, wide = map(shown, Setting.bandwidths)
    single = (
        f"sigma^2 of dokl and rff-dokl (default: {narrow} in half of the trials, {wide} in the"
        " rest)"
    )
    option(group, "--bandwidth", "B", single, type=float)
    add_fields(group, Setting, "algorithms")


def run(args: argparse.Namespace) -> int:
    """Run the comparison."""
    import numpy as np

    from domkl.experiments import report
    from domkl.experiments.data import read_forecasts

    chosen = _algorithms(args)
    forecasts = read_forecasts(made_from(DataOptions, args, is_class=args.loss == "logistic"))
    setting = _setting(args, forecasts[0])
    title = _title(forecasts[0], setting)
    with outbox(out_folder(args)) as box, np.errstate(over="ignore", invalid="ignore"):
        print(f"{title}; {forecasts[0].note}", file=sys.stderr)
        parts = _parts(args, forecasts, chosen, setting)
        records = report.as_records(parts, setting)
        box.add_picture(lambda path: report.write_figure(path, parts, title))
        box.add(".csv", lambda path: report.write_curves(path, parts))
        box.add(".json", lambda path: report.write_json(path, records))
        paths = box.publish("simulate", args.interrupts)
    if args.json:
        print(json.dumps({"results": records}, allow_nan=False))
    else:
        _print(parts)
    tell(paths)
    return 0


def _parts(
    args: argparse.Namespace,
    forecasts: "list[Prepared]",
    chosen: "dict[str, Algorithm]",
    setting: Setting,
) -> "list[Part]":
    """Run all algorithms for each horizon, with the delay that it needs."""
    from domkl.core.jit import noted_compilation
    from domkl.experiments.compare import compare, compile_for, draw_graphs, suited_to
    from domkl.experiments.data import dealt
    from domkl.experiments.report import Part

    streams = [
        dealt(data.X, data.y, setting.n_learners, args.partition, seed=args.seed)
        for data in forecasts
    ]
    graphs, parts = draw_graphs(setting, forecasts[0].places), []
    for data, (X, y) in zip(forecasts, streams, strict=True):
        algorithms = {name: suited_to(data, algorithm) for name, algorithm in chosen.items()}
        with noted_compilation():
            compile_for(algorithms, X, y, setting)
        facts = {**data.facts, "is_class": args.loss == "logistic"}
        with Bar(args.interrupts) as bar:
            divisor = facts["target_divisor"]
            outcomes = compare(algorithms, X, y, graphs, setting, bar.update, divisor)
        parts.append(Part(outcomes, facts))
    return parts


def _setting(args: argparse.Namespace, data: "Prepared") -> Setting:
    from domkl.experiments.data import graph_of, learners_of

    topology, connect = args.topology, args.connect
    if connect is not None and topology not in (None, "random"):
        raise ParameterError(f"connect is for topology random, got {topology}")
    if connect is None:
        topology = topology or graph_of(data)
        connect = Setting.connection if topology == "random" else None
    return made_from(
        Setting, args, n_learners=learners_of(data, args.learners), connection=connect,
        topology=topology, quantiles=_levels(args),
        bandwidths=Setting.bandwidths if args.bandwidth is None else (args.bandwidth,),
    )  # fmt: skip


def _levels(args: argparse.Namespace) -> tuple[float, ...]:
    """Levels of quantiles; those that a node tells where only the option was given."""
    from domkl import checks
    from domkl.learner.local import TOLD

    if args.quantiles is None:
        return ()
    if args.loss == "logistic":
        raise ParameterError("quantiles are for a target of numbers, got loss logistic")
    given = TOLD if args.quantiles is True else args.quantiles
    return tuple(checks.levels("quantiles", given).tolist())


def _algorithms(args: argparse.Namespace) -> "dict[str, Algorithm]":
    given = {name: getattr(args, name) for name in PARAMETERS}
    given = {name: value for name, value in given.items() if value is not None}
    if args.loss is not None:
        from domkl.core.losses import find_loss

        given["loss"] = find_loss(args.loss)()
    chosen: dict[str, Algorithm] = {}
    unused = set(given)
    default = (name for name, entry in ALGORITHMS.items() if entry.is_default)
    for name in dict.fromkeys(args.algorithm or default):
        algorithm = find(name).make()
        known = algorithm.parameters().keys() & given.keys()
        if known:
            algorithm = algorithm.replaced(**{parameter: given[parameter] for parameter in known})
        chosen[name] = algorithm
        unused -= known
    if args.bandwidth is not None and not any(a.single_kernel for a in chosen.values()):
        unused.add("bandwidth")
    if unused:
        raise ParameterError(
            f"{min(unused)} is a parameter of none of the chosen algorithms, {', '.join(chosen)}"
        )
    return chosen


def _title(data: "Prepared", setting: Setting) -> str:
    n_inputs = data.X.shape[-1]
    kind = f"AR({n_inputs})" if data.is_series else f"{n_inputs} inputs"
    n_rounds = len(data.y) // (1 if data.stations else setting.n_learners)
    counts = {"learner": setting.n_learners, "round": n_rounds, "trial": setting.n_trials}
    sizes = ", ".join(counted(n, what) for what, n in counts.items())
    return f"{data.name}: {kind}, {sizes}"


def _print(parts: "list[Part]") -> None:
    """Print the table, what its columns are in, and what was special."""
    from domkl.experiments import report

    print(report.as_table(parts))
    facts = parts[0].facts
    if not facts["is_class"]:
        unit = facts.get("unit") or f"units of {facts.get('target') or facts.get('series')}"
        own = "RMSE and MAE" if parts[0].outcomes[0].bands is None else "RMSE, MAE and pinball"
        print(f"{own} in {unit}, MSE and CV in scaled units")
    for outcome in (outcome for part in parts for outcome in part.outcomes):
        if outcome.shares:
            each = ", ".join(f"{bandwidth:g} in {n}" for bandwidth, n in outcome.shares)
            print(f"{outcome.algorithm}: sigma^2 = {each} of the trials")
        if outcome.n_diverged:
            n = f"{outcome.n_diverged} of {len(outcome.mse)}"
            print(f"{outcome.algorithm} diverged in {n} trials", file=sys.stderr)
