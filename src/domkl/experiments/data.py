"""The data of an experiment: a data set of the catalog, or tables of the user's own.

A user's files are streams of nodes where they name a time (`time`), a column of nodes (`nodes`) or
a file for each node (``{node}`` in `csv`): then every node is a learner. Otherwise one table is
dealt out to learners, after lags were taken.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from domkl import checks
from domkl.data.catalog import DataSet, find
from domkl.data.cells import numbers_of
from domkl.data.clock import CALENDAR, parse_duration
from domkl.data.forecast import Forecast, Prepared, prepare
from domkl.data.nodes import Form, NodeTable, read_nodes
from domkl.data.sets import load_nodes, load_set
from domkl.data.streams import deal
from domkl.data.tables import read_ranges, sheet_with
from domkl.data.types import Bounds, Station
from domkl.errors import DataError, ParameterError
from domkl.experiments.options import DataOptions, Setting
from domkl.graphs.kinds import NEAREST
from domkl.options import LAGS, MISSING, PARTITIONS
from domkl.text import parse_lags, parse_names, parse_rows
from domkl.typing import Floats, Seed

Ranges = Mapping[str, Bounds]


def read_data(options: DataOptions) -> Prepared:
    """Read what the options name, and scale it; for one horizon."""
    found = read_forecasts(options)
    if len(found) > 1:
        raise ParameterError(f"horizon must be one number here, got {options.horizon!r}")
    return found[0]


def read_forecasts(options: DataOptions) -> list[Prepared]:
    """Read what the options name, and scale it; one for each horizon."""
    checks.choice("missing", options.missing, MISSING)
    if options.ranges is not None and options.how_scaled != "declared":
        raise ParameterError(f"ranges are for scale declared, got scale {options.how_scaled}")
    ranges = None if options.ranges is None else read_ranges(options.ranges)
    return (_from_catalog if options.csv is None else _from_files)(options, ranges)


def learners_of(data: Prepared, n_learners: int | None) -> int:
    """The number of learners: of nodes, otherwise as asked for, or the default of `Setting`."""
    own = len(data.stations)
    if own and n_learners not in (None, own):
        raise ParameterError(
            f"learners must be {own} for {data.name}, one for each node, got {n_learners}"
        )
    return own or (Setting.n_learners if n_learners is None else n_learners)


def graph_of(data: Prepared) -> str:
    """The kind of network that the data suggest."""
    return data.graph or (NEAREST if data.places is not None else "random")


def dealt(
    X: Floats, y: Floats, n_learners: int, partition: str | None = None, *, seed: Seed | None = None
) -> tuple[Floats, Floats]:
    """Deal samples to learners; streams of nodes, X (T, K, d), stay as they are."""
    if X.ndim == 3:
        return X, y
    return deal(X, y, n_learners, partition or PARTITIONS[0], seed=seed)


def _from_catalog(options: DataOptions, ranges: Ranges | None) -> list[Prepared]:
    _check_catalog(options)
    name = options.name
    data = find(name)
    partition = None if data.nodes else options.partition or PARTITIONS[0]
    facts = {"partition": partition, "missing": options.missing, "series": None}
    if data.nodes is not None:
        return [made._replace(facts=facts | made.facts) for made in _nodes(options, data, ranges)]
    found, rows = [], parse_rows(options.rows)
    n_lags = None if options.lags is None else len(parse_lags("lags", options.lags))
    for horizon in options.horizons or (1,):
        made = load_set(
            name, rule=options.rule, scale=options.how_scaled, target=options.target,
            n_lags=n_lags, horizon=horizon, ranges=ranges, data_dir=options.data_dir,
        )  # fmt: skip
        X, y = made.X[rows], made.y[rows]
        if not len(y):
            raise DataError(f"rows must be at least one of {len(made.y)}, got {options.rows}")
        found.append(made._replace(X=X, y=y, facts=facts | made.facts))
    return found


def _nodes(options: DataOptions, data: DataSet, ranges: Ranges | None) -> list[Prepared]:
    """A set of nodes of the catalog, with its own lags, inputs and horizons as defaults."""
    recipe = data.nodes
    assert recipe is not None
    target = checks.choice("target", options.target or data.target, data.targets)
    wanted = _forecast(options, target, recipe.lags, recipe.horizons)
    rows = parse_rows(options.rows)
    made = load_nodes(data, wanted, rows=rows, ranges=ranges, data_dir=options.data_dir)
    return [made[horizon] for horizon in wanted.horizons]


def _check_catalog(options: DataOptions) -> None:
    """Refuse options that a data set of the catalog does not take."""
    if options.series is not None or (options.target is not None and options.data is None):
        raise ParameterError("target and series need a csv file")
    name = options.name
    data = find(name)
    kind = "a time series" if data.is_series else f"the set {name}"
    if data.nodes is not None and options.partition is not None:
        raise ParameterError(
            f"partition is for samples to be dealt; the {data.nodes.what} of {name} have their own"
            " streams"
        )
    refused = {"drop": "a table with target"}
    if not data.has_horizon:
        refused |= dict.fromkeys(("lags", "horizon"), "a time series")
    own: tuple[str, ...] = ("time", "nodes", "every", "time_format", "places", "na")
    nodes_only = ("inputs", "input_lags", "known_ahead", "hold")
    own += () if data.nodes else nodes_only
    for field, what in (refused | dict.fromkeys(own, "files of your own (--csv)")).items():
        if getattr(options, field) not in (None, ()):
            raise ParameterError(f"{field.replace('_', '-')} is for {what}, got {kind}")


def _forecast(
    options: DataOptions, target: str, lags: tuple[int, ...], horizons: tuple[int, ...]
) -> Forecast:
    """What the options ask for, with these lags and horizons as defaults."""
    return Forecast(
        target,
        lags=lags if options.lags is None else parse_lags("lags", options.lags),
        inputs=parse_names(options.inputs),
        input_lags=parse_lags(
            "input-lags", 1 if options.input_lags is None else options.input_lags
        ),
        ahead=parse_names(options.known_ahead) or (),
        horizons=options.horizons or horizons,
        hold=None if options.hold is None else parse_duration(options.hold),
        scale=options.how_scaled,
    )


def _from_files(options: DataOptions, ranges: Ranges | None) -> list[Prepared]:
    """Files of the user's own: streams of nodes, or one table of rows to be dealt to learners."""
    _check_files(options, ranges)
    target, has_nodes, name = str(options.target or options.series), options.has_nodes, options.name
    is_row = options.lags is None and options.horizon is None and not options.series
    lags = () if is_row else parse_lags("lags", LAGS)  # a row's inputs predict its own target
    wanted = _forecast(options, target, lags, (0,) if is_row else (1,))
    table = _read(options, wanted)
    if options.places is not None:
        table = table._replace(places=_read_places(options.places, table.nodes))
    if options.series is not None and wanted.inputs is None:
        wanted = replace(wanted, inputs=())
    is_bare = not has_nodes and options.target and not options.inputs and not wanted.lags
    if is_bare and len(table.columns) == 1:
        raise DataError(f"{options.csv} must have a column besides the target {target!r}, got none")
    if ranges is not None and wanted.inputs is not None:  # a file of ranges may have more
        ranges = {column: each for column, each in ranges.items() if column in table.columns}
    if options.rows is not None:
        table = table.rows(parse_rows(options.rows))
    made = prepare(name, table, wanted, ranges, options.is_class)
    facts = {
        "data": name, "partition": None if has_nodes else options.partition or PARTITIONS[0],
        "missing": options.missing, "series": options.series, "drop": list(options.drop),
    }  # fmt: skip
    found = [made[horizon] for horizon in wanted.horizons]
    found = [each._replace(facts=each.facts | facts) for each in found]
    return found if has_nodes else [_joined(each, str(options.csv)) for each in found]


def _check_files(options: DataOptions, ranges: Ranges | None) -> None:
    """Refuse options that exclude each other, or that the files of the user do not take."""
    if options.data is not None:
        raise ParameterError("data and csv exclude each other")
    if (options.target is None) == (options.series is None):
        raise ParameterError(
            "csv needs either target, a column of a table, or series, the column of a series"
        )
    if options.how_scaled == "declared" and ranges is None:
        raise ParameterError("scale declared needs ranges for a csv file")
    if options.has_nodes and options.partition is not None:
        raise ParameterError("partition is for samples to be dealt; nodes have their own streams")
    if not options.has_nodes and options.places is not None:
        raise ParameterError("places is for nodes with streams of their own; give --nodes")
    if not options.has_nodes and options.series is not None and options.drop:
        raise ParameterError("drop is for a table with target, got a time series")


def _read(options: DataOptions, wanted: Forecast) -> NodeTable:
    """Read the files: the columns that were asked for, or all."""
    form = Form(
        time=parse_names(options.time) or (),
        nodes=options.nodes,
        levels=options.levels,
        na=tuple(options.na),
        step=None if options.every is None else parse_duration(options.every),
        time_format=options.time_format,
        may_miss=options.has_nodes or options.missing == "drop" or options.series is not None,
    )
    columns = None
    if wanted.inputs is not None or options.series is not None:
        dated = CALENDAR if form.time else ()
        names = (*(wanted.inputs or ()), *wanted.ahead)
        if wanted.target in names:
            raise ParameterError(
                f"inputs must not have the target {wanted.target!r} without lag; give --lags"
            )
        columns = tuple(name for name in names if name not in dated)
    stamp, path = None, Path(str(options.csv))
    with suppress(OSError):  # a pattern of several files has none
        stamp = path.stat().st_mtime_ns, path.stat().st_size
    how = {"inputs": columns, "drop": options.drop, "keep_all": not options.has_nodes}
    return _read_once(stamp, str(path), wanted.target, form=form, **how)


@lru_cache(maxsize=1)
def _read_once(stamp: Any, path: str, target: str, **how: Any) -> NodeTable:
    """Read the files; once for several horizons of a sweep, unless the file is a newer one."""
    return read_nodes(path, target, **how)


def _joined(made: Prepared, path: str) -> Prepared:
    """The one stream of a table as samples to be dealt; rows without a label or inputs left out."""
    X, y = made.X[:, 0], made.y[:, 0]
    kept = ~(np.isnan(X).any(axis=1) | np.isnan(y))
    if not kept.any():
        raise DataError(f"{path} has no row without missing values")
    n_dropped = int((~kept).sum())
    facts = made.facts | {"rows_left_out": {"missing values": n_dropped}}
    if made.facts["horizon"] == 0:
        facts |= {"horizon": None, "lags": None}
    left = f"rows with missing values left out: {n_dropped}" if n_dropped else "no row left out"
    return made._replace(
        X=X[kept], y=y[kept], facts=facts, note=f"{left}; {made.note}", stations=(), places=None
    )


def _read_places(path: Path, nodes: tuple[str, ...]) -> tuple[Station, ...]:
    """Coordinates of nodes: a CSV file with the name of each, its latitude and its longitude."""
    sheet = sheet_with(path)
    if len(sheet.names) < 3:
        raise DataError(
            f"{path} must have the columns node, latitude, longitude, got {sheet.names}"
        )
    words = {name.lower()[:3]: name for name in sheet.names}
    own = (words.get("lat", sheet.names[1]), words.get("lon", sheet.names[2]))
    north, east = (numbers_of(sheet.column(name)).values for name in own)
    found = dict(zip(sheet.cells[0], zip(north.tolist(), east.tolist(), strict=True), strict=True))
    lost = [node for node in nodes if node not in found or np.isnan(found[node]).any()]
    if lost:
        raise DataError(
            f"{path} must have latitude and longitude of every node, got none of {lost[0]!r}"
        )
    return tuple(Station(node, *found[node]) for node in nodes)
