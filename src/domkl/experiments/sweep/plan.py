"""From what a file says to units of work."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from domkl.algorithms.base import Algorithm
from domkl.errors import DataError
from domkl.experiments.compare import cost_of
from domkl.experiments.source import Source, read_source
from domkl.experiments.store import digest_of
from domkl.experiments.sweep.spec import Data, Method, Network, Spec, at, is_plain, on_series
from domkl.experiments.sweep.unit import Cell, Unit, unit_code
from domkl.sim.inputs import as_trials, check_algorithm

#: microseconds that a unit should take on one core, roughly: long beside what it costs to send
#: one, short enough that all workers end at about the same time
UNIT_COST = 200_000.0


@dataclass(frozen=True)
class Point:
    """A cell, what the table says of it, and its units."""

    cell: Cell
    labels: dict[str, Any]
    units: tuple[Unit, ...]


@dataclass(frozen=True)
class Plan:
    """All of a sweep."""

    name: str
    points: tuple[Point, ...]

    @property
    def units(self) -> list[Unit]:
        """All units."""
        return [unit for point in self.points for unit in point.units]


def make_plan(spec: Spec) -> Plan:
    """Read the data, and check that every cell can be run."""
    code, points = unit_code(), {}
    for data, method, cell in _cells(spec):
        labels = _labels(data, cell, method)
        if (cell, tuple(labels.items())) not in points:
            _check(cell, method)
            units = _units(cell, spec.n_trials, code)
            points[cell, tuple(labels.items())] = Point(cell, labels, units)
    return Plan(spec.name, tuple(points.values()))


def _cells(spec: Spec) -> Iterator[tuple[Data, Method, Cell]]:
    """Every combination of what the file says, and what it was made of."""
    for data in spec.data:
        with at(f"data {data.label}"):
            source = read_source(data.choice)
        samples, n_inputs = digest_of(source.X, source.y), source.X.shape[1]
        methods = [on_series(each) if source.is_series else each for each in spec.methods]
        for network, method in itertools.product(spec.networks, methods):
            n_rounds = _rounds(data, source, network)
            for n_frequencies, dtype in itertools.product(spec.frequencies, spec.dtypes):
                cell = Cell(
                    data.choice, samples, n_rounds, n_inputs,
                    network.kind, network.n_learners, network.parameters,
                    method.algorithm, method.bandwidth, n_frequencies, dtype, spec.seed,
                )  # fmt: skip
                yield data, method, cell


def _rounds(data: Data, source: Source, network: Network) -> int:
    n_rounds = len(source.y) // network.n_learners
    if n_rounds == 0:
        raise DataError(
            f"{network.n_learners} learners need at least as many samples,"
            f" {data.label} has {len(source.y)}"
        )
    return n_rounds if data.rounds is None else min(n_rounds, data.rounds)


def _check(cell: Cell, method: Method) -> None:
    """Draw the first trial, and see that the algorithm takes it."""
    with at(f"{method.name} on a {cell.kind} graph of {cell.n_learners} learners"):
        check_algorithm(cell.algorithm, as_trials(cell.graph(0), cell.features(0)), cell.dtype)


def _units(cell: Cell, n_trials: int, code: str) -> tuple[Unit, ...]:
    """Cut the trials into units, in the same places however many there are in all."""
    per_trial = cost_of(
        cell.algorithm, cell.n_rounds * cell.n_learners, cell.n_inputs, cell.n_learners
    )
    size = max(1, round(UNIT_COST / per_trial))
    sizes = {first: min(size, n_trials - first) for first in range(0, n_trials, size)}
    return tuple(Unit(cell, first, n, n * per_trial, code) for first, n in sizes.items())


def _labels(data: Data, cell: Cell, method: Method) -> dict[str, Any]:
    """The cell's row in the table, without its trials."""
    width = {} if cell.bandwidth is None else {"bandwidth": cell.bandwidth}
    return {
        "data": data.label,
        **dict(data.given),
        "rounds": cell.n_rounds,
        "graph": cell.kind,
        "learners": cell.n_learners,
        **dict(cell.network),
        "algorithm": method.name,
        **plain(cell.algorithm),
        **width,
        "frequencies": cell.n_frequencies,
        "dtype": cell.dtype,
        "seed": cell.seed,
    }


def plain(algorithm: Algorithm) -> dict[str, Any]:
    """Those of its parameters that a file could say."""
    return {key: value for key, value in algorithm.parameters().items() if is_plain(value)}
