"""Load a data set of the catalog by its name: read its file, choose rows and columns, scale.

Rule "paper" chooses rows as the paper's authors did; rule "clean" uses all complete records.

In sets of nodes every station, home or car park is a learner of its own: the reader (nodes.py) and
the row maker (rows.py) do for their files what they do for a user's own, with the inputs, the clock
and the ranges that the catalog states.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from domkl import checks
from domkl.data.cache import Found, digest, read
from domkl.data.catalog import DATASETS, DataSet, Edition, find
from domkl.data.clock import Clock, parse_duration
from domkl.data.forecast import Forecast, Prepared, prepare
from domkl.data.nodes import MOSTLY, N_LINES, Form, NodeTable, nodes_of
from domkl.data.streams import Scaled, check_known, embed, ranges_of, scale_note, scaled
from domkl.data.tables import RawTable, read_table
from domkl.data.types import Bounds
from domkl.errors import DataError, ParameterError
from domkl.options import LAGS, RULES, SCALES
from domkl.text import parse_time
from domkl.typing import Floats


class Series(NamedTuple):
    """A time series, and what was done to get it."""

    values: Floats  # (N,)
    note: str
    rows_left_out: dict[str, int]  # reason: how many


class Chosen(NamedTuple):
    """Inputs and target in the units of the file, and what was left out."""

    X: Floats  # (N, d)
    y: Floats  # (N,)
    names: tuple[str, ...]  # of the inputs
    rows_left_out: dict[str, int]  # reason: how many
    first_lines: dict[str, list[int]]  # reason: the first of their line numbers
    columns_left_out: dict[str, str]  # name: reason
    n_missing: int  # missing values in the file, inputs and target


def load_set(
    name: str,
    *,
    rule: str = "paper",
    scale: str = "authors",
    target: str | None = None,
    n_lags: int | None = None,
    horizon: int = 1,
    ranges: Mapping[str, Bounds] | None = None,
    data_dir: str | Path | None = None,
) -> Prepared:
    """Load a data set by its name in the catalog.

    Parameters
    ----------
    name : one of ``DATASETS``
    rule : "paper" or "clean"
        The rows that the authors used, or all complete records; docs/reference/data.md describes
        both for each data set.
    scale : "authors", "minmax", "declared" or "none"
        As the authors scaled this data set, or see `scaled`. Sets of nodes are scaled by declared
        ranges where the authors' scale is asked for.
    target : str, optional
        Another column to predict, if the data set has one.
    n_lags : int, optional
        Number of lags of a time series, such as traffic and temperature: 5 by default. A set of
        nodes has its own lags.
    horizon : int
        Steps that the label of a time series, or of a station's, is ahead of the newest input.
    ranges : mapping of column to (low, high), optional
        Override the ranges that the catalog declares; for scale "declared" only.
    data_dir : path, optional
        Folder with the file. The default is ``DOMKL_DATA``, then the cache.

    Examples
    --------
    >>> made = load_set("traffic")
    >>> made.X.shape, made.names[:2], made.facts["target_divisor"]
    ((6495, 5), ('lag 1', 'lag 2'), 7217.0)
    """
    data = find(name)
    checks.choice("rule", rule, RULES)
    checks.choice("scale", scale, SCALES)
    target = checks.choice("target", data.target if target is None else target, data.targets)
    if ranges is not None and scale != "declared":
        raise ParameterError(f"ranges are for scale declared, got scale {scale}")
    if data.nodes is not None:
        lags = data.nodes.lags if n_lags is None else tuple(range(1, n_lags + 1))
        wanted = Forecast(target, lags, horizons=(horizon,), scale=scale)
        return load_nodes(data, wanted, ranges=ranges, data_dir=data_dir)[horizon]
    n_lags = LAGS if n_lags is None else n_lags
    (found,) = read(data, data_dir)
    if data.is_series:
        return _prepared_series(data, found, rule, scale, n_lags, horizon, ranges)
    if horizon != 1:
        raise ParameterError(f"horizon is for a time series, got the set {name}")
    first = n_records(found.edition, rule)
    table = read_table(found.content, found.edition, found.place, first)
    chosen = choose(table, data, found.edition, target, rule)
    check_known(ranges or {}, (*chosen.names, target))
    declared = {**data.ranges, **found.edition.ranges, **(ranges or {})}
    inputs, label = _scaled_table(chosen, found.edition, scale, target, declared)
    facts = _facts(data, found.edition, found.sha256, rule, scale, target, label)
    facts |= {
        "file": found.file,
        "rows_in_file": table.n_rows,
        "rows_left_out": chosen.rows_left_out,
        "first_lines_left_out": chosen.first_lines,
        "columns_left_out": chosen.columns_left_out,
        "missing_values": chosen.n_missing,
        "rows": len(chosen.y),
        "values_outside": _outside((*chosen.names, target), inputs, label),
    }
    note = f"{_rows_note(facts)}; {_scale_note(facts, found.edition, label)}"
    return Prepared(name, inputs.values, label.values, False, chosen.names, facts, note)


def load_nodes(
    data: DataSet,
    wanted: Forecast,
    *,
    rows: slice = slice(None),
    ranges: Mapping[str, Bounds] | None = None,
    data_dir: str | Path | None = None,
) -> dict[int, Prepared]:
    """Load a set of nodes: the samples of every horizon, with the set's own inputs as defaults."""
    recipe = data.nodes
    assert recipe is not None
    for horizon in wanted.horizons:
        checks.whole("horizon", horizon, 1)
    scale = "declared" if wanted.scale == "authors" else wanted.scale
    if scale not in ("declared", "minmax", "none"):
        raise ParameterError(f"scale must be declared, minmax or none for {data.name}, got {scale}")
    table, sha256 = read_node_table(data, wanted, data_dir)
    given = recipe.inputs if wanted.inputs is None else wanted.inputs
    wanted = replace(wanted, scale=scale, inputs=given, hold=wanted.hold or _duration(recipe.hold))
    declared = {**data.ranges, **(ranges or {})} if scale == "declared" else None
    used = None if declared is None else {n: r for n, r in declared.items() if n in table.columns}
    check_known(ranges or {}, table.columns)
    made = prepare(data.name, table.rows(rows), wanted, used)
    facts = {
        "data": data.name,
        "sha256": sha256,
        "edition": f"{len(table.nodes)} {recipe.what}",
        "rule": "paper",
        "rows_of_paper": data.paper_rows,
        "stations": list(table.nodes),
        "missing_values": table.facts["cells_missing"],
    }
    return {
        h: each._replace(facts=each.facts | facts, graph=recipe.graph) for h, each in made.items()
    }


def _duration(text: str | None) -> int | None:
    return None if text is None else parse_duration(text)


def read_node_table(
    data: DataSet, wanted: Forecast, data_dir: str | Path | None = None
) -> tuple[NodeTable, str]:
    """The table of a set, and the checksum of its files."""
    recipe = data.nodes
    assert recipe is not None
    given = recipe.inputs if wanted.inputs is None else wanted.inputs
    columns = [n for n in (*given, *wanted.ahead) if n in data.editions[0].columns]
    form = Form(recipe.time, recipe.column, step=_duration(recipe.step))
    target: str | None = wanted.target
    if recipe.share is not None and target == data.target:
        columns, target = [*recipe.share, *columns], None
    columns = [name for name in columns if name not in form.time]
    found = read(data, data_dir)
    contents = {each.edition.name if data.stations else "": each.content for each in found}
    table = nodes_of(contents, target, columns, form)
    if recipe.share is not None and wanted.target == data.target:
        table = _with_share(table, data.target, *recipe.share)
    if recipe.start is not None:
        clock = Clock(parse_time(recipe.start), parse_duration(recipe.step or "1h"))
        table = table._replace(clock=clock, facts=table.facts | {"step": clock.words})
    if data.stations:
        order = [table.nodes.index(each.name) for each in data.stations]
        table = table._replace(
            nodes=tuple(each.name for each in data.stations),
            values=table.values[:, order], spans=table.spans[order], places=data.stations,
        )  # fmt: skip
    return table, digest("".join(each.sha256 for each in found).encode())


def _with_share(table: NodeTable, name: str, part: str, whole: str) -> NodeTable:
    """Put the share of one column in another in front."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = table.column(part) / table.column(whole)
    share[~np.isfinite(share)] = np.nan
    values = np.concatenate([share[..., None], table.values], axis=2)
    return table._replace(columns=(name, *table.columns), values=values)


def load_series(name: str, rule: str = "paper", data_dir: str | Path | None = None) -> Series:
    """Load a time series of the catalog, such as those of Metro Interstate Traffic Volume.

    Parameters
    ----------
    name : "traffic" or "temperature"
        Vehicles per hour on an interstate, or kelvin; both ship with domkl (UCI, CC BY 4.0).
    rule : "paper" or "clean"
        The first 6500 or 5500 values as they are in the file, repeated hours and zero kelvin
        included; or one value per hour of the whole file, without zero kelvin.
    data_dir : path, optional
        Folder with the file of a series that does not ship with domkl.

    Examples
    --------
    >>> load_series("traffic").values[:3]
    array([5545., 4516., 4767.])
    >>> load_series("temperature", rule="clean").values.min() > 200
    np.True_
    """
    checks.choice("name", name, [each.name for each in DATASETS.values() if each.is_series])
    checks.choice("rule", rule, RULES)
    data = find(name)
    return _series_of(data, read(data, data_dir)[0], rule)


def _series_of(data: DataSet, found: Found, rule: str) -> Series:
    edition = found.edition
    table = read_table(found.content, edition, found.place, n_records(edition, rule))
    values = table.column(data.target)
    if rule == "paper":
        n = len(values)
        note = f"the first {n} values of the file, as they stand"
        return Series(values, note, {f"after the first {n}": table.n_rows - n})
    if edition.timestamp is not None:
        _, first = np.unique(table.text[edition.timestamp], return_index=True)
        values = values[np.sort(first)]
    possible = values[values != edition.missing]
    n_repeated, n_impossible = table.n_rows - len(values), len(values) - len(possible)
    out = {"repeated hours": n_repeated, "impossible values": n_impossible}
    return Series(
        possible,
        f"one value an hour: {n_repeated} repeated hours"
        f" and {n_impossible} impossible values left out",
        {reason: n for reason, n in out.items() if n},
    )


def _prepared_series(
    data: DataSet,
    found: Found,
    rule: str,
    scale: str,
    n_lags: int,
    horizon: int,
    ranges: Mapping[str, Bounds] | None,
) -> Prepared:
    series = _series_of(data, found, rule)
    check_known(ranges or {}, (data.target,))
    declared = {**data.ranges, **(ranges or {})}
    is_declared = scale == "declared"
    made = scaled(series.values, scale, ranges_of(data.target, declared) if is_declared else None)
    X, y = embed(made.values, n_lags, horizon=horizon)
    facts = _facts(data, found.edition, found.sha256, rule, scale, data.target, made)
    facts |= {
        "file": found.file,
        "lags": n_lags,
        "horizon": horizon,
        "rows_in_file": len(series.values) + sum(series.rows_left_out.values()),
        "rows_left_out": series.rows_left_out,
        "rows": len(series.values),
        "values_outside": {data.target: int(made.n_outside)} if made.n_outside else {},
    }
    names = tuple(f"lag {i}" for i in range(1, n_lags + 1))
    note = f"{series.note}; {scale_note(scale, made, 'all values', int(made.n_outside))}"
    return Prepared(data.name, X, y, True, names, facts, note, newest_lag=0)


def _scaled_table(
    chosen: Chosen, edition: Edition, scale: str, target: str, declared: Mapping[str, Bounds]
) -> tuple[Scaled, Scaled]:
    """Inputs and target, scaled."""
    if scale == "declared":
        inputs = scaled(chosen.X, scale, ranges_of(chosen.names, declared))
        return inputs, scaled(chosen.y, scale, ranges_of(target, declared))
    if scale != "authors":
        return scaled(chosen.X, scale), scaled(chosen.y, scale)
    rule, is_joint, _ = edition.authors
    label = scaled(chosen.y, rule)
    if not is_joint:
        return scaled(chosen.X, rule), label
    joint = scaled(chosen.X.ravel(), rule)
    return joint._replace(values=joint.values.reshape(chosen.X.shape)), label


def _facts(
    data: DataSet, edition: Edition, sha256: str, rule: str, scale: str, target: str, label: Scaled
) -> dict[str, Any]:
    """The facts that tables and series share."""
    return {
        "data": data.name,
        "sha256": sha256,
        "edition": edition.name,
        "rule": rule,
        "scale": scale,
        "target": target,
        "target_offset": float(label.offset),
        "target_divisor": float(label.divisor),
        "rows_of_paper": data.paper_rows,
    }


def _outside(names: tuple[str, ...], inputs: Scaled, label: Scaled) -> dict[str, int]:
    """Columns with values outside their declared range, and the number of such values."""
    if inputs.n_outside.ndim == 0:
        return {}
    counts = [*inputs.n_outside.tolist(), int(label.n_outside)]
    return {name: n for name, n in zip(names, counts, strict=True) if n}


def _rows_note(facts: Mapping[str, Any]) -> str:
    out = [f"{n} {reason}" for reason, n in facts["rows_left_out"].items()]
    lost = [f"column {name} {why}" for name, why in facts["columns_left_out"].items()]
    left = ", ".join(out + lost) or "nothing"
    return f"{facts['rows']} of {facts['rows_in_file']} rows of {facts['file']}; left out: {left}"


def _scale_note(facts: Mapping[str, Any], edition: Edition, label: Scaled) -> str:
    what = "the target, inputs likewise"
    if facts["scale"] == "authors":
        if edition.authors.rule == "none":
            return f"scale authors: {edition.authors.words}"
        what = "the target, inputs all together" if edition.authors.is_joint else what
    return scale_note(facts["scale"], label, what, sum(facts["values_outside"].values()))


def n_records(edition: Edition, rule: str) -> int | None:
    """How many records, from the start of the file, a rule uses; None for all."""
    return edition.paper_records if rule == "paper" else None


def choose(table: RawTable, data: DataSet, edition: Edition, target: str, rule: str) -> Chosen:
    """Choose rows and columns of a table by a rule.

    ``"paper"`` uses the rows that have a target and no empty cell, of the first `n_records`. In the
    inputs, a number that stands for a missing value is used as a number, and rows that are not
    records are used too. ``"clean"`` uses all complete records.
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
    """Rows to keep, and per reason how many are left out and where.

    A row with several reasons counts for the first of them.
    """
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
            lines[reason] = table.lines[going][:N_LINES].tolist()
        kept &= ~gone
    return kept, counts, lines
