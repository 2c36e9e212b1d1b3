"""Read a sweep file: tables of keys, each with one value or a list of values (an axis).

A table stands for every combination of its axes. There may be several tables of the same kind, as
``[[algorithms]]``; the sweep then has the combinations of all of them. Errors in a file are found
here or in plan.py, before any trial is run.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from domkl import checks
from domkl.algorithms.base import Algorithm
from domkl.algorithms.registry import ALGORITHMS, find
from domkl.data.catalog import DATASETS
from domkl.errors import DomklError, ParameterError
from domkl.experiments.options import DataOptions, Setting
from domkl.graphs.kinds import KINDS
from domkl.options import DTYPES, PARTITIONS
from domkl.text import from_toml
from domkl.typing import Real

SWEEP_KEYS = ("name", "trials", "seed", "frequencies", "dtype")
DATA_KEYS = ("name", "rounds", *(f.name for f in fields(DataOptions) if f.name != "data"))
PATHS = ("csv", "ranges", "data_dir", "places")
LISTS = ("drop", "na")  # keys whose list is one value, not an axis
NUMBERS = ("rounds", "lags", "horizon", "input_lags", "rows", "levels")


@dataclass(frozen=True)
class Data:
    """One stream of samples."""

    label: str
    options: DataOptions
    rounds: int | None  # the largest number of rounds
    given: tuple[tuple[str, Any], ...]  # what the file says of it, for the table of results


@dataclass(frozen=True)
class Network:
    """One kind of graph; None where the file does not say and the data decide."""

    kind: str | None
    n_learners: int | None
    parameters: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Method:
    """An algorithm with its parameters."""

    name: str
    algorithm: Algorithm
    bandwidth: float | None  # of an algorithm with a single kernel


@dataclass(frozen=True)
class Spec:
    """A sweep as its file declares it."""

    name: str
    n_trials: int
    seed: int
    frequencies: tuple[int, ...]
    dtypes: tuple[Real, ...]
    data: tuple[Data, ...]
    networks: tuple[Network, ...]
    methods: tuple[Method, ...]


def read_spec(source: str | Path | Mapping[str, Any]) -> Spec:
    """Read a TOML file, or a mapping of the same form; paths are relative to the file."""
    if isinstance(source, Mapping):
        return _spec(source, "sweep", Path())
    path = Path(source)
    try:
        tables = from_toml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(f"cannot read the sweep file {path}: {error.strerror}") from None
    except ValueError as error:
        raise ParameterError(f"{path} must be a TOML file: {error}") from None
    with at(str(path)):
        return _spec(tables, path.stem, path.parent)


@contextmanager
def at(where: str) -> Iterator[None]:
    """Prefix the message of an error with its place in the file."""
    try:
        yield
    except DomklError as error:
        raise type(error)(f"{where}: {error}") from None


def _spec(tables: Mapping[str, Any], name: str, folder: Path) -> Spec:
    _known("a sweep", tables, ("sweep", "data", "graphs", "algorithms"))
    head = tables.get("sweep", {})
    if not isinstance(head, Mapping):
        raise ParameterError(f"sweep must be one table, got {head!r}")
    axes = (
        tuple(_all(tables, "data", lambda table: _data(table, folder))),
        tuple(_all(tables, "graphs", _networks)),
        tuple(_all(tables, "algorithms", _methods)),
    )
    with at("sweep"):
        _known("sweep", head, SWEEP_KEYS)
        name = _name(head.get("name", name))
        n_trials = checks.whole("trials", head.get("trials", Setting.n_trials), 1)
        seed = checks.whole("seed", head.get("seed", Setting.seed), 0)
        frequencies = _axis("frequencies", head.get("frequencies", Setting.n_frequencies))
        dtypes = _axis("dtype", head.get("dtype", Setting.dtype))
        return Spec(
            name,
            n_trials,
            seed,
            tuple(checks.whole("frequencies", m, 1) for m in frequencies),
            tuple(checks.choice("dtype", dtype, DTYPES) for dtype in dtypes),
            *axes,
        )


def _all(tables: Mapping[str, Any], key: str, read: Any) -> list[Any]:
    """Everything that the tables with this name stand for, without duplicates."""
    given = tables.get(key, {})
    listed = given if isinstance(given, list) else [given]
    if not listed:
        raise ParameterError(f"{key} must not be empty: give at least one table")
    found: dict[Any, None] = {}
    for number, table in enumerate(listed, start=1):
        with at(key if len(listed) == 1 else f"{key} {number}"):
            if not isinstance(table, Mapping):
                raise ParameterError(f"must be a table, got {table!r}")
            found |= dict.fromkeys(read(table))
    return list(found)


def _known(what: str, table: Mapping[str, Any], keys: Any) -> None:
    for key in table:
        if key not in keys:
            raise ParameterError(f"{what} has no key {key!r}; it may have {', '.join(keys)}")


def _name(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[\w][\w .-]*", value):
        raise ParameterError(
            f"name must be letters, digits, spaces, dots and dashes: it names files, got {value!r}"
        )
    return value


def _axis(key: str, value: Any) -> list[Any]:
    values = value if isinstance(value, (list, tuple)) else [value]
    if not values:
        raise ParameterError(f"{key} must not be empty: give a value, or a list of values")
    for each in values:
        if not isinstance(each, (bool, int, float, str)):
            raise ParameterError(f"{key} must hold numbers or words, got {each!r}")
    if len(set(values)) < len(values):
        raise ParameterError(f"{key} must not repeat a value, got {list(values)}")
    return list(values)


def _combinations(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every combination of a table's axes; the last axis varies fastest."""
    axes = {key: _axis(key, value) for key, value in table.items()}
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _data(table: Mapping[str, Any], folder: Path) -> Iterator[Data]:
    _known("data", table, DATA_KEYS)
    lists = {key: tuple(map(str, _axis(key, table[key]))) for key in LISTS if key in table}
    for given in _combinations({key: v for key, v in table.items() if key not in LISTS}):
        rounds = given.get("rounds")
        if rounds is not None:
            checks.whole("rounds", rounds, 1)
        if "name" in given:
            checks.choice("name", given["name"], DATASETS)
        checks.choice("partition", given.get("partition", PARTITIONS[0]), PARTITIONS)
        for key in given.keys() - set(NUMBERS):
            if not isinstance(given[key], str):
                raise ParameterError(f"{key} must be a word in quotes, got {given[key]!r}")
        options = {key: given[key] for key in given.keys() & {f.name for f in fields(DataOptions)}}
        options |= {key: (folder / given[key]).resolve() for key in PATHS if key in given}
        made = DataOptions(data=given.get("name"), **options | lists)
        shown = {key: v for key, v in given.items() if key not in ("name", "rounds", *PATHS)}
        yield Data(made.name, made, rounds, tuple(shown.items()))


def _networks(table: Mapping[str, Any]) -> Iterator[Network]:
    is_open = not table.keys() - {"learners"}  # a kind that the data decide
    kinds = [None] if is_open else _axis("kind", table.get("kind", "random"))
    sizes = _axis("learners", table["learners"]) if "learners" in table else [None]
    rest = {key: value for key, value in table.items() if key not in ("kind", "learners")}
    for kind, size in itertools.product(kinds, sizes):
        if size is not None:
            checks.whole("learners", size, 1)
        if kind is None:
            yield Network(None, size, ())
            continue
        defaults = KINDS[checks.choice("kind", kind, KINDS)].defaults
        _known(f"a graph of kind {kind}", table, ("kind", "learners", *defaults))
        for given in _combinations(rest):
            values = {key: _like(given.get(key, value), value) for key, value in defaults.items()}
            yield Network(kind, size, tuple(values.items()))


def _methods(table: Mapping[str, Any]) -> Iterator[Method]:
    if "name" not in table:
        raise ParameterError(
            f"an algorithm must have a name: one of {', '.join(ALGORITHMS)}, or module:Name"
        )
    rest = {key: value for key, value in table.items() if key != "name"}
    for name in _axis("name", table["name"]):
        plain = find(name).make()
        defaults = {key: v for key, v in plain.parameters().items() if is_plain(v)}
        single = ("bandwidth",) if plain.single_kernel else ()
        _known(name, table, ("name", *defaults, *single))
        widths = {"bandwidth": list(Setting.bandwidths)} if single else {}
        for given in _combinations({**widths, **rest}):
            bandwidth = given.pop("bandwidth", None)
            if bandwidth is not None:
                bandwidth = checks.positive("bandwidth", bandwidth)
            values = {key: _like(value, defaults[key]) for key, value in given.items()}
            yield Method(name, plain.replaced(**values) if values else plain, bandwidth)


def is_plain(value: Any) -> bool:
    """Whether a TOML file can express this value."""
    return value is None or isinstance(value, (bool, int, float, str))


def _like(value: Any, default: Any) -> Any:
    """An integer as a float where the default is a float, so that 2 and 2.0 are one value."""
    return float(value) if isinstance(default, float) and type(value) is int else value
