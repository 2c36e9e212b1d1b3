"""The reader: CSV files as users have them to one table per node, on one clock.

`read_nodes` takes one file with a column that names the node, a file for each node (``{node}`` in
the path), or one file of one node. It gives a `NodeTable`: numbers (T, K, C), tick by tick, NaN
where nothing is known. `simulate`, sweeps and the nodes of a mesh all read with it.

The rules of this file:

- Times become ticks of one clock; its step is inferred unless it is given. A tick without a row is
  a gap, NaN in all columns. Of several rows of a node at one tick, the last known cell counts.
- A row without a time or without a node is left out and counted. A cell that is neither a number
  nor missing is an error, and all errors of all files are told at once (`cells.Problems`).
- A column is text if most of its cells are no numbers. Text becomes a column of 0 and 1 for each
  level, named ``column=level``, if it has few levels; else it is an error that names the option.
- What was done is in ``facts``, ready for JSON, and in ``note``, one line for people.
"""

import glob
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from domkl import checks
from domkl.data.cells import (
    GAPS,
    Numbers,
    Problems,
    Sheet,
    add_bad_cells,
    add_missing_cells,
    has_columns,
    is_decimal_comma,
    numbers_of,
    read_sheet,
    sheet_of,
)
from domkl.data.clock import NO_TIME, Clock, clock_of, times_of
from domkl.data.types import Station
from domkl.errors import DataError, ParameterError
from domkl.options import LEVELS, NODE
from domkl.typing import Floats, Ints

#: a column is no input when more than this share of its cells is missing
MOSTLY = 0.5
#: names of columns with a node's place
_NORTH, _EAST = ("latitude", "lat"), ("longitude", "lon", "lng", "long")
N_LINES = 5  # line numbers that are reported for each reason


@dataclass(frozen=True)
class Form:
    """How to read a user's files; everything else is detected.

    Parameters
    ----------
    time : columns of the time: one, a date and a time of day, or year, month, day, hour and so on.
        Without one, each row is a tick.
    nodes : the column that names the node, where one file has several.
    levels : a text column with more levels is an error.
    na : further words or numbers that stand for a missing cell, such as ("-200",).
    step : milliseconds from tick to tick; inferred if None.
    time_format : a format of `datetime.strptime` for times that are no ISO dates.
    may_miss : whether cells may be missing; if not, each missing one is an error.
    """

    time: tuple[str, ...] = ()
    nodes: str | None = None
    levels: int = LEVELS
    na: tuple[str, ...] = ()
    step: int | None = None
    time_format: str | None = None
    may_miss: bool = True


class NodeTable(NamedTuple):
    """What all nodes measured, tick by tick."""

    nodes: tuple[str, ...]  # K names, in natural order
    columns: tuple[str, ...]  # C names; the target, if one was asked for, is the first
    values: Floats  # (T, K, C), NaN where missing
    clock: Clock
    spans: Ints  # (K, 2) first and last tick of each node that has a row
    facts: dict[str, Any]  # what was done; ready for JSON
    note: str  # the same in one line for people
    places: tuple[Station, ...] = ()  # of the nodes, where the file gives coordinates

    @property
    def n_ticks(self) -> int:
        """T."""
        return len(self.values)

    def column(self, name: str) -> Floats:
        """One column of all nodes, (T, K)."""
        return self.values[:, :, self.columns.index(name)]

    def rows(self, chosen: slice) -> "NodeTable":
        """Only these ticks; a step makes the clock slower."""
        first, end, step = chosen.indices(self.n_ticks)
        if first >= end:
            raise DataError(f"rows must be at least one of {self.n_ticks}, got {chosen}")
        clock = self.clock._replace(start=self.clock.time(first), step=self.clock.step * step)
        values = self.values[chosen]
        spans = np.clip(-((first - self.spans) // step), 0, len(values) - 1)
        facts = self.facts | {
            "ticks": len(values),
            "first_time": time_words(clock, 0),
            "last_time": time_words(clock, len(values) - 1),
        }
        cut = self._replace(values=values, clock=clock, spans=spans, facts=facts)
        return cut._replace(note=_note(cut))


def read_nodes(
    path: str | Path,
    target: str | None = None,
    *,
    inputs: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    form: Form | None = None,
    keep_all: bool = False,
) -> NodeTable:
    """Read a CSV file, or a file for each node, into one table on one clock.

    Parameters
    ----------
    path : a file, plain or gzipped; with ``{node}`` in it, all files that match
    target : a column that must be there and hold numbers, or two words, which become -1 and 1
    inputs : columns to read besides; by default all usable ones, and ``facts`` and ``note`` say
        which are left out and why
    drop : columns that are left out of these
    form : how to read
    keep_all : leave no column out, whether or not it is of use

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> text = "when;place;load;sky\\n2024-01-01 00:00;a;1,5;fair\\n2024-01-01 02:00;a;NA;rain\\n"
    >>> text += "2024-01-01 01:00;b;2,5;rain\\n2024-01-01 02:00;b;3;fair\\n"
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "load.csv").write_text(text)
    ...     table = read_nodes(Path(folder) / "load.csv", "load", form=Form(("when",), "place"))
    >>> table.nodes, table.columns, table.clock.words
    (('a', 'b'), ('load', 'sky=fair', 'sky=rain'), '1 h')
    >>> table.column("load").tolist()
    [[1.5, nan], [nan, 2.5], [nan, 3.0]]
    """
    form = form or Form()
    problems = Problems()
    if form.nodes is not None and NODE in str(path):
        raise ParameterError(f"nodes is for one file, got {NODE} in {path}")
    sheets = ((node, read_sheet(file, problems)) for node, file in node_files(path))
    return _assembled(sheets, target, inputs, tuple(drop), form, problems, keep_all)


def nodes_of(
    contents: Mapping[str, bytes],
    target: str | None = None,
    *,
    inputs: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    form: Form | None = None,
) -> NodeTable:
    """As `read_nodes`, of the bytes of files by node; one file of several nodes has key ''."""
    problems = Problems()
    sheets = (
        (node or None, sheet_of(raw, node or "the file", problems))
        for node, raw in contents.items()
    )
    return _assembled(sheets, target, inputs, tuple(drop), form or Form(), problems)


def node_files(path: str | Path) -> list[tuple[str | None, Path]]:
    """The files that a path stands for, each with its node's name, in natural order."""
    text = str(path)
    if NODE not in text:
        return [(None, Path(path))]
    if text.count(NODE) > 1:
        raise ParameterError(f"csv must have {NODE} once, got {text}")
    before, after = text.split(NODE)
    pattern = f"{glob.escape(before)}*{glob.escape(after)}"
    names = {name[len(before) : len(name) - len(after)]: name for name in glob.glob(pattern)}  # noqa: PTH207
    named = {node: Path(name) for node, name in names.items() if node and "/" not in node}
    if not named:
        raise DataError(f"no such file: {text}, for any {NODE}")
    return [(node, named[node]) for node in natural(named)]


def natural(names: Sequence[str] | Mapping[str, Any] | set[str]) -> list[str]:
    """Sort names with their numbers by size.

    Examples
    --------
    >>> natural(["b10", "b9", "a"])
    ['a', 'b9', 'b10']
    """
    return sorted(names, key=lambda name: [
        (0, int(part), "") if part.isdigit() else (1, 0, part)
        for part in re.split(r"(\d+)", name) if part
    ])  # fmt: skip


class _Text(NamedTuple):
    """A column of text, as numbers of its levels."""

    levels: list[str]  # that this file has
    places: Ints  # the level of each row; -1 where it is missing


@dataclass
class _File:
    """What is kept of a file: its times, its rows by node, its columns; no cell."""

    sheet: Sheet
    times: Ints | None
    owners: dict[str, Ints]  # the rows of each node, in the order of the file
    columns: dict[str, Numbers | _Text] = field(default_factory=dict)


def _assembled(
    sheets: Iterable[tuple[str | None, Sheet | None]],
    target: str | None,
    inputs: Sequence[str] | None,
    drop: tuple[str, ...],
    form: Form,
    problems: Problems,
    keep_all: bool = False,
) -> NodeTable:
    """Read file by file, so that the cells of one are in memory at a time."""
    checks.whole("levels", form.levels, 1)
    dropped: Counter[str] = Counter()
    lines: dict[str, list[int]] = {}
    wanted = list(dict.fromkeys([*([] if target is None else [target]), *(inputs or ())]))
    needed = (*form.time, *([form.nodes] if form.nodes else []), *drop, *wanted)
    files: list[_File] = []
    for node, sheet in sheets:
        if sheet is None or not has_columns(sheet, needed, problems):
            continue
        file = _file(sheet, node, form, problems, dropped, lines)
        apart = {*form.time, form.nodes, *drop, *wanted}
        rest = [name for name in sheet.names if name not in apart] if inputs is None else []
        _read_columns(file, [*wanted, *rest], form, problems)
        file.sheet = sheet._replace(cells=(), line_of=lambda row: row)
        files.append(file)
    if not files:
        problems.check()
        raise DataError("there must be a file with rows, got none")
    names = list(dict.fromkeys(name for file in files for name in file.columns))
    kinds = _kinds(files, names, target, form, problems)
    problems.check()
    is_open = inputs is None and not keep_all
    return _table(files, names, kinds, target, is_open, form, dropped, lines)


def _file(
    sheet: Sheet,
    node: str | None,
    form: Form,
    problems: Problems,
    dropped: Counter[str],
    lines: dict[str, list[int]],
) -> _File:
    """Read times and nodes; rows without them are left out."""
    times = times_of(sheet, form.time, problems, form.time_format) if form.time else None
    kept = np.ones(sheet.n_rows, dtype=bool)
    gone = {} if times is None else {"without a time": times == NO_TIME}
    owner = None
    if form.nodes is not None:
        owner = [cell.strip() for cell in sheet.column(form.nodes)]
        gone["without a node"] = np.array([cell.lower() in GAPS for cell in owner])
    for reason, which in gone.items():
        which = which & kept
        if which.any():
            dropped[reason] += int(which.sum())
            rows = np.flatnonzero(which)[: N_LINES - len(lines.get(reason, ()))]
            lines.setdefault(reason, []).extend(sheet.line_of(int(row)) for row in rows)
        kept &= ~which
    return _File(sheet, times, dict(_owners(owner, node or "1", kept)))


def _owners(
    owner: list[str] | None, node: str, kept: NDArray[np.bool_]
) -> Iterator[tuple[str, Ints]]:
    """The rows of each node."""
    rows = np.flatnonzero(kept)
    if owner is None:
        yield node, rows
        return
    names, place = np.unique(np.array(owner)[rows], return_inverse=True)
    for number, name in enumerate(names.tolist()):
        yield name, rows[place == number]


def _read_columns(file: _File, names: list[str], form: Form, problems: Problems) -> None:
    """Read cells as numbers, or as text where most of them are none."""
    sheet, comma = file.sheet, is_decimal_comma(file.sheet)
    for name in names:
        column = sheet.column(name)
        read = numbers_of(column, comma, frozenset(form.na))
        if read.n_bad > sheet.n_rows - read.n_bad - read.n_missing:
            text = _text(column)
            file.columns[name], gone = text, text.places < 0
        else:
            add_bad_cells(problems, sheet, name, column, read)
            file.columns[name], gone = read, np.isnan(read.values)
        if not form.may_miss:
            add_missing_cells(problems, sheet, name, column, gone)


def _text(column: Sequence[str]) -> _Text:
    cells = set(column)
    levels = natural({cell.strip() for cell in cells} - {c for c in cells if c.lower() in GAPS})
    number = {level: place for place, level in enumerate(levels)}
    places = {cell: number.get(cell.strip(), -1) for cell in cells}
    return _Text(levels, np.fromiter(map(places.__getitem__, column), np.int64, len(column)))


def _kinds(
    files: list[_File], names: list[str], target: str | None, form: Form, problems: Problems
) -> dict[str, list[str]]:
    """The levels of each column of text."""
    found: dict[str, list[str]] = {}
    for name in names:
        columns = [(file, file.columns[name]) for file in files if name in file.columns]
        texts = [(file, each) for file, each in columns if isinstance(each, _Text)]
        if not texts:
            continue
        numbers = [f for f, c in columns if isinstance(c, Numbers) and c.n_missing < f.sheet.n_rows]
        where = texts[0][0].sheet.file
        if numbers:
            text = f"must be numbers as in {numbers[0].sheet.file}, got text"
            problems.add(where, None, name, text)
            continue
        levels = natural(set().union(*(each.levels for _, each in texts)))
        most = 2 if name == target else form.levels
        if len(levels) <= most and (name != target or len(levels) == 2):
            found[name] = levels
        elif name == target:
            shown = ", ".join(levels[:3])
            problems.add(where, None, name, f"must be numbers, or two words, got {shown}, …")
        else:
            problems.add(
                where, None, name,
                f"is text of {len(levels)} levels, more than {form.levels}; give --levels"
                f" {len(levels)}, leave it out by --drop, or choose columns by --inputs",
            )  # fmt: skip
    return found


def _table(
    files: list[_File],
    names: list[str],
    kinds: dict[str, list[str]],
    target: str | None,
    is_open: bool,
    form: Form,
    dropped: Counter[str],
    lines: dict[str, list[int]],
) -> NodeTable:
    """Put all nodes onto one clock."""
    streams = _streams(files, form)
    clock, counts = _clock(streams, form)
    columns = [made for name in names for made in _made_columns(name, kinds, target)]
    start = {node: int(ticks.min()) for node, (_, _, ticks) in streams.items()}
    n_ticks = 1 + max(int(ticks.max()) for _, _, ticks in streams.values())
    stored = np.full((len(columns), len(streams), n_ticks), np.nan)
    values = stored.transpose(2, 1, 0)  # (T, K, C), each node's column in one piece
    spans, n_filled = np.zeros((len(streams), 2), dtype=np.int64), 0
    for k, (node, (file, rows, ticks)) in enumerate(streams.items()):
        place = 0
        for name in names:
            for cells in _numbers(file, name, kinds, target):
                known = ~np.isnan(cells[rows])
                stored[place, k, ticks[known]] = cells[rows[known]]
                place += 1
        spans[k] = start[node], ticks.max()
        n_filled += len(np.unique(ticks))
    places, is_place = _places(columns, values, list(streams)) if is_open else ((), ())
    left_out = _left_out(columns, values, target, is_place, kinds) if is_open else {}
    kept = [i for i, name in enumerate(columns) if name not in left_out]
    columns, values = [columns[i] for i in kept], stored[kept].transpose(2, 1, 0)
    facts = _facts(files, streams, clock, n_ticks, dropped, lines, form)
    facts |= counts | {
        "gaps": int((spans[:, 1] - spans[:, 0] + 1).sum()) - n_filled,
        "columns": columns,
        "levels": {name: levels for name, levels in kinds.items() if _base_in(name, columns)},
        "columns_left_out": _by_base(left_out, kinds),
        "cells_missing": _missing(columns, values, n_filled),
    }
    table = NodeTable(
        tuple(streams), tuple(columns), values, clock, spans, facts, "", tuple(places)
    )
    return table._replace(note=_note(table))


def _streams(files: list[_File], form: Form) -> dict[str, tuple[_File, Ints, Ints]]:
    """The rows of each node, in the order of time, and their times."""
    found: dict[str, tuple[_File, Ints, Ints]] = {}
    for file in files:
        for node, rows in file.owners.items():
            if not rows.size:
                continue
            if file.times is None:
                found[node] = (file, rows, np.arange(len(rows)))
                continue
            order = np.argsort(file.times[rows], kind="stable")
            found[node] = (file, rows[order], file.times[rows[order]])
    if not found:
        raise DataError(f"{files[0].sheet.file} must have rows with a time and a node, got none")
    return {node: found[node] for node in natural(found)}


def _clock(
    streams: dict[str, tuple[_File, Ints, Ints]], form: Form
) -> tuple[Clock, dict[str, int]]:
    """The clock; times in ``streams`` become ticks."""
    counts = {"duplicates": 0, "out_of_order": 0, "moved": 0}
    if not form.time:
        return Clock(0, 1, is_dated=False), counts
    distinct = [np.unique(times) for _, _, times in streams.values()]
    clock = clock_of(distinct, form.step)
    for node, (file, rows, times) in streams.items():
        ticks = clock.ticks(times)
        counts["duplicates"] += len(ticks) - len(np.unique(ticks))
        counts["out_of_order"] += int(np.count_nonzero(np.diff(np.argsort(rows)) < 0))
        counts["moved"] += int(np.count_nonzero(times != clock.start + ticks * clock.step))
        streams[node] = (file, rows, ticks)
    return clock, counts


def _made_columns(name: str, kinds: dict[str, list[str]], target: str | None) -> list[str]:
    if name not in kinds or name == target:
        return [name]
    return [f"{name}={level}" for level in kinds[name]]


def _numbers(
    file: _File, name: str, kinds: dict[str, list[str]], target: str | None
) -> list[Floats]:
    """The numbers of a column, or of each of its levels."""
    column = file.columns.get(name)
    width = len(kinds.get(name, ())) if name in kinds and name != target else 1
    if column is None:
        return [np.full(file.sheet.n_rows, np.nan)] * width
    if isinstance(column, Numbers):
        return [column.values] * width
    number = np.array([*(kinds[name].index(level) for level in column.levels), -1])
    place = number[column.places]
    if name == target:
        return [np.where(place < 0, np.nan, 2.0 * place - 1)]
    return [np.where(place < 0, np.nan, place == level) for level in range(width)]


def _places(
    columns: list[str], values: Floats, nodes: list[str]
) -> tuple[tuple[Station, ...], tuple[str, ...]]:
    """Where nodes stand, if the table has their coordinates, and the names of these columns."""
    pair = []
    for words in (_NORTH, _EAST):
        named = [name for name in columns if name.strip().lower() in words]
        if not named or len(nodes) < 2:
            return (), ()
        pair.append(named[0])
    degrees = [values[:, :, columns.index(name)] for name in pair]
    ends = [(_least(each), -_least(-each)) for each in degrees]
    if any(not np.array_equal(low, high) for low, high in ends):
        return (), ()
    (north, _), (east, _) = ends
    stations = [Station(*each) for each in zip(nodes, north.tolist(), east.tolist(), strict=True)]
    return tuple(stations), tuple(pair)


def _least(values: Floats) -> Floats:
    """The least known value of each node, NaN if it has none."""
    least: Floats = np.fmin.reduce(values, axis=0)
    return least


def _left_out(
    columns: list[str],
    values: Floats,
    target: str | None,
    is_place: Sequence[str],
    kinds: dict[str, list[str]],
) -> dict[str, str]:
    """Columns that are no use as inputs, and why."""
    found: dict[str, str] = {}
    n_rows = int((~np.isnan(values)).any(axis=2).sum())
    for place, name in enumerate(columns):
        if name == target:
            continue
        known = values[:, :, place]
        share = 1 - np.count_nonzero(~np.isnan(known)) / max(n_rows, 1)
        if name in is_place:
            found[name] = "is the place of the node"
        elif share > MOSTLY:
            found[name] = f"is missing in {share:.0%} of the rows"
        elif np.array_equal(_least(known), -_least(-known), equal_nan=True):
            found[name] = "never changes at a node"
        elif _is_counter(known):
            found[name] = "counts the rows"
    for name, levels in kinds.items():  # text goes as a whole
        made = [f"{name}={level}" for level in levels]
        if name != target and all(each in found for each in made):
            found |= dict.fromkeys(made, found[made[0]])
        else:
            found = {each: why for each, why in found.items() if each not in made}
    return found


def _is_counter(values: Floats) -> bool:
    """Whether each node's values go up by one from row to row."""
    return all(
        len(known) > 2 and bool(np.all(np.diff(known) == 1))
        for known in (column[~np.isnan(column)] for column in values.T)
        if len(known)
    )


def _base_in(name: str, columns: list[str]) -> bool:
    return name in columns or any(each.startswith(f"{name}=") for each in columns)


def _by_base(left_out: dict[str, str], kinds: dict[str, list[str]]) -> dict[str, str]:
    """Columns left out, text by the name that it has in the file."""
    made = {f"{name}={level}": name for name, levels in kinds.items() for level in levels}
    return {made.get(name, name): why for name, why in left_out.items()}


def _missing(columns: list[str], values: Floats, n_filled: int) -> dict[str, int]:
    """Missing cells of the rows that there are, by column."""
    known = np.count_nonzero(~np.isnan(values), axis=(0, 1))
    counts = zip(columns, (n_filled - known).tolist(), strict=True)
    return {name: n for name, n in counts if n > 0}


def _facts(
    files: list[_File],
    streams: Mapping[str, Any],
    clock: Clock,
    n_ticks: int,
    dropped: Counter[str],
    lines: dict[str, list[int]],
    form: Form,
) -> dict[str, Any]:
    sheets = [file.sheet for file in files]
    return {
        "files": len(sheets),
        "rows_in_file": sum(sheet.n_rows for sheet in sheets),
        "empty_lines": sum(sheet.n_empty for sheet in sheets),
        "rows_dropped": dict(dropped),
        "first_lines_dropped": lines,
        "nodes": list(streams),
        "separator": sheets[0].separator,
        "encoding": sheets[0].encoding,
        "renamed": {old: new for sheet in sheets for old, new in sheet.renamed.items()},
        "time": list(form.time),
        "step": clock.words,
        "first_time": time_words(clock, 0),
        "last_time": time_words(clock, n_ticks - 1),
        "ticks": n_ticks,
    }


def time_words(clock: Clock, tick: int) -> str | None:
    """The time of a tick as an ISO date; None where rows are counted."""
    if not clock.is_dated:
        return None
    return str(np.datetime64(clock.time(tick), "ms").astype("datetime64[s]")).replace("T", " ")


def _note(table: NodeTable) -> str:
    facts, clock = table.facts, table.clock
    n_files, n_nodes = facts["files"], len(table.nodes)
    parts = [f"{facts['rows_in_file']} rows of {n_nodes} node{'s' * (n_nodes > 1)}"]
    if n_files > 1:
        parts[0] += f" in {n_files} files"
    if clock.is_dated:
        span = f"from {facts['first_time']} to {facts['last_time']}"
        parts.append(f"one tick every {clock.words} {span}, {facts['ticks']} ticks")
    words = {
        "gaps": "ticks of a node without a row",
        "duplicates": "rows at the tick of another, the last known cell counts",
        "out_of_order": "rows out of order",
        "moved": "rows between two ticks, moved to the nearest",
        "empty_lines": "empty lines left out",
    }
    parts += [f"{facts[key]} {text}" for key, text in words.items() if facts.get(key)]
    parts += [f"{n} rows {why} left out" for why, n in facts["rows_dropped"].items()]
    parts += [f"{name} has {len(each)} levels" for name, each in facts["levels"].items()]
    parts += [f"a second column {old!r} is {new!r}" for old, new in facts["renamed"].items()]
    out = [f"{name} {why}" for name, why in facts["columns_left_out"].items()]
    if out:
        parts.append(f"columns left out: {', '.join(out)}")
    n_missing = sum(facts["cells_missing"].values())
    parts.append(f"{n_missing} cells missing" if n_missing else "no cell missing")
    return "; ".join(parts)
