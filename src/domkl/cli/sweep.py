"""`domkl sweep`: run a declared sweep in processes or on a cluster, and write one tidy table."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domkl.cli.options import option, switch
from domkl.cli.output import Bar, add_out_argument, out_folder, outbox, remove_empty, tell
from domkl.experiments.sweep import FORMATS

if TYPE_CHECKING:
    from domkl.experiments.sweep.plan import SweepPlan
    from domkl.experiments.sweep.table import Table

SUMMARY = "run every combination of data, graphs, algorithms and parameters, on many cores"
DESCRIPTION = """\
Run the sweep that a TOML file describes: every combination of its data sets, graphs, algorithms and
parameters, each with the same number of trials. Prints means over trials, and writes a picture and
one tidy table with a row for each trial, which pandas and polars can read.
docs/howto/sweeps.md describes the file.

The results of finished units are stored in DIR/units. A sweep that was stopped continues from there
when the same command is run again. The results are identical for any number of workers, on this
machine or on a Dask cluster.

  domkl sweep rho.toml --dry-run
  domkl sweep rho.toml --workers 4 --format parquet
  domkl sweep rho.toml --cluster tcp://scheduler:8786
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", metavar="FILE", type=Path, help="the sweep, as a TOML file")
    workers = "processes on this machine (default: one per core)"
    option(parser, "--workers", "N", workers, type=int)
    option(parser, "--cluster", "ADDRESS", "address of a Dask scheduler, such as tcp://host:8786")
    add_out_argument(parser)
    option(parser, "--format", None, "format of the table", default=FORMATS[0], choices=FORMATS)
    switch(parser, "--dry-run", "list the units; run nothing")
    switch(parser, "--json", "print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Run the sweep."""
    from domkl.experiments.store import Store
    from domkl.experiments.sweep.plan import make_plan
    from domkl.experiments.sweep.spec import read_spec
    from domkl.experiments.sweep.table import check_format, write_figure

    out = out_folder(args)
    check_format(args.format)
    plan = make_plan(read_spec(args.file))
    if args.dry_run:
        return _list(plan, out / "units", args.json)
    store = Store(out / "units")
    try:
        n_before, table = _complete(args, plan, store)
    finally:
        remove_empty([store.folder, out])
    with outbox(out) as box:
        box.add(f".{args.format}", table.write)
        box.add_picture(lambda path: write_figure(path, table))
        path, *pictures = box.publish(plan.name, args.interrupts)
    n_units = len(plan.units)
    if args.json:
        counts = {"rows": len(table), "units": n_units, "units_before": n_before}
        picture = str(pictures[0]) if pictures else None
        found = {"table": str(path), "picture": picture, **counts, "cells": table.as_records()}
        print(json.dumps(found, allow_nan=False))
    else:
        print(table)
    print(f"wrote {path}: {len(table)} trials", file=sys.stderr)
    tell(pictures)
    return 0


def _complete(args: argparse.Namespace, plan: "SweepPlan", store: Any) -> "tuple[int, Table]":
    """Run the units that are missing; on any exception, report what is stored."""
    from domkl.core.jit import noted_compilation
    from domkl.experiments.sweep.run import complete, finished

    n_units, n_before = len(plan.units), len(finished(plan, store)[0])
    if n_before:
        print(f"{n_before} of {n_units} units are there already", file=sys.stderr)
    try:
        with Bar(args.interrupts) as bar:
            note = noted_compilation()
            table = complete(plan, store, args.workers, args.cluster, bar.update, preparing=note)
            return n_before, table
    except BaseException:
        n_kept = len(finished(plan, store)[0])
        if n_kept:
            print(
                f"{n_kept} of {n_units} units are kept in {store.folder};"
                " the same command goes on from there",
                file=sys.stderr,
            )
        raise


def _list(plan: "SweepPlan", folder: Path, as_json: bool) -> int:
    """Print the units, and which of them are finished."""
    from domkl.experiments.store import path_of
    from domkl.experiments.sweep.table import as_text, listing

    units = listing(plan, lambda unit: path_of(folder, unit.key).is_file())
    left = [unit for unit in units if not unit["is_kept"]]
    print(json.dumps({"units": units}) if as_json else as_text(plan, units))
    seconds = sum(unit["seconds"] for unit in left)
    note = f"{len(left)} of {len(units)} units to do, some {seconds:.0f} s of one core"
    print(note, file=sys.stderr)
    return 0
