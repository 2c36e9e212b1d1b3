"""Files to numbers: CSV files of the user's own, and the tables of the catalog's data sets.

`load_table`, `read_columns` and `read_ranges` read files of the user's own: CSV with a header.
`read_table` reads the file of a data set in the format that the catalog declares, and
`check_content` checks what was read. No reader skips a row without counting it: a cell that cannot
be read is an error that names the line.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from domkl import checks
from domkl.data.catalog import DataSet, Edition
from domkl.data.cells import (
    Problems,
    Sheet,
    add_cells,
    cells_as_numbers,
    numbers_of,
    read_sheet,
    text_of,
)
from domkl.data.types import Bounds
from domkl.errors import DataError
from domkl.options import MISSING
from domkl.typing import Floats, Ints

_AT_ONCE = 10_000  # rows
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

    Columns named in ``drop`` are ignored. Every other cell must be a finite number, or missing:
    empty, NA and the like. With ``missing="drop"``, rows with a missing cell are left out and
    counted. Separators, encodings and decimal commas are found out (`cells.py`).
    """
    sheet = sheet_with(path, (target, *drop))
    names = tuple(name for name in sheet.names if name != target and name not in drop)
    if not names:
        raise DataError(f"{path} must have a column besides the target {target!r}, got none")
    values, n_dropped = _numbers(sheet, (*names, target), missing)
    return LoadedTable(values[:, :-1], values[:, -1], names, n_dropped)


def read_columns(
    path: str | Path, names: Sequence[str], *, missing: str = "error"
) -> tuple[Floats, int]:
    """Read these columns of a CSV file with a header: (N, len(names)), and the rows left out."""
    return _numbers(sheet_with(path, names), names, missing)


def read_ranges(path: str | Path) -> dict[str, Bounds]:
    """Read declared ranges from a CSV file with the columns ``column``, ``low`` and ``high``."""
    sheet = sheet_with(path)
    if sorted(sheet.names) != ["column", "high", "low"]:
        raise DataError(
            f"{path} must have the columns column, low, high, got {', '.join(sheet.names)}"
        )
    found: dict[str, Bounds] = {}
    comma = sheet.is_decimal_comma()
    lows, highs = (numbers_of(sheet.column(key), comma) for key in ("low", "high"))
    for row, name in enumerate(cell.strip() for cell in sheet.column("column")):
        low, high = float(lows.values[row]), float(highs.values[row])
        if not low < high:  # NaN included
            raise DataError(
                f"{path} line {sheet.line_of(row)} must have numbers low < high, got"
                f" {sheet.column('low')[row]!r} and {sheet.column('high')[row]!r}"
            )
        if name in found:
            raise DataError(
                f"{path} line {sheet.line_of(row)} must name another column, got {name!r} again"
            )
        found[name] = (low, high)
    return found


def sheet_with(path: str | Path, names: Sequence[str] = ()) -> Sheet:
    """Read a file that must have these columns."""
    problems = Problems()
    sheet = read_sheet(Path(path), problems)
    if sheet is not None:
        sheet.has(names)
    problems.check()
    assert sheet is not None
    return sheet


def _numbers(sheet: Sheet, names: Sequence[str], missing: str) -> tuple[Floats, int]:
    """These columns as numbers, and how many rows with missing cells were left out."""
    checks.choice("missing", missing, MISSING)
    comma, columns = sheet.is_decimal_comma(), []
    for name in names:
        read = numbers_of(sheet.column(name), comma)
        sheet.add_bad_cells(name, read)
        if missing == "error":
            sheet.add_missing_cells(name, np.isnan(read.values))
        columns.append(read.values)
    sheet.problems.check()
    values = np.stack(columns, axis=1)
    kept = values[~np.isnan(values).any(axis=1)]
    if not len(kept):
        raise DataError(f"{sheet.file} has no row without missing values")
    return kept, len(values) - len(kept)


class RawTable(NamedTuple):
    """The numbers of a file; NaN where a cell is missing, and throughout a column of text."""

    columns: tuple[str, ...]
    values: Floats  # (N, columns)
    lines: Ints  # (N,) line numbers in the file
    n_rows: int  # in the file, including rows that were not read
    text: dict[str, list[str]]  # the cells of the columns of text

    def column(self, name: str) -> Floats:
        """One column, (N,)."""
        return self.values[:, self.columns.index(name)]


def read_table(content: bytes, edition: Edition, where: str, first: int | None = None) -> RawTable:
    """Read the table of an edition, or its first rows; ``where`` names the file in errors.

    The cells of a block of rows are in memory at a time, for a file may have half a million rows.
    """
    problems = Problems()
    found = text_of(content, where, problems)
    problems.check()
    lines = [] if found is None else found[0].split("\n")
    header = lines[0] if edition.has_header else edition.separator.join(edition.columns)
    start = int(edition.has_header)
    full = [i for i in range(start, len(lines)) if lines[i].strip(edition.separator)]
    if not full:
        raise DataError(f"{where} must have rows, got none")
    numbers = np.array(full[:first], dtype=np.int64) + 1
    values = np.full((len(numbers), len(edition.columns)), np.nan)
    text: dict[str, list[str]] = {name: [] for name in edition.text}
    for begin in range(0, len(numbers), _AT_ONCE):
        of_block = numbers[begin : begin + _AT_ONCE].tolist()
        block = "\n".join([header, *(lines[line - 1] for line in of_block)])
        sheet = Sheet(where, problems, edition.separator, of_block.__getitem__)
        if add_cells(sheet, block):
            sheet.has(edition.columns)
        problems.check()
        for place, name in enumerate(edition.columns):
            cells = sheet.column(name)
            if name in text:
                text[name] += cells
                continue
            if name == edition.clock:
                read = cells_as_numbers(cells, day_fraction)
            else:
                read = numbers_of(cells, edition.decimal == ",")
            sheet.add_bad_cells(name, read)
            values[begin : begin + len(of_block), place] = read.values
    problems.check()
    return RawTable(edition.columns, values, numbers, len(full), text)


def day_fraction(cell: str) -> float:
    """Read a time of day as a fraction of a day.

    Examples
    --------
    >>> day_fraction("18.00.00"), day_fraction("06:30:00")
    (0.75, 0.2708333333333333)
    """
    found = re.fullmatch(r"(\d{1,2})[.:](\d\d)[.:](\d\d)", cell.strip())
    if found is None:
        raise ValueError("must be a time of day")
    hours, minutes, seconds = map(int, found.groups())
    return (hours + (minutes + seconds / 60) / 60) / 24


def check_content(content: bytes, data: DataSet, edition: Edition, where: str) -> list[str]:
    """Check a file against its edition: columns, rows, finite numbers, the target's range.

    Returns the checks that passed, in words. Raises DataError at the first that fails.
    """
    table = read_table(content, edition, where)
    n, slack = len(table.values), 0 if edition.sha256 else int(ROW_TOLERANCE * edition.rows)
    if abs(n - edition.rows) > slack:
        about = "about " if slack else ""
        raise DataError(f"{where} must have {about}{edition.rows} rows, got {n}")
    numeric = [i for i, name in enumerate(table.columns) if name not in edition.text]
    gaps = np.argwhere(np.isnan(table.values[:, numeric]))
    if len(gaps) and not edition.has_gaps:
        row, column = gaps[0]
        raise DataError(
            f"{where} line {table.lines[row]}, column {table.columns[numeric[column]]!r} must be a"
            f" finite number, got nan; so must {len(gaps) - 1} more"
        )
    low, high = edition.target_bounds
    for name in (each for each in data.targets if each in table.columns):
        values = table.column(name)
        known = values[~np.isnan(values) & (values != edition.missing)]
        outside = known[(known < low) | (known > high)]
        if outside.size:
            raise DataError(
                f"{where}, column {name!r} must lie in [{low:g}, {high:g}], got {outside[0]:g}"
            )
    return [
        f"{len(table.columns)} columns as named",
        f"{n} rows",
        "gaps, and finite numbers" if edition.has_gaps else "finite numbers",
        f"target in [{low:g}, {high:g}]",
    ]
