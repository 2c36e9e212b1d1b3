"""Write the current help of every command to docs/reference/cli.md: python tools/cli.py

tests/test_docs.py compares the page with the help.
"""

import argparse
import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from domkl.cli.main import main, parser

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"


def commands(made: argparse.ArgumentParser, *before: str) -> Iterator[tuple[str, ...]]:
    """Words of every command and subcommand of this parser."""
    for action in made._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield (*before, name)
                yield from commands(command, *before, name)


def help_of(words: tuple[str, ...]) -> str:
    """What ``--help`` of a command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main([*words, "--help"])
    return out.getvalue().strip()


def page(text: str) -> str:
    """The page with the current help; a command that is not on it yet is an error."""
    for words in commands(parser()):
        start = re.escape(f"usage: domkl {' '.join(words)} [-h]")
        found, current = re.compile(rf"{start}.*?(?=\n```|\n\nusage: )", re.S), help_of(words)
        if len(found.findall(text)) != 1:
            sys.exit(f"{PAGE} must have one block for domkl {' '.join(words)}; add its heading")
        text = found.sub(lambda _, current=current: current, text)
    return text


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    PAGE.write_text(page(PAGE.read_text()))
