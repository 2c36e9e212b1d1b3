"""The data of an experiment: a set of the paper, or a table or series of the user's own, scaled."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from domkl.data.catalog import DATASETS
from domkl.data.loaders import load_table, read_columns
from domkl.data.ranges import check_known, ranges_of, read_ranges
from domkl.data.sets import load_set
from domkl.data.streams import Scaled, embed, scale_note, scaled
from domkl.errors import ParameterError
from domkl.typing import Floats


@dataclass(frozen=True)
class Choice:
    """What to read and how to scale it; the names are those of the options of `domkl simulate`."""

    data: str | None = None  # a set of the paper; traffic, if no file is named either
    data_dir: str | Path | None = None
    rule: str = "paper"
    csv: Path | None = None
    target: str | None = None
    drop: tuple[str, ...] = ()
    series: str | None = None
    lags: int | None = None
    missing: str = "error"
    scale: str = "minmax"
    ranges: Path | None = None
    partition: str = "interleaved"


class Source(NamedTuple):
    """A stream before it is dealt."""

    name: str
    X: Floats  # (N, d)
    y: Floats  # (N,)
    is_series: bool
    facts: dict[str, Any]  # how it was made, for the records
    note: str


def read_source(choice: Choice) -> Source:
    """Read what was chosen, and scale it."""
    if choice.ranges is not None and choice.scale != "declared":
        raise ParameterError(f"ranges are for scale declared, got scale {choice.scale}")
    if choice.csv is None:
        return _named(choice)
    if choice.data is not None:
        raise ParameterError("data and csv exclude each other")
    if (choice.target is None) == (choice.series is None):
        raise ParameterError("csv needs one of target (a table) and series (a time series)")
    if choice.scale == "declared" and choice.ranges is None:
        raise ParameterError("scale declared needs ranges for a csv file")
    if choice.series is not None:
        if choice.missing == "drop":
            raise ParameterError(
                "missing drop is for a table: in a series it would join what is not adjacent"
            )
        return _series(choice, choice.csv, choice.series)
    if choice.lags is not None:
        raise ParameterError("lags is for a time series, got a table with target")
    return _table(choice, choice.csv, str(choice.target))


def _named(choice: Choice) -> Source:
    """A set of the paper."""
    if choice.series is not None or (choice.target is not None and choice.data is None):
        raise ParameterError("target and series need a csv file")
    name = choice.data or "traffic"
    kind = "a time series" if DATASETS[name].is_series else f"the set {name}"
    if choice.drop:
        raise ParameterError(f"drop is for a table with target, got {kind}")
    if choice.lags is not None and not DATASETS[name].is_series:
        raise ParameterError(f"lags is for a time series, got {kind}")
    made = load_set(
        name,
        rule=choice.rule,
        scale=choice.scale,
        target=choice.target,
        n_lags=5 if choice.lags is None else choice.lags,
        ranges=_declared(choice) or None,
        data_dir=choice.data_dir,
    )
    facts = {"partition": choice.partition, "missing": choice.missing, "series": None, **made.facts}
    return Source(name, made.X, made.y, made.is_series, facts, made.note)


def _declared(choice: Choice) -> dict[str, Any]:
    """Ranges of the user's file, if one is given."""
    return {} if choice.ranges is None else read_ranges(choice.ranges)


def _scaled(choice: Choice, values: Floats, names: str | tuple[str, ...]) -> Scaled:
    is_declared = choice.scale == "declared"
    return scaled(
        values, choice.scale, ranges_of(names, _declared(choice)) if is_declared else None
    )


def _left_out(n_rows: int) -> str:
    return f"rows with empty cells left out: {n_rows}" if n_rows else "no row left out"


def _series(choice: Choice, path: Path, column: str) -> Source:
    if choice.drop:
        raise ParameterError("drop is for a table with target, got a time series")
    n_lags = 5 if choice.lags is None else choice.lags
    values, _ = read_columns(path, [column])
    made = _scaled(choice, values[:, 0], column)
    X, y = embed(made.values, n_lags)
    facts = _facts(choice, path.name, made) | {"lags": n_lags, "series": column}
    facts["values_outside"] = n_outside = int(made.n_outside)
    note = f"no row left out; {scale_note(choice.scale, made, 'all values', n_outside)}"
    return Source(path.name, X, y, True, facts, note)


def _table(choice: Choice, path: Path, column: str) -> Source:
    table = load_table(path, column, drop=choice.drop, missing=choice.missing)
    check_known(_declared(choice), (*table.names, column, *choice.drop))
    inputs, target = _scaled(choice, table.X, table.names), _scaled(choice, table.y, column)
    facts = _facts(choice, path.name, target) | {"target": column, "drop": list(choice.drop)}
    facts["values_outside"] = n_outside = int(inputs.n_outside.sum() + target.n_outside)
    how = scale_note(choice.scale, target, "the target, inputs likewise", n_outside)
    note = f"{_left_out(table.n_dropped)}; {how}"
    return Source(path.name, inputs.values, target.values, False, facts, note)


def _facts(choice: Choice, name: str, label: Scaled) -> dict[str, Any]:
    return {
        "data": name,
        "partition": choice.partition,
        "missing": choice.missing,
        "scale": choice.scale,
        "target_offset": float(label.offset),
        "target_divisor": float(label.divisor),
    }
