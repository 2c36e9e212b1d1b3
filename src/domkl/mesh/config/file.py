"""Read and write the mesh file; whatever is wrong in it is reported in one clear line."""

import difflib
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from domkl import storage
from domkl.algorithms.base import Algorithm
from domkl.algorithms.registry import find
from domkl.core.losses import Loss, find_loss
from domkl.errors import DataError, ParameterError
from domkl.mesh.config.forecasting import Forecasting
from domkl.mesh.config.settings import BOTH, Member, MeshConfig, checked
from domkl.mesh.config.text import as_text
from domkl.mesh.protocol.events import Timing
from domkl.mesh.protocol.model import Range
from domkl.mesh.transports.base import Address

__all__ = ["Member", "MeshConfig", "config_of", "read_config", "write_config"]

_KINDS = {str: "text", int: "an integer", float: "a number", bool: "true or false",
          list: "a list", dict: "a table"}  # fmt: skip
_TOP = ("name", "mode", "transport", "router", "checkpoint_every", "queue", "guard", "outside",
        "lags", "inputs", "target", "model", "learners", "edges", "timing", "forecast")  # fmt: skip
#: keys of the file that are fields of MeshConfig under the same name
_PLAIN = {"name": str, "mode": str, "transport": str, "checkpoint_every": int, "queue": int,
          "outside": str, "lags": int, "guard": bool}  # fmt: skip
_MODEL = {"frequencies": "n_frequencies", "seed": "seed", "dtype": "dtype", "linear": "linear",
          "delay": "delay"}  # fmt: skip


def read_config(path: Path) -> MeshConfig:
    """Read a mesh file; DataError names the file, the key, the rule and the value."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read the mesh file {path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{path}: must be a TOML file: {error}") from None
    try:
        return config_of(table)
    except ParameterError as error:
        raise DataError(f"{path}: {error}") from None


def write_config(path: Path, config: MeshConfig) -> None:
    """Write a mesh file atomically, with a comment for every part."""
    storage.write(path, as_text(config).encode())


def config_of(table: Mapping[str, Any]) -> MeshConfig:
    """The configuration for the content of a mesh file; ParameterError names the key."""
    _check_keys("", table, _TOP)
    for key in ("target", "learners"):
        if key not in table:
            raise ParameterError(f"{key} is missing")
    given: dict[str, Any] = {
        key: _typed(key, table[key], kind) for key, kind in _PLAIN.items() if key in table
    }
    if "router" in table:
        given["router"] = _address("router", table["router"])
    if "timing" in table:
        given["timing"] = _timing(_typed("timing", table["timing"], dict))
    if "inputs" in table:
        if "lags" in table:
            raise ParameterError(BOTH)
        rows = _typed("inputs", table["inputs"], list)
        given["inputs"] = tuple(_range(f"inputs[{k}]", row) for k, row in enumerate(rows))
    if "forecast" in table:
        given["forecast"] = _forecast(_typed("forecast", table["forecast"], dict))
    given |= _model(_typed("model", table.get("model", {}), dict))
    return MeshConfig(
        target=_range("target", table["target"]),
        members=_members(_typed("learners", table["learners"], list)),
        edges=_edges(_typed("edges", table.get("edges", []), list)),
        **given,
    )


def _timing(table: Mapping[str, Any]) -> Timing:
    _check_keys("timing.", table, Timing._fields)
    return Timing(**{key: _typed(f"timing.{key}", value, float) for key, value in table.items()})


def _forecast(table: Mapping[str, Any]) -> Forecasting:
    kinds = {each.name: each.type for each in fields(Forecasting)}
    _check_keys("forecast.", table, kinds)
    if "horizons" not in table:
        raise ParameterError("forecast.horizons is missing")
    given: dict[str, Any] = {}
    for key, value in table.items():
        name = f"forecast.{key}"
        if kinds[key] is str:
            given[key] = _typed(name, value, str)
        else:
            each = int if kinds[key] == tuple[int, ...] else str
            row = [value] if isinstance(value, int) else _typed(name, value, list)
            given[key] = tuple(
                _typed(f"{name}, number {k},", v, each) for k, v in enumerate(row, 1)
            )
    made: Forecasting = checked("forecast", lambda given: Forecasting(**given), given)
    return made


def _range(key: str, row: Any) -> Range:
    row = _row(key, row, ("name", "low", "high"))
    name = _typed(f"{key}.name", row["name"], str)
    ends = tuple(_typed(f"{key}.{end}", row[end], float) for end in ("low", "high"))
    made: Range = checked(key, lambda ends: Range(name, *ends), ends)
    return made


def _members(rows: list[Any]) -> tuple[Member, ...]:
    made = []
    for k, row in enumerate(rows):
        key = f"learners[{k}]"
        row = _row(key, row, ("name", "address", "http"), ("place",))
        name = _typed(f"{key}.name", row["name"], str)
        address, http = (_address(f"{key}.{end}", row[end]) for end in ("address", "http"))
        place = None if "place" not in row else _place(f"{key}.place", row["place"])
        made.append(Member(name, address, http, place))
    return tuple(made)


def _place(key: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ParameterError(f"{key} must be two numbers, east and north, got {value!r}")
    east, north = (_typed(key, each, float) for each in value)
    if not (math.isfinite(east) and math.isfinite(north)):
        raise ParameterError(f"{key} must be finite, got {value!r}")
    return east, north


def _edges(rows: list[Any]) -> tuple[tuple[str, str], ...]:
    for row in rows:
        if not isinstance(row, list) or len(row) != 2 or not all(isinstance(e, str) for e in row):
            raise ParameterError(f'edges must be pairs of names such as ["a", "b"], got {row!r}')
    return tuple((a, b) for a, b in rows)


def _model(table: Mapping[str, Any]) -> dict[str, Any]:
    _check_keys("model.", table, ("algorithm", "kernels", "parameters", *_MODEL))
    given: dict[str, Any] = {}
    kinds = {"frequencies": int, "seed": int, "dtype": str, "linear": bool, "delay": int}
    for key, name in _MODEL.items():
        if key in table:
            given[name] = _typed(f"model.{key}", table[key], kinds[key])
    kernels = table.get("kernels", "default")
    if isinstance(kernels, list):
        given["kernels"] = tuple(
            _typed(f"model.kernels, number {k},", value, float)
            for k, value in enumerate(kernels, start=1)
        )
    elif kernels != "default":
        raise ParameterError(
            f'model.kernels must be "default" or a list of bandwidths, got {kernels!r}'
        )
    parameters = _typed("model.parameters", table.get("parameters", {}), dict)
    given["algorithm"] = _algorithm(table.get("algorithm", "domkrls"), parameters)
    return given


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


def _row(
    key: str, row: Any, keys: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A table with exactly these keys, and perhaps the optional ones."""
    made: dict[str, Any] = _typed(key, row, dict)
    _check_keys(f"{key}.", made, (*keys, *optional))
    for each in keys:
        if each not in made:
            raise ParameterError(f"{key}.{each} is missing")
    return made


def _address(key: str, value: Any) -> Address:
    address: Address = checked(key, Address.parse, _typed(key, value, str))
    return address


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
