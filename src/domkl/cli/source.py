"""The data of a command: a shipped series, or a table or series of the user's own, scaled."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from domkl.errors import ParameterError

if TYPE_CHECKING:
    from domkl.typing import Floats


#: the same as in data/streams.py, which the parser need not load
SCALE_NAMES = ("minmax", "authors", "declared", "none")
PARTITION_NAMES = ("interleaved", "blocks", "shuffled")


class Source(NamedTuple):
    """A stream before it is dealt."""

    name: str
    X: "Floats"  # (N, d)
    y: "Floats"  # (N,)
    is_series: bool
    facts: dict[str, Any]  # how it was made, for the records
    note: str


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    data = parser.add_argument_group("data")
    data.add_argument(
        "--data",
        metavar="NAME",
        choices=("traffic", "temperature"),
        help="a series that ships with domkl: traffic or temperature (default: traffic)",
    )
    data.add_argument("--csv", metavar="FILE", type=Path, help="a CSV file with a header, or .gz")
    data.add_argument("--target", metavar="COLUMN", help="of a table: the column to predict")
    data.add_argument(
        "--drop", metavar="COLUMN", action="append", default=[], help="of a table: not an input"
    )
    data.add_argument("--series", metavar="COLUMN", help="of a time series: its column")
    data.add_argument("--lags", metavar="S", type=int, help="inputs of a time series (default: 5)")
    data.add_argument(
        "--missing",
        choices=("error", "drop"),
        default="error",
        help="what to do with rows that have empty cells (default: error)",
    )
    data.add_argument(
        "--scale",
        choices=SCALE_NAMES,
        default="minmax",
        help="(v - min)/(max - min), (v - min)/max, or nothing (default: minmax)",
    )


def read_source(args: argparse.Namespace) -> Source:
    """Read what the options name, and scale it."""
    from domkl.data.loaders import load_series, load_table, read_columns

    if args.csv is None:
        if args.target is not None or args.series is not None:
            raise ParameterError("--target and --series need a --csv file")
        name = args.data or "traffic"
        series = load_series(name)
        return _series(args, name, series.values, series.note)
    if args.data is not None:
        raise ParameterError("--data and --csv exclude each other")
    if (args.target is None) == (args.series is None):
        raise ParameterError("--csv needs one of --target (a table) and --series (a time series)")
    if args.series is not None:
        if args.missing == "drop":
            raise ParameterError(
                "--missing drop is for a table: in a series it would join what is not adjacent"
            )
        values, _ = read_columns(args.csv, [args.series])
        return _series(args, args.csv.name, values[:, 0], "no row left out")
    if args.lags is not None:
        raise ParameterError("--lags is for a time series, got a table with --target")
    table = load_table(args.csv, args.target, drop=args.drop, missing=args.missing)
    return _table(args, table.X, table.y, _left_out(table.n_dropped))


def _left_out(n_rows: int) -> str:
    return f"rows with empty cells left out: {n_rows}" if n_rows else "no row left out"


def _series(args: argparse.Namespace, name: str, values: "Floats", note: str) -> Source:
    from domkl.data.streams import embed, scaled

    if args.drop:
        raise ParameterError("--drop is for a table with --target, got a time series")
    n_lags = 5 if args.lags is None else args.lags
    made = scaled(values, args.scale)
    X, y = embed(made.values, n_lags)
    facts = _facts(args, name, made.offset, made.divisor) | {"lags": n_lags, "series": args.series}
    return Source(name, X, y, True, facts, f"{note}; {_scaling(args.scale, facts, 'all values')}")


def _table(args: argparse.Namespace, X: "Floats", y: "Floats", note: str) -> Source:
    from domkl.data.streams import scaled

    target = scaled(y, args.scale)
    facts = _facts(args, args.csv.name, target.offset, target.divisor)
    facts |= {"target": args.target, "drop": args.drop}
    how = _scaling(args.scale, facts, "the target, inputs likewise")
    inputs = scaled(X, args.scale).values
    return Source(args.csv.name, inputs, target.values, False, facts, f"{note}; {how}")


def _facts(args: argparse.Namespace, name: str, offset: Any, divisor: Any) -> dict[str, Any]:
    return {
        "data": name,
        "partition": args.partition,
        "missing": args.missing,
        "scale": args.scale,
        "target_offset": float(offset),
        "target_divisor": float(divisor),
    }


def _scaling(rule: str, facts: dict[str, Any], what: str) -> str:
    if rule == "none":
        return "not scaled"
    return f"scale {rule}: (v - {facts['target_offset']:g})/{facts['target_divisor']:g} of {what}"
