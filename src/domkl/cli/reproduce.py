"""`domkl reproduce`: the paper's table, figures and claims, our numbers beside the printed ones."""

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domkl.cli.options import add_fields, option, repeatable, switch
from domkl.cli.output import (
    Bar,
    add_out_argument,
    check_installed,
    out_folder,
    outbox,
    remove_empty,
)
from domkl.errors import ParameterError
from domkl.experiments.options import Setting
from domkl.experiments.reproduce import PARTS, QUICK_ROWS

if TYPE_CHECKING:
    from domkl.experiments.reproduce.session import Session

SUMMARY = "repeat the paper's experiments and check its claims"
DESCRIPTION = """\
Repeat the experiments of the paper, show our numbers beside the printed ones, and check its claims.

{parts}

Writes a folder with report.html (self-contained), results.json and figures as SVG and PNG.
The results of finished tasks are stored in DIR/units, so that a run that was stopped continues
where it stopped. Missing data sets are named, and claims that need them are marked as not checked;
`domkl data list` shows which data sets are present.

  domkl reproduce all --data-dir FOLDER
  domkl reproduce claims --quick
  domkl reproduce stations --data-dir FOLDER
  domkl reproduce ablation --data-dir FOLDER --only parts
""".format(parts="\n".join(f"  {name:10} {part.summary}" for name, part in PARTS.items()))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("part", metavar="PART", choices=tuple(PARTS), help="one of the above")
    usual = PARTS["all"]
    studies = {name: part.trials for name, part in PARTS.items() if part.is_study}
    others = "; ".join(f"{name}: {n}" for name, n in studies.items())
    option(
        parser, "--trials", "N", f"number of trials (default: {usual.trials}; {others}); must be"
        f" even, except for {' and '.join(studies)}", type=int,
    )  # fmt: skip
    quick = (
        f"{usual.quick_trials} trials, the first {QUICK_ROWS} samples, fewer models, horizons and"
        " hours; some minutes on two cores"
    )
    switch(parser, "--quick", quick)
    only = "of the ablation: parts, constants or bands, or one of them by its name"
    repeatable(parser, "--only", "NAME", only)
    add_fields(parser, Setting, "run")
    folder = "folder with the data sets (default: $DOMKL_DATA, then the cache)"
    option(parser, "--data-dir", "DIR", folder, type=Path)
    add_out_argument(parser)
    switch(parser, "--json", "print results.json")
    switch(parser, "--strict", "exit with 1 if a claim of the paper does not hold")


def run(args: argparse.Namespace) -> int:
    """Run a part of the reproduction."""
    check_installed("reports", "matplotlib", "jinja2")
    from domkl.experiments.reproduce.document import failed, tally
    from domkl.experiments.reproduce.session import reproduce, write

    out = out_folder(args)
    session = _session(args, out)
    try:
        with Bar(args.interrupts) as bar:
            document = reproduce(session, args.part, _command(args), bar.update)
    except BaseException:
        remove_empty([session.store.folder, out])
        raise
    for name, why in session.missing.items():
        print(f"{name} is missing: {why}", file=sys.stderr)
    text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)
    with outbox(out) as box:
        box.add("", lambda folder: write(document, text, folder))
        (path,) = box.publish("reproduce", args.interrupts)
    print(text if args.json else f"{_table(document)}\n\n{tally(document)}")
    print(f"wrote {path / 'report.html'}, results.json and figures", file=sys.stderr)
    return int(args.strict and bool(failed(document)))


def _session(args: argparse.Namespace, out: Path) -> "Session":
    from domkl.experiments.reproduce.session import Session
    from domkl.experiments.store import Store

    if args.trials is not None and args.quick:
        raise ParameterError("--trials and --quick exclude each other")
    if args.only and args.part != "ablation":
        raise ParameterError(f"--only is for part ablation, got {args.part}")
    part = PARTS[args.part]
    usual = part.quick_trials if args.quick else part.trials
    n_trials = usual if args.trials is None else args.trials
    if n_trials < 1:
        raise ParameterError(f"trials must be >= 1, got {n_trials}")
    if not part.is_study and n_trials % 2:
        raise ParameterError(
            "trials must be an even number, because half of them use each of the two bandwidths of"
            f" Figure 1, got {n_trials}"
        )
    setting = Setting(n_trials=n_trials, seed=args.seed, dtype=args.dtype, threads=args.threads)
    return Session(setting, Store(out / "units"), args.data_dir, args.quick, tuple(args.only))


def _command(args: argparse.Namespace) -> str:
    """The command with what changes its results, as the report shows it."""
    words = ["domkl reproduce", args.part, *(["--quick"] if args.quick else [])]
    words += [f"--trials {args.trials}"] if args.trials is not None else []
    words += [f"--only {shlex.quote(name)}" for name in args.only]
    given = {name: getattr(args, name) for name in ("seed", "dtype")}
    return " ".join([*words, *(f"--{k} {v}" for k, v in given.items() if v != getattr(Setting, k))])


def _table(document: dict[str, Any]) -> str:
    from domkl.experiments.reproduce.document import claims_of, table_markdown, verdict_of

    if document["part"] == "ablation":
        (section,) = document["sections"]
        return "\n".join(table_markdown(table) for table in section["tables"])
    rows = [(verdict_of(document, claim), claim["claim"]) for claim in claims_of(document)]
    width = max((len(verdict) for verdict, _ in rows), default=0)
    return "\n".join(f"{verdict:<{width}}  {claim}" for verdict, claim in rows)
