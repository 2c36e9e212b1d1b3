"""Which rows and columns of a table are used: as the authors did, or as they should have."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domkl.data.records import DataSet, Edition
from domkl.data.tables import RawTable
from domkl.errors import DataError
from domkl.typing import Floats

RULES = ("paper", "clean")
#: rule "clean" leaves a column out when more of it than this is missing
MOSTLY = 0.5
_N_LINES = 5  # line numbers kept for each reason


class Chosen(NamedTuple):
    """Inputs and target in the file's units, and what was left out."""

    X: Floats  # (N, d)
    y: Floats  # (N,)
    names: tuple[str, ...]  # of the inputs
    rows_left_out: dict[str, int]  # reason: how many
    first_lines: dict[str, list[int]]  # reason: the first of their line numbers
    columns_left_out: dict[str, str]  # name: reason
    n_missing: int  # missing values in the file, inputs and target


def n_records(edition: Edition, rule: str) -> int | None:
    """How many records from the start a rule looks at; None for all."""
    return edition.paper_records if rule == "paper" else None


def choose(table: RawTable, data: DataSet, edition: Edition, target: str, rule: str) -> Chosen:
    """Apply a rule to a table.

    ``"paper"`` takes the rows with a target and without empty cells, of the first `n_records`; a
    number that stands for a missing value stays what it is in the inputs, and rows that are no
    records stay in. ``"clean"`` takes all complete records.
    """
    values = np.array(table.values)
    marked = np.isnan(values) | (values == edition.missing)
    marked[:, [table.columns.index(name) for name in data.not_inputs]] = False
    if rule == "clean":
        values[marked] = np.nan
    else:
        place = table.columns.index(target)
        values[marked[:, place], place] = np.nan
    names, lost = _inputs(table, values, data, target, rule)
    X = values[:, [table.columns.index(name) for name in names]]
    y = values[:, table.columns.index(target)]
    kept, counts, lines = _rows(table, data, X, y, rule)
    if not kept.any():
        raise DataError(f"{data.name} has no row that can be used with target {target!r}")
    n_missing = int(np.count_nonzero(marked))
    return Chosen(X[kept], y[kept], names, counts, lines, lost, n_missing)


def _inputs(
    table: RawTable, values: Floats, data: DataSet, target: str, rule: str
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Names of the inputs, and the columns left out because they are mostly missing."""
    apart = {target, *data.targets, *data.not_inputs}
    names, lost = [], {}
    for place, name in enumerate(table.columns):
        if name in apart:
            continue
        share = float(np.isnan(values[:, place]).mean())
        if rule == "clean" and share > MOSTLY:
            lost[name] = f"missing in {share:.0%} of the records"
        else:
            names.append(name)
    return tuple(names), lost


def _rows(
    table: RawTable, data: DataSet, X: Floats, y: Floats, rule: str
) -> tuple[NDArray[np.bool_], dict[str, int], dict[str, list[int]]]:
    """Rows to keep; per reason how many go, and where. A row goes for its first reason only."""
    reasons: dict[str, NDArray[np.bool_]] = {}
    if rule == "clean" and data.record_key is not None:
        reasons["no record but a summary"] = np.isnan(table.column(data.record_key))
    reasons["no target"] = np.isnan(y)
    reasons["missing inputs"] = np.asarray(np.isnan(X).any(axis=1))
    kept = np.ones(len(y), dtype=bool)
    n_after = table.n_rows - len(y)
    counts = {f"after the first {len(y)}": n_after} if n_after else {}
    lines: dict[str, list[int]] = {}
    for reason, gone in reasons.items():
        going = gone & kept
        if going.any():
            counts[reason] = int(going.sum())
            lines[reason] = table.lines[going][:_N_LINES].tolist()
        kept &= ~gone
    return kept, counts, lines
