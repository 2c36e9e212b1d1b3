"""The data of an experiment: a data set of the catalog, or tables of the user's own.

A user's files are streams of nodes where they name a time (`time`), a column of nodes (`nodes`) or
a file for each node (``{node}`` in `csv`): then every node is a learner. Otherwise one table is
dealt out to learners, after lags were taken.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from domkl import checks
from domkl.data.catalog import DataSet, find
from domkl.data.cells import Problems, numbers_of, read_sheet
from domkl.data.clock import CALENDAR, parse_duration
from domkl.data.forecast import Forecast, Prepared, prepare
from domkl.data.nodes import Form, NodeTable, read_nodes
from domkl.data.sets import load_set
from domkl.data.stations import load_nodes
from domkl.data.streams import deal
from domkl.data.tables import read_ranges
from domkl.data.types import Bounds, Station
from domkl.errors import DataError, ParameterError
from domkl.experiments.compare import Setting
from domkl.experiments.options import USUAL, DataOptions
from domkl.options import LAGS, MISSING, PARTITIONS
from domkl.text import parse_lags, parse_names, parse_rows
from domkl.typing import Floats, Seed


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
    if options.csv is None:
        return _from_catalog(options, ranges)
    if options.data is not None:
        raise ParameterError("data and csv exclude each other")
    if (options.target is None) == (options.series is None):
        raise ParameterError(
            "csv needs either target, a column of a table, or series, the column of a series"
        )
    if options.how_scaled == "declared" and ranges is None:
        raise ParameterError("scale declared needs ranges for a csv file")
    return _from_files(options, ranges) if options.has_nodes else _dealt_table(options, ranges)


def learners_of(data: Prepared, n_learners: int | None) -> int:
    """The number of learners: of nodes, otherwise as asked for, or the default of `Setting`."""
    own = len(data.stations)
    if own and n_learners not in (None, own):
        raise ParameterError(
            f"learners must be {own} for {data.name}, one for each node, got {n_learners}"
        )
    return own or (Setting.n_learners if n_learners is None else n_learners)


def dealt(
    X: Floats, y: Floats, n_learners: int, partition: str | None = None, *, seed: Seed | None = None
) -> tuple[Floats, Floats]:
    """Deal samples to learners; streams of nodes, X (T, K, d), stay as they are."""
    if X.ndim == 3:
        return X, y
    return deal(X, y, n_learners, partition or PARTITIONS[0], seed=seed)


def _from_catalog(options: DataOptions, ranges: dict[str, Bounds] | None) -> list[Prepared]:
    _check_catalog(options)
    name = options.data or USUAL
    data = find(name)
    partition = None if data.nodes else options.partition or PARTITIONS[0]
    facts = {"partition": partition, "missing": options.missing, "series": None}
    if data.nodes is not None:
        return [made._replace(facts=facts | made.facts) for made in _nodes(options, data, ranges)]
    found = []
    for horizon in options.horizons or (1,):
        made = load_set(
            name,
            rule=options.rule,
            scale=options.how_scaled,
            target=options.target,
            n_lags=None if options.lags is None else len(parse_lags("lags", options.lags)),
            horizon=horizon,
            ranges=ranges,
            data_dir=options.data_dir,
        )
        rows = parse_rows(options.rows)
        X, y = made.X[rows], made.y[rows]
        if not len(y):
            raise DataError(f"rows must be at least one of {len(made.y)}, got {options.rows}")
        found.append(made._replace(X=X, y=y, facts=facts | made.facts))
    return found


def _nodes(options: DataOptions, data: DataSet, ranges: dict[str, Bounds] | None) -> list[Prepared]:
    """A set of nodes of the catalog, with its own lags, inputs and horizons as defaults."""
    recipe = data.nodes
    assert recipe is not None
    target = checks.choice("target", options.target or data.target, data.targets)
    lags = recipe.lags if options.lags is None else parse_lags("lags", options.lags)
    wanted = replace(
        _forecast(options, target), lags=lags, horizons=options.horizons or recipe.horizons
    )
    rows = parse_rows(options.rows)
    made = load_nodes(data, wanted, rows=rows, ranges=ranges, data_dir=options.data_dir)
    return [made[horizon] for horizon in wanted.horizons]


def _check_catalog(options: DataOptions) -> None:
    """Refuse options that a data set of the catalog does not take."""
    if options.series is not None or (options.target is not None and options.data is None):
        raise ParameterError("target and series need a csv file")
    name = options.data or USUAL
    data = find(name)
    kind = "a time series" if data.is_series else f"the set {name}"
    if data.nodes is not None and options.partition is not None:
        raise ParameterError(
            f"partition is for samples to be dealt; the {data.nodes.what} of {name} have their own"
            " streams"
        )
    if options.drop:
        raise ParameterError(f"drop is for a table with target, got {kind}")
    if options.lags is not None and not data.has_horizon:
        raise ParameterError(f"lags is for a time series, got {kind}")
    if options.horizon is not None and not data.has_horizon:
        raise ParameterError(f"horizon is for a time series, got {kind}")
    own = ("time", "nodes", "every", "time_format", "places", "na")
    nodes_only = ("inputs", "input_lags", "known_ahead", "hold")
    for field in (*own, *(() if data.nodes else nodes_only)):
        if getattr(options, field):
            word = field.replace("_", "-")
            raise ParameterError(f"{word} is for files of your own (--csv), got {kind}")


def _forecast(options: DataOptions, target: str) -> Forecast:
    """The user's wishes; lags and horizons are those of a forecast."""
    return Forecast(
        target,
        inputs=parse_names(options.inputs),
        input_lags=(1,) if options.input_lags is None
        else parse_lags("input-lags", options.input_lags),
        ahead=parse_names(options.known_ahead) or (),
        horizons=options.horizons or (1,),
        hold=None if options.hold is None else parse_duration(options.hold),
        scale=options.how_scaled,
    )  # fmt: skip


def _form(options: DataOptions) -> Form:
    return Form(
        time=parse_names(options.time) or (),
        nodes=options.nodes,
        levels=options.levels,
        na=tuple(options.na),
        step=None if options.every is None else parse_duration(options.every),
        time_format=options.time_format,
        may_miss=options.has_nodes or options.missing == "drop" or options.series is not None,
    )


def _read(options: DataOptions, target: str, is_whole: bool) -> NodeTable:
    """Read the files: the columns that were asked for, or all."""
    form, inputs = _form(options), parse_names(options.inputs)
    wanted = None
    if inputs is not None or options.series is not None:
        dated = CALENDAR if form.time else ()
        names = (*(inputs or ()), *(parse_names(options.known_ahead) or ()))
        if target in names:
            raise ParameterError(
                f"inputs must not have the target {target!r} without lag; give --lags"
            )
        wanted = tuple(name for name in names if name not in dated)
    return _cached_table(
        str(options.csv), target, wanted, options.drop, form, is_whole, _stamp(options.csv)
    )


def _stamp(path: Any) -> tuple[Any, ...]:
    """What tells a file from an older one of its name."""
    try:
        found = Path(path).stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=1)
def _cached_table(
    path: str,
    target: str,
    inputs: tuple[str, ...] | None,
    drop: tuple[str, ...],
    form: Form,
    is_whole: bool,
    stamp: tuple[Any, ...],
) -> NodeTable:
    """Files are read once for several horizons of a sweep."""
    return read_nodes(path, target, inputs=inputs, drop=drop, form=form, keep_all=is_whole)


def _from_files(options: DataOptions, ranges: Mapping[str, Bounds] | None) -> list[Prepared]:
    """Streams of nodes: rows and columns as they are known, each node a learner."""
    if options.partition is not None:
        raise ParameterError("partition is for samples to be dealt; nodes have their own streams")
    table = _read(options, _target(options), is_whole=False)
    if options.places is not None:
        table = table._replace(places=_read_places(options.places, table.nodes))
    facts = _facts(options, Path(str(options.csv)).name)
    made = _prepared(options, table, _wanted(options), ranges)
    return [each._replace(facts=each.facts | facts) for each in made]


def _dealt_table(options: DataOptions, ranges: Mapping[str, Bounds] | None) -> list[Prepared]:
    """One table without nodes and times; lags are taken before it is dealt to learners."""
    if options.places is not None:
        raise ParameterError("places is for nodes with streams of their own; give --nodes")
    if options.series is not None and options.drop:
        raise ParameterError("drop is for a table with target, got a time series")
    target, wanted = _target(options), _wanted(options)
    table = _read(options, target, is_whole=True)
    if options.target and not options.inputs and len(table.columns) == 1 and not wanted.lags:
        raise DataError(f"{options.csv} must have a column besides the target {target!r}, got none")
    if options.series is not None and options.inputs is None:
        wanted = replace(wanted, inputs=())
    name = Path(str(options.csv)).name
    return [_joined(each, options, name) for each in _prepared(options, table, wanted, ranges)]


def _target(options: DataOptions) -> str:
    return str(options.target or options.series)


def _wanted(options: DataOptions) -> Forecast:
    """The forecast that was asked for; without lags, horizon or series the row's own target."""
    wanted = _forecast(options, _target(options))
    if options.lags is None and options.horizon is None and not options.series:
        return replace(wanted, lags=(), horizons=(0,))
    return replace(wanted, lags=parse_lags("lags", LAGS if options.lags is None else options.lags))


def _prepared(
    options: DataOptions,
    table: NodeTable,
    wanted: Forecast,
    ranges: Mapping[str, Bounds] | None,
) -> list[Prepared]:
    """The chosen rows of a table as streams, for each horizon."""
    rows, used = table.rows(parse_rows(options.rows)), _used(ranges, table, options)
    made = prepare(Path(str(options.csv)).name, rows, wanted, used, options.is_class)
    return [made[horizon] for horizon in wanted.horizons]


def _used(
    ranges: Mapping[str, Bounds] | None, table: NodeTable, options: DataOptions
) -> Mapping[str, Bounds] | None:
    """The ranges of the columns that were read; a file of ranges may have more than were chosen."""
    is_chosen = options.series is not None or options.inputs is not None
    if ranges is None or not is_chosen:
        return ranges
    return {name: bounds for name, bounds in ranges.items() if name in table.columns}


def _joined(made: Prepared, options: DataOptions, name: str) -> Prepared:
    """The one stream of a table as samples to be dealt; rows without a label or inputs left out."""
    X, y = made.X[:, 0], made.y[:, 0]
    kept = ~(np.isnan(X).any(axis=1) | np.isnan(y))
    if not kept.any():
        raise DataError(f"{options.csv} has no row without missing values")
    n_dropped = int((~kept).sum())
    facts = made.facts | _facts(options, name) | {"rows_left_out": {"missing values": n_dropped}}
    if made.facts["horizon"] == 0:
        facts |= {"horizon": None, "lags": None}
    left = f"rows with missing values left out: {n_dropped}" if n_dropped else "no row left out"
    return made._replace(
        X=X[kept], y=y[kept], facts=facts, note=f"{left}; {made.note}", stations=(), places=None
    )


def _facts(options: DataOptions, name: str) -> dict[str, Any]:
    partition = None if options.has_nodes else options.partition or PARTITIONS[0]
    return {
        "data": name,
        "partition": partition,
        "missing": options.missing,
        "series": options.series,
        "drop": list(options.drop),
    }


def _read_places(path: Path, nodes: tuple[str, ...]) -> tuple[Station, ...]:
    """Coordinates of nodes: a CSV file with the name of each, its latitude and its longitude."""
    problems = Problems()
    sheet = read_sheet(path, problems)
    problems.check()
    assert sheet is not None
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
