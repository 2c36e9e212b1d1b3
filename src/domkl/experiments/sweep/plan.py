"""From a sweep file to units."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from domkl.algorithms.base import Algorithm
from domkl.data.forecast import Prepared
from domkl.errors import DataError, ParameterError
from domkl.experiments.compare import cost_of, suited_to
from domkl.experiments.data import learners_of, read_data
from domkl.experiments.store import digest_of
from domkl.experiments.sweep.spec import Data, Method, Network, Spec, at, is_plain
from domkl.experiments.sweep.unit import Combination, Unit, unit_code
from domkl.graphs.kinds import KINDS, NEAREST
from domkl.options import PARTITIONS
from domkl.sim.inputs import as_trials, check_algorithm
from domkl.typing import Floats

#: microseconds that a unit should take on one core: much longer than it takes to send a unit, and
#: short enough that all workers end at about the same time
UNIT_COST = 200_000.0
#: columns of the table of results that are no labels
MEASURED = ("trial", "mse", "rmse", "mae", "r2", "cv", "diverged", "seconds")


@dataclass(frozen=True)
class Point:
    """A combination, its labels in the table of results, and its units."""

    combination: Combination
    labels: dict[str, Any]
    units: tuple[Unit, ...]


@dataclass(frozen=True)
class SweepPlan:
    """All points of a sweep."""

    name: str
    points: tuple[Point, ...]

    @property
    def units(self) -> list[Unit]:
        """All units."""
        return [unit for point in self.points for unit in point.units]


def make_plan(spec: Spec) -> SweepPlan:
    """Read the data, and check that every combination can be run."""
    points: dict[Any, Point] = {}
    for data, method, made in _combinations(spec):
        labels = _labels(data, made, method)
        if (made, tuple(labels.items())) not in points:
            _check(made, method)
            units = _units(made, spec.n_trials)
            points[made, tuple(labels.items())] = Point(made, labels, units)
    return SweepPlan(spec.name, tuple(points.values()))


def _combinations(spec: Spec) -> Iterator[tuple[Data, Method, Combination]]:
    """Every combination that the file declares: its data and its algorithm beside it."""
    for data in spec.data:
        with at(f"data {data.label}"):
            read = read_data(data.options)
        samples, n_inputs = digest_of(read.X, read.y), read.X.shape[-1]
        for given, method in itertools.product(spec.networks, spec.methods):
            kind, n_learners, parameters = _network(data, read, given)
            n_rounds = _rounds(data, read.y, n_learners)
            algorithm = suited_to(read, method.algorithm)
            for n_frequencies, dtype in itertools.product(spec.frequencies, spec.dtypes):
                made = Combination(
                    data.options, samples, data.options.partition or PARTITIONS[0],
                    n_rounds, n_inputs,
                    kind, n_learners, parameters,
                    algorithm, method.bandwidth, n_frequencies, dtype, spec.seed,
                )  # fmt: skip
                yield data, method, made


def _network(
    data: Data, read: Prepared, given: Network
) -> tuple[str, int, tuple[tuple[str, Any], ...]]:
    """Kind, learners and parameters of a graph, with what the data decide."""
    is_placed = read.places is not None
    with at(f"data {data.label}"):
        n_learners = learners_of(read, given.n_learners)
        if given.kind == NEAREST and not is_placed:
            raise ParameterError(f"a graph of kind {NEAREST} needs nodes with places")
    if given.kind is not None:
        return given.kind, n_learners, given.parameters
    kind = read.graph or (NEAREST if is_placed else "random")
    if n_learners == 1:
        kind = "empty"
    return kind, n_learners, tuple(KINDS[kind].defaults.items())


def _rounds(data: Data, y: Floats, n_learners: int) -> int:
    n_rounds = len(y) if y.ndim == 2 else len(y) // n_learners
    if n_rounds == 0:
        raise DataError(
            f"{n_learners} learners need at least as many samples, {data.label} has {len(y)}"
        )
    return n_rounds if data.rounds is None else min(n_rounds, data.rounds)


def _check(made: Combination, method: Method) -> None:
    """Draw the first trial, and check that the algorithm accepts it."""
    with at(f"{method.name} on a {made.kind} graph of {made.n_learners} learners"):
        check_algorithm(made.algorithm, as_trials(made.graph(0), made.features(0)), made.dtype)


def _units(made: Combination, n_trials: int) -> tuple[Unit, ...]:
    """Cut the trials into units; where the cuts are does not depend on the number of trials."""
    code = unit_code(made.algorithm)
    per_trial = cost_of(
        made.algorithm, made.n_rounds * made.n_learners, made.n_inputs, made.n_learners
    )
    size = max(1, round(UNIT_COST / per_trial))
    sizes = {first: min(size, n_trials - first) for first in range(0, n_trials, size)}
    return tuple(Unit(made, first, n, n * per_trial, code) for first, n in sizes.items())


def _labels(data: Data, made: Combination, method: Method) -> dict[str, Any]:
    """A combination's labels in the table of results."""
    before = {
        "data": data.label,
        **dict(data.given),
        "rounds": made.n_rounds,
        "graph": made.kind,
        "learners": made.n_learners,
        **dict(made.network),
        "algorithm": method.name,
    }
    parameters = plain(made.algorithm)
    after: dict[str, Any] = {} if made.bandwidth is None else {"bandwidth": made.bandwidth}
    after |= {"frequencies": made.n_frequencies, "dtype": made.dtype, "seed": made.seed}
    taken = sorted(parameters.keys() & {*before, *after, *MEASURED})
    if taken:
        raise ParameterError(
            f"{method.name}: parameter {taken[0]!r} must have another name, as the table of results"
            " has a column of this name"
        )
    return before | parameters | after


def plain(algorithm: Algorithm) -> dict[str, Any]:
    """Those of its parameters that a TOML file can express."""
    return {key: value for key, value in algorithm.parameters().items() if is_plain(value)}
