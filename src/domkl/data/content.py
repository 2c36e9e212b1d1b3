"""What must hold in the content of a file, whatever its checksum."""

import numpy as np

from domkl.data.records import DataSet, Edition
from domkl.data.tables import RawTable, read_table
from domkl.errors import DataError

#: rows that an edition which nobody here has seen may have more or less, as a share
SLACK = 0.001


def check_content(content: bytes, data: DataSet, edition: Edition, where: str) -> list[str]:
    """Hold a file against its edition: columns, rows, finite numbers, the target's range.

    Returns what was found to hold, in words; raises DataError at the first rule that is broken.
    """
    table = read_table(content, edition, where)
    return [
        f"{len(table.columns)} columns as named",
        _check_rows(table, edition, where),
        _check_numbers(table, edition, where),
        _check_target(table, data, edition, where),
    ]


def _check_rows(table: RawTable, edition: Edition, where: str) -> str:
    n, slack = len(table.values), 0 if edition.sha256 else int(SLACK * edition.rows)
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
    for name in data.targets:
        values = table.column(name)
        known = values[~np.isnan(values) & (values != edition.missing)]
        outside = known[(known < low) | (known > high)]
        if outside.size:
            raise DataError(
                f"{where}, column {name!r} must lie in [{low:g}, {high:g}], got {outside[0]:g}"
            )
    return f"target in [{low:g}, {high:g}]"
