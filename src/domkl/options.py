"""Options of functions, sweep files and the command line: their words, and fields that declare one.

This module imports no library, so that `domkl --help` can list the words without loading NumPy.
"""

from collections.abc import Iterable
from dataclasses import field
from typing import Any

#: which rows of a catalog data set are used: those that the paper's authors took, or all complete
#: ones
RULES = ("paper", "clean")

#: how values are scaled; `domkl.scaled` describes each
SCALES = ("minmax", "authors", "declared", "none")

#: how samples are dealt to learners; `domkl.deal` describes each
PARTITIONS = ("interleaved", "blocks", "shuffled")

#: what is done with a row of a user's table that has an empty cell
MISSING = ("error", "drop")

#: precision of the states of a simulation
DTYPES = ("float64", "float32")

#: lags of a time series, unless others are asked for
LAGS = 5

#: stands for the name of a node in the path of a file
NODE = "{node}"

#: largest number of levels of a text column, unless another is asked for
LEVELS = 20


def flag(
    default: Any,
    text: str,
    metavar: str | None = None,
    *,
    choices: Iterable[str] | None = None,
    group: str | None = None,
    word: str | None = None,
    compare: bool = True,
) -> Any:
    """A field of a dataclass that is also an option of the command line.

    ``text`` is its help, to which `domkl.cli.options.add_fields` adds the default; ``group`` is the
    group of options that it belongs to; ``word`` is the option where it is not the field's name.
    """
    told = {"help": text, "metavar": metavar, "choices": choices, "group": group, "word": word}
    return field(default=default, metadata=told, compare=compare)
