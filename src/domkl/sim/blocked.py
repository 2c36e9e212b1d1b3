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

from domkl import rng
from domkl.algorithms.base import (
    Algorithm,
    Inputs,
    Net,
    Prediction,
    is_worth_compiling,
)
from domkl.algorithms.law import function, local_step, merge, predict
from domkl.core.exchange import Wires
from domkl.core.hedge import combine
from domkl.core.jit import generic, sweep
from domkl.core.numba_internals import machine_code
from domkl.learner.late import Sample
from domkl.sim.cells import Cell, Options, first_state, network_of
from domkl.sim.compiled import LOST, Exchange, Map, exchange_of, map_of, merge_all, ring_of
from domkl.sim.cv import Pairs, by_moments
from domkl.sim.delay import Waiting, nothing_waits, queue_of
from domkl.sim.fields import (
    block,
    carry,
    featureless,
    hear,
    kernels,
    load_scratch,
    message_of,
    net_rows,
    put_kernels,
    rows,
    spare,
    total,
    utter_rows,
    words_of_rows,
)
from domkl.sim.inputs import Stream
from domkl.sim.interpreted import run_cell
from domkl.sim.linked import link, map_rows
from domkl.sim.recorder import Records
from domkl.sim.threads import Team
from domkl.speech.base import Speech
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


class Web(NamedTuple):
    """The network of a pass: between whom messages go, and what was summed of them."""

    wires: Wires
    net: Net
    totals: Any  # a message
    memory: Any  # of the speech; None where it is exact
    drafted: Any  # the message before it is said; None where speech is exact


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
    web: Web,
    features: Map,
    room: Room,
    low: int,
    high: int,
) -> None:
    """Merge what was said ``now``; then predict x (K, d), and step to what is said ``after``.

    What is learned are x_late and y_late (K,), which were predicted ``then``. Of learners
    low..high − 1; ``how`` says what is done, and may leave parts out.
    """
    wires, net, totals, memory, drafted = web
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
            merge(own, rates, heard, some, words_of_rows(drafted, now, start, stop, first, last))
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
            utter_rows(memory, drafted, after, start, stop, first, last)


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
    web: Web,
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
            state, rates, old, new, how, x[t], prediction, x[t], y[t], prediction, web, features,
            room, 0, n_learners,
        )  # fmt: skip
        total(web.totals, new, 0, 1)


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
    _, drafted, said, heard, totals, wires, net = exchange
    n_rounds, n_learners, n_kernels = f.shape
    energy, notes = np.ones((n_learners, n_kernels)), np.empty((n_learners, 0))
    for t in range(n_rounds):
        combine(y_hat[t], f[t], function(state)[1])
        prediction, inputs = Prediction(y_hat[t], f[t], notes), Inputs(x[t], z, energy)
        local_step(state, rates, inputs, y[t], prediction, net, said)
        merge_all(state, rates, drafted, said, heard, totals, wires, net)


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
    link(options.dtype)
    n_learners = cell.graphs[0].n_learners
    is_prompt = options.delay == 0
    law: Any = algorithm.law
    is_by_kernel = options.cv == "off" and cell.place is None and law.is_separable
    is_by_kernel = is_by_kernel and is_prompt and options.speech.is_exact
    n_rounds = stretch_of(n_learners) if is_by_kernel else 1
    records = Records(1, n_learners, options.kept, options.cv == "moments", n_rounds)
    with Team(options.threads) as team:
        network = _Network(cell, algorithm, team, options.delay, options.speech)
        measure = None if options.cv == "off" else _Measure(cell, algorithm, options, records)
        play = network.by_kernel if n_rounds > 1 else network.by_learner
        if measure is not None or not options.speech.is_exact:
            play = network.in_two_passes
        if options.is_patient and not network.is_worth_compiling(stream):
            run_cell(cell, algorithm, stream, options, after_rounds)
            return
        for x, y in _stretches(stream, n_rounds, records):
            if measure is not None:
                measure.update(x[0], network.total)
            play(x, y, records.rows("predictions", len(y)))
            records.rows("targets", len(y))[:] = y
            records.end_rounds(len(y))
            after_rounds(len(y))
        network.close()
    cell.records = records
    cell.waiting = network.waiting(cell)
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


class _Network:
    """One network, what it has said, and the threads that work on it."""

    def __init__(
        self, cell: Cell, algorithm: Algorithm, team: Team, delay: int, speech: Speech
    ) -> None:
        self._cell, self._algorithm, self._team = cell, algorithm, team
        self._rates, self._state = algorithm.compiled, cell.state
        exchange = exchange_of(cell, algorithm, cell.state, speech, BLOCK)
        self._exchange = exchange
        words = (exchange.memory, exchange.drafted)
        self._web = Web(exchange.wires, exchange.net, exchange.totals, *words)
        self._now, self._after = exchange.said, None  # the second one is made when it is needed
        self._is_open = False  # whether the last round's exchange is still to be done
        self._features = cell.maps[0]
        self._map = map_of(self._features)
        network = network_of(cell, algorithm)
        self._share, self.total = network.share, network.total
        n_learners, n_kernels = network.n_learners, self._features.n_kernels
        self._ring, self._queue, self._delay = (
            ring_of(cell, algorithm, delay),
            queue_of(cell.waiting),
            delay,
        )
        self._f = np.empty((1, n_learners, n_kernels))
        self._rooms: SimpleQueue[Room] = SimpleQueue()
        for _ in range(team.threads):
            self._rooms.put(self._room())
        least = max(1, int(LEAST_PART / algorithm.relative_cost))
        n_parts = min(team.threads * PARTS, -(-n_learners // least)) if team.threads > 1 else 1
        cuts = np.linspace(0, n_learners, n_parts + 1).astype(int).tolist()
        self._parts = list(pairwise(cuts))

    def _room(self) -> Room:
        law: Any = self._algorithm.law
        lengths = (BLOCK if name in law.scratch else 0 for name in self._state._fields)
        scratch = (
            np.empty((n, *v.shape[1:]), v.dtype) for n, v in zip(lengths, self._state, strict=True)
        )
        heard = (np.empty_like(values) for values in self._exchange.heard)
        z, energy = self._features.empty(1, BLOCK, self._state[0].dtype)
        kind, words, ends = type(self._state), type(self._now), np.empty(BLOCK + 1, dtype=np.int64)
        return Room(kind(*scratch), words(*heard), z, energy, ends)

    def _work(self, now: Any, after: Any, how: How, x: Floats, x_late: Floats, y: Floats) -> None:
        """Call `work` for all learners, shared out among the threads."""
        late = (x_late, y, self._ring.then)
        given: Any = (how, x, self._ring.now, *late, self._web, self._map)

        def part(low: int, high: int) -> None:
            room = self._rooms.get()
            try:
                _run(work, self._state, self._rates, now, after, *given, room, low, high)
            finally:
                self._rooms.put(room)

        self._team.each(part, self._parts)

    def is_worth_compiling(self, stream: Stream) -> bool:
        """Whether this host is, or will pay for being, compiled."""
        if stream.arrays is None or self.total is not None:
            return True
        x, y = stream.arrays
        n_rounds, n_learners = y.shape
        room = self._rooms.get()
        self._rooms.put(room)
        sample, late = (x[0], self._ring.now), (x[0], y[0], self._ring.then)
        rest = (*sample, *late, self._web, self._map, room, 0, 1)
        how = How(True, True, True)
        given: Any = (self._state, self._rates, self._now, self._now, how, *rest)
        per_round = LOST + SHARED * n_learners * self._algorithm.relative_cost
        return is_worth_compiling(work, given, n_rounds * per_round)

    def by_learner(self, x: Floats, y: Floats, y_hat: Floats) -> None:
        """Run one round in one pass: x (1, K, d), y and y_hat (1, K)."""
        if self._after is None:
            self._after = spare(self._now, self._state)
        now, after, late = self._now, self._after, self._late(x[0], y[0])
        if late is None:
            self._predict(x[0], y_hat[0])
            return
        how = How(self._is_open, True, True, is_fused=True, is_late=self._delay > 0)
        self._work(now, after, how, x[0], *late)
        self._note(y_hat[0])
        self._spread(after)
        self._now, self._after, self._is_open = after, now, True

    def in_two_passes(self, x: Floats, y: Floats, y_hat: Floats) -> None:
        """Run one round, the exchange included: x (1, K, d), y and y_hat (1, K)."""
        said, late = self._now, self._late(x[0], y[0])
        if late is None:
            self._predict(x[0], y_hat[0])
            return
        self._work(said, said, How(False, True, True, is_late=self._delay > 0), x[0], *late)
        self._spread(said)
        self._work(said, said, How(True, False, False), x[0], *late)
        self._note(y_hat[0])

    def _late(self, x: Floats, y: Floats) -> tuple[Floats, Floats] | None:
        """What is learned in the round of x (K, d), y (K,); None as long as all of it waits."""
        if self._delay == 0:
            return x, y
        self._queue.add(Sample(x.copy(), y.copy(), *self._ring.now))
        late = self._queue.take(self._delay)
        return None if late is None else (late.x, late.y)

    def _predict(self, x: Floats, y_hat: Floats) -> None:
        """Predict, and learn nothing."""
        none = np.empty(len(y_hat))
        self._work(self._now, self._now, How(False, True, False), x, x, none)
        self._note(y_hat)

    def _note(self, y_hat: Floats) -> None:
        """Record what was predicted; the next round begins."""
        y_hat[:] = self._ring.now.y_hat
        self._ring.round += 1

    def waiting(self, cell: Cell) -> Waiting | None:
        """What waits after the last round."""
        if self._delay == 0:
            return None
        if not len(self._queue):
            return nothing_waits(1, self._f.shape[1], cell.maps[0].n_inputs)
        samples = zip(*((late.x, late.y) for late in self._queue), strict=True)
        return self._ring.waiting(*(np.stack(each) for each in samples))

    def _spread(self, said: Any) -> None:
        """Send to learners elsewhere what they hear, and sum up what goes to everybody."""
        self._share(*said)
        if any(len(values) for values in self._web.totals):
            n = self._team.threads
            totals = self._web.totals
            parts = [(part, n) for part in range(n)]
            self._team.each(lambda *part: _run(add_totals, totals, said, *part), parts)

    def by_kernel(self, x: Floats, y: Floats, y_hat: Floats) -> None:
        """Run some rounds, kernel after kernel: x (T, K, d), y and y_hat (T, K)."""
        if len(y) > len(self._f):
            self._f = np.empty((len(y), *self._f.shape[1:]))
        f = self._f[: len(y)]

        def run(first: int, n_kernels: int) -> None:
            f[:, :, first : first + n_kernels] = self._play_kernels(first, n_kernels, x, y)

        self._team.each(run, _chunks(self._features.n_kernels, self._team.threads))
        state = featureless(self._state)
        whole = exchange_of(self._cell, self._algorithm, self._state, PLAIN)
        said, heard, totals = (featureless(each) for each in whole[2:5])
        exchange = Exchange(None, None, said, heard, totals, self._web.wires, self._web.net)
        z = np.empty((*f.shape[1:], 0), self._state[0].dtype)
        _run(weigh_rounds, state, self._rates, exchange, x, y, y_hat, f, z)

    def _play_kernels(self, first: int, n_kernels: int, x: Floats, y: Floats) -> Floats:
        """Run some kernels through rounds x (T, K, d), y (T, K); give their predictions (T, K, n).

        Their arrays are copied out, to stand together in cache, and back.
        """
        law: Any = self._algorithm.law
        part = kernels(self._state, first, n_kernels)
        own = kernels(self._exchange.said, first, n_kernels)
        own = own._replace(**{name: getattr(part, name) for name in law.carried})
        after = spare(own, part)
        whole = self._room()
        z, energy = np.zeros_like(whole.z[:, :, :n_kernels]), whole.energy[:, :, :n_kernels].copy()
        scratch, heard = (kernels(each, 0, n_kernels) for each in (whole.scratch, whole.heard))
        room = Room(scratch, heard, np.ascontiguousarray(z), energy, whole.ends)
        web = self._web._replace(totals=kernels(self._web.totals, 0, n_kernels))
        f = np.empty((len(y), y.shape[1], n_kernels))
        features = map_of(self._features, first, n_kernels)
        _run(play_rounds, part, self._rates, own, after, x, y, f, web, features, room)
        if len(y) % 2:
            own = carry(law, own, after, 0, y.shape[1])
        predicted = Prediction(np.empty(len(y[0])), f[0], np.empty((len(y[0]), 0)))
        sample = (x[0], predicted, x[0], y[0], predicted)
        given: Any = (How(True, False, False), *sample, web, features, room)
        _run(work, part, self._rates, own, own, *given, 0, y.shape[1])
        put_kernels(self._state, part, first)
        return f

    def close(self) -> None:
        """Do the exchange that the last round left to be done."""
        if not self._is_open:
            return
        own, said, n_learners = self._exchange.said, self._now, self._f.shape[1]
        if said is not own:
            law: Any = self._algorithm.law
            said = carry(law, own, said, 0, len(self._state[0]))  # and of learners elsewhere
        none = np.empty((n_learners, 0))
        self._work(said, said, How(True, False, False), none, none, np.empty(n_learners))
        self._now, self._after, self._is_open = own, None, False


def _run(function: Any, *given: Any) -> None:
    machine_code(function, *given)(*given)


class _Measure:
    """CV of each round, before it is run: sampled, or by moments."""

    def __init__(
        self, cell: Cell, algorithm: Algorithm, options: Options, records: Records
    ) -> None:
        self._cell, self._algorithm, self._records = cell, algorithm, records
        self._dtype = options.dtype
        self._is_kept = records.keeps("inside")
        generator = rng.child(options.seed, "cv", cell.first_trial)
        n_learners = cell.graphs[0].n_learners
        self.pairs = Pairs([generator], n_learners) if options.cv == "sampled" else None

    def update(self, x: Floats, total: Any) -> None:
        """Measure the functions that are about to predict x (K, d)."""
        found = self._algorithm.function(self._cell.state)
        assert found is not None, "simulate measures functions only"
        theta, weights = found

        def inputs(chosen: Ints) -> Array:
            return self._cell.maps[0](x[chosen], self._dtype)

        def functions(chosen: Ints) -> tuple[Array, Floats]:
            return theta[chosen], weights[chosen]

        if self.pairs is not None:
            self.pairs.update(functions, inputs)
        else:
            component = self._cell.graphs[0].component
            inside = self._records.row("inside") if self._is_kept else None
            by_moments(self._records.row("spread"), inside, functions, inputs, component, total)


def _chunks(n_kernels: int, threads: int) -> list[tuple[int, int]]:
    """(first, number) of kernels that run together: some eight, and even for the threads."""
    n_chunks = min(-(-max(1, round(n_kernels / 8)) // threads) * threads, n_kernels)
    cuts = np.linspace(0, n_kernels, n_chunks + 1).astype(int).tolist()
    return [(low, high - low) for low, high in pairwise(cuts)]
