"""`domkl simulate`: compare algorithms on a stream; write a table, curves and data."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domkl.algorithms.registry import ALGORITHMS, find
from domkl.cli.output import add_out_argument, add_run_arguments, out_folder, outbox
from domkl.cli.progress import Bar, note_after
from domkl.data.catalog import DATASETS
from domkl.errors import ParameterError
from domkl.options import MISSING, PARTITIONS, RULES, SCALES

if TYPE_CHECKING:
    from domkl.algorithms.base import Algorithm
    from domkl.data.sets import Prepared
    from domkl.experiments.compare import Outcome, Progress, Setting
    from domkl.experiments.data import DataOptions

SUMMARY = "run algorithms on a stream of samples and compare them"
DESCRIPTION = """\
Run the algorithms of the paper, domkrls, three baselines and algorithms of your own on a network
of learners, with a data set of the catalog or with your own data.

Without options: the paper's Traffic series, AR(5), ten learners, connection probability 0.25, all
algorithms, 20 trials. Prints a table of the final MSE and CV (means over trials, in the scaled
units), and writes the curves as PNG and CSV and the results as JSON.

  domkl simulate
  domkl simulate --data temperature --algorithm domkl --algorithm last-value
  domkl simulate --data beijing-air --horizon 6 --trials 1 --algorithm domkrls
  domkl simulate --csv table.csv --target price
  domkl simulate --csv log.csv --series load --lags 24 --learners 4
  domkl simulate --algorithm my_file:MyAlgorithm --algorithm domkl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    _add_data_arguments(parser)
    network = parser.add_argument_group("network and trials")
    network.add_argument(
        "--learners",
        metavar="K",
        type=int,
        help="number of learners (default: 10; a set of stations has its own)",
    )
    network.add_argument(
        "--connect",
        metavar="A",
        type=float,
        help="probability of an edge between two learners (default: 0.25; stations are joined with"
        " the three nearest)",
    )
    network.add_argument(
        "--partition",
        choices=PARTITIONS,
        help="how samples are dealt to learners (default: interleaved)",
    )
    network.add_argument(
        "--trials", metavar="N", type=int, default=20, help="number of trials (default: 20)"
    )
    add_run_arguments(network)
    learner = parser.add_argument_group("algorithms")
    learner.add_argument(
        "--algorithm",
        metavar="NAME",
        action="append",
        help=f"repeatable; one of {', '.join(ALGORITHMS)}, or module:Name for a class of your own"
        " (default: all of the named ones but linear-pooled and seasonal-naive)",
    )
    learner.add_argument("--rho", metavar="R", type=float, help="ADMM algorithms (default: 2)")
    learner.add_argument("--eta-l", metavar="E", type=float, help="ADMM algorithms (default: 0.2)")
    learner.add_argument(
        "--eta-g", metavar="G", type=float, help="temperature of the Hedge (default: 10)"
    )
    learner.add_argument(
        "--step", metavar="S", type=float, help="gradient algorithms (default: 0.5)"
    )
    learner.add_argument(
        "--forget",
        metavar="F",
        type=float,
        help="domkrls, linear-rls, linear-pooled; below 1, older samples count less (default: 1)",
    )
    learner.add_argument(
        "--period", metavar="N", type=int, help="rounds of a season: seasonal-naive (default: 24)"
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
    output = parser.add_argument_group("output")
    add_out_argument(output)
    output.add_argument("--json", action="store_true", help="print the results as one JSON object")


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
        help="of a data set: the rows that the authors used, or all complete ones (default: paper)",
    )
    data.add_argument("--csv", metavar="FILE", type=Path, help="a CSV file with a header, or .gz")
    data.add_argument("--target", metavar="COLUMN", help="the column of a table to predict")
    data.add_argument(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="a column of a table that is not an input; repeatable",
    )
    data.add_argument("--series", metavar="COLUMN", help="the column of a time series")
    data.add_argument(
        "--lags", metavar="S", type=int, help="number of inputs of a time series (default: 5)"
    )
    data.add_argument(
        "--horizon",
        metavar="H",
        type=int,
        help="predict a time series H steps ahead; labels are learned when they are known"
        " (default: 1)",
    )
    data.add_argument(
        "--missing",
        choices=MISSING,
        default="error",
        help="what to do with rows that have empty cells (default: error)",
    )
    data.add_argument(
        "--scale",
        choices=SCALES,
        help="minmax: (v - min)/(max - min); authors: as the authors did, mostly (v - min)/max;"
        " declared: by declared ranges; none: not at all (default: minmax; stations: declared)",
    )
    data.add_argument(
        "--ranges",
        metavar="FILE",
        type=Path,
        help="declared ranges: a CSV file with the columns column, low, high",
    )


def run(args: argparse.Namespace) -> int:
    """Run the comparison."""
    import numpy as np

    from domkl.experiments import report
    from domkl.experiments.compare import compare, compile_for, draw_graphs, suited_to
    from domkl.experiments.data import dealt, read_data

    options = _data_options(args)
    setting, chosen = _setting(args, options), _algorithms(args)
    data = read_data(options)
    algorithms = {name: suited_to(data, algorithm) for name, algorithm in chosen.items()}
    X, y = dealt(data.X, data.y, setting.n_learners, args.partition, seed=args.seed)
    title = _title(data, setting, y.shape[0])
    with outbox(out_folder(args)) as box, np.errstate(over="ignore", invalid="ignore"):
        print(f"{title}; {data.note}", file=sys.stderr)
        graphs = draw_graphs(setting, data.places)
        with note_after(1.0, "compiling; this takes up to a minute, once"):
            compile_for(algorithms, X, y, setting)
        with Bar(args.interrupts) as bar:
            update = _over_all(bar, len(algorithms) * len(y) * setting.n_trials)
            outcomes = compare(algorithms, X, y, graphs, setting, update)
        records = report.as_records(outcomes, setting, data.facts)
        box.add(".png", lambda path: report.write_figure(path, outcomes, title))
        box.add(".csv", lambda path: report.write_curves(path, outcomes))
        box.add(".json", lambda path: report.write_json(path, records))
        args.interrupts.check()
        with args.interrupts.held():
            paths = box.publish("simulate")
    _print(outcomes, records, args.json)
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)
    return 0


def _data_options(args: argparse.Namespace) -> "DataOptions":
    from dataclasses import fields

    from domkl.experiments.data import DataOptions

    given = {field.name: getattr(args, field.name) for field in fields(DataOptions)}
    return DataOptions(**given | {"drop": tuple(args.drop)})


def _setting(args: argparse.Namespace, options: "DataOptions") -> "Setting":
    from domkl.experiments.compare import FIGURE_1_BANDWIDTHS, Setting
    from domkl.experiments.data import learners_of

    is_given = args.bandwidth is not None
    connect = args.connect if options.n_stations or args.connect is not None else 0.25
    return Setting(
        n_learners=learners_of(options, args.learners),
        connection=connect,
        n_trials=args.trials,
        n_frequencies=args.frequencies,
        bandwidths=(args.bandwidth,) if is_given else FIGURE_1_BANDWIDTHS,
        seed=args.seed,
        dtype=args.dtype,
        threads=args.threads,
    )


def _algorithms(args: argparse.Namespace) -> "dict[str, Algorithm]":
    given = {"rho": args.rho, "eta_l": args.eta_l, "eta_g": args.eta_g}
    given |= {"step": args.step, "forget": args.forget, "period": args.period}
    given = {name: value for name, value in given.items() if value is not None}
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


def _title(data: "Prepared", setting: "Setting", n_rounds: int) -> str:
    n_inputs = data.X.shape[-1]
    kind = f"AR({n_inputs})" if data.is_series else f"{n_inputs} inputs"
    counts = {"learner": setting.n_learners, "round": n_rounds, "trial": setting.n_trials}
    sizes = ", ".join(f"{n} {what}{'s' if n > 1 else ''}" for what, n in counts.items())
    return f"{data.name}: {kind}, {sizes}"


def _print(outcomes: "list[Outcome]", records: list[Any], as_json: bool) -> None:
    from domkl.experiments import report

    if as_json:
        print(json.dumps({"results": records}, allow_nan=False))
        return
    print(report.as_table(outcomes))
    for outcome in outcomes:
        if outcome.shares:
            each = ", ".join(f"{bandwidth:g} in {n}" for bandwidth, n in outcome.shares)
            print(f"{outcome.algorithm}: sigma^2 = {each} of the trials")
        if outcome.n_diverged:
            n = f"{outcome.n_diverged} of {len(outcome.mse)}"
            print(f"{outcome.algorithm} diverged in {n} trials", file=sys.stderr)


def _over_all(bar: Bar, total: int) -> "Progress":
    """Show the rounds of all algorithms on one bar."""
    finished: dict[str, int] = {}

    def update(name: str, done: int, of_this: int | None) -> None:
        finished[name] = done
        bar.update(name, sum(finished.values()), total)

    return update
