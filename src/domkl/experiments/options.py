"""What an experiment asks for, with the defaults: options of the command line and of sweep files.

This module loads no library, so that `domkl simulate --help` can show the options at once.
`experiments/data.py` reads the data that they name.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from domkl.data.catalog import DATASETS, DataSet, find
from domkl.errors import ParameterError
from domkl.graphs.kinds import KINDS, NEAREST
from domkl.options import DTYPES, LAGS, LEVELS, MISSING, NODE, PARTITIONS, RULES, SCALES, flag
from domkl.text import parse_numbers

#: the data set that is used if neither a data set nor a file is named
USUAL = "traffic"


@dataclass(frozen=True)
class DataOptions:
    """What to read and how to scale it; the fields are options of `domkl simulate`.

    Lists are words with commas, as at the command line: ``lags="1,2,24"``; a number of lags stands
    for all of them up to it.
    """

    data: str | None = flag(
        None, f"a data set of the catalog: {', '.join(DATASETS)} (default: {USUAL})", "NAME",
        choices=DATASETS, group="data",
    )  # fmt: skip
    data_dir: str | Path | None = flag(
        None, "folder with its file (default: $DOMKL_DATA, then the cache)", "DIR", group="data"
    )
    rule: str = flag(
        RULES[0], "rows of a data set: those that the authors used, or all complete ones",
        choices=RULES, group="data",
    )  # fmt: skip
    csv: str | Path | None = flag(
        None, f"a CSV file with a header, plain or .gz; with {NODE} in the name, one file per node",
        "FILE", group="data",
    )  # fmt: skip
    target: str | None = flag(None, "the column of a table to predict", "COLUMN", group="data")
    drop: tuple[str, ...] = flag(
        (), "a column of a table that is not an input", "COLUMN", group="data"
    )
    series: str | None = flag(
        None, "the column of a time series; only its lags are inputs", "COLUMN", group="data"
    )
    lags: int | str | None = flag(
        None, "lags of the target: 5 for 1 to 5, or 1,2,3,24; lag 1 is the newest known value"
        f" (default: {LAGS} for a time series, or those of the data set)", "S", group="data",
    )  # fmt: skip
    horizon: int | str | None = flag(
        None, "predict H steps after the newest known value, or a list such as 1,6,24; labels are"
        " learned when they become known (default: the next value, or those of the data set)",
        "H", group="data",
    )  # fmt: skip
    inputs: str | None = flag(
        None, "columns to use as inputs, and hour, weekday, yearday, computed from the time"
        " (default: all usable columns)", "A,B,C", group="data",
    )  # fmt: skip
    rows: int | str | None = flag(
        None, "the first N rows, or a Python slice", "N or A:B:C", group="data"
    )
    missing: str = flag(
        MISSING[0], "what to do with rows that have empty cells, if rows are dealt out",
        choices=MISSING, group="data",
    )  # fmt: skip
    scale: str | None = flag(
        None, "minmax: (v - min)/(max - min); authors: as the authors did, mostly (v - min)/max;"
        " declared: by declared ranges; none: not at all (default: minmax; for data sets of nodes,"
        " declared)", choices=SCALES, group="data",
    )  # fmt: skip
    ranges: Path | None = flag(
        None, "declared ranges: a CSV file with the columns column, low, high", "FILE", group="data"
    )
    time: str | None = flag(
        None, "column with the time, or several: year,month,day,hour or date,time", "COLUMN",
        group="nodes",
    )  # fmt: skip
    nodes: str | None = flag(None, "column with the name of the node", "COLUMN", group="nodes")
    time_format: str | None = flag(
        None, "format of times that are not ISO dates, such as %m/%d/%Y (default: detected)", "F",
        group="nodes",
    )  # fmt: skip
    every: str | None = flag(
        None, "step of the clock, such as 30min (default: detected)", "D", group="nodes"
    )
    hold: str | None = flag(
        None, "how long the last known value replaces a missing input, such as 12h (default: a day,"
        " or three steps if that is longer)", "D", group="nodes",
    )  # fmt: skip
    input_lags: int | str | None = flag(
        None, "lags of the other inputs, as --lags (default: the newest value)", "S", group="nodes"
    )
    known_ahead: str | None = flag(
        None, "inputs that are known ahead, taken at the time of the label; from a file of"
        " measurements this is a perfect forecast", "A,B", group="nodes",
    )  # fmt: skip
    levels: int = flag(
        LEVELS, "largest number of levels of a text column, each an input of 0 or 1", "N",
        group="nodes",
    )  # fmt: skip
    na: tuple[str, ...] = flag(
        (), "another word or number that means a missing cell, such as --na=-200", "WORD",
        group="nodes",
    )  # fmt: skip
    places: Path | None = flag(
        None, "CSV file with node, latitude, longitude; each node is joined with the three nearest",
        "FILE", group="nodes",
    )  # fmt: skip
    partition: str | None = flag(
        None, f"how samples are dealt out to the learners (default: {PARTITIONS[0]})",
        choices=PARTITIONS, group="network",
    )  # fmt: skip
    is_class: bool = False  # whether the target has two values, which become -1 and 1

    @property
    def known(self) -> DataSet | None:
        """The data set of the catalog, unless a CSV file is given."""
        return None if self.csv is not None else find(self.name)

    @property
    def name(self) -> str:
        """The data set, or the name of the file."""
        return Path(self.csv).name if self.csv is not None else self.data or USUAL

    @property
    def has_nodes(self) -> bool:
        """Whether learners have streams of their own, which are not dealt."""
        if self.known is not None:
            return self.known.nodes is not None
        return bool(self.time or self.nodes or NODE in str(self.csv))

    @property
    def how_scaled(self) -> str:
        """The scale that was asked for, or the default."""
        is_declared = self.known is not None and self.known.nodes is not None
        return self.scale or ("declared" if is_declared else "minmax")

    @property
    def horizons(self) -> tuple[int, ...] | None:
        """The horizons that were asked for."""
        return None if self.horizon is None else parse_numbers("horizon", self.horizon, 0)


@dataclass(frozen=True)
class Setting:
    """The settings that all algorithms of a comparison share."""

    n_learners: int = 10
    connection: float | None = 0.25  # of a random graph; None: the graph is given by the data
    topology: str | None = None  # kind of the graph; None: random, or nearest if data have places
    n_trials: int = flag(20, "number of trials", "N", group="network", word="trials")
    n_frequencies: int = flag(
        50, "random frequencies per kernel", "M", group="algorithms", word="frequencies"
    )
    #: σ² of single-kernel algorithms, each in half of the trials, as in the paper's Figure 1
    bandwidths: tuple[float, ...] = (1e-3, 1e3)
    seed: int = flag(1, "seed of all random draws", "S", group="run")
    dtype: Literal["float64", "float32"] = flag("float64", "precision", choices=DTYPES, group="run")
    threads: int | None = flag(
        None, "cores to use (default: all); results do not depend on it", "N", group="run",
        compare=False,
    )  # fmt: skip
    quantiles: tuple[float, ...] = ()  # levels of those to judge, of algorithms that have them

    @property
    def kind(self) -> str:
        """The kind of its graphs."""
        return self.topology or ("random" if self.connection is not None else NEAREST)

    def __post_init__(self) -> None:
        from domkl import checks

        checks.whole("learners", self.n_learners, 1)
        if self.topology is not None:
            checks.choice("topology", self.topology, KINDS)
        if self.connection is not None:
            checks.fraction("connect", self.connection)
        checks.whole("trials", self.n_trials, 1)
        checks.whole("frequencies", self.n_frequencies, 1)
        checks.whole("seed", self.seed, 0)
        if self.threads is not None:
            checks.whole("threads", self.threads, 1)
        for bandwidth in self.bandwidths:
            checks.positive("bandwidth", bandwidth)


@dataclass(frozen=True)
class Plan:
    """The size and the duration of `domkl mesh demo`."""

    learners: int = flag(10, "number of learners", "K")
    rate: float = flag(10.0, "samples per second, of each learner", "R")
    seconds: float = flag(50.0, "duration, from the first round to the end", "S")
    seed: int = flag(1, "seed of the features", "S")

    def __post_init__(self) -> None:
        from domkl import checks

        checks.whole("learners", self.learners, 4)
        checks.positive("rate", self.rate)
        if not 30 <= self.seconds <= 3600:
            raise ParameterError(f"seconds must be 30 to 3600, got {self.seconds:g}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all learners."""
        width = len(str(self.learners))
        return tuple(f"learner-{k:0{width}}" for k in range(1, self.learners + 1))

    @property
    def victims(self) -> dict[str, str]:
        """The learner that is killed, and the one that is cut off."""
        return {"kill": self.names[1], "cut": self.names[-1]}
