"""Read and write the mesh file; whatever is wrong in it is reported in one clear line."""

import difflib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from domkl import storage
from domkl.algorithms.base import Algorithm
from domkl.algorithms.registry import find, name_of
from domkl.core.losses import Loss, find_loss
from domkl.errors import DataError, ParameterError
from domkl.mesh.config.keys import (
    ALGORITHM,
    ROUTED,
    TIMING,
    ForecastKeys,
    PlainKeys,
    keys_of,
    path_of,
)
from domkl.mesh.config.settings import BOTH, Member, MeshConfig, checked
from domkl.mesh.protocol.model import Range
from domkl.mesh.protocol.wire import printable
from domkl.mesh.transports.base import Address
from domkl.text import from_toml

__all__ = ["Member", "MeshConfig", "as_text", "config_of", "read_config", "write_config"]

_KINDS = {str: "text", int: "an integer", float: "a number", bool: "true or false",
          list: "a list", dict: "a table"}  # fmt: skip
LONGEST = 1000  # characters of an error, which may have a value of the file in it
#: the fields of a configuration, by their place in the file
_FIELDS = {path_of(each): each.name for each in fields(MeshConfig)}


def read_config(path: Path) -> MeshConfig:
    """Read a mesh file; DataError names the file, the key, the rule and the value."""
    try:
        table = from_toml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read the mesh file {path}: {error.strerror}") from None
    except ValueError as error:
        raise DataError(f"{path}: must be a TOML file: {error}") from None
    try:
        return config_of(table)
    except ParameterError as error:
        raise DataError(f"{path}: {printable(str(error))[:LONGEST]}") from None


def write_config(path: Path, config: MeshConfig) -> None:
    """Write a mesh file atomically, with a comment for every part."""
    storage.write(path, as_text(config).encode())


def config_of(table: Mapping[str, Any]) -> MeshConfig:
    """The configuration for the content of a mesh file; ParameterError names the key."""
    model = _typed("model", table.get("model", {}), dict)
    _check_keys("", table, ["model", *(path for path in _FIELDS if "." not in path)])
    inside = [path.removeprefix("model.") for path in _FIELDS if "." in path]
    _check_keys("model.", model, [*inside, "parameters"])
    for key in ("target", "learners"):
        if key not in table:
            raise ParameterError(f"{key} is missing")
    if "inputs" in table and "lags" in table:
        raise ParameterError(BOTH)
    flat = {f"model.{key}": value for key, value in model.items()} | dict(table)
    parameters = _typed("model.parameters", flat.pop("model.parameters", {}), dict)
    algorithm = _algorithm(flat.pop("model.algorithm", ALGORITHM), parameters)
    hints = get_type_hints(MeshConfig)
    given = {
        _FIELDS[path]: _value(path, value, hints[_FIELDS[path]])
        for path, value in flat.items() if path != "model"
    }  # fmt: skip
    return MeshConfig(**{"edges": ()} | given, algorithm=algorithm)


def _value(name: str, value: Any, hint: Any) -> Any:
    """A value of the file as the annotation of its field demands."""
    special = _SPECIAL.get(name.rpartition(".")[2])
    if special is not None:
        return special(name, value)
    if isinstance(hint, UnionType):
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    if hint is Address:
        return checked(name, Address.parse, _typed(name, value, str))
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return _record(name, value, hint)
    if get_origin(hint) is Literal:
        return _typed(name, value, str)
    if get_origin(hint) is not tuple:
        return _typed(name, value, hint)
    each = get_args(hint)[0]
    rows = [value] if each is int and isinstance(value, int) else _typed(name, value, list)
    if is_dataclass(each):
        return tuple(_value(f"{name}[{k}]", row, each) for k, row in enumerate(rows))
    return tuple(_typed(f"{name}, number {k},", row, each) for k, row in enumerate(rows, 1))


def _record(name: str, value: Any, kind: Any) -> Any:
    """A table of the file as a dataclass or a named tuple."""
    table, hints = _typed(name, value, dict), get_type_hints(kind)
    _check_keys(f"{name}.", table, hints)
    for key in hints:
        if key not in table and not hasattr(kind, key):
            raise ParameterError(f"{name}.{key} is missing")
    given = {key: _value(f"{name}.{key}", each, hints[key]) for key, each in table.items()}
    return checked(name, lambda given: kind(**given), given)


def _place(name: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ParameterError(f"{name} must be two numbers, east and north, got {value!r}")
    east, north = (_typed(name, each, float) for each in value)
    if not (math.isfinite(east) and math.isfinite(north)):
        raise ParameterError(f"{name} must be finite, got {value!r}")
    return east, north


def _edges(name: str, value: Any) -> tuple[tuple[str, str], ...]:
    rows = _typed(name, value, list)
    for row in rows:
        if not isinstance(row, list) or len(row) != 2 or not all(isinstance(e, str) for e in row):
            raise ParameterError(f'edges must be pairs of names such as ["a", "b"], got {row!r}')
    return tuple((a, b) for a, b in rows)


def _kernels(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return _value(f"{name}.all", value, tuple[float, ...])
    if value != "default":
        raise ParameterError(f'{name} must be "default" or a list of bandwidths, got {value!r}')
    return value


#: keys whose annotation does not say all
_SPECIAL: dict[str, Callable[[str, Any], Any]] = {
    "edges": _edges, "kernels": _kernels, "place": _place,
}  # fmt: skip


def _algorithm(name: Any, parameters: Mapping[str, Any]) -> Algorithm:
    try:
        plain = find(name, meshable=True).make()
    except ParameterError as error:
        raise ParameterError(f"model.{error}") from None
    except TypeError as error:  # a user's own class that cannot be made without arguments
        raise ParameterError(f"model.algorithm must have defaults, got {name!r}: {error}") from None
    defaults = plain.parameters()
    _check_keys("model.parameters.", parameters, defaults, f" of {name}")
    given = {
        key: _loss(value)
        if key == "loss"
        else _typed(f"model.parameters.{key}", value, type(defaults[key] or 0))
        for key, value in parameters.items()
    }
    made: Algorithm = checked("model.parameters", lambda given: plain.replaced(**given), given)
    return made if given else plain


def _loss(value: Any) -> Loss:
    """Read `"huber"`, or `{ name = "huber", delta = 0.1 }`."""
    key = "model.parameters.loss"
    table = value if isinstance(value, dict) else {"name": value}
    name: Any = table.get("name")
    try:
        kind: Any = find_loss(name)
    except ParameterError as error:
        raise ParameterError(f"model.parameters.{error}") from None
    _check_keys(f"{key}.", table, ("name", *(each.name for each in fields(kind))), f" of {name}")
    shapes = {k: _typed(f"{key}.{k}", v, float) for k, v in table.items() if k != "name"}
    made: Loss = checked(key, lambda given: kind(**given), shapes)
    return made


def _typed(key: str, value: Any, kind: type) -> Any:
    """The value if it is of this kind; an integer is accepted as a number."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ParameterError(f"{key} must be {_KINDS.get(kind, kind.__name__)}, got {value!r}")
    return value


def _check_keys(
    prefix: str, table: Mapping[str, Any], known: Iterable[str], of_what: str = ""
) -> None:
    known = list(known)
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            raise ParameterError(f"{prefix}{key} is not a key of a mesh file{of_what}; {remedy}")


_TEXT = """\
# All learners of a mesh share this file; each learner's folder has a copy.
# [target], inputs or lags, and [model] must be the same everywhere: learners that differ
# in them exchange nothing. After a change of DIR/mesh.toml run:  domkl mesh apply DIR

{head}
{router}

# neighbors; the network must be connected
edges = [
{edges}]

[timing]  # seconds
{timing}

# ranges in your own units; values are scaled by them to [0, 1]
[target]
{target}
{inputs}{forecast}
[model]
algorithm = {algorithm}
kernels = {kernels}  # or bandwidths of Gaussians, such as [0.1, 1.0, 10.0]
{model}

[model.parameters]
{parameters}

# address: where a learner listens for its neighbors; http: for samples, predictions and
# metrics. Messages are summed in the order of this list. place = [east, north] puts it
# on the map of the page.
{learners}"""


def as_text(config: MeshConfig) -> str:
    """A text that `read_config` reads as the same configuration, with a comment for every part."""
    model = keys_of(PlainKeys, section="model")
    if config.kernels == "default":
        model = [each for each in model if each.name != "linear"]
    router = '# router = "host:port"' if config.router is None else f'router = "{config.router}"'
    inputs = () if config.lags is not None else config.inputs
    forecast = "" if config.forecast is None else _lines(config.forecast, keys_of(ForecastKeys))
    parameters = {k: v for k, v in config.algorithm.parameters().items() if v is not None}
    return _TEXT.format(
        head=_lines(config, keys_of(PlainKeys, section="")),
        router=f"{router}  # {ROUTED} only",
        edges="".join(f"  {_toml(edge)},\n" for edge in config.edges),
        timing="\n".join(f"{k} = {v!r}  # {TIMING[k]}" for k, v in config.timing._asdict().items()),
        target=_table(config.target),
        inputs="".join(f"\n[[inputs]]\n{_table(each)}\n" for each in inputs),
        forecast=f"\n[forecast]\n{forecast}\n" if forecast else "",
        algorithm=_toml(name_of(config.algorithm)),
        kernels=_toml(config.kernels),
        model=_lines(config, model),
        parameters="\n".join(f"{key} = {_toml(value)}" for key, value in parameters.items()),
        learners="\n".join(f"[[learners]]\n{_table(each)}\n" for each in config.members),
    )


def _lines(record: Any, keys: Iterable[Field[Any]]) -> str:
    """A line for each key that has a value, with its comment."""
    made = []
    for each in keys:
        value, told = getattr(record, each.name), each.metadata
        if value is not None:
            mark = "# " if told["optional"] and value == each.default else ""
            word = path_of(each).rpartition(".")[2]
            made.append(f"{mark}{word} = {_toml(value)}  # {told['help']}")
    return "\n".join(made)


def _table(record: Range | Member) -> str:
    """A line for each field that has a value."""
    given = {each.name: getattr(record, each.name) for each in fields(record)}
    return "\n".join(f"{key} = {_toml(value)}" for key, value in given.items() if value is not None)


def _toml(value: Any) -> str:
    """A TOML value; JSON writes text, numbers, lists and booleans in the same way."""
    if isinstance(value, Address):
        value = str(value)
    if isinstance(value, Loss):
        shapes = {each.name: float(getattr(value, each.name)) for each in fields(value)}  # type: ignore[arg-type]
        table = {"name": type(value).__name__.lower()} | shapes
        inner = ", ".join(f"{key} = {_toml(each)}" for key, each in table.items())
        return f"{{ {inner} }}" if shapes else _toml(table["name"])
    return json.dumps(value, ensure_ascii=False)
