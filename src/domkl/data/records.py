"""What the catalog says of a data set, and of each form in which its file is met."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from domkl import checks
from domkl.errors import DataError

#: lowest and highest value that a column can have, by what it measures
Bounds = tuple[float, float]


class Origin(NamedTuple):
    """Where a data set comes from."""

    uci_name: str
    uci_id: int
    doi: str
    archive: str  # address of UCI's archive
    citation: str
    licence: str = "CC BY 4.0"

    @property
    def page(self) -> str:
        """Address of the page that describes the set."""
        return f"https://archive.ics.uci.edu/dataset/{self.uci_id}"


class AuthorsScale(NamedTuple):
    """How the authors' array was scaled."""

    rule: str  # of `scaled`
    is_joint: bool = False  # one offset and divisor for all inputs together
    words: str = "(v - min)/max of each column"


@dataclass(frozen=True, kw_only=True)
class Edition:
    """A form in which a set's file is met: its name, its grammar, and what must hold in it."""

    name: str
    file: str  # name of the uncompressed file
    state: str  # what it is, and how it differs from what UCI holds
    rows: int  # lines with numbers; about so many where there is no checksum
    columns: tuple[str, ...]
    target_bounds: Bounds  # of every known value of the set's target
    sha256: str | None = None  # of the uncompressed content; None: never seen by us
    is_in_archive: bool = False  # UCI's archive holds it, under this name
    has_gaps: bool = False  # cells may be empty
    is_shipped: bool = False
    has_header: bool = True
    separator: str = ","
    decimal: str = "."
    text: tuple[str, ...] = ()  # columns that are no numbers, and no inputs
    clock: str | None = None  # column with the time of day, read as a fraction of a day
    missing: float | None = None  # a number that stands for a missing value
    paper_records: int | None = None  # rule "paper" takes the first so many records
    authors: AuthorsScale = AuthorsScale("authors")
    ranges: Mapping[str, Bounds] = field(default_factory=dict)  # before those of the set


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set of the paper: origin, task, rows, target, ranges, and the files we accept."""

    name: str
    title: str
    origin: Origin
    task: str  # "regression" or "time series"
    target: str
    editions: tuple[Edition, ...]  # the one we would rather have first
    paper_rows: int  # Table II
    usable: str  # the rows that can be used, and why
    n_inputs: int
    other_targets: tuple[str, ...] = ()  # known with the target: never inputs
    not_inputs: tuple[str, ...] = ()  # identifiers
    record_key: str | None = None  # a column empty in rows that are no records
    ranges: Mapping[str, Bounds] = field(default_factory=dict)
    ranges_from: str = ""

    @property
    def is_shipped(self) -> bool:
        """Whether the file comes with domkl."""
        return self.editions[0].is_shipped

    @property
    def is_series(self) -> bool:
        """Whether the inputs are lags of the target."""
        return self.is_shipped  # the two series of Metro Interstate Traffic Volume

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


def data_set(name: str, sets: Mapping[str, DataSet]) -> DataSet:
    """Look a set up, or say which there are."""
    checks.choice("data set", name, sets)
    return sets[name]
