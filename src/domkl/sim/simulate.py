"""`simulate`: distribute the trials over the cores, run them, collect the results."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks
from domkl.algorithms.base import Algorithm, Inputs
from domkl.core.features import RandomFeatures
from domkl.core.jit import IS_COMPILING
from domkl.errors import DataError, ParameterError
from domkl.graphs.graph import Graph
from domkl.learner.restore import of_now
from domkl.sim.blocked import play_network
from domkl.sim.cells import Cell, Options, quantile_name
from domkl.sim.compiled import play_trial
from domkl.sim.delay import split_waiting, waiting_of_now
from domkl.sim.inputs import Stream, Trials, as_stream, as_trials, check_algorithm, check_delay
from domkl.sim.interpreted import Step, learn, run_cell
from domkl.sim.result import Run, collect, split_state
from domkl.sim.threads import available_cores, run_all
from domkl.sim.timing import timing_of
from domkl.speech.base import Speech, Voice
from domkl.speech.plain import PLAIN
from domkl.typing import Real

EXACT_CV_UP_TO = 1000
CELL_BYTES = 4_000_000
PLAYED_UP_TO = 128  # learners, of relative cost 1: too few to be shared out among threads
PLAYED_ON_ONE_CORE = 32  # learners whose state stays in the core's own cache

Progress = Callable[[int, int | None], None]
Host = Callable[[Cell, Stream, Callable[[int], None]], None]
#: how learners exchange elsewhere: graph, features, algorithm, options and number of a trial
Mesh = Callable[[Graph, RandomFeatures, Algorithm, Options, int], Step]


def simulate(
    algorithm: Algorithm,
    X: ArrayLike | Iterable[tuple[ArrayLike, ArrayLike]],
    y: ArrayLike | None,
    graph: Graph | Sequence[Graph],
    features: RandomFeatures | Sequence[RandomFeatures],
    *,
    cv: str | None = None,
    dtype: Real = "float64",
    delay: int | None = None,
    period: int | None = None,
    times: ArrayLike | None = None,
    discrepancy: bool = False,
    deviation: bool = False,
    quantiles: Sequence[float] | None = None,
    keep_predictions: bool | None = None,
    state: Any = None,
    reuse_state: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    seed: int = 0,
    interpreted: bool | None = None,
    mesh: Mesh | None = None,
    speech: Speech = PLAIN,
) -> Run:
    """Run an algorithm on a network of learners, each with its own stream.

    In each round, every learner predicts its label, sees it, learns from it, and exchanges messages
    with its neighbors. X and y are not scaled. NaN in y marks a missing label: the learner
    predicts, learns nothing and follows its neighbors, and no metric counts the sample. With NaN in
    its inputs it does not predict either.

    Parameters
    ----------
    algorithm : Algorithm
        Such as `DOMKL()`, or one of your own.
    X : (T, K, d), or an iterator of rounds (x (K, d), y (K,))
    y : (T, K), or None with an iterator
    graph : Graph, or a list of them
        A list runs one trial per entry, on the same stream; results then have a leading trial axis.
    features : RandomFeatures, or a list of them
        If only one of graph and features is a list, the other is used in all trials.
    cv : "exact", "moments", "sampled" or "off"
        How to compute CV: over all pairs, O(K²); the same from mean and covariance of the learners'
        parameters, O(K·(PD)²); over 1000 pairs per round, with its standard error; or not at all.
        By default exact up to 1000 learners, sampled above.
    dtype : "float64" or "float32"
        The type of the state. Losses, weights and metrics are always float64.
    delay : int, optional
        Rounds until a label is seen. 0 is the paper's order: predict, see the label, learn. With n,
        predictions are made on time, and the sample of round t − n is learned at the end of round
        t. Labels that are h steps ahead on a learner's own stream need h − 1. By default the delay
        that y carries if `embed` or `deal` made it for a horizon, otherwise 0.
    period : int, optional
        Rounds after which the streams repeat themselves, 0 for none, for an algorithm that can use
        it. DOMKRLS then tells each round's place in the season; without a period, each learner
        looks for one in its past labels.
    times : (T,), optional
        When each round was, in ascending order: datetime64, or whole numbers of steps. Rounds that
        are missing between them pass without samples, if labels are not late. Dates give the
        period, too: a day, or a week where a step is a day.
    discrepancy : bool
        Keep the terms of regret_d of Theorems 1 and 2.
    deviation : bool
        Keep the standard deviation of each prediction, if the algorithm has one.
    quantiles : sequence of float, optional
        Keep where each label is expected, if the algorithm has deviations: quantiles of these
        levels, ascending in (0, 1). 0.1 and 0.9 are the ends of the band that holds 80 %.
    keep_predictions : bool
        Keep predictions and per-learner curves; by default with arrays, not with an iterator.
    state
        Continue from ``run.state`` of an earlier run.
    reuse_state : bool
        Write into the arrays of ``state`` instead of a copy, for states that fit into memory once.
    threads : int
        Cores to use, all by default. The result does not depend on it. Trials are shared out, and
        the learners or kernels of one trial where the algorithm allows
        (docs/explanation/scaling.md); several trials of an iterator run on one core.
    progress : callable
        Called from time to time with the number of rounds done and the total number, over all
        trials; the latter is None with an iterator.
    seed : int
        Seed of the pairs of a sampled cv.
    interpreted : bool, optional
        True calls the algorithm's methods round by round even where compiled rounds are possible:
        slower, with identical results, and accessible to a debugger. False compiles at once. By
        default small runs are interpreted until this has cost some two seconds, unless compiled
        rounds are already stored on disk.
    mesh : domkl.mesh.testing.VirtualMesh, optional
        Let the learners exchange as the nodes of a mesh do, in virtual time: with guards against
        neighbors that lie, with liars, with frames that are lost or late. Without any of these
        results are the same, and much slower.
    speech : Speech, optional
        How messages leave a learner; exactly as they are by default.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((200, 3, 2)); y = np.sin(3 * X[..., 0])
    >>> from domkl.core.kernels import gaussian_bank
    >>> from domkl.algorithms.admm import DOMKL
    >>> features = RandomFeatures.draw(gaussian_bank([0.1, 1.0]), n_inputs=2, seed=7)
    >>> run = simulate(DOMKL(), X, y, Graph.ring(3), features)
    >>> bool(run.mse[-1] < run.mse[9]), run.predictions.shape, run.theta.shape
    (True, (200, 3), (3, 2, 100))
    """
    trials = as_trials(graph, features)
    dtype = getattr(dtype, "__name__", dtype)  # numpy's own types go by their names
    check_algorithm(algorithm, trials, dtype)
    timing = timing_of(times, period, None if y is None else len(np.asarray(y)))
    algorithm = algorithm.suited(period=timing.period)
    X, y = (timing.filled(each) for each in (X, y))
    stream = as_stream(X, y, trials, algorithm)
    n_trials, n_learners = len(trials.graphs), trials.graphs[0].n_learners
    if cv is None:
        cv = "exact" if n_learners <= EXACT_CV_UP_TO else "sampled"
    if cv == "sampled" and n_learners == 1:
        cv = "exact"  # there is no pair to draw
    keep = stream.arrays is not None if keep_predictions is None else keep_predictions
    kept = ("predictions", "targets") * keep + ("gaps",) * discrepancy + ("deviation",) * deviation
    kept += ("spread", "inside") * (keep and cv in ("exact", "moments"))
    levels = () if quantiles is None else tuple(checks.levels("quantiles", quantiles).tolist())
    kept += tuple(map(quantile_name, levels))
    n_late = check_delay(delay, y, stream.n_rounds)
    if n_late and timing.steps is not None:
        raise DataError(
            f"times must have no gaps where labels come {n_late} rounds late: they would be seen"
            " before their time; give the missing rounds, with NaN in X and y"
        )
    algorithm = algorithm.delayed(n_late)
    threads = available_cores() if threads is None else checks.whole("threads", threads, 1)
    n_threads, is_patient = max(1, threads // n_trials), interpreted is None
    options = Options(dtype, cv, kept, seed, n_threads, is_patient, n_late, speech, levels)
    play = run_cell if interpreted else _host(algorithm, trials, stream, options)
    if mesh is not None:
        if not callable(mesh) or isinstance(mesh, type):
            raise ParameterError(f"mesh must be a VirtualMesh(...), got {mesh!r}")
        if state is not None:
            raise ParameterError("state must be None with mesh, got one: its learners start anew")
        play = partial(_play_in_mesh, mesh)
    n_cells = n_trials if play is not run_cell else _n_cells(trials, stream, dtype, threads)
    cuts = np.linspace(0, n_trials, n_cells + 1).astype(int).tolist()
    cells = [
        Cell(trials.graphs[low:high], trials.maps[low:high], algorithm, options, low)
        for low, high in pairwise(cuts)
    ]
    if state is not None:
        _resume(cells, state, reuse_state)
    elif timing.start:
        for cell in cells:
            cell.state = algorithm.at(cell.first_state(), timing.start)

    total = None if stream.n_rounds is None else stream.n_rounds * n_trials

    def job(cell: Cell, after_rounds: Callable[[int], None]) -> None:
        play(cell, stream, after_rounds)

    run_all(job, cells, threads, total, progress, is_inline=stream.arrays is None)
    if cells[0].records is None or cells[0].records.n_rounds == 0:
        raise DataError("X must give at least one round, got none")
    run = collect(cells, stream.blind, trials.is_batch)
    return run if timing.steps is None else run.only(timing.steps)


def _host(algorithm: Algorithm, trials: Trials, stream: Stream, options: Options) -> Host:
    """Who runs a cell: a compiled host where one does all that is asked for."""
    law, n_learners = algorithm.law, trials.graphs[0].n_learners
    is_measured = options.cv != "off"
    if law is None or {"gaps", "deviation"} & set(options.kept) or options.levels:
        return run_cell
    if not is_compilable(algorithm, trials.maps[0], options.dtype):
        return run_cell
    if (stream.arrays is None and len(trials.graphs) > 1) or (is_measured and law.function is None):
        return run_cell
    is_small = n_learners * algorithm.relative_cost <= PLAYED_UP_TO
    if law.is_separable:  # its kernels can be shared out, and larger networks run by kernel
        is_small = options.threads == 1 and n_learners <= PLAYED_ON_ONE_CORE
    if options.cv == "exact" or (not is_measured and is_small):
        return run_cell if stream.arrays is None else play_trial
    return play_network


def _play_in_mesh(
    mesh: Mesh, cell: Cell, stream: Stream, after_rounds: Callable[[int], None]
) -> None:
    """Run a cell of one trial whose learners exchange elsewhere."""
    step = mesh(cell.graphs[0], cell.maps[0], cell.algorithm, cell.options, cell.first_trial)
    run_cell(cell, stream, after_rounds, step)


def is_compilable(algorithm: Algorithm, features: RandomFeatures, dtype: str) -> bool:
    """Whether Numba takes the law: a user's is tried on one learner and one sample."""
    law: Any = algorithm.law
    if law.state.__module__.startswith("domkl.") or not law.is_compiled:
        return bool(law.is_compiled or not IS_COMPILING)
    smallest = Cell([Graph.empty(1)], [features], algorithm, Options(dtype))
    state, (z, energy) = smallest.first_state(), features.empty(1, 1, dtype)
    inputs = Inputs(np.zeros((1, features.n_inputs)), z[0], energy[0])
    prediction = algorithm.predict(state, inputs)
    learn(algorithm, state, inputs, np.ones(1), prediction, smallest.network, Voice(PLAIN))
    algorithm.function(state)
    return bool(law.is_compiled)


def _n_cells(trials: Trials, stream: Stream, dtype: str, threads: int) -> int:
    """How many cells share the trials of interpreted rounds: one, where the stream comes only once.

    Else cells small enough for a core's cache, large enough for its calls, even for the threads.
    """
    if stream.arrays is None:
        return 1
    features, n_learners = trials.maps[0], trials.graphs[0].n_learners
    theta = n_learners * features.n_kernels * features.n_features
    per_trial = 4 * theta * np.dtype(dtype).itemsize + features.turns.nbytes
    n_cells = -(-len(trials.graphs) // max(1, round(CELL_BYTES / per_trial)))
    return min(-(-n_cells // threads) * threads, len(trials.graphs))


def _resume(cells: list[Cell], state: Any, is_reused: bool) -> None:
    n_rows = [cell.network.graph.n_learners for cell in cells]
    algorithm = cells[0].algorithm
    state, waiting = split_waiting(state, cells[0].options.delay, n_rows)
    templates = [cell.first_state() for cell in cells]
    states = split_state(algorithm, of_now(algorithm, state, templates[0]), templates, is_reused)
    for cell, part, waits in zip(cells, states, waiting, strict=True):
        cell.state, cell.waiting = part, waiting_of_now(waits, algorithm, part)
