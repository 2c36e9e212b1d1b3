"""Options of the command line: types and defaults come from the dataclasses that hold them.

A dataclass that can be imported without NumPy declares its options itself (`domkl.options.flag`):
`add_fields` adds them to a parser, and `made_from` makes the dataclass from the parsed arguments.
`defaults_of` reads the defaults of any other class from its source, because importing an algorithm
loads the compiler, for which `--help` should not wait.
"""

import ast
import inspect
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter, _ArgumentGroup
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from dataclasses import Field, fields
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

Group = ArgumentParser | _ArgumentGroup
Kind = TypeVar("Kind")


def option(
    group: Group, flag: str, metavar: str | None, text: str, *, default: Any = None, **more: Any
) -> None:
    """Declare an option with a value; its default gives its type, and is shown in its help."""
    if default is not None:
        text, more = f"{text} (default: {shown(default)})", {"type": type(default)} | more
    group.add_argument(flag, metavar=metavar, help=text, default=default, **more)


def shown(default: Any) -> str:
    """A default as help texts show it."""
    return f"{default:g}" if isinstance(default, float) else str(default)


def switch(group: Group, flag: str, text: str) -> None:
    """Declare an option without a value."""
    group.add_argument(flag, action="store_true", help=text)


def repeatable(group: Group, flag: str, metavar: str | None, text: str, **more: Any) -> None:
    """Declare an option that may be given several times."""
    help_text = f"{text}; repeatable"
    group.add_argument(flag, metavar=metavar, action="append", default=[], help=help_text, **more)


def add_commands(
    parser: ArgumentParser, verbs: Iterable[Callable[[Namespace], int]]
) -> dict[str, ArgumentParser]:
    """Declare a subcommand for each function, which gives its name; its docstring is the help."""
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    made = {}
    for verb in verbs:
        text = inspect.getdoc(verb) or ""
        summary, name = text.split("\n")[0].rstrip("."), verb.__name__.strip("_").replace("_", "-")
        made[name] = commands.add_parser(
            name, help=summary[:1].lower() + summary[1:], description=text,
            formatter_class=RawDescriptionHelpFormatter,
        )  # fmt: skip
        made[name].set_defaults(verb=verb)
    return made


def add_fields(
    group: Group, kind: type, name: str | None = None, without: Container[str] = ()
) -> None:
    """Declare an option for each field of a dataclass that is a `domkl.options.flag`.

    The annotation gives the type: a tuple is an option that may be repeated, bool is a switch.
    With ``name``, only fields of the group of this name are declared.
    """
    hints = get_type_hints(kind)
    for each in flags_of(kind):
        if name not in (None, each.metadata["group"]) or each.name in without:
            continue
        word, metavar = f"--{_word(each).replace('_', '-')}", each.metadata["metavar"]
        text, form = each.metadata["help"].replace("%", "%%"), _type(hints[each.name])
        if form is tuple:
            repeatable(group, word, metavar, text)
        elif form is bool:
            switch(group, word, text)
        else:
            choices = tuple(each.metadata["choices"] or ())
            more = {"choices": choices, "type": str} if choices else {"type": form}
            option(group, word, metavar, text, default=each.default, **more)


def _type(hint: Any) -> Any:
    """The type of a field, without None; words that may be of several types stay text."""
    types = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    first, *others = (each for each in types if each is not NoneType)
    return str if others else get_origin(first) or first


def made_from(kind: type[Kind], args: Namespace, **more: Any) -> Kind:
    """Make a dataclass from the options that `add_fields` declared; ``more`` are other fields."""
    given = {each.name: getattr(args, _word(each)) for each in flags_of(kind)}
    lists = {name: tuple(each) for name, each in given.items() if isinstance(each, list)}
    return kind(**given | lists | more)


def flags_of(kind: Any) -> list[Field[Any]]:
    """The fields of a dataclass that are options."""
    return [each for each in fields(kind) if "help" in each.metadata]


def _word(each: Field[Any]) -> str:
    return each.metadata["word"] or each.name


def defaults_of(home: str) -> dict[str, Any]:
    """Defaults of the annotated fields of the class ``module:Name``, read from its source.

    A default is a literal or the name of a constant of the same module; any other is left out. Base
    classes are read where the same module defines them.

    Examples
    --------
    >>> defaults_of("domkl.algorithms.admm:DOMKL")["rho"]
    2.0
    """
    module, _, name = home.partition(":")
    classes, constants = _parsed(module)
    found: dict[str, Any] = {}
    for base in classes[name].bases:
        if isinstance(base, ast.Name) and base.id in classes:
            found |= defaults_of(f"{module}:{base.id}")
    for line in classes[name].body:
        if isinstance(line, ast.AnnAssign) and line.value:
            value = constants.get(ast.unparse(line.value), line.value)
            with suppress(ValueError):
                found[ast.unparse(line.target)] = ast.literal_eval(value)
    return found


def names_in(home: str) -> list[str]:
    """The keys of the table ``module:NAME``, read from its source.

    Examples
    --------
    >>> names_in("domkl.core.losses:LOSSES")[0]
    'squared'
    """
    module, _, name = home.partition(":")
    table = _parsed(module)[1][name]
    assert isinstance(table, ast.Dict)
    return [ast.literal_eval(key) for key in table.keys if key is not None]


@lru_cache
def _parsed(module: str) -> tuple[dict[str, ast.ClassDef], dict[str, ast.expr]]:
    """The classes and the constants of a module, by name."""
    spec = find_spec(module)
    source = Path((spec and spec.origin) or module)
    body = ast.parse(source.read_text(encoding="utf-8")).body
    classes = {line.name: line for line in body if isinstance(line, ast.ClassDef)}
    constants = {
        ast.unparse(target): line.value
        for line in body if isinstance(line, (ast.Assign, ast.AnnAssign)) and line.value
        for target in (line.targets if isinstance(line, ast.Assign) else [line.target])
    }  # fmt: skip
    return classes, constants
