"""`simulate`: check what comes in, share it out over the cores, collect what comes back."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks
from domkl.algorithms.base import Algorithm
from domkl.core.features import RandomFeatures
from domkl.errors import DataError, GraphError, ParameterError
from domkl.graphs.graph import Graph
from domkl.sim.crew import available_cores, run_all
from domkl.sim.engine import Cell, Options, Rounds, first_state, run_cell
from domkl.sim.result import Run, collect, single, split_state
from domkl.typing import Floats, Real

EXACT_CV_UP_TO = 1000
CELL_BYTES = 4_000_000

Progress = Callable[[int, int | None], None]


def simulate(
    algorithm: Algorithm,
    X: ArrayLike | Iterable[tuple[ArrayLike, ArrayLike]],
    y: ArrayLike | None,
    graph: Graph | Sequence[Graph],
    features: RandomFeatures | Sequence[RandomFeatures],
    *,
    cv: str | None = None,
    dtype: Real = "float64",
    discrepancy: bool = False,
    keep_predictions: bool | None = None,
    state: Any = None,
    threads: int | None = None,
    progress: Progress | None = None,
    seed: int = 0,
) -> Run:
    """Run an algorithm on a network of learners, each with its own stream.

    Every round, each learner predicts its label, is measured, learns, and hears its neighbors.
    Nothing is scaled: X and y go in as they are.

    Parameters
    ----------
    algorithm : Algorithm
        Such as `DOMKL()`; a user's own works as well.
    X : (T, K, d), or an iterator of rounds (x (K, d), y (K,))
    y : (T, K), or None with an iterator
    graph : Graph, or a list of them
        A list runs as many trials at once, on the same stream; results gain a leading trial axis.
    features : RandomFeatures, or a list of them
        One graph or one map may be given for all trials of the other's list.
    cv : "exact", "sampled" or "off"
        By default exact up to 1000 learners, sampled above.
    dtype : "float64" or "float32"
        The type of the state. Losses, weights and metrics are float64 always.
    discrepancy : bool
        Keep what regret_d of Theorems 1 and 2 sums.
    keep_predictions : bool
        Keep predictions and per-learner curves; by default with arrays, not with an iterator.
    state
        Go on from ``run.state`` of an earlier run.
    threads : int
        Cores to use, all by default. The result does not depend on it.
    progress : callable
        Called now and then with the rounds done and the rounds to do, over all trials; the latter
        is None with an iterator.
    seed : int
        Of the pairs of a sampled cv.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((200, 3, 2)); y = np.sin(3 * X[..., 0])
    >>> from domkl.core.kernels import gaussian_bank
    >>> from domkl.algorithms.domkl import DOMKL
    >>> features = RandomFeatures.draw(gaussian_bank([0.1, 1.0]), n_inputs=2, seed=7)
    >>> run = simulate(DOMKL(), X, y, Graph.ring(3), features)
    >>> bool(run.mse[-1] < run.mse[9]), run.predictions.shape, run.theta.shape
    (True, (200, 3), (3, 2, 100))
    """
    graphs, maps, is_batch = _trials(graph, features)
    _check_algorithm(algorithm, graphs, maps)
    if cv is None:
        cv = "exact" if graphs[0].n_learners <= EXACT_CV_UP_TO else "sampled"
    checks.choice("cv", cv, ("exact", "sampled", "off"))
    cv = "exact" if cv == "sampled" and graphs[0].n_learners == 1 else cv
    checks.choice("dtype", dtype, ("float64", "float32"))
    threads = available_cores() if threads is None else checks.whole("threads", threads, 1)
    inputs, targets, n_rounds = _stream(X, y, graphs[0].n_learners, maps[0].n_inputs, algorithm)
    keep = (targets is not None) if keep_predictions is None else keep_predictions
    kept = (("predictions", "targets") if keep else ()) + (("gaps",) if discrepancy else ())
    kept += ("spread", "inside") if keep and cv == "exact" else ()
    options = Options(np.dtype(dtype), cv, kept, seed)
    n_cells = 1 if targets is None else _n_cells(graphs, maps, options, threads)
    cells = _cells(graphs, maps, n_cells)
    if state is not None:
        _resume(cells, algorithm, state, options)

    def job(cell: Cell, after_round: Callable[[int], None]) -> None:
        run_cell(cell, algorithm, inputs(), options, lambda: after_round(len(cell.graphs)))

    total = None if n_rounds is None else n_rounds * len(graphs)
    run_all(job, cells, threads, total, progress)
    if cells[0].records is None or cells[0].records.n_rounds == 0:
        raise DataError("X must give at least one round, got none")
    functions = [algorithm.function(cell.state) for cell in cells]
    run = collect(cells, functions, options)
    return run if is_batch else single(run)


def _trials(
    graph: Graph | Sequence[Graph], features: RandomFeatures | Sequence[RandomFeatures]
) -> tuple[list[Graph], list[RandomFeatures], bool]:
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
    return graphs, maps, is_batch


def _listed(name: str, given: Any, kind: type) -> list[Any]:
    if isinstance(given, kind):
        return [given]
    listed = list(given) if isinstance(given, Sequence) else []
    if not listed or not all(isinstance(item, kind) for item in listed):
        raise ParameterError(
            f"{name} must be a {kind.__name__} or a list of at least one, got {given!r}"
        )
    return listed


def _check_algorithm(
    algorithm: Algorithm, graphs: list[Graph], maps: list[RandomFeatures]
) -> None:
    if not isinstance(algorithm, Algorithm):
        raise ParameterError(f"algorithm must be an Algorithm, such as DOMKL(), got {algorithm!r}")
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


def _stream(
    X: Any, y: ArrayLike | None, n_learners: int, n_inputs: int, algorithm: Algorithm
) -> tuple[Callable[[], Rounds], Floats | None, int | None]:
    """A source of rounds, the targets (T, K) where known, and the number of rounds."""
    if y is None:
        if not isinstance(X, Iterable) or isinstance(X, np.ndarray):
            raise DataError("X must be an iterator of rounds (x, y) where y is None")
        checked = _checked_rounds(iter(X), n_learners, n_inputs, algorithm)
        return lambda: checked, None, None
    inputs = np.ascontiguousarray(checks.samples("X", X, "T K d"))
    targets = checks.samples("y", y, "T K")
    if inputs.shape[1:] != (n_learners, n_inputs):
        raise DataError(
            f"X must have shape (T, {n_learners}, {n_inputs}) for this graph and these features,"
            f" got {inputs.shape}"
        )
    if targets.shape != inputs.shape[:2]:
        raise DataError(f"y must have shape {inputs.shape[:2]} as X, got {targets.shape}")
    _check_labels(algorithm, targets)
    return lambda: zip(inputs, targets, strict=True), targets, len(targets)


def _checked_rounds(
    rounds: Iterator[Any], n_learners: int, n_inputs: int, algorithm: Algorithm
) -> Iterator[tuple[Floats, Floats]]:
    for t, pair in enumerate(rounds):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise DataError(f"round {t} must be a pair (x, y), got {type(pair).__name__}")
        x = np.ascontiguousarray(checks.samples(f"x of round {t}", pair[0], "K d"))
        y = checks.samples(f"y of round {t}", pair[1], "K")
        if x.shape != (n_learners, n_inputs) or y.shape != (n_learners,):
            raise DataError(
                f"round {t} must hold x ({n_learners}, {n_inputs}) and y ({n_learners},),"
                f" got {x.shape} and {y.shape}"
            )
        _check_labels(algorithm, y)
        yield x, y


def _check_labels(algorithm: Algorithm, y: Floats) -> None:
    if algorithm.loss is not None:
        algorithm.loss.check_labels(y)


def _n_cells(
    graphs: list[Graph], maps: list[RandomFeatures], options: Options, threads: int
) -> int:
    """Cells small enough for a core's cache, large enough for its calls, even for the threads."""
    theta = graphs[0].n_learners * maps[0].n_kernels * maps[0].n_features
    per_trial = 4 * theta * np.dtype(options.dtype).itemsize + maps[0].turns.nbytes
    in_cache = max(1, round(CELL_BYTES / per_trial))
    n_cells = -(-len(graphs) // in_cache)
    n_cells = -(-n_cells // threads) * threads
    return min(n_cells, len(graphs))


def _cells(graphs: list[Graph], maps: list[RandomFeatures], n_cells: int) -> list[Cell]:
    places = np.array_split(np.arange(len(graphs)), n_cells)
    return [Cell([graphs[b] for b in part], [maps[b] for b in part]) for part in places]


def _resume(cells: list[Cell], algorithm: Algorithm, state: Any, options: Options) -> None:
    templates = [first_state(cell, algorithm, options.dtype) for cell in cells]
    if type(state) is not type(templates[0]):
        raise ParameterError(
            f"state must come from a run of {type(algorithm).__name__},"
            f" got {type(state).__module__}.{type(state).__name__}"
        )
    for cell, part in zip(cells, split_state(state, templates), strict=True):
        cell.state = part
