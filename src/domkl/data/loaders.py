"""Files to arrays: CSV columns, and the series that ships with the package."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from domkl import checks
from domkl.errors import DataError
from domkl.typing import Floats

#: what the paper's Table II says it used of each series: the first so many values of the file
PAPER_LENGTH = {"traffic": 6500, "temperature": 5500}
_COLUMN = {"traffic": "traffic_volume", "temperature": "temp"}


class Series(NamedTuple):
    """A time series, and what was done to get it."""

    values: Floats  # (N,)
    note: str
    rows_left_out: dict[str, int]  # reason: how many


class Table(NamedTuple):
    """Inputs and target of a table."""

    X: Floats  # (N, d)
    y: Floats  # (N,)
    names: tuple[str, ...]  # of the inputs
    n_dropped: int  # rows with missing values, where dropping them was asked for


def load_series(name: str, rule: str = "paper") -> Series:
    """Load a series of Metro Interstate Traffic Volume (UCI, CC BY 4.0), shipped with domkl.

    Parameters
    ----------
    name : "traffic" or "temperature"
        Hourly vehicles on an interstate, or kelvin.
    rule : "paper" or "clean"
        The first 6500 or 5500 values as they stand in the file, repeated hours and zero kelvin
        included; or one value an hour over the whole file, zero kelvin left out.

    Examples
    --------
    >>> load_series("traffic").values[:3]
    array([5545., 4516., 4767.])
    >>> load_series("temperature", rule="clean").values.min() > 200
    np.True_
    """
    checks.choice("name", name, _COLUMN)
    checks.choice("rule", rule, ("paper", "clean"))
    resource = files("domkl.data") / "files" / "metro.csv.gz"
    rows = list(csv.DictReader(io.StringIO(gzip.decompress(resource.read_bytes()).decode())))
    values = np.array([float(row[_COLUMN[name]]) for row in rows])
    if rule == "paper":
        n = PAPER_LENGTH[name]
        note = f"the first {n} values of the file, as they stand"
        return Series(values[:n], note, {f"after the first {n}": len(values) - n})
    _, first = np.unique([row["date_time"] for row in rows], return_index=True)
    kept = np.sort(first)
    hourly = values[kept]
    possible = hourly if name == "traffic" else hourly[hourly > 0]
    n_repeated, n_impossible = len(values) - len(kept), len(hourly) - len(possible)
    out = {"repeated hours": n_repeated, "impossible values": n_impossible}
    return Series(
        possible,
        f"one value an hour: {n_repeated} repeated hours"
        f" and {n_impossible} impossible values left out",
        {k: n for k, n in out.items() if n},
    )


def load_table(
    path: str | Path, target: str, *, drop: Sequence[str] = (), missing: str = "error"
) -> Table:
    """Read a CSV file with a header: ``target`` is the label, all other columns are inputs.

    Columns named in ``drop`` are left out. Every other cell must be a finite number; with
    ``missing="drop"``, rows with an empty cell are left out and counted.
    """
    header, rows = read_rows(Path(path))
    for name in (target, *drop):
        _column(header, name, path)
    names = tuple(name for name in header if name != target and name not in drop)
    if not names:
        raise DataError(f"{path} must have a column besides the target {target!r}, got none")
    values, n_dropped = _numbers(header, rows, (*names, target), path, missing)
    return Table(values[:, :-1], values[:, -1], names, n_dropped)


def read_columns(
    path: str | Path, names: Sequence[str], *, missing: str = "error"
) -> tuple[Floats, int]:
    """Read these columns of a CSV file with a header, (N, len(names)), and count rows left out."""
    header, rows = read_rows(Path(path))
    for name in names:
        _column(header, name, path)
    return _numbers(header, rows, names, path, missing)


def read_rows(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Read a CSV file's header, and its rows with their line numbers; a .gz file is unpacked."""
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
    checks.choice("missing", missing, ("error", "drop"))
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
