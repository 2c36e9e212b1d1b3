"""The data of an experiment: a data set of the catalog, or a table or series of the user's own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domkl.data.catalog import Bounds, find
from domkl.data.sets import Prepared, load_set
from domkl.data.streams import Scaled, check_known, embed, ranges_of, scale_note, scaled
from domkl.data.tables import load_table, read_columns, read_ranges
from domkl.errors import ParameterError
from domkl.typing import Floats


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
    scale: str = "minmax"
    ranges: Path | None = None
    partition: str = "interleaved"

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
    if options.ranges is not None and options.scale != "declared":
        raise ParameterError(f"ranges are for scale declared, got scale {options.scale}")
    ranges = None if options.ranges is None else read_ranges(options.ranges)
    if options.csv is None:
        return _from_catalog(options, ranges)
    if options.data is not None:
        raise ParameterError("data and csv exclude each other")
    if (options.target is None) == (options.series is None):
        raise ParameterError("csv needs one of target (a table) and series (a time series)")
    if options.scale == "declared" and ranges is None:
        raise ParameterError("scale declared needs ranges for a csv file")
    if options.series is not None:
        return _series(options, options.csv, options.series, ranges)
    return _table(options, options.csv, str(options.target), ranges)


def _from_catalog(options: DataOptions, ranges: dict[str, Bounds] | None) -> Prepared:
    if options.series is not None or (options.target is not None and options.data is None):
        raise ParameterError("target and series need a csv file")
    name = options.data or "traffic"
    is_series = find(name).is_series
    kind = "a time series" if is_series else f"the set {name}"
    if options.drop:
        raise ParameterError(f"drop is for a table with target, got {kind}")
    if options.lags is not None and not is_series:
        raise ParameterError(f"lags is for a time series, got {kind}")
    if options.horizon is not None and not is_series:
        raise ParameterError(f"horizon is for a time series, got {kind}")
    made = load_set(
        name,
        rule=options.rule,
        scale=options.scale,
        target=options.target,
        n_lags=options.n_lags,
        horizon=options.n_ahead,
        ranges=ranges,
        data_dir=options.data_dir,
    )
    facts = {"partition": options.partition, "missing": options.missing, "series": None}
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
    note = f"no row left out; {scale_note(options.scale, made, 'all values', n_outside)}"
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
    how = scale_note(options.scale, target, "the target, inputs likewise", n_outside)
    note = f"{dropped if table.n_dropped else 'no row left out'}; {how}"
    return Prepared(path.name, inputs.values, target.values, False, table.names, facts, note)


def _scaled(
    options: DataOptions,
    values: Floats,
    names: str | tuple[str, ...],
    ranges: dict[str, Bounds] | None,
) -> Scaled:
    return scaled(values, options.scale, None if ranges is None else ranges_of(names, ranges))


def _facts(options: DataOptions, name: str, label: Scaled, n_outside: int) -> dict[str, Any]:
    return {
        "data": name,
        "partition": options.partition,
        "missing": options.missing,
        "scale": options.scale,
        "target_offset": float(label.offset),
        "target_divisor": float(label.divisor),
        "values_outside": n_outside,
    }
