"""`domkl`: find the command, run it, and report an expected error in one line with an exit code.

Exit codes, each with a paragraph in docs/reference/exit-codes.md: 0 done, 1 a claim failed,
2 usage, 3 data, 4 mesh or workers, 130 interrupted.
"""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import domkl
from domkl.cli.interrupts import Interrupts
from domkl.errors import DataError, DomklError, MeshError, WorkerError

#: each is a module of its own, beside this one
COMMANDS = ("simulate", "sweep", "reproduce", "data", "mesh", "node", "doctor")


def parser(names: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """Build the parser of all commands, or of some: a node need not wait for the others."""
    top = argparse.ArgumentParser(
        prog="domkl", description="Fully decentralised online learning with multiple kernels."
    )
    top.add_argument("--version", action="version", version=f"domkl {domkl.__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name in names:
        module: Any = import_module(f"domkl.cli.{name}")
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
    given = sys.argv[1:] if argv is None else argv
    args = parser(given[:1] if given and given[0] in COMMANDS else COMMANDS).parse_args(given)
    _import_from_current_folder()
    with Interrupts() as interrupts:
        args.interrupts = interrupts
        try:
            code = int(args.run(args))
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (Exception, KeyboardInterrupt) as error:
            # after an interrupt, any other error is a consequence of it
            if interrupts.is_set or isinstance(error, KeyboardInterrupt):
                print("interrupted", file=sys.stderr)
                return 130
            if not isinstance(error, (DomklError, OSError)):
                raise
            print(f"domkl: error: {error}", file=sys.stderr)
            is_failure = isinstance(error, (MeshError, WorkerError))
            return 4 if is_failure else 3 if isinstance(error, DataError) else 2


def _import_from_current_folder() -> None:
    """Let ``module:Name`` find a file in the current folder, here and in worker processes.

    The folder comes last, so that no file in it takes the place of an installed module.
    """
    with contextlib.suppress(FileNotFoundError):  # the folder was removed
        folder = str(Path.cwd())
        if folder not in sys.path:
            sys.path.append(folder)


def entry() -> None:
    """Run `main` as the whole process; exit at once after an interrupt."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a plus-minus
    code = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the exit code is decided
    if code == 130:  # do not wait for threads that may still be compiling
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    entry()
