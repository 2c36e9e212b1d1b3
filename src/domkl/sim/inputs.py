"""What enters `simulate`: trials, algorithm and stream, each checked here and trusted after."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks
from domkl.algorithms.base import Algorithm
from domkl.core.exchange import DELIVERIES
from domkl.core.features import RandomFeatures
from domkl.errors import DataError, GraphError, ParameterError
from domkl.graphs.graph import Graph
from domkl.typing import Floats


class Trials(NamedTuple):
    """A graph and a map for each trial."""

    graphs: list[Graph]
    maps: list[RandomFeatures]
    is_batch: bool  # whether lists were given, so that results have a trial axis


class Stream(NamedTuple):
    """The samples: arrays X (T, K, d), y (T, K), or else an iterator of rounds."""

    arrays: tuple[Floats, Floats] | None
    iterator: Iterator[tuple[Floats, Floats]] | None
    #: (round, learner) of samples whose inputs are missing; those of an iterator as they come
    blind: list[list[int]]

    def rounds(self) -> Iterable[tuple[Floats, Floats]]:
        """Every round (x, y); an iterator can be had once."""
        if self.arrays is not None:
            return zip(*self.arrays, strict=True)
        return self.iterator or ()

    @property
    def n_rounds(self) -> int | None:
        """T, where it is known."""
        return None if self.arrays is None else len(self.arrays[1])


def as_trials(
    graph: Graph | Sequence[Graph], features: RandomFeatures | Sequence[RandomFeatures]
) -> Trials:
    """Pair graphs with maps; one of either serves all of the other."""
    graphs = _listed("graph", graph, Graph)
    maps = _listed("features", features, RandomFeatures)
    if isinstance(graph, Graph):
        graphs = graphs * len(maps)
    if isinstance(features, RandomFeatures):
        maps = maps * len(graphs)
    if len(graphs) != len(maps):
        raise ParameterError(
            "graph and features must be lists of equal length,"
            f" got {len(graphs)} graphs and {len(maps)} feature maps"
        )
    sizes = sorted({g.n_learners for g in graphs})
    if len(sizes) > 1:
        raise GraphError(f"graphs of all trials must have equal size, got sizes {sizes}")
    shapes = sorted({(m.frequencies.shape, m.linear) for m in maps})
    if len(shapes) > 1:
        raise ParameterError(f"features of all trials must have equal shape, got {shapes}")
    is_batch = not (isinstance(graph, Graph) and isinstance(features, RandomFeatures))
    return Trials(graphs, maps, is_batch)


def _listed(name: str, given: Any, kind: type) -> list[Any]:
    if isinstance(given, kind):
        return [given]
    listed = list(given) if isinstance(given, Sequence) else []
    if not listed or not all(isinstance(item, kind) for item in listed):
        raise ParameterError(
            f"{name} must be a {kind.__name__} or a list of at least one, got {given!r}"
        )
    return listed


SINGLE_RANGE = (1e-30, 1e30)  # of a parameter: its products and inverses are finite in float32


def check_algorithm(algorithm: Algorithm, trials: Trials, dtype: str) -> None:
    """Raise where the algorithm does not suit the features, the graphs or the type."""
    graphs, maps = trials.graphs, trials.maps
    if not isinstance(algorithm, Algorithm):
        raise ParameterError(f"algorithm must be an Algorithm, such as DOMKL(), got {algorithm!r}")
    for field, delivery in algorithm.exchange.items():
        checks.choice(f"exchange[{field!r}]", delivery, DELIVERIES)
    inner = getattr(algorithm, "algorithm", algorithm)
    for field, value in getattr(inner, "__dict__", {}).items():
        if dtype == "float32" and isinstance(value, float):
            low, high = SINGLE_RANGE
            if not low <= abs(value) <= high:
                raise ParameterError(
                    f"{field} must be in [{low:g}, {high:g}] for float32, got {value!r}"
                )
    name = type(algorithm).__name__
    if algorithm.single_kernel and maps[0].n_kernels != 1:
        raise ParameterError(
            f"{name} takes features of one kernel, got {maps[0].n_kernels};"
            " use features.kernel(p), or an algorithm for several"
        )
    if algorithm.needs_acyclic and not all(g.is_acyclic for g in graphs):
        raise GraphError(
            f"{name} with message passing needs a graph without cycles,"
            f" got {graphs[0].n_learners} learners with one; use weights='neighbors'"
        )


def as_stream(X: Any, y: ArrayLike | None, trials: Trials, algorithm: Algorithm) -> Stream:
    """Check arrays now, and an iterator's rounds as they come."""
    n_learners, n_inputs = trials.graphs[0].n_learners, trials.maps[0].n_inputs
    if y is None:
        if not isinstance(X, Iterable) or isinstance(X, np.ndarray):
            raise DataError("X must be an iterator of rounds (x, y) where y is None")
        blind: list[list[int]] = []
        rounds = _checked_rounds(iter(X), n_learners, n_inputs, algorithm, blind)
        return Stream(None, rounds, blind)
    if isinstance(X, Iterator):
        raise DataError("y must be None where X is an iterator of rounds (x, y)")
    inputs = checks.samples("X", X, "T K d", may_miss=True)
    targets = checks.samples("y", y, "T K", may_miss=True)
    if inputs.shape[1:] != (n_learners, n_inputs):
        raise DataError(
            f"X must have shape (T, {n_learners}, {n_inputs}) for this graph and these features,"
            f" got {inputs.shape}"
        )
    if targets.shape != inputs.shape[:2]:
        raise DataError(f"y must have shape {inputs.shape[:2]} as X, got {targets.shape}")
    blind = np.argwhere(np.isnan(inputs).any(axis=2)).tolist()
    return Stream(_without_gaps("X and y", inputs, targets, algorithm), None, blind)


def _checked_rounds(
    rounds: Iterator[Any],
    n_learners: int,
    n_inputs: int,
    algorithm: Algorithm,
    blind: list[list[int]],
) -> Iterator[tuple[Floats, Floats]]:
    for t, pair in enumerate(rounds):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise DataError(f"round {t} must be a pair (x, y), got {type(pair).__name__}")
        x = checks.samples(f"x of round {t}", pair[0], "K d", may_miss=True)
        y = checks.samples(f"y of round {t}", pair[1], "K", may_miss=True)
        if x.shape != (n_learners, n_inputs) or y.shape != (n_learners,):
            raise DataError(
                f"round {t} must hold x ({n_learners}, {n_inputs}) and y ({n_learners},),"
                f" got {x.shape} and {y.shape}"
            )
        blind += [[t, k] for k in np.flatnonzero(np.isnan(x).any(axis=1)).tolist()]
        yield _without_gaps(f"x and y of round {t}", x, y, algorithm)


def _without_gaps(name: str, x: Floats, y: Floats, algorithm: Algorithm) -> tuple[Floats, Floats]:
    """Check the labels; samples whose inputs are missing get inputs of 0, and no label.

    Such a learner follows the others, and what it predicts is not scored. Numba would compile
    everything anew for arrays that are not contiguous and writable.
    """
    x, y = np.require(x, None, ["C", "W"]), np.require(y, None, ["C", "W"])
    is_blind = np.asarray(np.isnan(x).any(axis=-1))
    is_missing = np.isnan(y) | is_blind
    if algorithm.loss is not None:
        algorithm.loss.check_labels(y[~is_missing])
    if not is_missing.any():
        return x, y
    if not algorithm.takes_missing:
        where = tuple(int(i) for i in np.argwhere(is_missing)[0])
        raise DataError(
            f"{name} must be finite for {type(algorithm).__name__}, which takes no missing samples,"
            f" got nan at index {where}"
        )
    return np.where(is_blind[..., None], 0.0, x), np.where(is_blind, np.nan, y)


def check_delay(delay: int | None, y: Any, n_rounds: int | None) -> int:
    """Give the delay that was asked for, or that the labels need."""
    needed = getattr(y, "delay", 0)
    if delay is None:
        delay = needed
    delay = checks.whole("delay", delay, 0)
    if delay < needed:
        raise ParameterError(
            f"delay must be at least {needed} for these labels, which are known that late,"
            f" got {delay}"
        )
    if n_rounds is not None and delay >= n_rounds:
        raise DataError(f"delay must be below the {n_rounds} rounds of the stream, got {delay}")
    return delay
