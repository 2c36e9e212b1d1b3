"""The data sets that domkl knows: origin, licence, target, rows, ranges, and the files accepted.

catalog.toml has a table for each; this module has the classes of its records, reads the file and
checks it. It imports no library, so that `domkl --help` stays fast.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from importlib.resources import files
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from domkl.data.types import Bounds, Station
from domkl.errors import DataError, ParameterError


class Origin(NamedTuple):
    """Where a data set comes from."""

    uci_name: str
    uci_id: int
    doi: str
    archive: str  # address of UCI's archive
    citation: str
    licence: str = "CC BY 4.0"
    home: str = ""  # address of the page that describes the set, where that is not UCI's

    @property
    def page(self) -> str:
        """Address of the page that describes the set."""
        return self.home or f"https://archive.ics.uci.edu/dataset/{self.uci_id}"


class AuthorsScale(NamedTuple):
    """How the paper's authors scaled their array."""

    rule: str  # one of `options.SCALES`
    is_joint: bool = False  # whether all inputs share one offset and one divisor
    words: str = "(v - min)/max of each column"


class NodeSet(NamedTuple):
    """How a set whose nodes have streams of their own becomes samples; all of it can be changed."""

    what: str  # what a node is, in the plural
    n_nodes: int
    graph: str  # kind of the network: nearest, where nodes have places, or circle
    lags: tuple[int, ...]
    inputs: tuple[str, ...]  # columns and calendar words
    time: tuple[str, ...] = ()  # columns of the time
    column: str | None = None  # that names the node; None: a file for each node
    start: str | None = None  # time of the first row, where the files have no time
    step: str | None = None
    share: tuple[str, str] | None = None  # the target is the first column over the second
    hold: str | None = None  # for how long the last value stands in for a missing one
    horizons: tuple[int, ...] = (1,)
    unit: str = ""  # of the target


@dataclass(frozen=True, kw_only=True)
class Edition:
    """One form of a data set's file: its name, its format, and what its content must satisfy."""

    name: str
    file: str  # name of the uncompressed file
    state: str  # what it is, and how it differs from UCI's file
    rows: int  # lines with numbers; an approximate number where there is no checksum
    columns: tuple[str, ...]
    target_bounds: Bounds  # every known value of the target lies between these
    sha256: str | None = None  # of the uncompressed content; None if we have never seen the file
    is_in_archive: bool = False  # whether UCI's archive contains it, under this name
    has_gaps: bool = False  # cells may be empty
    is_shipped: bool = False  # whether the file comes with domkl
    has_header: bool = True
    separator: str = ","
    decimal: str = "."
    text: tuple[str, ...] = ()  # columns that hold text; they are never inputs
    clock: str | None = None  # column with the time of day, read as a fraction of a day
    timestamp: str | None = None  # of a series: rule "clean" keeps one value for each time stamp
    missing: float | None = None  # a number that stands for a missing value
    paper_records: int | None = None  # rule "paper" takes this many records from the start
    authors: AuthorsScale = AuthorsScale("authors")
    ranges: Mapping[str, Bounds] = field(default_factory=dict)  # override those of the data set


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set: origin, task, rows, target, ranges, and the files that are accepted for it."""

    name: str
    title: str
    origin: Origin
    task: str  # "regression" or "time series"
    target: str
    editions: tuple[Edition, ...]  # in order of preference; of stations, the file of each
    usable: str  # the rows that can be used, and why
    n_inputs: int
    paper_rows: int | None = None  # as Table II of the paper says; None: the paper has none
    is_series: bool = False  # whether the inputs are earlier values (lags) of the target
    other_targets: tuple[str, ...] = ()  # measured together with the target, so never inputs
    not_inputs: tuple[str, ...] = ()  # identifiers
    record_key: str | None = None  # a column that is empty in rows that are not records
    ranges: Mapping[str, Bounds] = field(default_factory=dict)
    ranges_from: str = ""
    stations: tuple[Station, ...] = ()  # each has a file of its own: they are the learners
    nodes: NodeSet | None = None  # of a set whose nodes have streams of their own

    @property
    def has_horizon(self) -> bool:
        """Whether the label can be several steps ahead of the inputs."""
        return self.is_series or self.nodes is not None

    @property
    def n_nodes(self) -> int | None:
        """How many nodes have streams of their own; None for samples that are to be dealt."""
        if self.nodes is None:
            return None
        return len(self.stations) or self.nodes.n_nodes

    @property
    def is_shipped(self) -> bool:
        """Whether the file comes with domkl."""
        return self.editions[0].is_shipped

    @property
    def targets(self) -> tuple[str, ...]:
        """Columns that may be chosen as the target."""
        return (self.target, *self.other_targets)

    def edition(self, name: str) -> Edition:
        """Return the edition of this name."""
        for edition in self.editions:
            if edition.name == name:
                return edition
        raise DataError(f"{self.name} has no edition {name!r}; fetch the set again")


def read_catalog(text: str) -> dict[str, DataSet]:
    """Read data sets from TOML, by name; DataError says what is wrong, and where."""
    return {name: _data_set(name, entry) for name, entry in tomllib.loads(text).items()}


def _data_set(name: str, entry: dict[str, Any]) -> DataSet:
    """Make the record of a data set, whose editions share what ``each`` says."""
    shared, given = entry.pop("each", {}), entry.pop("editions", [])
    editions = []
    for each in given:
        edition: Edition = _record(Edition, shared | each, f"{name}.editions")
        ranges = _ranges(edition.ranges, edition.columns)
        editions.append(replace(edition, ranges=ranges))
    if not editions:
        raise DataError(f"{name} of the catalog must have an edition, got none")
    made: DataSet = _record(DataSet, {"name": name, "editions": editions} | entry, name)
    columns = editions[0].columns
    is_made = made.nodes is not None and made.nodes.share is not None
    for column in (*made.targets, *made.not_inputs):
        if column not in columns and not (is_made and column == made.target):
            raise DataError(f"{name} of the catalog must have the column {column!r}, got none")
    return replace(made, ranges=_ranges(made.ranges, columns))


def _record(kind: Any, entry: dict[str, Any], where: str) -> Any:
    """Make a record of this class from a table; keys and types must be those of its fields."""
    hints = get_type_hints(kind)
    for key in entry:
        if key not in hints:
            raise DataError(f"{where} of the catalog must not have the key {key!r}; keys are"
                            f" {', '.join(hints)}")  # fmt: skip
    made = {key: _value(hints[key], value, f"{where}.{key}") for key, value in entry.items()}
    try:
        return kind(**made)
    except TypeError as error:  # a key is missing
        raise DataError(f"{where} of the catalog is incomplete: {error}") from None


def _value(hint: Any, given: Any, where: str) -> Any:
    """A value of the file as this type: tables become records, lists become tuples."""
    kind = get_args(hint)[0] if isinstance(hint, UnionType) else hint
    if isinstance(given, dict) and kind in (Origin, AuthorsScale, NodeSet, Station):
        return _record(kind, given, where)
    if isinstance(given, dict) and get_origin(kind) is Mapping:
        return {key: _value(Bounds, each, f"{where}.{key}") for key, each in given.items()}
    if isinstance(given, list) and get_origin(kind) is tuple:
        kinds = get_args(kind)
        if kinds[-1] is Ellipsis:
            kinds = (kinds[0],) * len(given)
        if len(kinds) == len(given):
            made = zip(kinds, given, strict=True)
            return tuple(_value(each, value, where) for each, value in made)
    is_number = kind is float and type(given) is int
    if is_number or type(given) is kind:
        return given
    raise DataError(f"{where} of the catalog must be {getattr(kind, '__name__', kind)}, got"
                    f" {given!r}")  # fmt: skip


def _ranges(given: Mapping[str, Bounds], columns: tuple[str, ...]) -> dict[str, Bounds]:
    """The range of each column, by the first pattern that matches; a made column has its name."""
    for name, (low, high) in given.items():
        if not low < high:
            raise DataError(f"range of {name!r} in the catalog must have low < high, got"
                            f" {low}, {high}")  # fmt: skip
    names = dict.fromkeys((*columns, *(name for name in given if "*" not in name)))
    found = {
        name: [bounds for pattern, bounds in given.items() if fnmatchcase(name, pattern)]
        for name in names
    }
    return {name: bounds[0] for name, bounds in found.items() if bounds}


DATASETS = read_catalog((files("domkl.data") / "catalog.toml").read_text(encoding="utf-8"))


def find(name: str) -> DataSet:
    """Look a data set up by its name."""
    if name not in DATASETS:
        raise ParameterError(f"data set must be one of {', '.join(DATASETS)}, got {name!r}")
    return DATASETS[name]
