"""Options of the command line: types and defaults come from the dataclasses that hold them.

A dataclass that can be imported without NumPy declares its options itself (`domkl.options.flag`):
`add_fields` adds them to a parser, and `made_from` makes the dataclass from the parsed arguments.
`defaults_of` reads the defaults of any other class from its source, because importing an algorithm
loads the compiler, for which `--help` should not wait.
"""

import ast
from argparse import ArgumentParser, Namespace, _ArgumentGroup
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


def add_fields(group: Group, kind: type, name: str | None = None) -> None:
    """Declare an option for each field of a dataclass that is a `domkl.options.flag`.

    The annotation gives the type: a tuple is an option that may be repeated, bool is a switch.
    With ``name``, only fields of the group of this name are declared.
    """
    hints = get_type_hints(kind)
    for each in _flags(kind):
        if name not in (None, each.metadata["group"]):
            continue
        word, metavar = f"--{each.name.replace('_', '-')}", each.metadata["metavar"]
        text, form = each.metadata["help"].replace("%", "%%"), _type(hints[each.name])
        if form is tuple:
            repeatable(group, word, metavar, text)
        elif form is bool:
            switch(group, word, text)
        else:
            more = {"choices": tuple(each.metadata["choices"] or ()) or None, "type": form}
            option(group, word, metavar, text, default=each.default, **more)


def _type(hint: Any) -> Any:
    """The type of a field, without None; words that may be of several types stay text."""
    types = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    first, *others = (each for each in types if each is not NoneType)
    return str if others else get_origin(first) or first


def made_from(kind: type[Kind], args: Namespace, **more: Any) -> Kind:
    """Make a dataclass from the options that `add_fields` declared; ``more`` are other fields."""
    given = {each.name: getattr(args, each.name) for each in _flags(kind)}
    lists = {name: tuple(each) for name, each in given.items() if isinstance(each, list)}
    return kind(**given | lists | more)


def _flags(kind: Any) -> list[Field[Any]]:
    return [each for each in fields(kind) if "help" in each.metadata]


def defaults_of(home: str) -> dict[str, Any]:
    """Defaults of the annotated fields of the class ``module:Name``, read from its source.

    A default is a literal or the name of a constant of the same module, perhaps within ``field``;
    any other is left out.
    Base classes are read where the same module defines them.

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
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value:
            value = line.value
            if isinstance(value, ast.Call):  # field(default=...)
                value = next(
                    (each.value for each in value.keywords if each.arg == "default"), value
                )
            named = constants.get(value.id) if isinstance(value, ast.Name) else None
            try:
                found[line.target.id] = ast.literal_eval(named or value)
            except ValueError:
                continue
    return found


@lru_cache
def _parsed(module: str) -> tuple[dict[str, ast.ClassDef], dict[str, ast.expr]]:
    """The classes and the constants of a module, by name."""
    spec = find_spec(module)
    source = Path((spec and spec.origin) or module)
    body = ast.parse(source.read_text(encoding="utf-8")).body
    classes = {line.name: line for line in body if isinstance(line, ast.ClassDef)}
    constants = {
        target.id: line.value
        for line in body if isinstance(line, ast.Assign)
        for target in line.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    return classes, constants
