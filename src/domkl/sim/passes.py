"""Run one network by the passes of core/passes.py: of any size, on several cores.

A small one goes kernel by kernel through a stretch of rounds, and stays in cache; a large one goes
round by round through all learners, and what it needs beside its state is a few rows a thread.
Where one is better than the other, benchmarks/bench_order.py measures, and docs/scaling.md tells.
"""

from collections.abc import Callable, Iterator
from itertools import islice, pairwise

import numpy as np

from domkl import rng
from domkl.algorithms.base import Algorithm
from domkl.core.exchange import weighted_mean
from domkl.core.features import RandomFeatures
from domkl.core.laws import ADMM, Chain
from domkl.core.passes import advance, close, hedge_rounds, move, play_kernels, settle, weigh_rows
from domkl.core.rounds import Map, Wires
from domkl.sim.cv import Pairs, by_moments
from domkl.sim.engine import Cell, Options, first_state, network_of
from domkl.sim.inputs import Stream
from domkl.sim.recorder import Records
from domkl.sim.team import Team
from domkl.typing import Array, Floats, Ints

STRETCH = 20_000  # learner-steps that kernels run by themselves, and between two reports
LEAST_ROUNDS = 16  # of a stretch that is worth copying the kernels' state out and back
MOST_ROUNDS = 256
PARTS = 8  # of the learners for each thread


def play_network(
    cell: Cell,
    algorithm: Algorithm,
    stream: Stream,
    options: Options,
    after_rounds: Callable[[int], None],
) -> None:
    """Run every round of the stream on a cell of one trial."""
    if cell.state is None:
        cell.state = first_state(cell, algorithm, options.dtype)
    n_learners = cell.graphs[0].n_learners
    is_whole = options.cv == "off" and cell.place is None
    n_rounds = stretch_of(n_learners) if is_whole else 1
    records = Records(1, n_learners, options.kept, options.cv == "moments", n_rounds)
    with Team(options.threads) as team:
        host = _Host(cell, algorithm, team)
        measure = None if options.cv == "off" else _Measure(host, cell, options, records)
        play = host.by_kernel if n_rounds > 1 else host.by_learner
        for x, y in _stretches(stream, n_rounds, records):
            if measure is not None:
                measure.update(x[0])
            play(x, y, records.rows("predictions", len(y)))
            records.rows("targets", len(y))[:] = y
            records.end_rounds(len(y))
            after_rounds(len(y))
        host.close()
    cell.records = records
    if measure is not None and measure.pairs is not None:
        cell.sampled_mean, cell.sampled_variance = measure.pairs.sampled()


def stretch_of(n_learners: int) -> int:
    """Rounds that the kernels of a network of this size run by themselves; 1 if they do not."""
    n_rounds = min(MOST_ROUNDS, STRETCH // n_learners)
    return n_rounds if n_rounds >= LEAST_ROUNDS else 1


def _stretches(stream: Stream, most: int, records: Records) -> Iterator[tuple[Floats, Floats]]:
    """X (n, K, d), y (n, K) of the next rounds, at most as many as there is room for."""
    if stream.arrays is None:
        rounds = iter(stream.rounds())
        while taken := list(islice(rounds, min(most, records.n_free))):
            xs, ys = zip(*taken, strict=True)
            yield (np.stack(xs), np.stack(ys)) if len(xs) > 1 else (xs[0][None], ys[0][None])
        return
    x, y = stream.arrays
    start = 0
    while start < len(y):
        stop = start + min(most, records.n_free)
        yield x[start:stop], y[start:stop]
        start = min(stop, len(y))


class _Host:
    """A network, where its θ is at the moment, and the threads that work on it."""

    def __init__(self, cell: Cell, algorithm: Algorithm, team: Team) -> None:
        network, chain = network_of(cell, algorithm), algorithm.chain(cell.state)
        assert chain is not None, "simulate plays chains only"
        wires = network.wires
        self.chain: Chain = chain
        self.wires = Wires(
            wires.indptr,
            wires.indices,
            np.empty(0) if chain.family == ADMM else network.weight,
            network.net.degree,
            network.graph.component,
            int(network.net.size[0]),
        )
        self.features = cell.maps[0]
        self.now = chain.theta
        self._is_open = False  # whether the last round's exchange is still to be done
        self._team = team
        self._spare = chain.third if chain.family == ADMM else chain.second
        self._map = _map(self.features, 0, self.features.n_kernels)
        self._f = np.empty((1, *chain.loss.shape))
        self._share, self.total = network.share, network.total
        n_learners = network.n_learners
        n_parts = min(team.threads * PARTS, -(-n_learners // 64)) if team.threads > 1 else 1
        cuts = np.linspace(0, n_learners, n_parts + 1).astype(int).tolist()
        self._parts = list(pairwise(cuts))

    def by_learner(self, x: Floats, y: Floats, y_hat: Floats) -> None:
        """Run one round, block of learners after block: x (1, K, d), y and y_hat (1, K)."""
        chain, now, f, is_first = self.chain, self.now, self._f[0], not self._is_open
        other = self._spare if now is chain.theta else chain.theta
        after = now if is_first else other

        def step(low: int, high: int) -> None:
            advance(chain, now, after, is_first, x[0], y[0], f, self.wires, self._map, low, high)
            settle(chain, y_hat[0], f, y[0], low, high)

        def weigh(low: int, high: int) -> None:
            weigh_rows(chain, self.wires.indptr, self.wires.indices, low, high)

        self._team.each(step, self._parts)
        self._share(after, chain.loss)
        self._team.each(weigh, self._parts)
        self.now, self._is_open = after, True

    def by_kernel(self, x: Floats, y: Floats, y_hat: Floats) -> None:
        """Run some rounds, kernel after kernel: x (T, K, d), y and y_hat (T, K)."""
        if len(y) > len(self._f):
            self._f = np.empty((len(y), *self.chain.loss.shape))
        f = self._f[: len(y)]

        def run(first: int, n_kernels: int) -> None:
            features = _map(self.features, first, n_kernels)
            play_kernels(self.chain, first, n_kernels, x, y, f, self.wires, features)

        self._team.each(run, _chunks(self.features.n_kernels, self._team.threads))
        hedge_rounds(self.chain, y_hat, f, y, self.wires.indptr, self.wires.indices)

    def close(self) -> None:
        """Do what the last round left to be done."""
        chain = self.chain
        if not self._is_open:
            return
        if self.now is not chain.theta:
            elsewhere = (self._parts[-1][1], len(chain.theta))
            parts = [*self._parts, elsewhere]
            self._team.each(lambda *part: move(chain.theta, self.now, *part), parts)
        self._team.each(lambda *part: close(chain, self.wires, *part), self._parts)
        self.now, self._is_open = chain.theta, False

    def functions(self, rows: Ints) -> tuple[Array, Floats]:
        """θ or ψ, whatever predicts, and the weights of these learners: (n, P, D), (n, P)."""
        chain, weights = self.chain, self.chain.weights[rows]
        if chain.family == ADMM:
            return self.now[rows], weights
        if not self._is_open:
            return chain.second[rows], weights
        counts = np.diff(self.wires.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        place = np.repeat(self.wires.indptr[rows] - indptr[:-1], counts) + np.arange(indptr[-1])
        own = self.now[rows]
        out = np.empty_like(own)
        indices, weight = self.wires.indices[place], self.wires.weight[place]
        weighted_mean(out, self.now, own, indptr, indices, weight)
        return out, weights


class _Measure:
    """CV of each round, before it is run: sampled, or by moments."""

    def __init__(self, host: _Host, cell: Cell, options: Options, records: Records) -> None:
        self._host, self._records, self._dtype = host, records, options.dtype
        self._is_kept = records.keeps("inside")
        generator = rng.child(options.seed, "cv", cell.first_trial)
        n_learners = cell.graphs[0].n_learners
        self.pairs = Pairs([generator], n_learners) if options.cv == "sampled" else None

    def update(self, x: Floats) -> None:
        """Measure the functions that are about to predict x (K, d)."""

        def inputs(rows: Ints) -> Array:
            return self._host.features(x[rows], self._dtype)

        if self.pairs is not None:
            self.pairs.update(self._host.functions, inputs)
        else:
            component = self._host.wires.component
            inside = self._records.row("inside") if self._is_kept else None
            spread = self._records.row("spread")
            by_moments(spread, inside, self._host.functions, inputs, component, self._host.total)


def _map(features: RandomFeatures, first: int, n_kernels: int) -> Map:
    """The features of some kernels alone."""
    m, last = features.n_frequencies, first + n_kernels
    turns = np.ascontiguousarray(features.turns[:, first * m : last * m])
    return Map(turns[None], m, features.linear and last == features.n_kernels)


def _chunks(n_kernels: int, threads: int) -> list[tuple[int, int]]:
    """(first, number) of kernels that run together: some eight, and even for the threads."""
    n_chunks = min(-(-max(1, round(n_kernels / 8)) // threads) * threads, n_kernels)
    cuts = np.linspace(0, n_kernels, n_chunks + 1).astype(int).tolist()
    return [(low, high - low) for low, high in pairwise(cuts)]
