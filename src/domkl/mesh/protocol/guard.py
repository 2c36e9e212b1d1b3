"""The guard of a learner: which neighbors it heeds.

A neighbor with a valid certificate may lie. The guard looks at every completed exchange before it
reaches the algorithm, and compares what the neighbor says with what this learner's own samples make
possible. It changes nothing about an exchange: while no neighbor is distrusted, results are
those without a guard, to the bit.

Each exchange gives a *strain*, where 1 is about the most that honest neighbors come to:

- Algorithms that accumulate gaps (ADMM): the size of the sum of gaps that the edge has brought in
  this epoch, in units of the samples' own push (`Family.push`). In ADMM the duals balance the
  gradients of the samples. So honest edges stay at the size of one learner's gradients, whereas
  a lie that goes on, however small, adds up.
- All others: the squared error of the neighbor's function on this learner's last samples, in units
  of what the learner without neighbors makes of them, or the learner itself, whichever is more.
- Losses by kernel: how far they are from the learner's own, as a factor, whatever their level.
- How little the neighbor moves: a learner that pulls its neighbors is pulled by them, with samples
  of its own or without. One that says the same in every exchange, while we move, is not pulled.

Where messages are weighed when they are averaged (`Family.standing`), the errors and losses of a
neighbor that weighs less strain less, as they change the mean less: a newcomer knows little, says
so, and is no liar.

Strains above 1 add up by their logarithms, and those below 1 take from the sum. A neighbor is
distrusted when the sum is beyond `PATIENCE`, or at once by a strain beyond `GROSS`. The edge is
then closed, which takes back all that it has brought, and opened again some steps later. So the
mesh heals by itself when the neighbor is gone, or is honest again.

Two learners that were apart are far from each other at first, and meet within some exchanges: the
gap of an epoch's first exchange is allowed for, less in each further one, and after faults a
neighbor that was never distrusted may strain three times as much in its first exchanges.

After a pause the neighbor's function is also tried on the learner's samples, and it is *on trial*:
exchanges are judged and not merged, and when eight of them have passed, a new epoch begins in which
it is heeded. So a liar does no harm each time that it comes back. After the 10th pause, the 100th
and so on there is no trial, for honest learners that have been apart for so long that each seems to
push the other; then what the neighbor says must be right from the first exchange on.

What a lie has done to the learner before is undone, too. A learner whose own function errs far more
than the one without neighbors is *astray*: it closes all edges, takes the other one's state over,
and opens them again. In ADMM neighbors without samples honestly slow a learner down by as much; so
this is for learners that have distrusted a neighbor before.

All references are of the learner without neighbors (the *twin*), which no neighbor can spoil.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from domkl.algorithms.base import Function, Prediction
from domkl.learner.local import LocalLearner
from domkl.mesh.protocol.edges import Edge, Pair
from domkl.mesh.protocol.families import family_of
from domkl.typing import Array, Floats

#: logarithms of strains that a neighbor may add up
PATIENCE = 4.0
#: strain that is not tolerated once
GROSS = 3.0
#: samples before which nobody is judged, and on which functions are compared
WINDOW = 20
#: weight of the newest sample in what is known of the errors, after the first ones
RATE = 0.01
#: sum of gaps of an honest edge, in units of the samples' push
HONEST_PUSH = 0.5
#: of the gap in an epoch's first exchange, how much is allowed for in each further one
ARRIVAL = 0.6
#: strain that is allowed for in the first exchanges of an epoch, how many these are, and steps
#: until the next such epoch: after a fault a neighbor is behind
GRACE, N_GRACE, GRACE_EVERY = 3.0, 20, 200
#: largest such gap, in units of the learner's own function
MOST_APART = 3.0
#: exchanges of a trial; and in ADMM the squared error on our samples, in units of ours, that is
#: allowed there, and after a pause without a trial
N_TRIAL, TRIAL_ERROR = 8, 1.0
#: mean squared errors that a sample counts at most
OUTLIER = 10.0
#: share of the mean squared error that those of the last samples are held to be at least
LEAST_ERROR = 0.3
#: factor between the losses by kernel of two honest learners
HONEST_LOSS = 3.0
#: share of the mean loss that is added to each before they are compared
LEAST_LOSS = 0.05
#: least move of an honest neighbor relative to ours; and the largest strain of one that moves less,
#: unless it was distrusted before
HONEST_MOVE, STUCK = 0.1, 1.5
#: exchanges over which moves are measured, at least and at most; and what is a move at all, in
#: units of our own values
SHORT_MOVE, LONG_MOVE, LEAST_MOVE = 4, 16, 1e-6
#: squared error of a learner that is astray, in units of the twin's
ASTRAY = 2.0
#: steps that a neighbor is not heeded
PAUSE = 100
#: numbers of the pauses after which there is no trial
UNTRIED = frozenset(10**k for k in range(1, 10))
#: strain limit after a pause without trial
DOUBTED = 1.3
TINY = 1e-300


class Sum:
    """Logarithms of strains, added up; never below 0."""

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, strain: float) -> bool:
        """Add a strain; return whether that is too much, and then begin anew."""
        self.value = max(self.value + math.log(min(max(strain, 1 / GROSS), GROSS)), 0.0)
        is_beyond = strain > GROSS or self.value > PATIENCE
        if is_beyond:
            self.value = 0.0
        return is_beyond


class Motion:
    """How far two learners have moved in the last exchanges of an epoch."""

    def __init__(self) -> None:
        self._marks: list[tuple[int, Pair]] = []  # two earlier exchanges, by number

    def share(self, edge: Edge, pair: Pair, fields: Sequence[str]) -> float | None:
        """Take in an exchange; return their move in units of ours, None while that is unknown.

        It is that of the field in which the neighbor moves most.
        """
        if edge.n_done == 1 or not self._marks:
            self._marks = [(edge.n_done, pair)] * 2
        number, then = self._marks[0]
        if edge.n_done - self._marks[1][0] >= LONG_MOVE // 2:
            self._marks = [self._marks[1], (edge.n_done, pair)]
        if edge.n_done - number < SHORT_MOVE:
            return None
        shares = [
            _size(pair.theirs.fields[field] - then.theirs.fields[field]) / ours
            for field in fields
            if (ours := _size(pair.own.fields[field] - then.own.fields[field]))
            > LEAST_MOVE * _size(pair.own.fields[field])
        ]
        return max(shares, default=None)


class Record:
    """What is held against one neighbor."""

    def __init__(self) -> None:
        self.strain = Sum()
        self.n_pauses = 0  # how often it was distrusted
        self.resumes = 0  # step from which it is heeded again; 0 if it is
        self.apart = 0.0  # size of the gap in the first exchange of the epoch
        self.is_graced = False  # whether more is allowed in the first exchanges of this epoch
        self.last_grace = -math.inf  # step in which that began last
        self.motion = Motion()

    def pause(self, step: int) -> None:
        """Do not heed it for some steps."""
        self.n_pauses += 1
        self.resumes = step + PAUSE

    def open(self, step: int) -> None:
        """Begin an epoch; a neighbor that was never distrusted may have come through faults."""
        is_due = step - self.last_grace >= GRACE_EVERY
        self.is_graced = self.n_pauses == 0 and is_due
        if self.is_graced:
            self.last_grace = step

    @property
    def may_be_apart(self) -> bool:
        """Whether an initial gap is allowed: except after pauses 2, 5, 8, …"""
        return self.n_pauses % 3 != 2

    @property
    def needs_trial(self) -> bool:
        """Whether it is tried before it is heeded again: not after pause 10, 100, 1000 and so on.

        Else two honest learners, each on trial at the other, might never meet again.
        """
        return self.n_pauses not in UNTRIED


class Window:
    """The last samples of a learner: features, labels and squared errors of two learners."""

    def __init__(self, n_features: int) -> None:
        self._n = 0  # samples taken in; the next one replaces the oldest
        self._z = np.empty((WINDOW, n_features))
        self._y, self._errors = np.empty(WINDOW), np.empty((WINDOW, 2))

    def add(self, z: Array, y: float, own: float, twin: float) -> None:
        """Take in a sample, with the squared errors of the learner and of its twin."""
        slot, self._n = self._n % WINDOW, self._n + 1
        self._z[slot], self._y[slot], self._errors[slot] = z.reshape(-1), y, (own, twin)

    def errors(self, limit: float) -> tuple[float, float]:
        """Return both mean squared errors; each sample counts ``limit`` at most."""
        counted = np.minimum(self._errors[: self._n], limit)
        own, twin = np.add.reduce(counted, axis=0) / len(counted)
        return float(own), float(twin)

    def error(self, function: Function, limit: float) -> float:
        """Return the same of a function, of one learner."""
        weighed = (function.theta[0] * function.weights[0][:, None]).reshape(-1)
        apart = self._z[: self._n] @ weighed - self._y[: self._n]
        return float(np.add.reduce(np.minimum(apart * apart, limit))) / len(apart)


class Guard:
    """Compares what neighbors say with a learner's own samples.

    Parameters
    ----------
    learner : LocalLearner
    alone : callable
        Gives the state of the same learner without neighbors, the twin's.
    """

    def __init__(self, learner: LocalLearner, alone: Callable[[], Any]) -> None:
        self._learner, self._alone = learner, alone
        self._family = family_of(learner.algorithm)
        self._by_gaps = self._family.has_push
        self._records: dict[str, Record] = {}
        self._astray = Sum()
        self._n = 0  # samples seen
        self._errors: Floats = np.zeros(learner.features.n_kernels)  # squared, by kernel
        self._error = 0.0  # squared, of the twin
        self._known = -1, 0.0, 0.0, 0.0  # number of samples, and what `_window_errors` gave then
        self._window = Window(learner.features.n_kernels * learner.features.n_features)

    def see(self, z: Array, y: float, y_hat: float, twin: Prediction) -> None:
        """Take a sample into account, with what both learners predicted."""
        self._n += 1
        rate, error = max(RATE, 1 / self._n), float(twin.y_hat[0] - y) ** 2
        self._errors += rate * ((twin.by_kernel[0] - y) ** 2 - self._errors)
        self._error += rate * (error - self._error)
        self._window.add(z, y, (y_hat - y) ** 2, error)

    def is_astray(self) -> bool:
        """Whether the learner has become far worse than its twin; ask once a sample."""
        was_lied_to = any(record.n_pauses for record in self._records.values())
        if self._n < WINDOW or (self._by_gaps and not was_lied_to):
            return False
        least = LEAST_ERROR * self._error
        own, twin, estimates = self._window_errors()
        if not self._by_gaps:
            own, twin = self._function_error(self._learner.state), max(twin, estimates)
        return self._astray.add(own / max(twin, least, TINY) / ASTRAY)

    def judge(self, edge: Edge, pair: Pair, step: int) -> str:
        """Take note of an exchange that is to be merged; return why not, "" if it may be."""
        if self._n < WINDOW:
            return ""
        record = self._records.setdefault(edge.peer, Record())
        if edge.n_done == 1:
            record.open(step)
        words, pushes = self._of_words(record, edge, pair), self._of_pushes(record, edge, pair)
        strain, text = max([*words, *pushes], default=(0.0, ""))
        if record.is_graced and edge.n_done <= N_GRACE:
            strain /= GRACE
        is_back = record.n_pauses > 0 and not record.needs_trial and edge.n_done <= N_TRIAL
        is_doubted = is_back and max(words, default=(0.0, ""))[0] > DOUBTED
        if not (record.strain.add(strain) or is_doubted):
            return ""
        record.pause(step)
        return f"{edge.peer} is ignored for {PAUSE} steps: {text}"

    def forgiven(self, step: int) -> dict[str, bool]:
        """Return the neighbors whose pause ends with this step, and whether they are on trial."""
        found = {peer: each for peer, each in self._records.items() if 0 < each.resumes <= step}
        for each in found.values():
            each.resumes = 0
        return {peer: each.needs_trial for peer, each in found.items()}

    @property
    def _limit(self) -> float:
        return OUTLIER * self._error

    def _of_words(self, record: Record, edge: Edge, pair: Pair) -> list[tuple[float, str]]:
        """Return the strains of what the neighbor says, with their reasons."""
        own, theirs = pair.own.fields, pair.theirs.fields
        found, share = [], _share(self._family.standing(own, theirs))
        if not self._by_gaps:
            found += self._error_strain(theirs, self._family.honest_error, share)
        elif edge.n_done <= N_TRIAL and record.n_pauses:
            found += self._error_strain(theirs, TRIAL_ERROR, share)
        if "loss" in own and own["loss"].shape[1] > 1:
            found.append(_loss_strain(own, theirs, share))
        moved = record.motion.share(edge, pair, self._learner.pulling)
        if moved is not None:
            strain = HONEST_MOVE / max(moved, TINY)
            text = f"it moves {moved:.2g} times as far as we do, whatever it hears"
            found.append((strain if record.n_pauses else min(strain, STUCK), text))
        return found

    def _of_pushes(self, record: Record, edge: Edge, pair: Pair) -> list[tuple[float, str]]:
        """Return the strain of what the edge has brought; on trial nothing adds up."""
        if not self._by_gaps:
            return []
        gaps = pair.gaps(self._learner.gap_fields)
        brought = {field: edge.contribution.get(field, 0.0) + gap for field, gap in gaps.items()}
        push = max(self._family.push(np.sqrt(self._errors)), TINY)
        if edge.n_done == 1:
            most = MOST_APART * self._size_of_function() if record.may_be_apart else 0.0
            record.apart = min(_size(*gaps.values()), most)
        allowed = HONEST_PUSH * push + record.apart * ARRIVAL ** (edge.n_done - 1)
        total = _size(*brought.values())
        text = f"it has pushed {total / push:.2g} times as hard as our samples do"
        return [(total / allowed, text)]

    def _size_of_function(self) -> float:
        sizes = [
            _size(*(getattr(state, f) for f in self._learner.gap_fields))
            for state in (self._learner.state, self._alone())
        ]
        return max(sizes)

    def _error_strain(
        self, theirs: Mapping[str, Array], honest: float, share: float
    ) -> list[tuple[float, str]]:
        there = self._family.estimates(self._alone(), theirs)
        if there is None or not there.theta.any():
            return []
        _, twin, estimates = self._window_errors()
        least = max(twin, LEAST_ERROR * self._error, TINY, estimates)
        error = self._window.error(there, self._limit)
        if error > least:  # else it strains no more than others do, whatever ours is
            least = max(least, self._function_error(self._learner.state))
        ratio = error / least
        text = f"its function errs {ratio:.2g} times as much on our samples"
        return [((1 + max(ratio - 1, 0.0) * share) / honest, text)]

    def _window_errors(self) -> tuple[float, float, float]:
        """Return errors on the last samples: of both learners then, of the twin's estimates now.

        They change with each sample only.
        """
        if self._known[0] != self._n:
            own, twin = self._window.errors(self._limit)
            self._known = self._n, own, twin, self._function_error(self._alone())
        return self._known[1:]

    def _function_error(self, state: Any) -> float:
        """Return the error of a state's estimates on the last samples, by the twin's weights."""
        names = self._learner.algorithm.exchange
        said = {f: getattr(state, f) for f in names if hasattr(state, f)}
        function = self._family.estimates(self._alone(), said)
        return 0.0 if function is None else self._window.error(function, self._limit)


def _size(*arrays: Array) -> float:
    """Return the root of the sum of squares; np.sum would take twice as long for small arrays."""
    return math.sqrt(sum(float(np.add.reduce(each * each, axis=None)) for each in arrays))


def _share(standing: float) -> float:
    """Return what a neighbor's error adds to that of the mean with ours; 1 if it weighs as much."""
    standing = min(standing, 1.0)
    return 4 * (standing / (1 + standing)) ** 2


def _loss_strain(
    own: Mapping[str, Array], theirs: Mapping[str, Array], share: float
) -> tuple[float, str]:
    """Compare losses by kernel: by their shares, or by round where the number of rounds is told."""
    ours, others = own["loss"][0], theirs["loss"][0]
    if "rounds" in own:
        ours, others = ours / max(own["rounds"][0], 1), others / max(theirs["rounds"][0], 1)
    else:
        others = others * ((ours.mean() + TINY) / (others.mean() + TINY))
    least = LEAST_LOSS * (float(np.add.reduce(ours)) / len(ours)) + TINY
    factors = np.log((others + least) / (ours + least))
    if "rounds" not in own:
        factors = factors - np.median(factors)
    ratio = math.exp(min(float(np.abs(factors).max()), 100.0))
    return ratio**share / HONEST_LOSS, f"its losses by kernel differ by {ratio:.2g} times from ours"
