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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from domkl import checks
from domkl.data.cells import GAPS, Numbers, Problems, Sheet, numbers_of, read_sheet, sheet_of
from domkl.data.clock import NO_TIME, Clock, clock_of, times_of
from domkl.data.types import Station
from domkl.errors import DataError, ParameterError
from domkl.options import LEVELS, NODE
from domkl.text import counted
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
        checks.choice("column", name, self.columns)
        return self.values[:, :, self.columns.index(name)]

    def rows(self, chosen: slice) -> "NodeTable":
        """Only these ticks; a step makes the clock slower."""
        first, end, step = chosen.indices(self.n_ticks)
        if first >= end:
            raise DataError(f"rows must be at least one of {self.n_ticks}, got {chosen}")
        clock = self.clock._replace(start=self.clock.time(first), step=self.clock.step * step)
        values = self.values[chosen]
        spans = np.clip(-((first - self.spans) // step), 0, len(values) - 1)
        facts = self.facts | _span_facts(clock, len(values))
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
    if form is not None and form.nodes is not None and NODE in str(path):
        raise ParameterError(f"nodes is for one file, got {NODE} in {path}")
    reader = _Reader(target, inputs, form, drop, keep_all)
    for node, file in node_files(path):
        reader.add(node, read_sheet(file, reader.problems))
    return reader.table()


def nodes_of(
    contents: Mapping[str, bytes], target: str | None, inputs: Sequence[str], form: Form
) -> NodeTable:
    """As `read_nodes`, of the bytes of files by node; one file of several nodes has key ''."""
    reader = _Reader(target, inputs, form)
    for node, raw in contents.items():
        reader.add(node or None, sheet_of(raw, node or "the file", reader.problems))
    return reader.table()


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
        (0, int(part), "") if part.isdecimal() else (1, 0, part)
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


class _Stream(NamedTuple):
    """The rows of one node, in the order of time."""

    file: _File
    rows: Ints
    ticks: Ints


class _Reader:
    """Reads file by file, so that the cells of one are in memory at a time; then makes the table.

    ``inputs`` is None for all columns that are not in ``drop``.
    """

    def __init__(
        self,
        target: str | None,
        inputs: Sequence[str] | None,
        form: Form | None,
        drop: Sequence[str] = (),
        keep_all: bool = False,
    ) -> None:
        self.target, self.form, self.problems = target, form or Form(), Problems()
        checks.whole("levels", self.form.levels, 1)
        self.is_open = inputs is None
        self.leaves_out = inputs is None and not keep_all
        named = dict.fromkeys((target, *(inputs or ())))
        self.wanted = [name for name in named if name is not None]
        self.apart = [name for name in (*self.form.time, self.form.nodes, *drop) if name]
        self.files: list[_File] = []
        self.dropped: Counter[str] = Counter()  # rows left out, by reason
        self.lines: dict[str, list[int]] = {}  # the first of their lines

    def add(self, node: str | None, sheet: Sheet | None) -> None:
        """Read the cells of a file; what is wrong with it becomes a problem."""
        if sheet is None or not sheet.has((*self.apart, *self.wanted)):
            return
        file = self._dated(sheet, node or "1")
        known = {*self.apart, *self.wanted}
        rest = [name for name in sheet.names if name not in known] if self.is_open else []
        comma = sheet.is_decimal_comma()
        for name in (*self.wanted, *rest):
            file.columns[name] = self._column(sheet, name, comma)
        sheet.cells, sheet.line_of = [], lambda row: row
        self.files.append(file)

    def _dated(self, sheet: Sheet, node: str) -> _File:
        """Read times and nodes; rows without them are left out."""
        form, gone = self.form, {}
        times = times_of(sheet, form.time, form.time_format) if form.time else None
        if times is not None:
            gone["without a time"] = times == NO_TIME
        owner = np.full(sheet.n_rows, node)
        if form.nodes is not None:
            owner = np.array([cell.strip() for cell in sheet.column(form.nodes)])
            gone["without a node"] = np.array([cell.lower() in GAPS for cell in owner.tolist()])
        kept = np.ones(sheet.n_rows, dtype=bool)
        for reason, which in gone.items():
            rows = np.flatnonzero(which & kept)
            if rows.size:
                self.dropped[reason] += len(rows)
                lines = self.lines.setdefault(reason, [])
                lines += [sheet.line_of(row) for row in rows[: N_LINES - len(lines)].tolist()]
            kept &= ~which
        rows = np.flatnonzero(kept)
        names, place = np.unique(owner[rows], return_inverse=True)
        owners = {name: rows[place == number] for number, name in enumerate(names.tolist())}
        return _File(sheet, times, owners)

    def _column(self, sheet: Sheet, name: str, comma: bool) -> Numbers | _Text:
        """Read cells as numbers, or as text where most of them are none."""
        made: Numbers | _Text
        made = read = numbers_of(sheet.column(name), comma, frozenset(self.form.na))
        gone = np.isnan(read.values)
        if read.n_bad > sheet.n_rows - read.n_bad - read.n_missing:
            made = _text(sheet.column(name))
            gone = made.places < 0
        else:
            sheet.add_bad_cells(name, read)
        if not self.form.may_miss:
            sheet.add_missing_cells(name, gone)
        return made

    def table(self) -> NodeTable:
        """Put all nodes onto one clock."""
        if not self.files:
            self.problems.check()
            raise DataError("there must be a file with rows, got none")
        names = list(dict.fromkeys(name for file in self.files for name in file.columns))
        levels = {name: found for name in names if (found := self._levels(name))}
        self.problems.check()
        streams = self._streams()
        clock, counts = self._clock(streams)
        spans = np.array([(each.ticks.min(), each.ticks.max()) for each in streams.values()])
        n_ticks, n_filled = 1 + int(spans.max()), 0
        stored = np.full((len(names), len(streams), n_ticks), np.nan)
        for k, (file, rows, ticks) in enumerate(streams.values()):
            n_filled += len(np.unique(ticks))
            for place, name in enumerate(names):
                cells = self._numbers(file, name, levels)[rows]
                known = ~np.isnan(cells)
                stored[place, k, ticks[known]] = cells[known]
        places: tuple[Station, ...] = ()
        left_out: dict[str, str] = {}
        if self.leaves_out:
            by_name = dict(zip(names, stored, strict=True))
            places, left_out = self._left_out(by_name, list(streams), levels)
        columns, kept = self._expanded(names, stored, levels, left_out)
        values = kept.transpose(2, 1, 0)  # (T, K, C), each node's column in one piece
        n_missing = n_filled - np.count_nonzero(~np.isnan(values), axis=(0, 1))
        facts = self._facts() | {
            "nodes": list(streams),
            "step": clock.words,
            **_span_facts(clock, n_ticks),
            **counts,
            "gaps": int((spans[:, 1] - spans[:, 0] + 1).sum()) - n_filled,
            "columns": columns,
            "levels": {name: each for name, each in levels.items() if name not in left_out},
            "columns_left_out": left_out,
            "cells_missing": {
                name: n for name, n in zip(columns, n_missing.tolist(), strict=True) if n > 0
            },
        }
        table = NodeTable(tuple(streams), tuple(columns), values, clock, spans, facts, "", places)
        return table._replace(note=_note(table))

    def _levels(self, name: str) -> list[str]:
        """The levels of a column of text, of all files; none if it holds numbers."""
        columns = [(f.sheet, f.columns[name]) for f in self.files if name in f.columns]
        texts = [(sheet, each) for sheet, each in columns if isinstance(each, _Text)]
        if not texts:
            return []
        numbers = [s for s, c in columns if isinstance(c, Numbers) and c.n_missing < s.n_rows]
        levels = natural(set().union(*(each.levels for _, each in texts)))
        is_target = name == self.target
        wrong = ""
        if numbers:
            wrong = f"must be numbers as in {numbers[0].file}, got text"
        elif is_target and len(levels) != 2:
            wrong = f"must be numbers, or two words, got {', '.join(levels[:3])}, …"
        elif not is_target and len(levels) > self.form.levels:
            wrong = (
                f"is text of {len(levels)} levels, more than {self.form.levels}; give --levels"
                f" {len(levels)}, leave it out by --drop, or choose columns by --inputs"
            )
        if wrong:
            self.problems.add(f"{texts[0][0].file}, column {name!r}", wrong)
        return [] if wrong else levels

    def _streams(self) -> dict[str, _Stream]:
        """The rows of each node, with their times where the ticks will be."""
        found: dict[str, _Stream] = {}
        for file in self.files:
            for node, rows in file.owners.items():
                if file.times is None:
                    found[node] = _Stream(file, rows, np.arange(len(rows)))
                    continue
                rows = rows[np.argsort(file.times[rows], kind="stable")]
                found[node] = _Stream(file, rows, file.times[rows])
        if not found:
            where = self.files[0].sheet.file
            raise DataError(f"{where} must have rows with a time and a node, got none")
        return {node: found[node] for node in natural(found)}

    def _clock(self, streams: dict[str, _Stream]) -> tuple[Clock, dict[str, int]]:
        """The clock; times in ``streams`` become ticks."""
        counts = {"duplicates": 0, "out_of_order": 0, "moved": 0}
        if not self.form.time:
            return Clock(0, 1, is_dated=False), counts
        clock = clock_of([np.unique(each.ticks) for each in streams.values()], self.form.step)
        for node, (_, rows, times) in streams.items():
            ticks = clock.ticks(times)
            counts["duplicates"] += len(ticks) - len(np.unique(ticks))
            counts["out_of_order"] += int(np.count_nonzero(np.diff(np.argsort(rows)) < 0))
            counts["moved"] += int(np.count_nonzero(times != clock.start + ticks * clock.step))
            streams[node] = streams[node]._replace(ticks=ticks)
        return clock, counts

    def _numbers(self, file: _File, name: str, levels: dict[str, list[str]]) -> Floats:
        """The numbers of a column, (rows,); of text those of its levels, ±1 for the target's."""
        column = file.columns.get(name)
        if column is None:
            return np.full(file.sheet.n_rows, np.nan)
        if isinstance(column, Numbers):
            return column.values
        numbers = np.array([*(levels[name].index(each) for each in column.levels), np.nan])
        return (2 * numbers - 1 if name == self.target else numbers)[column.places]

    def _left_out(
        self, values: dict[str, Floats], nodes: list[str], levels: dict[str, list[str]]
    ) -> tuple[tuple[Station, ...], dict[str, str]]:
        """Where nodes stand, if columns (K, T) say so, and columns of no use as inputs, and why."""
        stations, is_place = _places({n: v for n, v in values.items() if n not in levels}, nodes)
        n_rows = max(1, int((~np.isnan(list(values.values()))).any(axis=0).sum()))
        found: dict[str, str] = {}
        for name, known in values.items():
            share = 1 - np.count_nonzero(~np.isnan(known)) / n_rows
            if name == self.target:
                continue
            if name in is_place:
                found[name] = "is the place of the node"
            elif share > MOSTLY:
                found[name] = f"is missing in {share:.0%} of the rows"
            elif _is_constant(known):
                found[name] = "never changes at a node"
            elif name not in levels and _is_counter(known):
                found[name] = "counts the rows"
        return stations, found

    def _expanded(
        self,
        names: list[str],
        stored: Floats,
        levels: dict[str, list[str]],
        left_out: Mapping[str, str],
    ) -> tuple[list[str], Floats]:
        """The columns that are kept, (C, K, T): of text, one of 0 and 1 for each level."""
        columns, made = [], []
        for name, values in zip(names, stored, strict=True):
            if name in left_out:
                continue
            if name not in levels or name == self.target:
                columns.append(name)
                made.append(values)
                continue
            for number, level in enumerate(levels[name]):
                columns.append(f"{name}={level}")
                made.append(np.where(np.isnan(values), np.nan, values == number))
        return columns, np.stack(made) if made else stored[:0]

    def _facts(self) -> dict[str, Any]:
        """What was found in the files."""
        sheets = [file.sheet for file in self.files]
        return {
            "files": len(sheets),
            "rows_in_file": sum(sheet.n_rows for sheet in sheets),
            "empty_lines": sum(sheet.n_empty for sheet in sheets),
            "rows_dropped": dict(self.dropped),
            "first_lines_dropped": self.lines,
            "separator": sheets[0].separator,
            "encoding": sheets[0].encoding,
            "renamed": {old: new for sheet in sheets for old, new in sheet.renamed.items()},
            "time": list(self.form.time),
        }


def _text(column: Sequence[str]) -> _Text:
    cells = set(column)
    levels = natural({cell.strip() for cell in cells} - {c for c in cells if c.lower() in GAPS})
    number = {level: place for place, level in enumerate(levels)}
    places = {cell: number.get(cell.strip(), -1) for cell in cells}
    return _Text(levels, np.fromiter(map(places.__getitem__, column), np.int64, len(column)))


def _places(
    values: dict[str, Floats], nodes: list[str]
) -> tuple[tuple[Station, ...], tuple[str, ...]]:
    """Where nodes stand, if the table has their coordinates, and the names of these columns."""
    pair = []
    for words in (_NORTH, _EAST):
        named = [name for name in values if name.strip().lower() in words]
        if not named or len(nodes) < 2 or not _is_constant(values[named[0]], may_miss=False):
            return (), ()
        pair.append(named[0])
    north, east = (np.fmin.reduce(values[name], axis=1).tolist() for name in pair)
    return tuple(map(Station, nodes, north, east)), tuple(pair)


def _is_constant(values: Floats, may_miss: bool = True) -> bool:
    """Whether the known values (K, T) of each node are equal; ``may_miss`` if it may have none."""
    low, high = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
    return np.array_equal(low, high, equal_nan=may_miss)


def _is_counter(values: Floats) -> bool:
    """Whether the values (K, T) of each node go up by one from row to row."""
    return all(
        len(known) > 2 and bool(np.all(np.diff(known) == 1))
        for known in (row[~np.isnan(row)] for row in values)
        if len(known)
    )


def _span_facts(clock: Clock, n_ticks: int) -> dict[str, Any]:
    """The first and the last time, for people, and how many ticks there are."""
    first, last = (
        clock.text(tick)[:19].replace("T", " ") if clock.is_dated else None
        for tick in (0, n_ticks - 1)
    )
    return {"first_time": first, "last_time": last, "ticks": n_ticks}


def _note(table: NodeTable) -> str:
    facts, clock = table.facts, table.clock
    n_files, n_nodes = facts["files"], len(table.nodes)
    parts = [f"{counted(facts['rows_in_file'], 'row')} of {counted(n_nodes, 'node')}"]
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
