"""`domkl doctor`: check what would keep a node from running here."""

import argparse
from pathlib import Path

from domkl.cli.options import switch
from domkl.mesh.transports.registry import missing_extra

SUMMARY = "check what would keep a node from running"
DESCRIPTION = """\
Check this machine, and the folder of a mesh or of a node: versions, clock, open files, compile
cache, disk; mesh.toml, certificates and how long they are valid, ports. Nothing is changed.

Prints one line for each check: ok, warning or problem. The exit code is 4 if there is a problem,
otherwise 0.

  domkl doctor
  domkl doctor my-mesh
  domkl doctor /var/lib/domkl/roof --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "folder", metavar="DIR", type=Path, nargs="?", help="folder of a mesh or of a learner"
    )
    switch(parser, "--json", "print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print what was found."""
    try:
        from domkl.mesh.operate.doctor import as_text, code_of, examine
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    import json

    findings = examine(args.folder)
    if args.json:
        print(json.dumps({"checks": [each._asdict() for each in findings],
                          "code": code_of(findings)}))  # fmt: skip
    else:
        print(as_text(findings))
    return code_of(findings)
