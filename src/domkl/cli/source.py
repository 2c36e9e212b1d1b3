"""The data of a command: a set of the paper, or a table or series of the user's own, scaled."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from domkl.errors import ParameterError

if TYPE_CHECKING:
    from domkl.data.loaders import Table
    from domkl.data.streams import Scaled
    from domkl.typing import Floats


#: the same as in data/, which the parser need not load
SET_NAMES = (
    "weather", "conductivity", "wave", "twitter", "air-quality", "traffic", "temperature",
)  # fmt: skip
RULE_NAMES = ("paper", "clean")
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
        choices=SET_NAMES,
        help=f"a set of the paper: {', '.join(SET_NAMES)} (default: traffic)",
    )
    data.add_argument(
        "--data-dir", metavar="DIR", help="where its file is (default: DOMKL_DATA, then the cache)"
    )
    data.add_argument(
        "--rule",
        choices=RULE_NAMES,
        default="paper",
        help="of a set: the rows that the authors took, or all complete ones (default: paper)",
    )
    data.add_argument("--csv", metavar="FILE", type=Path, help="a CSV file with a header, or .gz")
    data.add_argument("--target", metavar="COLUMN", help="the column of a table to predict")
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
        help="(v - min)/(max - min); as the authors did, mostly (v - min)/max; by declared ranges;"
        " or nothing (default: minmax)",
    )
    data.add_argument(
        "--ranges",
        metavar="FILE",
        type=Path,
        help="declared ranges: a CSV file with the columns column, low, high",
    )


def read_source(args: argparse.Namespace) -> Source:
    """Read what the options name, and scale it."""
    from domkl.data.loaders import load_table, read_columns

    if args.ranges is not None and args.scale != "declared":
        raise ParameterError(f"--ranges is for --scale declared, got --scale {args.scale}")
    if args.csv is None:
        return _named(args)
    if args.data is not None:
        raise ParameterError("--data and --csv exclude each other")
    if (args.target is None) == (args.series is None):
        raise ParameterError("--csv needs one of --target (a table) and --series (a time series)")
    if args.scale == "declared" and args.ranges is None:
        raise ParameterError("--scale declared needs --ranges for a --csv file")
    if args.series is not None:
        if args.missing == "drop":
            raise ParameterError(
                "--missing drop is for a table: in a series it would join what is not adjacent"
            )
        values, _ = read_columns(args.csv, [args.series])
        return _series(args, values[:, 0])
    if args.lags is not None:
        raise ParameterError("--lags is for a time series, got a table with --target")
    table = load_table(args.csv, args.target, drop=args.drop, missing=args.missing)
    return _table(args, table)


def _named(args: argparse.Namespace) -> Source:
    """A set of the paper."""
    from domkl.data.catalog import DATASETS
    from domkl.data.sets import load_set

    if args.series is not None or (args.target is not None and args.data is None):
        raise ParameterError("--target and --series need a --csv file")
    name = args.data or "traffic"
    kind = "a time series" if DATASETS[name].is_series else f"the set {name}"
    if args.drop:
        raise ParameterError(f"--drop is for a table with --target, got {kind}")
    if args.lags is not None and not DATASETS[name].is_series:
        raise ParameterError(f"--lags is for a time series, got {kind}")
    made = load_set(
        name,
        rule=args.rule,
        scale=args.scale,
        target=args.target,
        n_lags=5 if args.lags is None else args.lags,
        ranges=_declared(args) or None,
        data_dir=args.data_dir,
    )
    facts = {"partition": args.partition, "missing": args.missing, "series": None, **made.facts}
    return Source(name, made.X, made.y, made.is_series, facts, made.note)


def _declared(args: argparse.Namespace) -> "dict[str, Any]":
    """Ranges of the user's file, if one is given."""
    from domkl.data.ranges import read_ranges

    return {} if args.ranges is None else read_ranges(args.ranges)


def _scaled(args: argparse.Namespace, values: "Floats", names: str | tuple[str, ...]) -> "Scaled":
    from domkl.data.ranges import ranges_of
    from domkl.data.streams import scaled

    is_declared = args.scale == "declared"
    return scaled(values, args.scale, ranges_of(names, _declared(args)) if is_declared else None)


def _left_out(n_rows: int) -> str:
    return f"rows with empty cells left out: {n_rows}" if n_rows else "no row left out"


def _series(args: argparse.Namespace, values: "Floats") -> Source:
    from domkl.data.streams import embed, scale_note

    if args.drop:
        raise ParameterError("--drop is for a table with --target, got a time series")
    name, n_lags = args.csv.name, 5 if args.lags is None else args.lags
    made = _scaled(args, values, args.series)
    X, y = embed(made.values, n_lags)
    facts = _facts(args, name, made) | {"lags": n_lags, "series": args.series}
    facts["values_outside"] = n_outside = int(made.n_outside)
    note = f"no row left out; {scale_note(args.scale, made, 'all values', n_outside)}"
    return Source(name, X, y, True, facts, note)


def _table(args: argparse.Namespace, table: "Table") -> Source:
    from domkl.data.ranges import check_known
    from domkl.data.streams import scale_note

    check_known(_declared(args), (*table.names, args.target, *args.drop))
    inputs, target = _scaled(args, table.X, table.names), _scaled(args, table.y, args.target)
    facts = _facts(args, args.csv.name, target) | {"target": args.target, "drop": args.drop}
    facts["values_outside"] = n_outside = int(inputs.n_outside.sum() + target.n_outside)
    how = scale_note(args.scale, target, "the target, inputs likewise", n_outside)
    note = f"{_left_out(table.n_dropped)}; {how}"
    return Source(args.csv.name, inputs.values, target.values, False, facts, note)


def _facts(args: argparse.Namespace, name: str, label: "Scaled") -> dict[str, Any]:
    return {
        "data": name,
        "partition": args.partition,
        "missing": args.missing,
        "scale": args.scale,
        "target_offset": float(label.offset),
        "target_divisor": float(label.divisor),
    }
