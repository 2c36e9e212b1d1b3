"""`domkl mesh demo`: run it, print what happened, and write a figure and a JSON file."""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from domkl.cli.output import out_folder, outbox
from domkl.experiments.mesh_demo import Plan, as_records, as_table, run_demo, write_figure


def demo(args: argparse.Namespace) -> int:
    """Run the demonstration."""
    plan = Plan(args.learners, args.rate, args.seconds, args.seed)

    def say(line: str) -> None:
        args.interrupts.check()
        print(line, file=sys.stderr, flush=True)

    with outbox(out_folder(args)) as box, tempfile.TemporaryDirectory(prefix="domkl-demo-") as name:
        record = run_demo(Path(name), plan, say)
        say("simulating the same without faults")
        results = as_records(record)
        text = json.dumps(results, indent=2, allow_nan=False) + "\n"
        box.add_picture(lambda path: write_figure(path, record))
        box.add(".json", lambda path: _write(path, text))
        args.interrupts.check()
        with args.interrupts.held():
            paths = box.publish("mesh-demo")
        if args.keep:
            paths.append(paths[0].with_suffix(""))
            shutil.copytree(name, paths[-1])
    print(text if args.json else as_table(results))
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)
    return 0


def _write(path: Path, text: str) -> None:
    path.write_text(text)
