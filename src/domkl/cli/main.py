"""`domkl`: find the command, run it, and turn every expected failure into one line and a code.

Exit codes, each with a paragraph in docs/exit-codes.md: 0 done, 2 usage, 3 data, 130 interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence

import domkl
from domkl.cli import simulate
from domkl.errors import DataError, DomklError

COMMANDS = {"simulate": simulate}


def parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    top = argparse.ArgumentParser(
        prog="domkl", description="Fully decentralised online learning with multiple kernels."
    )
    top.add_argument("--version", action="version", version=f"domkl {domkl.__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=module.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    args = parser().parse_args(argv)
    try:
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("interrupted; nothing was written", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except DomklError as error:
        print(f"domkl: error: {error}", file=sys.stderr)
        return 3 if isinstance(error, DataError) else 2


if __name__ == "__main__":
    sys.exit(main())
