"""The blocked host: one network of any size, on several cores, for any algorithm that has a law.

It has three orders of the same calls; results are equal to the bit in each, on any number of cores.

- *By learner*: a round predicts and steps, then exchanges; the next one begins with predicting.
  Here an exchange waits for the next round, so that a learner's rows go through the cache once a
  round instead of twice: merge what was heard of the last round, predict, step. What is said goes
  to a second message meanwhile, so that a pass reads old values only and its learners may be shared
  out among threads. `close` does the exchange that is left at the end.
- *By kernel*, for small networks of laws whose kernels are separate: some kernels go through a
  stretch of rounds and stay in cache, then the others. Kernels meet in the weights; these are made
  afterwards, by running the law once more without features on the predictions that were noted.
- *In two passes*, where CV is to be measured between rounds: all learners step, then all merge.

Where one is better than the other, benchmarks/bench_order.py measures, and
docs/explanation/scaling.md tells.
"""

from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from domkl.algorithms.base import Inputs, Prediction, is_worth_compiling
from domkl.algorithms.law import function, local_step, merge, predict
from domkl.core.hedge import combine
from domkl.core.jit import generic, sweep
from domkl.core.numba_internals import link, machine_code
from domkl.learner.late import Sample
from domkl.sim.cells import Cell, Records
from domkl.sim.compiled import LOST, Exchange, Map, Ring, exchange_of, map_of, merge_all
from domkl.sim.cv import Disagreement
from domkl.sim.delay import Waiting, queue_of, waiting_of
from domkl.sim.inputs import Stream
from domkl.sim.interpreted import run_cell
from domkl.sim.pieces import (
    block,
    carry,
    empty_like,
    featureless,
    hear,
    kernels,
    load_scratch,
    map_rows,
    message_of,
    net_rows,
    put_kernels,
    rows,
    spare,
    total,
    words_of,
)
from domkl.sim.threads import Team
from domkl.speech.base import utter
from domkl.speech.plain import PLAIN
from domkl.typing import Array, Floats, Ints

BLOCK = 16  # learners whose features are made together
STRETCH = 20_000  # learner-steps that kernels run by themselves, and between two reports
LEAST_ROUNDS = 16  # of a stretch that is worth copying the kernels' state out and back
MOST_ROUNDS = 256
PARTS = 8  # of the learners for each thread
LEAST_PART = 64  # learners of a part, at a relative cost of 1
SHARED = 2e-6  # seconds of a learner-step that a second core saves


class Room(NamedTuple):
    """What a thread needs for one block of learners."""

    scratch: Any  # a state
    heard: Any  # a message
    z: Array  # (1, BLOCK, P, D)
    energy: Floats  # (1, BLOCK, P)
    ends: Ints  # (BLOCK + 1,)


class How(NamedTuple):
    """What a pass does."""

    merges: bool  # what was said in the last round
    predicts: bool
    learns: bool  # what was predicted, or what waited for its label
    is_fused: bool = False  # carried fields are those said, scratch fields live for one block
    is_late: bool = False  # what is learned is not what is predicted


@sweep
def work(
    state: Any,
    rates: Any,
    now: Any,
    after: Any,
    how: How,
    x: Floats,
    prediction: Prediction,
    x_late: Floats,
    y_late: Floats,
    then: Prediction,
    exchange: Exchange,
    features: Map,
    room: Room,
    low: int,
    high: int,
) -> None:
    """Merge what was said ``now``; then predict x (K, d), and step to what is said ``after``.

    What is learned are x_late and y_late (K,), which were predicted ``then``. Of learners
    low..high − 1; ``how`` says what is done, and may leave parts out.
    """
    memory, drafted, _, _, totals, wires, net = exchange
    for start in range(low, high, BLOCK):
        stop = min(start + BLOCK, high)
        first, last = net.indptr[start], net.indptr[stop]
        some = net_rows(net.degree, net.size, net.indptr, room.ends, start, stop)
        own = rows(state, start, stop, first, last)
        if how.is_fused:
            own = block(state, now, room.scratch, start, stop, first, last)
            if not how.merges:
                load_scratch(state, room.scratch, start, stop)
        if how.merges:
            hear(room.heard, now, message_of(drafted, now), totals, wires, start, stop)
            heard = rows(room.heard, 0, stop - start, 0, last - first)
            words = rows(words_of(drafted, now), start, stop, first, last)
            merge(own, rates, heard, some, words)
        n, m, z, energy = stop - start, features.n_frequencies, room.z, room.energy
        if how.predicts:
            map_rows(x[start:stop], features.turns, z, energy, m, features.linear)
            inputs = Inputs(x[start:stop], z[0, :n], energy[0, :n])
            predict(own, rates, inputs, predicted_by(prediction, start, stop))
        if how.learns:
            if how.is_late:
                map_rows(x_late[start:stop], features.turns, z, energy, m, features.linear)
            inputs = Inputs(x_late[start:stop], z[0, :n], energy[0, :n])
            message = rows(message_of(drafted, after), start, stop, first, last)
            predicted, y = predicted_by(then, start, stop), y_late[start:stop]
            local_step(own, rates, inputs, y, predicted, some, message)
            remembered = rows(memory, start, stop, first, last)
            utter(remembered, message, rows(after, start, stop, first, last))


@generic
def predicted_by(prediction: Prediction, low: int, high: int) -> Prediction:
    """What some learners predicted."""
    y_hat, f, notes = prediction.y_hat, prediction.by_kernel, prediction.notes
    return Prediction(y_hat[low:high], f[low:high], notes[low:high])


@sweep
def add_totals(totals: Any, said: Any, part: int, n_parts: int) -> None:
    """Sum what goes to everybody: one part of the columns."""
    total(totals, said, part, n_parts)


@sweep
def play_rounds(
    state: Any,
    rates: Any,
    now: Any,
    after: Any,
    x: Floats,
    y: Floats,
    f: Floats,
    exchange: Exchange,
    features: Map,
    room: Room,
) -> None:
    """Run rounds x (T, K, d), y (T, K) by learner, on one thread; predictions go to f (T, K, P).

    The last exchange is left to be done: of ``now`` after an even number of rounds.
    """
    n_rounds, n_learners, _ = f.shape
    y_hat, notes = np.empty(n_learners), np.empty((n_learners, 0))
    for t in range(n_rounds):
        is_even = t % 2 == 0
        old, new = (now, after) if is_even else (after, now)
        how, prediction = How(t > 0, True, True, True, False), Prediction(y_hat, f[t], notes)
        work(
            state, rates, old, new, how, x[t], prediction, x[t], y[t], prediction, exchange,
            features, room, 0, n_learners,
        )  # fmt: skip
        total(exchange.totals, new, 0, 1)


@sweep
def weigh_rounds(
    state: Any,
    rates: Any,
    exchange: Exchange,
    x: Floats,
    y: Floats,
    y_hat: Floats,
    f: Floats,
    z: Array,
) -> None:
    """Let kernels meet, round after round: the law without features, on predictions f (T, K, P).

    z (K, P, 0).
    """
    n_rounds, n_learners, n_kernels = f.shape
    energy, notes = np.ones((n_learners, n_kernels)), np.empty((n_learners, 0))
    for t in range(n_rounds):
        combine(y_hat[t], f[t], function(state)[1])
        prediction, inputs = Prediction(y_hat[t], f[t], notes), Inputs(x[t], z, energy)
        local_step(state, rates, inputs, y[t], prediction, exchange.net, exchange.said)
        merge_all(state, rates, exchange)


def play_network(cell: Cell, stream: Stream, after_rounds: Callable[[int], None]) -> None:
    """Run every round of the stream on a cell of one trial."""
    options, features = cell.options, cell.maps[0]
    if cell.state is None:
        cell.state = cell.first_state()
    link(options.dtype)
    law: Any = cell.algorithm.law
    is_by_kernel = options.cv == "off" and cell.place is None and law.is_separable
    is_by_kernel = is_by_kernel and options.delay == 0 and options.speech.is_exact
    n_rounds = stretch_of(cell.graphs[0].n_learners) if is_by_kernel else 1
    records = Records(cell, n_rounds)
    disagreement = Disagreement(cell, records)
    with Team(options.threads) as team:
        network = _Network(cell, team)
        play = network.by_kernel if n_rounds > 1 else network.by_learner
        if options.cv != "off" or not options.speech.is_exact:
            play = network.in_two_passes
        if options.is_patient and not network.is_worth_compiling(stream):
            run_cell(cell, stream, after_rounds)
            return

        def features_of(learners: Ints) -> Array:  # where CV is measured, a stretch is one round
            return features(x[0][learners], options.dtype)

        for x, y in _stretches(stream, n_rounds):
            disagreement.update(cell.state, features_of)
            play(x, y, records.rows("predictions", len(y)))
            records.rows("targets", len(y))[:] = y
            records.end_rounds(len(y))
            after_rounds(len(y))
        network.close()
    cell.records, cell.waiting, cell.sampled = records, network.waiting(), disagreement.sampled()


def stretch_of(n_learners: int) -> int:
    """Rounds that the kernels of a network of this size run by themselves; 1 if they do not."""
    n_rounds = min(MOST_ROUNDS, STRETCH // n_learners)
    return n_rounds if n_rounds >= LEAST_ROUNDS else 1


def _stretches(stream: Stream, most: int) -> Iterator[tuple[Floats, Floats]]:
    """X (n, K, d), y (n, K) of the next rounds, at most so many."""
    if stream.arrays is not None:
        x, y = stream.arrays
        for start in range(0, len(y), most):
            yield x[start : start + most], y[start : start + most]
        return
    rounds = iter(stream.rounds())
    while taken := list(islice(rounds, most)):
        xs, ys = zip(*taken, strict=True)
        yield (np.stack(xs), np.stack(ys)) if len(xs) > 1 else (xs[0][None], ys[0][None])


class _Network:
    """One network, what it has said, and the threads that work on it."""

    def __init__(self, cell: Cell, team: Team) -> None:
        self._cell, self._team = cell, team
        self._law: Any = cell.algorithm.law
        self._rates, self._state = cell.algorithm.compiled, cell.state
        self._exchange = exchange_of(cell, cell.options.speech, BLOCK)
        self._now, self._after = self._exchange.said, None  # the second is made when it is needed
        self._is_open = False  # whether the last round's exchange is still to be done
        self._map = map_of(cell.maps[0])
        self._ring, self._queue = Ring(cell), queue_of(cell.waiting)
        self._delay = cell.options.delay
        self._n_learners = n_learners = cell.network.n_learners
        self._rooms: SimpleQueue[Room] = SimpleQueue()
        for _ in range(team.threads):
            self._rooms.put(self._room())
        least = max(1, int(LEAST_PART / cell.algorithm.relative_cost))
        n_parts = min(team.threads * PARTS, -(-n_learners // least)) if team.threads > 1 else 1
        cuts = np.linspace(0, n_learners, n_parts + 1).astype(int).tolist()
        self._parts = list(pairwise(cuts))

    def _room(self) -> Room:
        names = self._state._fields
        scratch = empty_like(self._state, [BLOCK * (name in self._law.scratch) for name in names])
        heard = empty_like(self._exchange.heard, map(len, self._exchange.heard))
        z, energy = self._cell.maps[0].empty(1, BLOCK, self._state[0].dtype)
        return Room(scratch, heard, z, energy, np.empty(BLOCK + 1, dtype=np.int64))

    def _work(self, now: Any, after: Any, how: How, x: Floats, x_late: Floats, y: Floats) -> None:
        """Call `work` for all learners, shared out among the threads."""
        late = (x_late, y, self._ring.then)
        given: Any = (how, x, self._ring.now, *late, self._exchange, self._map)

        def part(low: int, high: int) -> None:
            room = self._rooms.get()
            try:
                _run(work, self._state, self._rates, now, after, *given, room, low, high)
            finally:
                self._rooms.put(room)

        self._team.each(part, self._parts)

    def is_worth_compiling(self, stream: Stream) -> bool:
        """Whether this host is, or will pay for being, compiled."""
        if stream.arrays is None or self._cell.place is not None:
            return True
        x, y = stream.arrays
        n_rounds, n_learners = y.shape
        sample, late = (x[0], self._ring.now), (x[0], y[0], self._ring.then)
        rest = (*sample, *late, self._exchange, self._map, self._room(), 0, 1)
        how = How(True, True, True)
        given: Any = (self._state, self._rates, self._now, self._now, how, *rest)
        per_round = LOST + SHARED * n_learners * self._cell.algorithm.relative_cost
        return is_worth_compiling(work, given, n_rounds * per_round)

    def by_learner(self, x: Floats, y: Floats, y_hat: Floats) -> None:
        """Run one round in one pass: x (1, K, d), y and y_hat (1, K)."""
        if self._after is None:
            self._after = spare(self._now, self._state)
        self._round(x[0], y[0], y_hat[0], self._after)

    def in_two_passes(self, x: Floats, y: Floats, y_hat: Floats) -> None:
        """Run one round, the exchange included: x (1, K, d), y and y_hat (1, K)."""
        self._round(x[0], y[0], y_hat[0], self._now)

    def _round(self, x: Floats, y: Floats, y_hat: Floats, after: Any) -> None:
        """Predict x, learn what has a label, and say it ``after``: in one pass if that is another.

        As long as all that was predicted waits for its labels, nothing is learned.
        """
        now, is_fused, x_late, y_late = self._now, after is not self._now, x, y
        is_learned = True
        if self._delay:
            self._queue.add(Sample(x.copy(), y.copy(), *self._ring.now))
            late = self._queue.take(self._delay)
            is_learned = late is not None
            if late is not None:
                x_late, y_late = late.x, late.y
        how = How(self._is_open, True, is_learned, is_fused and is_learned, self._delay > 0)
        self._work(now, after, how, x, x_late, y_late)
        if is_learned:
            self._spread(after)
        if is_learned and is_fused:
            self._now, self._after, self._is_open = after, now, True
        elif is_learned:
            self._work(now, now, How(True, False, False), x, x_late, y_late)
        y_hat[:] = self._ring.now.y_hat
        self._ring.round += 1

    def waiting(self) -> Waiting | None:
        """What waits after the last round."""
        return waiting_of(self._queue) if self._delay else None

    def _spread(self, said: Any) -> None:
        """Send to learners elsewhere what they hear, and sum up what goes to everybody."""
        self._cell.network.share(*said)
        totals, n = self._exchange.totals, self._team.threads
        if any(len(values) for values in totals):
            parts = [(totals, said, part, n) for part in range(n)]
            self._team.each(lambda *part: _run(add_totals, *part), parts)

    def by_kernel(self, x: Floats, y: Floats, y_hat: Floats) -> None:
        """Run some rounds, kernel after kernel: x (T, K, d), y and y_hat (T, K)."""
        n_kernels = self._cell.maps[0].n_kernels
        f = np.empty((*y.shape, n_kernels))

        def run(first: int, n: int) -> None:
            f[:, :, first : first + n] = self._play_kernels(first, n, x, y)

        self._team.each(run, _chunks(n_kernels, self._team.threads))
        state, whole = featureless(self._state), exchange_of(self._cell, PLAIN)
        said, heard, totals = (featureless(each) for each in whole[2:5])
        exchange = whole._replace(said=said, heard=heard, totals=totals)
        z = np.empty((*f.shape[1:], 0), self._state[0].dtype)
        _run(weigh_rounds, state, self._rates, exchange, x, y, y_hat, f, z)

    def _play_kernels(self, first: int, n_kernels: int, x: Floats, y: Floats) -> Floats:
        """Run some kernels through rounds x (T, K, d), y (T, K); give their predictions (T, K, n).

        Their arrays are copied out, to stand together in cache, and back.
        """
        part = kernels(self._state, first, n_kernels)
        own = kernels(self._exchange.said, first, n_kernels)
        own = own._replace(**{name: getattr(part, name) for name in self._law.carried})
        after = spare(own, part)
        whole = self._room()
        z, energy = np.zeros_like(whole.z[:, :, :n_kernels]), whole.energy[:, :, :n_kernels].copy()
        scratch, heard = (kernels(each, 0, n_kernels) for each in (whole.scratch, whole.heard))
        room = Room(scratch, heard, np.ascontiguousarray(z), energy, whole.ends)
        totals = kernels(self._exchange.totals, 0, n_kernels)
        exchange = self._exchange._replace(totals=totals)
        f = np.empty((len(y), y.shape[1], n_kernels))
        features = map_of(self._cell.maps[0], first, n_kernels)
        _run(play_rounds, part, self._rates, own, after, x, y, f, exchange, features, room)
        if len(y) % 2:
            own = carry(self._law, own, after)
        predicted = Prediction(np.empty(len(y[0])), f[0], np.empty((len(y[0]), 0)))
        sample = (x[0], predicted, x[0], y[0], predicted)
        given: Any = (How(True, False, False), *sample, exchange, features, room)
        _run(work, part, self._rates, own, own, *given, 0, y.shape[1])
        put_kernels(self._state, part, first)
        return f

    def close(self) -> None:
        """Do the exchange that the last round left to be done."""
        if not self._is_open:
            return
        own, said, n_learners = self._exchange.said, self._now, self._n_learners
        if said is not own:
            said = carry(self._law, own, said)  # and of learners elsewhere
        none = np.empty((n_learners, 0))
        self._work(said, said, How(True, False, False), none, none, np.empty(n_learners))
        self._now, self._after, self._is_open = own, None, False


def _run(function: Any, *given: Any) -> None:
    machine_code(function, *given)(*given)


def _chunks(n_kernels: int, threads: int) -> list[tuple[int, int]]:
    """(first, number) of kernels that run together: some eight, and even for the threads."""
    n_chunks = min(-(-max(1, round(n_kernels / 8)) // threads) * threads, n_kernels)
    cuts = np.linspace(0, n_kernels, n_chunks + 1).astype(int).tolist()
    return [(low, high - low) for low, high in pairwise(cuts)]
