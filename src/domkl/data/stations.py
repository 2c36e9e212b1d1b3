"""Sets of nodes in the catalog: every station, home or car park is a learner of its own.

Files come from the cache, checked; then the reader (nodes.py) and the row maker (rows.py) do what
they do for a user's own files, with the inputs, the clock and the ranges that the catalog states.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from domkl import checks
from domkl.data.cache import digest, read
from domkl.data.catalog import DataSet
from domkl.data.clock import Clock, parse_duration
from domkl.data.forecast import Forecast, Prepared, prepare
from domkl.data.nodes import Form, NodeTable, nodes_of
from domkl.data.streams import check_known
from domkl.data.types import Bounds
from domkl.errors import ParameterError
from domkl.text import parse_time


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
