"""Options of the command line, declared in one line each."""

from argparse import ArgumentParser, _ArgumentGroup
from typing import Any

Group = ArgumentParser | _ArgumentGroup


def option(
    group: Group, flag: str, metavar: str | None, text: str, *, default: Any = None, **more: Any
) -> None:
    """Declare an option with a value; its default gives its type, and is shown in its help."""
    if default is not None:
        shown = f"{default:g}" if isinstance(default, float) else default
        text, more = f"{text} (default: {shown})", {"type": type(default)} | more
    group.add_argument(flag, metavar=metavar, help=text, default=default, **more)


def switch(group: Group, flag: str, text: str) -> None:
    """Declare an option without a value."""
    group.add_argument(flag, action="store_true", help=text)


def repeatable(group: Group, flag: str, metavar: str, text: str, **more: Any) -> None:
    """Declare an option that may be given several times."""
    help_text = f"{text}; repeatable"
    group.add_argument(flag, metavar=metavar, action="append", default=[], help=help_text, **more)
