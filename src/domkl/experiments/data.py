"""The data of an experiment: a data set of the catalog, or a table or series of the user's own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domkl.data.catalog import Bounds, find
from domkl.data.sets import Prepared, load_set
from domkl.data.streams import Scaled, check_known, deal, embed, ranges_of, scale_note, scaled
from domkl.data.tables import load_table, read_columns, read_ranges
from domkl.errors import ParameterError
from domkl.options import PARTITIONS
from domkl.typing import Floats, Seed


@dataclass(frozen=True)
class DataOptions:
    """What to read and how to scale it; the names are those of the options of `domkl simulate`."""

    data: str | None = None  # a data set of the catalog; traffic, if no CSV file is given either
    data_dir: str | Path | None = None
    rule: str = "paper"
    csv: Path | None = None
    target: str | None = None
    drop: tuple[str, ...] = ()
    series: str | None = None
    lags: int | None = None
    horizon: int | None = None
    missing: str = "error"
    scale: str | None = None  # minmax; of stations, declared
    ranges: Path | None = None
    partition: str | None = None  # interleaved; stations have their own streams

    @property
    def n_stations(self) -> int | None:
        """How many learners the data set has of its own, if it has."""
        found = () if self.csv is not None else find(self.data or "traffic").stations
        return len(found) or None

    @property
    def how_scaled(self) -> str:
        """The scale that was asked for, or the default."""
        return self.scale or ("declared" if self.n_stations else "minmax")

    @property
    def n_lags(self) -> int:
        """Number of inputs of a time series."""
        return 5 if self.lags is None else self.lags

    @property
    def n_ahead(self) -> int:
        """Steps that the label of a time series is ahead of the newest input."""
        return 1 if self.horizon is None else self.horizon


def read_data(options: DataOptions) -> Prepared:
    """Read what the options name, and scale it."""
    if options.ranges is not None and options.how_scaled != "declared":
        raise ParameterError(f"ranges are for scale declared, got scale {options.how_scaled}")
    ranges = None if options.ranges is None else read_ranges(options.ranges)
    if options.csv is None:
        return _from_catalog(options, ranges)
    if options.data is not None:
        raise ParameterError("data and csv exclude each other")
    if (options.target is None) == (options.series is None):
        raise ParameterError("csv needs one of target (a table) and series (a time series)")
    if options.how_scaled == "declared" and ranges is None:
        raise ParameterError("scale declared needs ranges for a csv file")
    if options.series is not None:
        return _series(options, options.csv, options.series, ranges)
    return _table(options, options.csv, str(options.target), ranges)


def learners_of(options: DataOptions, n_learners: int | None) -> int:
    """How many learners: as asked for, 10 by default; a set of stations has its own number."""
    own = options.n_stations
    if own is not None and n_learners not in (None, own):
        raise ParameterError(
            f"learners must be {own} for {options.data}, one for each station, got {n_learners}"
        )
    return own or (10 if n_learners is None else n_learners)


def dealt(
    X: Floats, y: Floats, n_learners: int, partition: str | None = None, *, seed: Seed | None = None
) -> tuple[Floats, Floats]:
    """Deal samples to learners; streams of stations, X (T, K, d), stay as they are."""
    if X.ndim == 3:
        return X, y
    return deal(X, y, n_learners, partition or PARTITIONS[0], seed=seed)


def _from_catalog(options: DataOptions, ranges: dict[str, Bounds] | None) -> Prepared:
    if options.series is not None or (options.target is not None and options.data is None):
        raise ParameterError("target and series need a csv file")
    name = options.data or "traffic"
    is_series, has_horizon = find(name).is_series, find(name).has_horizon
    if options.n_stations and options.partition is not None:
        raise ParameterError(
            f"partition is for samples to be dealt; the stations of {name} have their own streams"
        )
    kind = "a time series" if is_series else f"the set {name}"
    if options.drop:
        raise ParameterError(f"drop is for a table with target, got {kind}")
    if options.lags is not None and not is_series:
        raise ParameterError(f"lags is for a time series, got {kind}")
    if options.horizon is not None and not has_horizon:
        raise ParameterError(f"horizon is for a time series, got {kind}")
    made = load_set(
        name,
        rule=options.rule,
        scale=options.how_scaled,
        target=options.target,
        n_lags=options.n_lags,
        horizon=options.n_ahead,
        ranges=ranges,
        data_dir=options.data_dir,
    )
    partition = None if options.n_stations else options.partition or PARTITIONS[0]
    facts = {"partition": partition, "missing": options.missing, "series": None}
    return made._replace(facts=facts | made.facts)


def _series(
    options: DataOptions, path: Path, column: str, ranges: dict[str, Bounds] | None
) -> Prepared:
    if options.missing == "drop":
        raise ParameterError(
            "missing drop is for a table: in a series it would join what is not adjacent"
        )
    if options.drop:
        raise ParameterError("drop is for a table with target, got a time series")
    values, _ = read_columns(path, [column])
    made = _scaled(options, values[:, 0], column, ranges)
    X, y = embed(made.values, options.n_lags, horizon=options.n_ahead)
    n_outside = int(made.n_outside)
    facts = _facts(options, path.name, made, n_outside)
    facts |= {"lags": options.n_lags, "horizon": options.n_ahead, "series": column}
    note = f"no row left out; {scale_note(options.how_scaled, made, 'all values', n_outside)}"
    names = tuple(f"lag {i}" for i in range(1, options.n_lags + 1))
    return Prepared(path.name, X, y, True, names, facts, note)


def _table(
    options: DataOptions, path: Path, column: str, ranges: dict[str, Bounds] | None
) -> Prepared:
    if options.lags is not None:
        raise ParameterError("lags is for a time series, got a table with target")
    if options.horizon is not None:
        raise ParameterError("horizon is for a time series, got a table with target")
    table = load_table(path, column, drop=options.drop, missing=options.missing)
    check_known(ranges or {}, (*table.names, column, *options.drop))
    inputs = _scaled(options, table.X, table.names, ranges)
    target = _scaled(options, table.y, column, ranges)
    n_outside = int(inputs.n_outside.sum() + target.n_outside)
    facts = _facts(options, path.name, target, n_outside)
    facts |= {"target": column, "drop": list(options.drop)}
    dropped = f"rows with empty cells left out: {table.n_dropped}"
    how = scale_note(options.how_scaled, target, "the target, inputs likewise", n_outside)
    note = f"{dropped if table.n_dropped else 'no row left out'}; {how}"
    return Prepared(path.name, inputs.values, target.values, False, table.names, facts, note)


def _scaled(
    options: DataOptions,
    values: Floats,
    names: str | tuple[str, ...],
    ranges: dict[str, Bounds] | None,
) -> Scaled:
    return scaled(values, options.how_scaled, None if ranges is None else ranges_of(names, ranges))


def _facts(options: DataOptions, name: str, label: Scaled, n_outside: int) -> dict[str, Any]:
    return {
        "data": name,
        "partition": options.partition or PARTITIONS[0],
        "missing": options.missing,
        "scale": options.how_scaled,
        "target_offset": float(label.offset),
        "target_divisor": float(label.divisor),
        "values_outside": n_outside,
    }
