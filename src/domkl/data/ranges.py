"""Declared ranges: by column name, from the catalog, the user or a file."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from domkl.data.loaders import read_rows
from domkl.data.records import Bounds
from domkl.data.streams import Ranges
from domkl.errors import DataError, ParameterError


def ranges_of(names: str | tuple[str, ...], declared: Mapping[str, Bounds]) -> Ranges:
    """Ranges of these columns, (d,), or of this one, in their order.

    Examples
    --------
    >>> ranges_of(("b", "a"), {"a": (0, 1), "b": (-5, 5)}).high.tolist()
    [5.0, 1.0]
    """
    wanted = (names,) if isinstance(names, str) else names
    lost = [name for name in wanted if name not in declared]
    if lost:
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        raise ParameterError(
            f"scale declared needs a range for each column, got none for"
            f" {', '.join(lost[:3])}{more}; give ranges, or another scale"
        )
    pairs = np.array([declared[name] for name in wanted], dtype=np.float64)  # (d, 2)
    return Ranges(pairs[0, 0], pairs[0, 1]) if isinstance(names, str) else Ranges(*pairs.T)


def check_known(ranges: Mapping[str, Bounds], columns: tuple[str, ...]) -> None:
    """Refuse a range for a column that there is not: a slip of the pen would go unnoticed."""
    for name in ranges:
        if name not in columns:
            raise ParameterError(
                f"ranges must be of columns in use, got {name!r}; there are {', '.join(columns)}"
            )


def read_ranges(path: str | Path) -> dict[str, Bounds]:
    """Read a CSV file with the columns ``column``, ``low`` and ``high``."""
    header, rows = read_rows(Path(path))
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
