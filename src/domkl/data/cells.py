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
import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domkl.errors import DataError
from domkl.typing import Floats

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

    def add(self, file: str, line: int | None, column: str | None, text: str) -> None:
        """Note a problem; ``line`` and ``column`` say where it is, if it has a place."""
        self.n += 1
        if self.is_open:
            where = file if line is None else f"{file} line {line}"
            self.told.append(
                f"{where}, column {column!r}: {text}" if column else f"{where}: {text}"
            )

    def check(self) -> None:
        """Raise an error that tells all problems, if there are any."""
        if not self.n:
            return
        more = f"; and {self.n - len(self.told)} more" if self.n > len(self.told) else ""
        head = f"{self.n} problems: " if self.n > 1 else ""
        raise DataError(f"{head}{'; '.join(self.told)}{more}")


class Sheet(NamedTuple):
    """A CSV file as columns of cells."""

    file: str  # its name, for messages
    names: tuple[str, ...]  # of the columns, each different
    cells: tuple[Sequence[str], ...]  # of each column
    separator: str
    n_rows: int
    n_empty: int  # lines without any cell, which are left out
    renamed: dict[str, str]  # a column that had the name of another, and its new name
    line_of: Callable[[int], int]  # the line of a row, counted from 0
    encoding: str = "utf-8-sig"

    def column(self, name: str) -> Sequence[str]:
        """The cells of a column."""
        return self.cells[self.names.index(name)]


def read_sheet(path: Path, problems: Problems) -> Sheet | None:
    """Read a file; None, with what is wrong added to ``problems``, if it cannot be read."""
    try:
        return sheet_of(path.read_bytes(), str(path), problems)
    except FileNotFoundError:
        problems.add(str(path), None, None, "no such file")
    except OSError as error:
        problems.add(str(path), None, None, f"cannot be read: {error.strerror or error}")
    return None


def sheet_of(raw: bytes, file: str, problems: Problems) -> Sheet | None:
    """Read the bytes of a file, plain or gzipped; None if they are no table."""
    found = text_of(raw, file, problems)
    if found is None:
        return None
    text, encoding = found
    separator = _separator(text)
    sheet = sheet_of_text(
        text, separator, file, problems, lambda row: _line_of(text, separator, row)
    )
    return None if sheet is None else sheet._replace(encoding=encoding)


def sheet_of_text(
    text: str, separator: str, file: str, problems: Problems, line_of: Callable[[int], int]
) -> Sheet | None:
    """Split a text with a header into cells; None, with what is wrong told, if it is no table."""
    body = _Body(file, problems, line_of)
    if not _add_plain(body, text, separator) and not _add_any(body, text, separator):
        return None
    if not body.n_rows:
        problems.add(file, None, None, "must have a header and at least one row below it, got none")
        return None
    names, renamed = _names([name.strip() for name in body.header])
    kept = [i for i, name in enumerate(body.header) if name.strip() or any(body.columns[i])]
    return Sheet(
        file,
        tuple(names[i] for i in kept),
        tuple(body.columns[i] for i in kept),
        separator,
        len(body.columns[0]),
        body.n_empty,
        renamed,
        body.line_of,
    )


def _add_plain(body: "_Body", text: str, separator: str) -> bool:
    """Split a text whose rows are lines of as many cells as the header, quoted as a whole or not.

    Most files are such, and splitting takes a third of the time of `csv`. Returns whether it was
    one; then everything is in ``body``, as `_add_any` would have put it there.
    """
    first, _, rest = text.removesuffix("\n").partition("\n")
    header = next(csv.reader([first], delimiter=separator), [])
    if not any(header) or not rest or first.count('"') % 2:
        return False
    lines = rest.split("\n")
    n_between = len(header) - 1
    if {line.count(separator) for line in lines} != {n_between}:
        return False
    if separator * n_between in lines or max(map(len, lines)) > csv.field_size_limit():
        return False
    cells = rest.replace("\n", separator).split(separator)
    columns = [cells[place :: len(header)] for place in range(len(header))]
    n_quotes = rest.count('"')
    if n_quotes:
        n_left = n_quotes - sum(_unquote(column) for column in columns if column[0][:1] == '"')
        if n_left or "" in columns[0]:  # quotes elsewhere; perhaps a row of empty cells
            return False
    body.header, body.columns, body.n_rows = header, columns, len(lines)
    return True


def _unquote(column: list[str]) -> int:
    """Take the quotes off the cells that have two, around them; return how many were taken."""
    bare = {}
    for cell in set(column):
        is_quoted = len(cell) > 1 and cell[0] == cell[-1] == '"' and cell.count('"') == 2
        bare[cell] = cell[1:-1] if is_quoted else cell
    before = sum(map(len, column))
    column[:] = map(bare.__getitem__, column)
    return before - sum(map(len, column))


def _add_any(body: "_Body", text: str, separator: str) -> bool:
    """Read a text row by row; False, with what is wrong told, if it is no CSV."""
    reader = csv.reader(io.StringIO(text), delimiter=separator, strict=True)
    try:
        while rows := list(itertools.islice(reader, _AT_ONCE)):
            body.add(rows)
    except csv.Error as error:
        body.problems.add(body.file, reader.line_num, None, f"is no CSV: {error}")
        return False
    return True


class _Body:
    """The cells of a file, column by column, as its rows come.

    Few rows are in memory at a time: millions of small lists would keep Python's garbage collector
    busy for longer than reading takes.
    """

    def __init__(self, file: str, problems: Problems, line_of: Callable[[int], int]) -> None:
        self.file, self.problems, self.line_of = file, problems, line_of
        self.header: list[str] = []
        self.columns: list[list[str]] = []
        self.n_rows = 0  # sound or not
        self.n_empty = 0

    def add(self, rows: list[list[str]]) -> None:
        """Take rows; the first one of the file is the header."""
        full = [row for row in rows if row and (row[0] or any(row))]
        self.n_empty += len(rows) - len(full)
        if not self.header and full:
            self.header, *full = full
            self.columns = [[] for _ in self.header]
        if {*map(len, full)} - {len(self.header)}:
            sound = [row for n, row in enumerate(full) if self._is_sound(row, self.n_rows + n)]
        else:
            sound = full
        for column, cells in zip(self.columns, zip(*sound, strict=True), strict=False):
            column.extend(cells)
        self.n_rows += len(full)

    def _is_sound(self, row: list[str], number: int) -> bool:
        """Whether a row has as many cells as the header; empty ones at its end are cut off."""
        width = len(self.header)
        if len(row) > width and not any(row[width:]):
            del row[width:]
        if len(row) == width:
            return True
        wrong = f"must have {width} cells as the header, got {len(row)}"
        line = self.line_of(number) if self.problems.is_open else 0
        self.problems.add(self.file, line, None, wrong)
        return False


def _line_of(text: str, separator: str, row: int) -> int:
    """The line of a row, counted from 0 below the header, without empty lines."""
    again = csv.reader(io.StringIO(text), delimiter=separator)
    lines = (again.line_num for cells in again if any(cells))
    return next(itertools.islice(lines, row + 1, None))


def text_of(raw: bytes, file: str, problems: Problems) -> tuple[str, str] | None:
    """Decompress and decode: the text with plain ends of lines, and its encoding."""
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            problems.add(
                file, None, None, f"must be a whole gzip file, got a damaged one ({error})"
            )
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
    problems.add(file, None, None, "must be text in UTF-8, got bytes that are no text")
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


def is_decimal_comma(sheet: Sheet) -> bool:
    """Whether the file writes 3,5 for three and a half: never where commas separate cells."""
    if sheet.separator == ",":
        return False
    return any(_COMMA.fullmatch(cell.strip()) for column in sheet.cells for cell in set(column))


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
    known = _Known(comma, gaps)
    values = np.fromiter(map(known.__getitem__, column), np.float64, len(column))
    n_bad = sum(map(known.bad.__contains__, column)) if known.bad else 0
    return Numbers(values, known.bad, n_bad, int(np.isnan(values).sum()) - n_bad)


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


class _Known(dict[str, float]):
    """The number of each cell, read when it is first met: most cells of a column repeat others."""

    def __init__(self, comma: bool, gaps: frozenset[str]) -> None:
        super().__init__()
        self._comma, self._gaps = comma, gaps
        self.bad: dict[str, str] = {}

    def __missing__(self, cell: str) -> float:
        self[cell], why = _number(cell, self._comma, self._gaps)
        if why:
            self.bad[cell] = why
        return self[cell]


def _number(cell: str, comma: bool, gaps: frozenset[str]) -> tuple[float, str]:
    """The number in a cell, NaN if it is missing or none, and what is wrong with it."""
    if not comma and not gaps and cell.isdecimal():
        return float(cell), ""
    bare = cell.strip()
    if bare in gaps or bare.lower() in NUMBER_GAPS:
        return np.nan, ""
    if comma:
        if _COMMA.fullmatch(bare):
            bare = bare.replace(".", "").replace(",", ".")
        elif re.fullmatch(r"[+-]?\d{1,3}(\.\d{3})+", bare):
            bare = bare.replace(".", "")
        elif "." in bare and re.fullmatch(r"[+-]?\d*\.\d+", bare):
            return np.nan, "must have a decimal comma as other cells of the file"
    elif _POINT.fullmatch(bare):
        bare = bare.replace(",", "")
    try:
        value = float(bare) if "_" not in bare else None
    except ValueError:
        value = None
    if value is None:
        return np.nan, "must be a number"
    if not np.isfinite(value):
        return np.nan, "must be finite"
    gone = any(_is_same(value, gap) for gap in gaps)
    return (np.nan if gone else value), ""


def _is_same(value: float, gap: str) -> bool:
    """Whether a word for a missing value is this number, however it is written: -200, -200.0."""
    try:
        return float(gap) == value
    except ValueError:
        return False


def add_bad_cells(
    problems: Problems, sheet: Sheet, name: str, column: Sequence[str], numbers: Numbers
) -> None:
    """Add a problem for every row whose cell is no number."""
    if not numbers.bad:
        return
    for row, cell in enumerate(column):
        if cell not in numbers.bad:
            continue
        line = sheet.line_of(row) if problems.is_open else 0
        problems.add(sheet.file, line, name, f"{numbers.bad[cell]}, got {cell.strip()!r}")


def add_missing_cells(
    problems: Problems, sheet: Sheet, name: str, column: Sequence[str], gone: NDArray[np.bool_]
) -> None:
    """Add a problem for every missing cell."""
    for row in np.flatnonzero(gone).tolist():
        if column[row].strip().lower() in NUMBER_GAPS:
            line = sheet.line_of(row) if problems.is_open else 0
            text = "is empty; --missing drop (missing='drop') leaves such rows out"
            problems.add(sheet.file, line, name, text)


def has_columns(sheet: Sheet, names: Sequence[str], problems: Problems) -> bool:
    """Whether a file has these columns; if not, all that it lacks are one problem."""
    lost = [name for name in dict.fromkeys(names) if name not in sheet.names]
    if lost:
        shown = ", ".join(sheet.names[:12]) + (", …" if len(sheet.names) > 12 else "")
        problems.add(
            sheet.file, 1, None, f"has no column {', '.join(map(repr, lost))}; it has {shown}"
        )
    return not lost
