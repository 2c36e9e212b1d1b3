"""`domkl simulate`: all algorithms side by side on a stream, with a table, curves and data."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domkl.algorithms.registry import ALGORITHMS
from domkl.cli.progress import Bar, note_after
from domkl.cli.source import PARTITION_NAMES, add_data_arguments, read_named
from domkl.errors import ParameterError

if TYPE_CHECKING:
    from domkl.algorithms.base import Algorithm
    from domkl.experiments.compare import Outcome, Progress, Setting
    from domkl.experiments.source import Source

SUMMARY = "run the learners on a stream and compare them"
DESCRIPTION = """\
Run the learners of the paper, our own (domkrls) and three baselines, on a network with real or
your own data.

Without options: the paper's Traffic series, AR(5), ten learners, connection probability 0.25,
all algorithms, 20 trials. Prints a table of final MSE and CV (means over trials, in the scaled
units) and writes the curves as PNG and CSV and the results as JSON.

  domkl simulate
  domkl simulate --data temperature --algorithm domkl --algorithm last-value
  domkl simulate --csv table.csv --target price
  domkl simulate --csv log.csv --series load --lags 24 --learners 4
"""
NAMES = tuple(ALGORITHMS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_data_arguments(parser)
    network = parser.add_argument_group("network and trials")
    network.add_argument("--learners", metavar="K", type=int, default=10, help="default: 10")
    network.add_argument(
        "--connect", metavar="A", type=float, default=0.25, help="probability of an edge (0.25)"
    )
    network.add_argument(
        "--partition",
        choices=PARTITION_NAMES,
        default="interleaved",
        help="how samples are dealt to learners (default: interleaved)",
    )
    network.add_argument("--trials", metavar="N", type=int, default=20, help="default: 20")
    network.add_argument("--seed", metavar="S", type=int, default=1, help="default: 1")
    network.add_argument(
        "--threads", metavar="N", type=int, help="cores to use (default: all); results are equal"
    )
    network.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    learner = parser.add_argument_group("algorithms")
    learner.add_argument(
        "--algorithm",
        metavar="NAME",
        action="append",
        choices=NAMES,
        help=f"repeatable; default: all of {', '.join(NAMES)}",
    )
    learner.add_argument("--rho", metavar="R", type=float, help="of the ADMM ones (2)")
    learner.add_argument("--eta-l", metavar="E", type=float, help="of the ADMM ones (0.2)")
    learner.add_argument("--eta-g", metavar="G", type=float, help="of the Hedge (10)")
    learner.add_argument("--step", metavar="S", type=float, help="of the gradient ones (0.5)")
    learner.add_argument(
        "--forget", metavar="F", type=float, help="of domkrls, below 1 to follow drift (1)"
    )
    learner.add_argument(
        "--bandwidth",
        metavar="B",
        type=float,
        help="sigma^2 of dokl and rff-dokl (default: 1e-3 in half of the trials, 1e3 in the rest)",
    )
    learner.add_argument(
        "--frequencies", metavar="M", type=int, default=50, help="per kernel (default: 50)"
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out", metavar="DIR", default="domkl-out", help="folder (default: domkl-out)"
    )
    output.add_argument("--json", action="store_true", help="print the results as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Run the comparison."""
    import numpy as np

    from domkl.cli.output import outbox
    from domkl.data.streams import deal
    from domkl.experiments import report
    from domkl.experiments.compare import compare, compile_for, draw_graphs

    setting, algorithms = _setting(args), _algorithms(args)
    source = read_named(args)
    if "last-value" in algorithms and source.is_series:
        algorithms["last-value"] = algorithms["last-value"].replaced(newest_lag=0)
    X, y = deal(source.X, source.y, setting.n_learners, args.partition, seed=args.seed)
    title = _title(source, setting, y.shape[0])
    with outbox(_folder(args.out)) as box, np.errstate(over="ignore", invalid="ignore"):
        print(f"{title}; {source.note}", file=sys.stderr)
        graphs = draw_graphs(setting)
        with note_after(1.0, "compiling; this takes some 30 s, once"):
            compile_for(algorithms, X, y, setting)
        with Bar(args.interrupts) as bar:
            update = _over_all(bar, len(algorithms) * len(y) * setting.n_trials)
            outcomes = compare(algorithms, X, y, graphs, setting, update)
        records = report.as_records(outcomes, setting, source.facts)
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


def _folder(given: str) -> Path:
    if not given:
        raise ParameterError("out must name a folder, got ''")
    return Path(given)


def _setting(args: argparse.Namespace) -> "Setting":
    from domkl.experiments.compare import FIGURE_1_BANDWIDTHS, Setting

    is_given = args.bandwidth is not None
    return Setting(
        n_learners=args.learners,
        connection=args.connect,
        n_trials=args.trials,
        n_frequencies=args.frequencies,
        bandwidths=(args.bandwidth,) if is_given else FIGURE_1_BANDWIDTHS,
        seed=args.seed,
        dtype=args.dtype,
        threads=args.threads,
    )


def _algorithms(args: argparse.Namespace) -> "dict[str, Algorithm]":
    from domkl.algorithms.registry import find

    given = {"rho": args.rho, "eta_l": args.eta_l, "eta_g": args.eta_g}
    given |= {"step": args.step, "forget": args.forget}
    given = {name: value for name, value in given.items() if value is not None}
    chosen: dict[str, Algorithm] = {}
    unused = set(given)
    for name in dict.fromkeys(args.algorithm or ALGORITHMS):
        algorithm = find(name).make()
        known = algorithm.parameters().keys() & given.keys()
        chosen[name] = algorithm.replaced(**{parameter: given[parameter] for parameter in known})
        unused -= known
    if args.bandwidth is not None and not any(a.single_kernel for a in chosen.values()):
        unused.add("bandwidth")
    if unused:
        raise ParameterError(
            f"{min(unused)} is a parameter of none of the chosen algorithms, {', '.join(chosen)}"
        )
    return chosen


def _title(source: "Source", setting: "Setting", n_rounds: int) -> str:
    kind = f"AR({source.X.shape[1]})" if source.is_series else f"{source.X.shape[1]} inputs"
    counts = {"learner": setting.n_learners, "round": n_rounds, "trial": setting.n_trials}
    sizes = ", ".join(f"{n} {what}{'s' if n > 1 else ''}" for what, n in counts.items())
    return f"{source.name}: {kind}, {sizes}"


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
