"""`domkl mesh demo`: run it, print what happened, and write a figure and a JSON file."""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from domkl.cli.output import outbox
from domkl.errors import ParameterError
from domkl.mesh.operate.demo import Plan, Record, run_demo


def demo(args: argparse.Namespace) -> int:
    """Run the demonstration."""
    plan = Plan(args.learners, args.rate, args.seconds, args.seed)
    if not str(args.out):
        raise ParameterError("out must name a folder, got ''")
    with outbox(args.out) as box, tempfile.TemporaryDirectory(prefix="domkl-demo-") as name:
        record = _run(plan, Path(name), args)
        from domkl.experiments.mesh_demo import Findings, as_records, as_table
        from domkl.experiments.mesh_figure import write_figure

        print("simulating the same without faults", file=sys.stderr)
        found = Findings(record)
        records = as_records(found)
        text = json.dumps(records, indent=2, allow_nan=False) + "\n"
        box.add_picture(lambda path: write_figure(path, found))
        box.add(".json", lambda path: _write(path, text))
        args.interrupts.check()
        with args.interrupts.held():
            paths = box.publish("mesh-demo")
        if args.keep:
            kept = paths[0].with_suffix("")
            shutil.copytree(name, kept)
            paths.append(kept)
    print(text if args.json else as_table(records))
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)
    return 0


def _run(plan: Plan, folder: Path, args: argparse.Namespace) -> Record:
    def say(line: str) -> None:
        args.interrupts.check()
        print(line, file=sys.stderr, flush=True)

    return run_demo(folder, plan, say)


def _write(path: Path, text: str) -> None:
    path.write_text(text)
