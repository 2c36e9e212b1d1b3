"""The options that name the data of a command."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from domkl.experiments.source import Source

#: the same as in data/, which the parser need not load
SET_NAMES = (
    "weather", "conductivity", "wave", "twitter", "air-quality", "traffic", "temperature",
)  # fmt: skip
RULE_NAMES = ("paper", "clean")
SCALE_NAMES = ("minmax", "authors", "declared", "none")
PARTITION_NAMES = ("interleaved", "blocks", "shuffled")


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


def read_named(args: argparse.Namespace) -> "Source":
    """Read what the options name, and scale it."""
    from dataclasses import fields

    from domkl.experiments.source import Choice, read_source

    given = {field.name: getattr(args, field.name) for field in fields(Choice)}
    return read_source(Choice(**given | {"drop": tuple(args.drop)}))
