"""Files to numbers: CSV files of the user's own, and the tables of the catalog's data sets.

`load_table`, `read_columns` and `read_ranges` read files of the user's own: CSV with a header.
`read_table` reads the file of a data set in the format that the catalog declares, and
`check_content` checks what was read. No reader skips a row without counting it: a cell that cannot
be read is an error that names the line.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from domkl import checks
from domkl.data.catalog import Bounds, DataSet, Edition
from domkl.errors import DataError
from domkl.options import MISSING
from domkl.typing import Floats, Ints

_GAPS = ("", "nan", "na", "?")  # how files write a missing value
#: an edition without a checksum may have this share of rows more or less than the catalog says
ROW_TOLERANCE = 0.001


class LoadedTable(NamedTuple):
    """Inputs and target of a table."""

    X: Floats  # (N, d)
    y: Floats  # (N,)
    names: tuple[str, ...]  # of the inputs
    n_dropped: int  # rows with missing values, if ``missing="drop"`` was given


def load_table(
    path: str | Path, target: str, *, drop: Sequence[str] = (), missing: str = "error"
) -> LoadedTable:
    """Read a CSV file with a header: ``target`` is the label, all other columns are inputs.

    Columns named in ``drop`` are ignored. Every other cell must be a finite number. With
    ``missing="drop"``, rows with an empty cell are left out and counted.
    """
    header, rows = _read_rows(Path(path))
    for name in (target, *drop):
        _column(header, name, path)
    names = tuple(name for name in header if name != target and name not in drop)
    if not names:
        raise DataError(f"{path} must have a column besides the target {target!r}, got none")
    values, n_dropped = _numbers(header, rows, (*names, target), path, missing)
    return LoadedTable(values[:, :-1], values[:, -1], names, n_dropped)


def read_columns(
    path: str | Path, names: Sequence[str], *, missing: str = "error"
) -> tuple[Floats, int]:
    """Read these columns of a CSV file with a header: (N, len(names)), and the rows left out."""
    header, rows = _read_rows(Path(path))
    for name in names:
        _column(header, name, path)
    return _numbers(header, rows, names, path, missing)


def read_ranges(path: str | Path) -> dict[str, Bounds]:
    """Read declared ranges from a CSV file with the columns ``column``, ``low`` and ``high``."""
    header, rows = _read_rows(Path(path))
    if sorted(header) != ["column", "high", "low"]:
        raise DataError(f"{path} must have the columns column, low, high, got {', '.join(header)}")
    found: dict[str, Bounds] = {}
    for line, row in rows:
        cells = dict(zip(header, row, strict=True))
        name = cells["column"].strip()
        try:
            low, high = float(cells["low"]), float(cells["high"])
        except ValueError:
            low = high = np.nan
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise DataError(
                f"{path} line {line} must have numbers low < high, got"
                f" {cells['low']!r} and {cells['high']!r}"
            )
        if name in found:
            raise DataError(f"{path} line {line} must name another column, got {name!r} again")
        found[name] = (low, high)
    return found


def _read_rows(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Read a CSV file, plain or .gz: its header, and its rows with their line numbers."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"no such file: {path}") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from None
    reader = csv.reader(io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n")), strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise DataError(f"{path} line {reader.line_num} is no CSV: {error}") from None
    if len(rows) < 2:
        raise DataError(f"{path} must have a header and at least one row, got {len(rows)} lines")
    header = [name.strip() for name in rows[0][1]]
    repeated = {name for name in header if header.count(name) > 1}
    if repeated:
        raise DataError(f"{path} must name each column once, got {sorted(repeated)[0]!r} again")
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise DataError(
                f"{path} line {line} must have {len(header)} cells as the header, got {len(row)}"
            )
    return header, rows[1:]


def _column(header: list[str], name: str, path: str | Path) -> int:
    if name not in header:
        hint = "; cells must be separated by commas" if re.search("[;\t]", header[0]) else ""
        raise DataError(f"{path} has no column {name!r}; it has {', '.join(header)}{hint}")
    return header.index(name)


def _numbers(
    header: list[str],
    rows: list[tuple[int, list[str]]],
    names: Sequence[str],
    path: str | Path,
    missing: str,
) -> tuple[Floats, int]:
    checks.choice("missing", missing, MISSING)
    places = [_column(header, name, path) for name in names]
    kept = []
    for line, row in rows:
        cells = [row[place].strip() for place in places]
        if "" in cells and missing == "drop":
            continue
        kept.append([_number(c, n, line, path) for c, n in zip(cells, names, strict=True)])
    if not kept:
        raise DataError(f"{path} has no row without missing values")
    return np.array(kept), len(rows) - len(kept)


def _number(cell: str, name: str, line: int, path: str | Path) -> float:
    where = f"{path} line {line}, column {name!r}"
    if cell == "":
        raise DataError(f"{where} is empty; --missing drop (missing='drop') leaves such rows out")
    try:
        value = float(cell)
    except ValueError:
        raise DataError(
            f"{where} must be a number, got {cell!r}; drop the column if it is not an input"
        ) from None
    if not np.isfinite(value):
        raise DataError(f"{where} must be finite, got {cell!r}")
    return value


class RawTable(NamedTuple):
    """The numbers of a file; NaN where a cell is missing, and throughout a column of text."""

    columns: tuple[str, ...]
    values: Floats  # (N, columns)
    lines: Ints  # (N,) line numbers in the file
    n_rows: int  # in the file, including rows that were not read
    n_empty: int  # lines that consist of separators only
    text: dict[str, list[str]]  # the cells of the columns of text

    def column(self, name: str) -> Floats:
        """One column, (N,)."""
        return self.values[:, self.columns.index(name)]


def read_table(content: bytes, edition: Edition, where: str, first: int | None = None) -> RawTable:
    """Read the table of an edition, or its first rows; ``where`` names the file in errors."""
    lines = _lines(content, where)
    places, start = _places(lines, edition, where)
    kept = [i for i in range(start, len(lines)) if lines[i]]
    full = [i for i in kept if lines[i].strip(edition.separator)]
    if not full:
        raise DataError(f"{where} must have rows, got none")
    used = full[:first]
    values = np.empty((len(used), len(places)))
    text: dict[str, list[str]] = {name: [] for name in edition.text}
    for row, i in enumerate(used):
        cells = lines[i].split(edition.separator)
        if len(cells) <= max(places):
            raise DataError(
                f"{where} line {i + 1} must have {len(places)} cells, got {len(cells)};"
                " the file may be cut off"
            )
        cells = [cells[j] for j in places]
        values[row] = _row(cells, edition, f"{where} line {i + 1}")
        for name, found in text.items():
            found.append(cells[edition.columns.index(name)])
    numbers = np.array(used, dtype=np.int64) + 1
    return RawTable(edition.columns, values, numbers, len(full), len(kept) - len(full), text)


def day_fraction(cell: str) -> float:
    """Read a time of day as a fraction of a day.

    Examples
    --------
    >>> day_fraction("18.00.00"), day_fraction("06:30:00")
    (0.75, 0.2708333333333333)
    """
    found = re.fullmatch(r"(\d{1,2})[.:](\d\d)[.:](\d\d)", cell.strip())
    if found is None:
        raise ValueError(cell)
    hours, minutes, seconds = map(int, found.groups())
    return (hours + (minutes + seconds / 60) / 60) / 24


def _lines(content: bytes, where: str) -> list[str]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{where} must be text in UTF-8: {error}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _places(lines: list[str], edition: Edition, where: str) -> tuple[list[int], int]:
    """The position of each column of the edition in a line, and the index of the first row."""
    first = [cell.strip().strip('"') for cell in lines[0].split(edition.separator)]
    if not edition.has_header:
        if len(first) != len(edition.columns):
            raise DataError(
                f"{where} must have {len(edition.columns)} columns, got {len(first)} in line 1"
            )
        return list(range(len(first))), 0
    lost = [name for name in edition.columns if name not in first]
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        shown = ", ".join(first[:8]) + (", …" if len(first) > 8 else "")
        raise DataError(f"{where} has no column {lost[0]!r}{more}; it has {shown}")
    return [first.index(name) for name in edition.columns], 1


def _row(cells: list[str], edition: Edition, where: str) -> list[float]:
    if edition.decimal != ".":
        cells = [cell.replace(edition.decimal, ".") for cell in cells]
    if not edition.text and edition.clock is None:
        try:
            return [float(cell) for cell in cells]
        except ValueError:
            pass  # an empty cell, or one that _cell will report
    return [_cell(c, n, edition, where) for c, n in zip(cells, edition.columns, strict=True)]


def _cell(cell: str, name: str, edition: Edition, where: str) -> float:
    if name in edition.text or cell.strip().lower() in _GAPS:
        return np.nan
    try:
        return day_fraction(cell) if name == edition.clock else float(cell)
    except ValueError:
        kind = "a time of day" if name == edition.clock else "a number"
        raise DataError(f"{where}, column {name!r} must be {kind}, got {cell!r}") from None


def check_content(content: bytes, data: DataSet, edition: Edition, where: str) -> list[str]:
    """Check a file against its edition: columns, rows, finite numbers, the target's range.

    Returns the checks that passed, in words. Raises DataError at the first that fails.
    """
    table = read_table(content, edition, where)
    return [
        f"{len(table.columns)} columns as named",
        _check_rows(table, edition, where),
        _check_numbers(table, edition, where),
        _check_target(table, data, edition, where),
    ]


def _check_rows(table: RawTable, edition: Edition, where: str) -> str:
    n, slack = len(table.values), 0 if edition.sha256 else int(ROW_TOLERANCE * edition.rows)
    if abs(n - edition.rows) > slack:
        about = "about " if slack else ""
        raise DataError(f"{where} must have {about}{edition.rows} rows, got {n}")
    return f"{n} rows"


def _check_numbers(table: RawTable, edition: Edition, where: str) -> str:
    broken = np.isinf(table.values)
    if not edition.has_gaps:
        numeric = [i for i, name in enumerate(table.columns) if name not in edition.text]
        broken[:, numeric] |= np.isnan(table.values[:, numeric])
    if broken.any():
        row, column = np.argwhere(broken)[0]
        raise DataError(
            f"{where} line {table.lines[row]}, column {table.columns[column]!r} must be a finite"
            f" number, got {table.values[row, column]}; so must {int(broken.sum()) - 1} more"
        )
    return "gaps, and finite numbers" if edition.has_gaps else "finite numbers"


def _check_target(table: RawTable, data: DataSet, edition: Edition, where: str) -> str:
    low, high = edition.target_bounds
    for name in (each for each in data.targets if each in table.columns):
        values = table.column(name)
        known = values[~np.isnan(values) & (values != edition.missing)]
        outside = known[(known < low) | (known > high)]
        if outside.size:
            raise DataError(
                f"{where}, column {name!r} must lie in [{low:g}, {high:g}], got {outside[0]:g}"
            )
    return f"target in [{low:g}, {high:g}]"
