"""The compiled host: many rounds of one trial in one call, for any algorithm that has a law.

A round is map, predict, measure, step, exchange, merge, as in sim/interpreted.py, and agrees with
it to the bit. Interpreted, a round costs some thirty microseconds besides its work; here nothing,
so that one trial at a time can run, and its state stays in the core's own cache.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from domkl.algorithms.base import Inputs, Net, Prediction, is_worth_compiling, n_notes
from domkl.algorithms.law import LAWS, function, local_step, merge, predict
from domkl.core.exchange import Wires, fields_that
from domkl.core.features import RandomFeatures
from domkl.core.jit import generic, sweep
from domkl.core.numba_internals import by_class, link, machine_code
from domkl.core.vectors import copied
from domkl.sim.cells import Cell, Records
from domkl.sim.delay import Waiting, last_samples, late_arrays
from domkl.sim.inputs import Stream
from domkl.sim.interpreted import run_cell
from domkl.sim.pieces import all_pairs, empty_like, hear, map_rows, message_of, total, words_of
from domkl.speech.base import Speech, utter, words_for
from domkl.typing import Array, Floats, Ints

STRETCH = 20_000  # learner-steps between two reports, some 60 ms
LOST = 40e-6  # seconds that an interpreted round takes longer


class Map(NamedTuple):
    """A trial's features, as compiled code takes them."""

    turns: Floats  # (1, d, P·M)
    n_frequencies: int
    linear: bool


class Rows(NamedTuple):
    """Where rounds are recorded, (T, K) each; the last two only where CV is measured."""

    predictions: Floats
    spread: Floats
    inside: Floats


class Mapped(NamedTuple):
    """Where features are written: z (1, N, P, D), and ‖z‖² (1, N, P)."""

    z: Array
    energy: Floats


class Exchange(NamedTuple):
    """A network, and the buffers through which messages go."""

    memory: Any  # of the speech; None where it is exact
    drafted: Any  # a message of all learners; None where what is said is the message itself
    said: Any  # what the neighbors have of it
    heard: Any  # likewise, or of a few learners
    totals: Any  # of the trial, where a field is delivered so
    wires: Wires
    net: Net


@sweep
def play(
    state: Any,
    rates: Any,
    exchange: Exchange,
    x: Floats,
    x_late: Floats,
    y_late: Floats,
    predicted: Prediction,
    begin: int,
    first_learned: int,
    features: Map,
    room: Mapped,
    late_room: Mapped,
    recorded: Rows,
    component: Ints,
    is_measured: bool,
) -> None:
    """Run the rounds x (T, K, d); the state is updated in place.

    Features of n rounds together go to room, (1, n·K, P, D): four learners share each load of the
    frequencies, and few of a small network's rows are left over. Round t, the begin + t-th of the
    run, learns x_late[t], y_late[t], which are x and y unless labels come late: then their features
    are made anew. ``predicted`` holds the predictions of as many rounds as are waited for.
    """
    turns, m, linear = features
    n_rounds, n_learners, n_inputs = x.shape
    n_mapped, n_slots = room.z.shape[1] // n_learners, len(predicted.y_hat)
    for start in range(0, n_rounds, n_mapped):
        stop = min(start + n_mapped, n_rounds)
        n_rows = (stop - start) * n_learners
        inputs = x[start:stop].reshape(n_rows, n_inputs)
        map_rows(inputs, turns, room.z, room.energy, m, linear)
        if n_slots > 1:
            inputs = x_late[start:stop].reshape(n_rows, n_inputs)
            map_rows(inputs, turns, late_room.z, late_room.energy, m, linear)
        for t in range(start, stop):
            first, last = (t - start) * n_learners, (t - start + 1) * n_learners
            z, energy = room.z[0, first:last], room.energy[0, first:last]
            prediction = predicted_in(predicted, (begin + t) % n_slots)
            predict(state, rates, Inputs(x[t], z, energy), prediction)
            copied(recorded.predictions[t], prediction.y_hat)
            if is_measured:
                measure(state, recorded.spread[t], recorded.inside[t], z, component)
            if begin + t >= first_learned:
                then = predicted_in(predicted, (begin + t + 1) % n_slots)
                z_late, energy_late = late_room.z[0, first:last], late_room.energy[0, first:last]
                sample = Inputs(x_late[t], z_late, energy_late)
                message = message_of(exchange.drafted, exchange.said)
                local_step(state, rates, sample, y_late[t], then, exchange.net, message)
                utter(exchange.memory, exchange.drafted, exchange.said)
                merge_all(state, rates, exchange)


@generic
def predicted_in(predicted: Prediction, slot: int) -> Prediction:
    """What was predicted in one of several rounds."""
    return Prediction(predicted.y_hat[slot], predicted.by_kernel[slot], predicted.notes[slot])


@generic
def merge_all(state: Any, rates: Any, exchange: Exchange) -> None:
    """Let every learner hear, then merge."""
    _, drafted, said, heard, totals, wires, net = exchange
    total(totals, said, 0, 1)
    hear(heard, said, message_of(drafted, said), totals, wires, 0, len(net.degree))
    merge(state, rates, heard, net, words_of(drafted, said))


@by_class
def measure(state: Any, spread: Floats, inside: Floats, z: Any, component: Ints) -> Any:
    """Write the sums that CV averages; nothing for a law without ``function``."""
    if LAWS[state].function is None:
        return "pass"

    def written(state, spread, inside, z, component):  # type: ignore[no-untyped-def]
        theta, weights = function(state)
        all_pairs(spread, inside, theta, weights, z, component, len(z))

    return written


def map_of(features: RandomFeatures, first: int = 0, n_kernels: int | None = None) -> Map:
    """The features of some kernels, all by default."""
    m, last = features.n_frequencies, first + (n_kernels or features.n_kernels)
    turns = np.ascontiguousarray(features.turns[:, first * m : last * m])
    return Map(turns[None], m, features.linear and last == features.n_kernels)


def exchange_of(cell: Cell, speech: Speech, n_heard: int | None = None) -> Exchange:
    """What a cell of one trial exchanges through; buffers for all learners, or for ``n_heard``."""
    network, how, said = cell.network, cell.algorithm.exchange, cell.algorithm.message(cell.state)
    memory, drafted = None, None
    if not speech.is_exact:
        drafted, said = said, words_for(said)
        memory = speech.remember(drafted)
    wires, net = network.wires, network.net
    n_edges = network.n_edges if n_heard is None else n_heard * int(net.degree.max())
    n_heard = len(net.degree) if n_heard is None else n_heard
    by_edge = fields_that(how, lambda each: each.needs_reverse)
    heard = empty_like(said, [n_edges if name in by_edge else n_heard for name in said._fields])
    is_total = wires.span > 1 and bool(fields_that(how, lambda each: each.spans_all))
    totals = empty_like(said, [int(is_total)] * len(said))
    return Exchange(memory, drafted, said, heard, totals, wires, net)


class Ring:
    """What was predicted in the last n + 1 rounds, in arrays that compiled hosts write in place."""

    def __init__(self, cell: Cell) -> None:
        law, waiting, n_learners = cell.algorithm.law, cell.waiting, cell.network.n_learners
        assert law is not None, "compiled hosts play laws"
        n = self.n_slots = cell.options.delay + 1
        shape = (n, n_learners)
        by_kernel = np.zeros((*shape, cell.maps[0].n_kernels))
        notes = np.zeros((*shape, n_notes(law, cell.state)))
        self.values = Prediction(np.zeros(shape), by_kernel, notes)
        self.n_waiting = 0 if waiting is None else len(waiting.y)
        if waiting is not None:
            slots = np.arange(-self.n_waiting, 0) % n
            for ours, given in zip(self.values, waiting[2:], strict=True):
                ours[slots] = given
        self.round = 0  # the next one, counted from where this run began

    @property
    def first(self) -> int:
        """The first round, counted from where this run began, whose end has a label to learn."""
        return self.n_slots - 1 - self.n_waiting

    @property
    def now(self) -> Prediction:
        """To be written in this round."""
        return self._at(self.round)

    @property
    def then(self) -> Prediction:
        """What was predicted n rounds ago."""
        return self._at(self.round + 1)

    def _at(self, t: int) -> Prediction:
        return Prediction(*(each[t % self.n_slots] for each in self.values))

    def waiting(self, x: Floats, y: Floats) -> Waiting:
        """What waits after so many rounds, given its samples x (n, K, d), y (n, K)."""
        slots = [t % self.n_slots for t in range(self.round - len(y), self.round)]
        return Waiting(x, y, *(each[slots] for each in self.values))


def play_trial(cell: Cell, stream: Stream, after_rounds: Callable[[int], None]) -> None:
    """Run every round of X (T, K, d), y (T, K) on a cell of one trial."""
    assert stream.arrays is not None, "simulate plays arrays only"
    (inputs, targets), features, options = stream.arrays, cell.maps[0], cell.options
    n_rounds, n_learners = targets.shape
    is_measured = options.cv == "exact"
    records = Records(cell)
    if cell.state is None:
        cell.state = cell.first_state()
    link(options.dtype)
    exchange, ring = exchange_of(cell, options.speech), Ring(cell)
    n_mapped = 4 // math.gcd(n_learners, 4) if n_learners <= 32 else 1  # whole groups of four rows
    room = late_room = Mapped(*features.empty(1, n_mapped * n_learners, options.dtype))
    x_late, y_late = inputs, targets  # the same, unless labels come late
    if options.delay:
        late_room = Mapped(*features.empty(1, n_mapped * n_learners, options.dtype))
        x_late, y_late = late_arrays(inputs, targets, options.delay, cell.waiting)
    per_round = n_learners * (1 + n_learners / 10 if is_measured else 1)  # CV sees all pairs
    # where CV is not measured its rows do not exist, and are not written: any will do
    names = Rows._fields if is_measured else ("predictions",) * 3
    rest = (map_of(features), room, late_room)
    while ring.round < n_rounds:
        start = ring.round
        n = max(1, min(records.n_free, n_rounds - start, int(STRETCH / per_round)))
        some = slice(start, start + n)
        recorded = Rows(*(records.rows(name, n) for name in names))
        late = (x_late[some], y_late[some], ring.values, start, ring.first)
        tail = (recorded, cell.graphs[0].component, is_measured)
        given: Any = (cell.state, cell.algorithm.compiled, exchange, inputs[some], *late, *rest)
        given += tail
        is_asked = start == 0 and options.is_patient
        if is_asked and not is_worth_compiling(play, given, n_rounds * LOST):
            run_cell(cell, stream, after_rounds)
            return
        machine_code(play, *given)(*given)
        records.rows("targets", n)[:] = targets[some]
        records.end_rounds(n)
        after_rounds(n)
        ring.round += n
    cell.records = records
    if options.delay:
        cell.waiting = ring.waiting(*last_samples(inputs, targets, options.delay, cell.waiting))
