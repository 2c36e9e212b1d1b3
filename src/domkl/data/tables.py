"""An edition's bytes to numbers: every cell read or reported, no row lost without a count."""

import re
from typing import NamedTuple

import numpy as np

from domkl.data.records import Edition
from domkl.errors import DataError
from domkl.typing import Floats, Ints

_GAPS = ("", "nan", "na", "?")  # as files write a missing value


class RawTable(NamedTuple):
    """Numbers as the file has them: NaN where a cell is missing or no number by design."""

    columns: tuple[str, ...]
    values: Floats  # (N, columns)
    lines: Ints  # (N,) of the file
    n_rows: int  # in the file, with those that were not read
    n_empty: int  # lines with separators only

    def column(self, name: str) -> Floats:
        """One column, (N,)."""
        return self.values[:, self.columns.index(name)]


def read_table(content: bytes, edition: Edition, where: str, first: int | None = None) -> RawTable:
    """Read an edition's table, or its first rows; ``where`` names the file in errors."""
    lines = _lines(content, where)
    places, start = _places(lines, edition, where)
    kept = [i for i in range(start, len(lines)) if lines[i]]
    full = [i for i in kept if lines[i].strip(edition.separator)]
    if not full:
        raise DataError(f"{where} must have rows, got none")
    used = full[:first]
    values = np.empty((len(used), len(places)))
    for row, i in enumerate(used):
        cells = lines[i].split(edition.separator)
        if len(cells) <= max(places):
            raise DataError(
                f"{where} line {i + 1} must have {len(places)} cells, got {len(cells)};"
                " the file may be cut off"
            )
        values[row] = _row([cells[j] for j in places], edition, f"{where} line {i + 1}")
    numbers = np.array(used, dtype=np.int64) + 1
    return RawTable(edition.columns, values, numbers, len(full), len(kept) - len(full))


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
    """Where each column of the edition stands in a line, and the index of the first row."""
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
            pass  # a gap, or a cell to complain of
    return [_cell(c, n, edition, where) for c, n in zip(cells, edition.columns, strict=True)]


def _cell(cell: str, name: str, edition: Edition, where: str) -> float:
    if name in edition.text or cell.strip().lower() in _GAPS:
        return np.nan
    try:
        return day_fraction(cell) if name == edition.clock else float(cell)
    except ValueError:
        kind = "a time of day" if name == edition.clock else "a number"
        raise DataError(f"{where}, column {name!r} must be {kind}, got {cell!r}") from None
