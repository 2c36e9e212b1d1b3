"""`simulate_sharded`: one network over the ranks of MPI, each with some of the learners.

The rounds are those of `simulate`, by the same hosts; this module says who has which learners.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks
from domkl.algorithms.base import Algorithm
from domkl.core.exchange import DELIVERIES
from domkl.core.features import RandomFeatures
from domkl.errors import DataError, GraphError, ParameterError
from domkl.graphs.graph import Graph
from domkl.graphs.partition import Cut, partition
from domkl.sim.cells import Cell, Options
from domkl.sim.inputs import Stream, Trials, as_stream, as_trials, check_algorithm, check_delay
from domkl.sim.mpi.checkpoints import Kept
from domkl.sim.mpi.ranks import Halo, agreed, check_equal, in_step, stop_together, summed, world
from domkl.sim.mpi.rounds import Rounds
from domkl.sim.mpi.shard import Place, Shard, shard_of
from domkl.speech.base import Speech
from domkl.speech.plain import PLAIN
from domkl.typing import Array, Floats, Ints, Real


@dataclass(frozen=True)
class ShardRun:
    """What a rank has in the end.

    Attributes
    ----------
    learners : (n,)
        The numbers of this rank's learners, ascending; everything per learner is in this order.
    mse, cv : (T,)
        Of the whole network, the same on every rank; ``cv`` is NaN when off.
    predictions : (T, n) or None
    theta : (n, P, D) or None
    state
        To go on from, on the same rank of as many, with the same ``part``.
    part : (K,)
        The rank of every learner.
    cut : Cut
        What the partition costs: edges between ranks, rows sent each round, the largest rank.
    halo_bytes : int
        Sent by this rank each round.
    exchange_seconds : float
        Spent in the exchange by this rank in all rounds, waiting for others included.
    """

    learners: Ints
    mse: Floats
    cv: Floats
    predictions: Floats | None
    theta: Array | None
    state: Any
    part: Ints
    cut: Cut
    halo_bytes: int
    exchange_seconds: float


def simulate_sharded(
    algorithm: Algorithm,
    X: ArrayLike | Callable[[Ints], Any],
    y: ArrayLike | None,
    graph: Graph,
    features: RandomFeatures,
    *,
    comm: Any = None,
    part: ArrayLike | None = None,
    cv: str = "off",
    dtype: Real = "float64",
    delay: int | None = None,
    keep_predictions: bool = False,
    state: Any = None,
    threads: int = 1,
    folder: str | Path | None = None,
    every: int = 1000,
    progress: Callable[[int], None] | None = None,
    speech: Speech = PLAIN,
) -> ShardRun:
    """Run an algorithm on one network that is distributed over MPI ranks.

    Every rank calls this function with the same arguments, except for the stream. States are
    identical to those of `simulate` to the bit, curves up to rounding. An error before the first
    round is raised on all ranks; a later error is reported by its rank and stops all ranks.

    Parameters
    ----------
    algorithm : Algorithm
        One whose learners hear their neighbors only; not `COMKL`, nor message passing.
    X : (T, K, d) or callable
        All learners' inputs; or, with y None, a function that takes the numbers of this rank's
        learners, (n,), and returns their samples: (X (T, n, d), y (T, n)), or an iterator of rounds
        (x (n, d), y (n,)). Then no rank needs to hold all samples.
    y : (T, K), or None
    graph : Graph
        The whole one.
    comm
        A communicator of mpi4py; all ranks by default.
    part : (K,), optional
        The rank of each learner; by default `domkl.graphs.partition.partition` cuts the graph.
    cv : "off" or "moments"
        As in `simulate`; moments cost a sum of (P·D)² numbers over the ranks each round.
    delay : int, optional
        Rounds until a label is seen, as in `simulate`.
    threads : int
        Of each rank.
    folder, every
        Store state and curves in this folder after every ``every`` rounds and at the end. A call
        with the same arguments continues after the last round that all ranks have stored; its
        stream must start from the beginning.
    progress : callable
        Called on rank 0 with the rounds done, after each.
    speech : Speech, optional
        How messages leave a learner; exactly as they are by default.
    """
    comm = world() if comm is None else comm
    dtype = getattr(dtype, "__name__", dtype)
    trials = agreed(comm, lambda: _checked(algorithm, graph, features, dtype, cv, comm.size))
    if algorithm.is_alone:
        graph = Graph.empty(graph.n_learners)
    fingerprint = _fingerprint(algorithm, graph, features, dtype)
    check_equal(comm, "algorithm, graph, features and dtype", fingerprint)
    n_late = agreed(comm, lambda: check_delay(delay, y, None))
    algorithm = algorithm.delayed(n_late)
    settings = f"{cv}, {n_late}, {every}, {bool(folder)}"
    check_equal(comm, "cv, delay, every and whether there is a folder", settings)
    ranks = _ranks(comm, graph, part)
    shard = shard_of(graph, ranks, comm.rank)
    halo = Halo(shard, comm)
    place = Place(shard, halo, summed(comm))

    def made() -> Cell:
        kept = ("predictions",) * keep_predictions
        options = Options(dtype, cv, kept, threads=threads, delay=n_late, speech=speech)
        return Cell([Graph.empty(shard.n_learners)], trials.maps, algorithm, options, place=place)

    cell = agreed(comm, made)
    rounds = agreed(comm, lambda: Rounds(cell, state))
    stream = agreed(comm, lambda: _stream(X, y, graph.n_learners, cell))
    check_equal(comm, "number of rounds", str(stream.n_rounds))
    late = f" delay {n_late}" if n_late else ""  # files of runs without a delay stay valid
    files = agreed(
        comm, lambda: _files(folder, every, keep_predictions, comm, fingerprint + cv + late, ranks)
    )
    if files is not None:
        rounds.go_on(comm, files)
    with stop_together(comm):
        samples = iter(stream.rounds())
        samples = samples if stream.iterator is None else in_step(comm, samples)
        report = progress if comm.rank == 0 else None
        rounds.run(islice(samples, rounds.n_rounds, None), comm, files, every, report)
        if rounds.n_rounds == 0:
            raise DataError("X must give at least one round, got none")
        mse, cv_curve = rounds.curves(comm, graph.n_learners)
    return ShardRun(
        learners=shard.learners,
        mse=mse,
        cv=cv_curve,
        predictions=rounds.predictions(),
        theta=getattr(rounds.state, "theta", None),
        state=rounds.final_state,
        part=ranks,
        cut=_cut(comm, shard),
        halo_bytes=halo.n_bytes,
        exchange_seconds=halo.seconds,
    )


def _checked(
    algorithm: Algorithm, graph: Graph, features: RandomFeatures, dtype: str, cv: str, n_ranks: int
) -> Trials:
    trials = as_trials(graph, features)
    if trials.is_batch:
        raise ParameterError("graph and features must be one each; run trials one after the other")
    checks.choice("dtype", dtype, ("float64", "float32"))
    checks.choice("cv", cv, ("off", "moments"))
    check_algorithm(algorithm, trials, dtype)
    for field, delivery in algorithm.exchange.items():
        if not DELIVERIES[delivery].is_summed:
            raise ParameterError(
                f"algorithm must hear its neighbors only, got {type(algorithm).__name__}, whose"
                f" {field} is delivered by {delivery!r}; use simulate"
            )
    if n_ranks > graph.n_learners:
        raise GraphError(f"graph must have a learner for each of {n_ranks} ranks, got {graph!r}")
    return trials


def _fingerprint(algorithm: Algorithm, graph: Graph, features: RandomFeatures, dtype: str) -> str:
    kind = type(algorithm)
    name = repr(algorithm) if is_dataclass(algorithm) else f"{kind.__module__}.{kind.__qualname__}"
    digest = hashlib.sha256(f"{name} {features.fingerprint} {dtype}".encode())
    digest.update(graph.indptr.data)
    digest.update(graph.indices.data)
    return digest.hexdigest()[:16]


def _ranks(comm: Any, graph: Graph, part: ArrayLike | None) -> Ints:
    """The rank of each learner, as rank 0 finds it."""

    def found() -> Ints:
        if part is None:
            is_first = comm.rank == 0
            return partition(graph, comm.size) if is_first else np.empty(graph.n_learners, np.int64)
        given = np.asarray(part)
        if given.dtype.kind not in "iu" or given.shape != (graph.n_learners,):
            raise ParameterError(
                f"part must hold a rank for each of {graph.n_learners} learners,"
                f" got {given.dtype} of shape {given.shape}"
            )
        if given.min() < 0 or not np.array_equal(np.unique(given), np.arange(comm.size)):
            raise ParameterError(f"part must give learners to each of ranks 0..{comm.size - 1}")
        return np.array(given, dtype=np.int64)

    ranks = agreed(comm, found)
    comm.Bcast(ranks)
    return ranks


def _cut(comm: Any, shard: Shard) -> Cut:
    """As `cut_of` the whole graph, from the shards."""
    n_far = int((shard.indices >= shard.n_learners).sum())
    n_sent = sum(len(rows) for _, rows in shard.sends)
    far, sent, sizes = zip(*comm.allgather((n_far, n_sent, shard.n_learners)), strict=True)
    return Cut(sum(far) // 2, sum(sent), max(sizes))


def _stream(X: Any, y: Any, n_learners: int, cell: Cell) -> Stream:
    """The samples of this rank's learners."""
    assert cell.place is not None, "a shard is a place"
    learners, algorithm = cell.place.shard.learners, cell.algorithm
    trials = Trials(cell.graphs, cell.maps, False)
    if y is None:
        if not callable(X):
            raise DataError("X must be a function of this rank's learners where y is None")
        given = X(learners)
        if isinstance(given, tuple) and len(given) == 2:
            return as_stream(given[0], given[1], trials, algorithm)
        return as_stream(given, None, trials, algorithm)
    whole_x, whole_y = np.asarray(X), np.asarray(y)
    if whole_x.ndim != 3 or whole_x.shape[1] != n_learners or whole_y.shape != whole_x.shape[:2]:
        raise DataError(
            f"X and y must have shapes (T, {n_learners}, d) and (T, {n_learners}),"
            f" got {whole_x.shape} and {whole_y.shape}"
        )
    return as_stream(whole_x[:, learners], whole_y[:, learners], trials, algorithm)


def _files(
    folder: str | Path | None,
    every: int,
    keep_predictions: bool,
    comm: Any,
    fingerprint: str,
    ranks: Ints,
) -> Kept | None:
    checks.whole("every", every, 1)
    if folder is None:
        return None
    if keep_predictions:
        raise ParameterError("keep_predictions must be False with a folder, which keeps none")
    digest = hashlib.sha256(fingerprint.encode() + ranks.tobytes()).hexdigest()
    return Kept(Path(folder), comm.rank, comm.size, digest)
