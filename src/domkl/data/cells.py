"""Bytes of a CSV file to columns of cells, and cells to numbers, whatever the file's dialect.

Files come as users have them: plain or gzipped, in UTF-8, UTF-16 or Windows' own encoding; cells
separated by commas, semicolons, tabs or bars; with decimal commas, quotes, empty lines, columns
without a name or with the name of another. Cells are read by the standard library's `csv`:
docs/explanation/design.md has the comparison with pyarrow, polars and pandas.

Nothing wrong is passed over. `Problems` collects everything, so that a user learns all that is
wrong with a file at once, each with file, line and column; line 1 is the header.
"""

import csv
import gzip
import io
import itertools
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domkl.errors import DataError
from domkl.typing import Floats

#: largest size of an unpacked file, in bytes; the largest we know has some 180 million
MAX_UNPACKED = 1 << 30

#: how files write a missing value, in small letters; "none" and "-" only among numbers
GAPS = frozenset(("", "na", "n/a", "nan", "#n/a", "null", "?"))
NUMBER_GAPS = GAPS | {"none", "-", "--", "nil", "missing", "nat"}
SEPARATORS = ",;\t|"
#: problems that are told one by one; the rest are counted
N_TOLD = 8
_AT_ONCE = 4096  # rows
_SAMPLE = 1000  # cells of a column by which it is judged
_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d*),\d+([eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")


@dataclass
class Problems:
    """Everything that is wrong with some files, told in one error."""

    told: list[str] = field(default_factory=list)
    n: int = 0

    @property
    def is_open(self) -> bool:
        """Whether the next problem is told, and not only counted."""
        return len(self.told) < N_TOLD

    def add(self, where: str, text: str) -> None:
        """Note a problem of a file, or of a place in it."""
        self.n += 1
        if self.is_open:
            self.told.append(f"{where}: {text}")

    def check(self) -> None:
        """Raise an error that tells all problems, if there are any."""
        if not self.n:
            return
        more = f"; and {self.n - len(self.told)} more" if self.n > len(self.told) else ""
        head = f"{self.n} problems: " if self.n > 1 else ""
        raise DataError(f"{head}{'; '.join(self.told)}{more}")


@dataclass
class Sheet:
    """A CSV file as columns of cells; what is wrong with it goes to ``problems``."""

    file: str  # its name, for messages
    problems: Problems
    separator: str
    line_of: Callable[[int], int]  # the line of a row, counted from 0
    encoding: str = "utf-8-sig"
    names: list[str] = field(default_factory=list)  # of the columns, each different
    cells: list[list[str]] = field(default_factory=list)  # of each column
    n_rows: int = 0
    n_empty: int = 0  # lines without any cell, which are left out
    renamed: dict[str, str] = field(default_factory=dict)  # columns with the name of another

    def column(self, name: str) -> list[str]:
        """The cells of a column."""
        return self.cells[self.names.index(name)]

    def complain(self, row: int, column: str | None, text: str) -> None:
        """Note that a row, or its cell in a column, is wrong."""
        line = self.line_of(row) if self.problems.is_open else 0
        place = f", column {column!r}" if column else ""
        self.problems.add(f"{self.file} line {line}{place}", text)

    def has(self, names: Iterable[str]) -> bool:
        """Whether the file has these columns; if not, all that it lacks are one problem."""
        lost = [name for name in dict.fromkeys(names) if name not in self.names]
        if lost:
            shown = ", ".join(self.names[:12]) + (", …" if len(self.names) > 12 else "")
            text = f"has no column {', '.join(map(repr, lost))}; it has {shown}"
            self.problems.add(f"{self.file} line 1", text)
        return not lost

    def is_decimal_comma(self) -> bool:
        """Whether the file writes 3,5 for three and a half: never where commas separate cells."""
        if self.separator == ",":
            return False
        return any(_COMMA.fullmatch(cell.strip()) for column in self.cells for cell in set(column))

    def add_bad_cells(self, name: str, numbers: "Numbers") -> None:
        """Note every row whose cell in a column is no number."""
        if numbers.bad:
            for row, cell in enumerate(self.column(name)):
                if cell in numbers.bad:
                    self.complain(row, name, f"{numbers.bad[cell]}, got {cell.strip()!r}")

    def add_missing_cells(self, name: str, gone: NDArray[np.bool_]) -> None:
        """Note every missing cell of a column."""
        column = self.column(name)
        for row in np.flatnonzero(gone).tolist():
            if column[row].strip().lower() in NUMBER_GAPS:
                text = "is empty; --missing drop (missing='drop') leaves such rows out"
                self.complain(row, name, text)


def read_sheet(path: Path, problems: Problems) -> Sheet | None:
    """Read a file; None, with what is wrong added to ``problems``, if it cannot be read."""
    try:
        return sheet_of(path.read_bytes(), str(path), problems)
    except FileNotFoundError:
        problems.add(str(path), "no such file")
    except OSError as error:
        problems.add(str(path), f"cannot be read: {error.strerror or error}")
    return None


def sheet_of(raw: bytes, file: str, problems: Problems) -> Sheet | None:
    """Read the bytes of a file, plain or gzipped; None if they are no table."""
    found = text_of(raw, file, problems)
    if found is None:
        return None
    text, encoding = found
    separator = _separator(text)
    sheet = Sheet(file, problems, separator, lambda row: _line_of(text, separator, row), encoding)
    return sheet if add_cells(sheet, text) else None


def add_cells(sheet: Sheet, text: str) -> bool:
    """Split a text with a header into cells; False, with what is wrong told, if it is no table."""
    header = _read_rows(sheet, text)
    if header is None:
        return False
    if not sheet.n_rows:
        wrong = "must have a header and at least one row below it, got none"
        sheet.problems.add(sheet.file, wrong)
        return False
    names, sheet.renamed = _names([name.strip() for name in header])
    kept = [i for i, name in enumerate(header) if name.strip() or any(sheet.cells[i])]
    sheet.names, sheet.n_rows = [names[i] for i in kept], len(sheet.cells[0])
    sheet.cells = [sheet.cells[i] for i in kept]
    return True


def _read_rows(sheet: Sheet, text: str) -> list[str] | None:
    """Read the rows of a text; give its header, or None, with what is wrong told, if it is no CSV.

    Few rows are in memory at a time: millions of small lists would keep Python's garbage collector
    busy for longer than reading takes.
    """
    reader = csv.reader(io.StringIO(text), delimiter=sheet.separator, strict=True)
    header: list[str] = []
    try:
        while rows := list(itertools.islice(reader, _AT_ONCE)):
            full = [row for row in rows if row and (row[0] or any(row))]
            sheet.n_empty += len(rows) - len(full)
            if not header and full:
                header, *full = full
                sheet.cells = [[] for _ in header]
            sound = full
            if {*map(len, full)} - {len(header)}:
                numbered = enumerate(full, sheet.n_rows)
                sound = [row for n, row in numbered if _is_sound(sheet, row, n, len(header))]
            for column, cells in zip(sheet.cells, zip(*sound, strict=True), strict=False):
                column.extend(cells)
            sheet.n_rows += len(full)
    except csv.Error as error:
        sheet.problems.add(f"{sheet.file} line {reader.line_num}", f"is no CSV: {error}")
        return None
    return header


def _is_sound(sheet: Sheet, row: list[str], number: int, width: int) -> bool:
    """Whether a row has as many cells as the header; empty ones at its end are cut off."""
    if len(row) > width and not any(row[width:]):
        del row[width:]
    if len(row) != width:
        sheet.complain(number, None, f"must have {width} cells as the header, got {len(row)}")
    return len(row) == width


def _line_of(text: str, separator: str, row: int) -> int:
    """The line of a row, counted from 0 below the header, without empty lines."""
    again = csv.reader(io.StringIO(text), delimiter=separator)
    lines = (again.line_num for cells in again if any(cells))
    return next(itertools.islice(lines, row + 1, None))


def text_of(raw: bytes, file: str, problems: Problems) -> tuple[str, str] | None:
    """Decompress and decode: the text with plain ends of lines, and its encoding."""
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(MAX_UNPACKED + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            problems.add(file, f"must be a whole gzip file, got a damaged one ({error})")
            return None
        if len(raw) > MAX_UNPACKED:
            problems.add(file, f"must unpack to at most {MAX_UNPACKED} bytes, got more")
            return None
    encodings = ["utf-16"] if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" in text:
            break
        return text.replace("\r\n", "\n").replace("\r", "\n"), encoding
    problems.add(file, "must be text in UTF-8, got bytes that are no text")
    return None


def _separator(text: str) -> str:
    """The separator that occurs most often in the first line with cells, outside of quotes."""
    first = next((line for line in text.split("\n") if line.strip(" " + SEPARATORS)), "")
    counts = Counter(re.sub(r'"[^"]*"', "", first))
    return max(SEPARATORS, key=lambda each: counts[each])


def _names(header: list[str]) -> tuple[list[str], dict[str, str]]:
    """A name of its own for each column, and the columns that were renamed.

    Examples
    --------
    >>> _names(["t", "x", "x", ""])
    (['t', 'x', 'x (2)', 'column 4'], {'x': 'x (2)'})
    """
    names: list[str] = []
    renamed: dict[str, str] = {}
    for place, name in enumerate(header, start=1):
        given = name or f"column {place}"
        new, number = given, 1
        while new in names or (number > 1 and new in header):
            number += 1
            new = f"{given} ({number})"
        if new != given:
            renamed[given] = new
        names.append(new)
    return names, renamed


class Numbers(NamedTuple):
    """A column read as numbers."""

    values: Floats  # NaN where a cell is missing
    bad: dict[str, str]  # each cell that is no number, and why
    n_bad: int  # rows with such a cell
    n_missing: int


def numbers_of(
    column: Sequence[str], comma: bool = False, gaps: frozenset[str] = frozenset()
) -> Numbers:
    """Read a column as numbers; ``gaps`` are further words for a missing value.

    Examples
    --------
    >>> numbers_of(("1.5", "NA", "", "x")).values.tolist(), numbers_of(("1,5", "-"), True).values[0]
    ([1.5, nan, nan, nan], np.float64(1.5))
    """
    plain = None if comma or gaps else _plain_numbers(column)
    if plain is not None:
        return Numbers(plain, {}, 0, 0)
    return cells_as_numbers(column, lambda cell: _number(cell, comma, gaps))


def cells_as_numbers(column: Sequence[str], read: Callable[[str], float]) -> Numbers:
    """Read each distinct cell of a column once; what is wrong with one is what ``read`` raises."""
    known: dict[str, float] = {}
    bad: dict[str, str] = {}
    for cell in set(column):
        try:
            known[cell] = read(cell)
        except ValueError as error:
            known[cell], bad[cell] = np.nan, str(error)
    values = np.fromiter(map(known.__getitem__, column), np.float64, len(column))
    n_bad = sum(map(bad.__contains__, column)) if bad else 0
    return Numbers(values, bad, n_bad, int(np.isnan(values).sum()) - n_bad)


def _plain_numbers(column: Sequence[str]) -> Floats | None:
    """A column whose cells mostly differ, and are all plain finite numbers; None for any other."""
    sample = column[:_SAMPLE]
    if 2 * len(set(sample)) < len(sample) or "_" in "".join(column):
        return None
    try:
        values = np.fromiter(map(float, column), np.float64, len(column))
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def _number(cell: str, comma: bool, gaps: frozenset[str]) -> float:
    """The number in a cell, NaN if it is missing; ValueError says what is wrong with it."""
    if not comma and not gaps and len(cell) < 300 and cell.isdecimal():
        return float(cell)
    bare = cell.strip()
    if bare in gaps or bare.lower() in NUMBER_GAPS:
        return np.nan
    if comma:
        if _COMMA.fullmatch(bare):
            bare = bare.replace(".", "").replace(",", ".")
        elif re.fullmatch(r"[+-]?\d{1,3}(\.\d{3})+", bare):
            bare = bare.replace(".", "")
        elif "." in bare and re.fullmatch(r"[+-]?\d*\.\d+", bare):
            raise ValueError("must have a decimal comma as other cells of the file")
    elif "," in bare and _POINT.fullmatch(bare):
        bare = bare.replace(",", "")
    value = _float(bare)
    if value is None:
        raise ValueError("must be a number")
    if not math.isfinite(value):
        raise ValueError("must be finite")
    if gaps and any(_float(gap) == value for gap in gaps):  # however it is written: -200, -200.0
        return np.nan
    return value


def _float(text: str) -> float | None:
    """A number in Python's notation, without underscores; None for anything else."""
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None
