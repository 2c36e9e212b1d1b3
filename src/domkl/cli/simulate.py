"""`domkl simulate`: compare algorithms on a stream; write a table, curves and data."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domkl.algorithms.registry import ALGORITHMS, find
from domkl.cli.output import add_out_argument, add_run_arguments, out_folder, outbox
from domkl.cli.progress import Bar
from domkl.data.catalog import DATASETS
from domkl.errors import ParameterError
from domkl.graphs.kinds import KINDS
from domkl.options import MISSING, PARTITIONS, RULES, SCALES

if TYPE_CHECKING:
    from domkl.algorithms.base import Algorithm
    from domkl.data.forecast import Prepared
    from domkl.experiments.compare import Progress, Setting
    from domkl.experiments.data import DataOptions
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    _add_data_arguments(parser)
    _add_network_arguments(parser)
    _add_algorithm_arguments(parser)
    output = parser.add_argument_group("output")
    add_out_argument(output)
    output.add_argument("--json", action="store_true", help="print the results as one JSON object")


def _add_network_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the network and its trials."""
    network = parser.add_argument_group("network and trials")
    network.add_argument(
        "--learners",
        metavar="K",
        type=int,
        help="number of learners (default: 10, or the number of nodes that have their own streams)",
    )
    network.add_argument(
        "--topology",
        metavar="KIND",
        choices=KINDS,
        help=f"kind of network: {', '.join(KINDS)} (default: that of the data set, otherwise"
        " nearest if the nodes have places, otherwise random)",
    )
    network.add_argument(
        "--connect",
        metavar="A",
        type=float,
        help="probability of an edge between two learners of a random network (default: 0.25)",
    )
    network.add_argument(
        "--partition",
        choices=PARTITIONS,
        help="how samples are dealt out to the learners (default: interleaved)",
    )
    network.add_argument(
        "--trials", metavar="N", type=int, default=20, help="number of trials (default: 20)"
    )
    add_run_arguments(network)


def _add_algorithm_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that name algorithms and their parameters."""
    learner = parser.add_argument_group("algorithms")
    *others, last = (name for name, entry in ALGORITHMS.items() if not entry.is_default)
    learner.add_argument(
        "--algorithm",
        metavar="NAME",
        action="append",
        help=f"repeatable; one of {', '.join(ALGORITHMS)}, or module:Name for a class of your own"
        f" (default: all of these except {', '.join(others)} and {last})",
    )
    learner.add_argument(
        "--loss",
        metavar="NAME",
        help="squared, huber, absolute, pinball, logistic or module:Name; logistic is for a target"
        " of two values (default: squared)",
    )
    learner.add_argument(
        "--rho", metavar="R", type=float, help="penalty of the ADMM algorithms (default: 2)"
    )
    learner.add_argument(
        "--eta-l",
        metavar="E",
        type=float,
        help="proximal weight of the ADMM algorithms (default: 0.2)",
    )
    learner.add_argument(
        "--eta-g", metavar="G", type=float, help="temperature of the kernel weights (default: 10)"
    )
    learner.add_argument(
        "--step", metavar="S", type=float, help="step of the gradient algorithms (default: 0.5)"
    )
    learner.add_argument(
        "--forget",
        metavar="F",
        type=float,
        help="forgetting factor of domkrls, linear-rls and linear-pooled; below 1, older samples"
        " count less (default: 1)",
    )
    learner.add_argument(
        "--period", metavar="N", type=int, help="season of seasonal-naive in rounds (default: 24)"
    )
    learner.add_argument(
        "--bandwidth",
        metavar="B",
        type=float,
        help="sigma^2 of dokl and rff-dokl (default: 1e-3 in half of the trials, 1e3 in the rest)",
    )
    learner.add_argument(
        "--frequencies",
        metavar="M",
        type=int,
        default=50,
        help="random frequencies per kernel (default: 50)",
    )


def _add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that name the data; they are the fields of `DataOptions`."""
    data = parser.add_argument_group("data")
    data.add_argument(
        "--data",
        metavar="NAME",
        choices=tuple(DATASETS),
        help=f"a data set of the catalog: {', '.join(DATASETS)} (default: traffic)",
    )
    data.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder with its file (default: $DOMKL_DATA, then the cache)",
    )
    data.add_argument(
        "--rule",
        choices=RULES,
        default="paper",
        help="rows of a data set: those that the authors used, or all complete ones (default:"
        " paper)",
    )
    data.add_argument(
        "--csv",
        metavar="FILE",
        help="a CSV file with a header, plain or .gz; with {node} in the name, one file per node",
    )
    data.add_argument("--target", metavar="COLUMN", help="the column of a table to predict")
    data.add_argument(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="a column of a table that is not an input; repeatable",
    )
    data.add_argument(
        "--series", metavar="COLUMN", help="the column of a time series; only its lags are inputs"
    )
    data.add_argument(
        "--lags",
        metavar="S",
        help="lags of the target: 5 for 1 to 5, or 1,2,3,24; lag 1 is the newest known value"
        " (default: 5 for a time series, or those of the data set)",
    )
    data.add_argument(
        "--horizon",
        metavar="H",
        help="predict H steps after the newest known value, or a list such as 1,6,24; labels are"
        " learned when they become known (default: 1)",
    )
    data.add_argument(
        "--inputs",
        metavar="A,B,C",
        help="columns to use as inputs, and hour, weekday, yearday, computed from the time"
        " (default: all usable columns)",
    )
    data.add_argument("--rows", metavar="N or A:B:C", help="the first N rows, or a Python slice")
    data.add_argument(
        "--missing",
        choices=MISSING,
        default="error",
        help="what to do with rows that have empty cells, if rows are dealt out (default: error)",
    )
    data.add_argument(
        "--scale",
        choices=SCALES,
        help="minmax: (v - min)/(max - min); authors: as the authors did, mostly (v - min)/max;"
        " declared: by declared ranges; none: not at all (default: minmax; for data sets of nodes,"
        " declared)",
    )
    data.add_argument(
        "--ranges",
        metavar="FILE",
        type=Path,
        help="declared ranges: a CSV file with the columns column, low, high",
    )
    _add_node_arguments(parser)


def _add_node_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of streams that are not dealt: each node is a learner."""
    nodes = parser.add_argument_group("nodes with streams of their own (with --csv)")
    nodes.add_argument(
        "--time",
        metavar="COLUMN",
        help="column with the time, or several: year,month,day,hour or date,time",
    )
    nodes.add_argument("--nodes", metavar="COLUMN", help="column with the name of the node")
    nodes.add_argument(
        "--time-format",
        metavar="F",
        help="format of times that are not ISO dates, such as %%m/%%d/%%Y (default: detected)",
    )
    nodes.add_argument(
        "--every", metavar="D", help="step of the clock, such as 30min (default: detected)"
    )
    nodes.add_argument(
        "--hold",
        metavar="D",
        help="how long the last known value replaces a missing input (default: 24h)",
    )
    nodes.add_argument(
        "--input-lags", metavar="S", help="lags of the other inputs, as --lags (default: 1)"
    )
    nodes.add_argument(
        "--known-ahead",
        metavar="A,B",
        help="inputs that are known ahead, taken at the time of the label; from a file of"
        " measurements this is a perfect forecast",
    )
    nodes.add_argument(
        "--levels",
        metavar="N",
        type=int,
        default=20,
        help="largest number of levels of a text column, each an input of 0 or 1 (default: 20)",
    )
    nodes.add_argument(
        "--na",
        metavar="WORD",
        action="append",
        default=[],
        help="another word or number that means a missing cell, such as --na=-200; repeatable",
    )
    nodes.add_argument(
        "--places",
        metavar="FILE",
        type=Path,
        help="CSV file with node, latitude, longitude; each node is joined with the three nearest",
    )


def run(args: argparse.Namespace) -> int:
    """Run the comparison."""
    import numpy as np

    from domkl.experiments import report
    from domkl.experiments.data import read_forecasts

    options, chosen = _data_options(args), _algorithms(args)
    forecasts = read_forecasts(options)
    setting = _setting(args, forecasts[0])
    title = _title(forecasts, setting)
    with outbox(out_folder(args)) as box, np.errstate(over="ignore", invalid="ignore"):
        print(f"{title}; {forecasts[0].note}", file=sys.stderr)
        parts = _parts(args, forecasts, chosen, setting)
        records = [
            record
            for part in parts
            for record in report.as_records(part.outcomes, setting, part.facts)
        ]
        box.add_picture(lambda path: report.write_figure(path, parts, title))
        box.add(".csv", lambda path: report.write_curves(path, parts))
        box.add(".json", lambda path: report.write_json(path, records))
        args.interrupts.check()
        with args.interrupts.held():
            paths = box.publish("simulate")
    _print(parts, records, args.json)
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)
    return 0


def _parts(
    args: argparse.Namespace,
    forecasts: "list[Prepared]",
    chosen: "dict[str, Algorithm]",
    setting: "Setting",
) -> "list[Part]":
    """Run all algorithms for each horizon, with the delay that it needs."""
    from domkl.core.jit import noted_compilation
    from domkl.experiments.compare import compare, compile_for, draw_graphs, suited_to
    from domkl.experiments.data import dealt
    from domkl.experiments.report import Part

    parts: list[Part] = []
    streams = [
        dealt(data.X, data.y, setting.n_learners, args.partition, seed=args.seed)
        for data in forecasts
    ]
    graphs = draw_graphs(setting, forecasts[0].places)
    for data, (X, y) in zip(forecasts, streams, strict=True):
        algorithms = {name: suited_to(data, algorithm) for name, algorithm in chosen.items()}
        with noted_compilation():
            compile_for(algorithms, X, y, setting)
        facts = {**data.facts, "is_class": args.loss == "logistic"}
        with Bar(args.interrupts) as bar:
            update = _over_all(bar, len(algorithms) * len(y) * setting.n_trials)
            divisor = facts["target_divisor"]
            outcomes = compare(algorithms, X, y, graphs, setting, update, divisor)
        parts.append(Part(outcomes, facts))
    return parts


def _data_options(args: argparse.Namespace) -> "DataOptions":
    from dataclasses import fields

    from domkl.experiments.data import DataOptions

    names = {field.name for field in fields(DataOptions)} - {"is_class"}
    given = {name: getattr(args, name) for name in names}
    is_class = args.loss == "logistic"
    return DataOptions(
        **given | {"drop": tuple(args.drop), "na": tuple(args.na)}, is_class=is_class
    )


def _setting(args: argparse.Namespace, data: "Prepared") -> "Setting":
    from domkl.experiments.compare import FIGURE_1_BANDWIDTHS, Setting
    from domkl.experiments.data import learners_of

    if args.connect is not None and args.topology not in (None, "random"):
        raise ParameterError(f"connect is for topology random, got {args.topology}")
    topology = args.topology
    if topology is None and args.connect is None:
        topology = data.graph or ("nearest" if data.places is not None else None)
    is_random = topology in (None, "random")
    connect = 0.25 if is_random and args.connect is None else args.connect
    return Setting(
        n_learners=learners_of(data, args.learners),
        connection=connect,
        topology=topology,
        n_trials=args.trials,
        n_frequencies=args.frequencies,
        bandwidths=FIGURE_1_BANDWIDTHS if args.bandwidth is None else (args.bandwidth,),
        seed=args.seed,
        dtype=args.dtype,
        threads=args.threads,
    )


def _algorithms(args: argparse.Namespace) -> "dict[str, Algorithm]":
    given = {"rho": args.rho, "eta_l": args.eta_l, "eta_g": args.eta_g}
    given |= {"step": args.step, "forget": args.forget, "period": args.period}
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


def _title(forecasts: "list[Prepared]", setting: "Setting") -> str:
    data = forecasts[0]
    n_inputs = data.X.shape[-1]
    kind = f"AR({n_inputs})" if data.is_series else f"{n_inputs} inputs"
    n_rounds = len(data.y) // (1 if data.stations else setting.n_learners)
    counts = {"learner": setting.n_learners, "round": n_rounds, "trial": setting.n_trials}
    sizes = ", ".join(f"{n} {what}{'s' if n > 1 else ''}" for what, n in counts.items())
    return f"{data.name}: {kind}, {sizes}"


def _print(parts: "list[Part]", records: list[Any], as_json: bool) -> None:
    from domkl.experiments import report

    if as_json:
        print(json.dumps({"results": records}, allow_nan=False))
        return
    print(report.as_table(parts))
    _units_note(parts[0].facts)
    outcomes = [outcome for part in parts for outcome in part.outcomes]
    for outcome in outcomes:
        if outcome.shares:
            each = ", ".join(f"{bandwidth:g} in {n}" for bandwidth, n in outcome.shares)
            print(f"{outcome.algorithm}: sigma^2 = {each} of the trials")
        if outcome.n_diverged:
            n = f"{outcome.n_diverged} of {len(outcome.mse)}"
            print(f"{outcome.algorithm} diverged in {n} trials", file=sys.stderr)


def _units_note(facts: dict[str, Any]) -> None:
    """Say what the columns are in."""
    if not facts.get("is_class"):
        unit = facts.get("unit") or f"units of {facts.get('target') or facts.get('series')}"
        print(f"RMSE and MAE in {unit}, MSE and CV in scaled units")


def _over_all(bar: Bar, total: int) -> "Progress":
    """Show the rounds of all algorithms on one bar."""
    finished: dict[str, int] = {}

    def update(name: str, done: int, of_this: int | None) -> None:
        finished[name] = done
        bar.update(name, sum(finished.values()), total)

    return update
