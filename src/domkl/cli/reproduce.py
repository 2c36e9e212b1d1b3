"""`domkl reproduce`: the paper's table, figures and claims, ours beside theirs."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domkl.cli.output import new_folder, remove_empty
from domkl.cli.progress import Bar
from domkl.errors import ParameterError

if TYPE_CHECKING:
    from domkl.experiments.reproduce.lab import Lab

SUMMARY = "do the paper's experiments again and judge its claims"
DESCRIPTION = """\
Do the experiments of the paper again, ours beside the printed numbers, and judge its claims.

  table-1    MSE and CV for six settings of rho and eta_g
  figure-1   MSE(t) and CV(t) on six data sets
  figure-2   MSE and CV against the size of the network
  theorems   both regrets against the square root of T, Lemma 3, assumption (a4)
  claims     every claim of the paper: the above and what the text says besides
  beyond     simpler methods on the same axes; River's models where River is installed
  all        everything

Writes a folder with report.html (self-contained), results.json and figures as SVG and PNG.
Finished pieces of work are kept in DIR/units, so a run that was stopped goes on where it was,
and one piece is never computed twice. Data sets that are missing are named, and what needs them
is marked as not checked; `domkl data list` shows which are there.

  domkl reproduce all --data-dir FOLDER
  domkl reproduce claims --quick
"""
PART_NAMES = ("table-1", "figure-1", "figure-2", "theorems", "claims", "beyond", "all")
TRIALS, QUICK_TRIALS = 500, 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("part", metavar="PART", choices=PART_NAMES, help="one of those above")
    parser.add_argument(
        "--trials", metavar="N", type=int, help=f"an even number (default: {TRIALS})"
    )
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_TRIALS} trials, fewer models and horizons"
    )
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="default: 1")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument(
        "--threads", metavar="N", type=int, help="cores to use (default: all); results are equal"
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        type=Path,
        help="folder with the data sets (default: $DOMKL_DATA, then the cache)",
    )
    parser.add_argument(
        "--out", metavar="DIR", default="domkl-out", help="folder (default: domkl-out)"
    )
    parser.add_argument("--json", action="store_true", help="print results.json")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 if a claim of the paper does not hold"
    )


def run(args: argparse.Namespace) -> int:
    """Do it."""
    from domkl.experiments.reproduce.page import claims_of, failed, tally
    from domkl.experiments.reproduce.run import reproduce, write

    lab, out = _lab(args), Path(args.out)
    try:
        with Bar(args.interrupts) as bar:
            document = reproduce(lab, args.part, _command(args), bar.update)
    except BaseException:
        remove_empty([lab.store.folder, out])
        raise
    for name, why in lab.missing.items():
        print(f"{name} is missing: {why}", file=sys.stderr)
    text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    with new_folder(out, "reproduce") as draft:
        (draft.folder / "results.json").write_text(text, encoding="utf-8")
        write(document, draft.folder)
        args.interrupts.check()
        with args.interrupts.held():
            path = draft.publish()
    table = f"{_table(claims_of(document))}\n\n{tally(document)}\n"
    print(text if args.json else table, end="")
    print(f"wrote {path / 'report.html'}, results.json and figures", file=sys.stderr)
    return int(args.strict and bool(failed(document)))


def _lab(args: argparse.Namespace) -> "Lab":
    from domkl.experiments.compare import Setting
    from domkl.experiments.reproduce.lab import Lab
    from domkl.experiments.store import Store

    if not args.out:
        raise ParameterError("out must name a folder, got ''")
    if args.trials is not None and args.quick:
        raise ParameterError("--trials and --quick exclude each other")
    n_trials = QUICK_TRIALS if args.quick else TRIALS if args.trials is None else args.trials
    if n_trials < 2 or n_trials % 2:
        raise ParameterError(
            f"trials must be an even number, half for each bandwidth of Figure 1, got {n_trials}"
        )
    setting = Setting(n_trials=n_trials, seed=args.seed, dtype=args.dtype, threads=args.threads)
    return Lab(setting, Store(Path(args.out) / "units"), args.data_dir, args.quick)


def _command(args: argparse.Namespace) -> str:
    words = ["domkl reproduce", args.part]
    words += ["--quick"] if args.quick else []
    words += [f"--trials {args.trials}"] if args.trials is not None else []
    words += [f"--seed {args.seed}"] if args.seed != 1 else []
    words += [f"--dtype {args.dtype}"] if args.dtype != "float64" else []
    return " ".join(words)


def _table(claims: list[dict[str, Any]]) -> str:
    width = max((len(claim["verdict"]) for claim in claims), default=0)
    return "\n".join(f"{claim['verdict']:<{width}}  {claim['claim']}" for claim in claims)
