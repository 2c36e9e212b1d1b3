"""The protocol of one learner: events in, effects out. No I/O, no clock, no randomness.

The package's docstring explains the states and shows the loop of a driver.

The rules of this file:

- A step calls the algorithm as the simulator does: predict, local_step, offers on all open edges,
  merge. Between offers and merge it waits until each offer has its counterpart, at most
  `Timing.round_timeout`. *Async* stops waiting when another step can begin. That is the only
  difference between the two modes; without faults both are the simulator.
- A merge takes from each open edge the counterpart of the offer made in this step (a *fresh* pair),
  or else the newest offer that was heard, whose effect on the duals of ADMM is undone at once. Only
  completed exchanges stay in them, each exactly once, with the same pair at both ends (edges.py).
- The gaps of an exchange that is completed outside of its step are added to the state at once, and
  pull in the next merge; what is averaged is averaged with the neighbor's in the next merge.
- In a merge an edge without a completed exchange does not pull, and its contribution is put aside
  until the next exchange: duals act once an exchange, what was heard is averaged once, and samples
  are learned in between.
- Lockstep does not wait again for a neighbor that made a round time out until it has caught up.
- A learner with a backlog asks for haste: learners without a sample then answer at once, and those
  that wait in a round ask the neighbors they wait for.
- A step without a sample answers who waits, and tells others only what is news to them.
- Nothing that a neighbor sends is trusted. A refused frame is counted with the reason, and has no
  other effect.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from domkl import checks
from domkl.algorithms.base import Inputs, Prediction
from domkl.core.losses import Logistic
from domkl.errors import DataError
from domkl.learner.local import Words
from domkl.mesh.protocol import events
from domkl.mesh.protocol.bounds import Bounds
from domkl.mesh.protocol.edges import Closed, Completed, Edge, Edges, Pair
from domkl.mesh.protocol.events import Effect, Event, Timing
from domkl.mesh.protocol.families import family_of
from domkl.mesh.protocol.forecasts import Forecasts, WaitingForecast, from_bits
from domkl.mesh.protocol.measures import Measures
from domkl.mesh.protocol.model import Model
from domkl.mesh.protocol.sides import Sides
from domkl.mesh.protocol.wire import HASTE, IDLE, MOST_HASTE, Offer, longest_frame
from domkl.speech.base import Fields
from domkl.storage import Parts
from domkl.typing import Array, Floats

#: the least and the largest prediction that is given out: the target's range of 0 to 1, and its
#: width on either side
MOST_BELOW, MOST_ABOVE = -1.0, 2.0
#: names of the forecasts in a snapshot, of the learner and of the one without neighbors
FORECASTS = ("forecasts", "forecasts_alone")


class Protocol:
    """One learner of a mesh.

    Parameters
    ----------
    name : str
    model : Model
        The same at all learners of the mesh.
    neighbors : names, in the order in which sums are taken
        The simulator's order is ascending; with the same order results agree to the bit.
    mode : "lockstep" or "async"
    timing : Timing
    incarnation : int
        Greater at each start of this learner than at any start before.
    checkpoint_every : int
        Number of samples between two `Checkpoint` effects.
    measures_alone : bool
        Whether to measure what the neighbors are worth, beside the same learner without them. It is
        a second learner, unless the algorithm's state has it.
    measures_gaps : bool
        Whether to measure how far the neighbors' predictions are, at each sample.
    is_guarded : bool
        Whether neighbors move it no further than own samples do, see bounds.py. This measures the
        same.
    snapshot : Parts, optional
        What `snapshot` returned before a restart. A learner without neighbors continues to the bit;
        one with neighbors resets its duals and begins new epochs.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        neighbors: Sequence[str],
        *,
        mode: Literal["lockstep", "async"] = "lockstep",
        timing: Timing = Timing(),  # noqa: B008  a NamedTuple of numbers
        incarnation: int,
        checkpoint_every: int = 100,
        measures_alone: bool = True,
        measures_gaps: bool = True,
        is_guarded: bool = False,
        snapshot: Parts | None = None,
    ) -> None:
        self.name = name  # as the neighbors know this learner
        self.model = model  # what all learners have in common
        self.mode = checks.choice("mode", mode, ("lockstep", "async"))  # whether steps wait
        self.timing = timing.check()  # how long steps wait; `edges` has the same
        self.checkpoint_every = checks.whole("checkpoint_every", checkpoint_every, 1)  # samples
        self.measures = Measures()  # of predictions, steps, edges and refused frames
        self._measures_gaps = measures_gaps  # to the neighbors' predictions
        self.learned = 0  # number of the last sample that was learned
        self.learner = model.learner()  # the algorithm's state
        self._family = family_of(model.algorithm)  # what neighbors' messages mean
        self._measures_alone = measures_alone or is_guarded  # what it would be without neighbors
        is_second = self._measures_alone and not self._family.has_alone
        self.alone = model.learner() if is_second else None  # if the state does not have it
        n_rows = model.offers().n_rows
        self.bounds = Bounds(self._family, n_rows) if is_guarded and n_rows else None
        loss = getattr(model.algorithm.loss, "compiled", None)
        self._has_range = not isinstance(model.algorithm.loss, Logistic)  # which predicts log-odds
        is_mixed = is_guarded and self.alone is not None
        self.sides = Sides(loss, model.horizon or model.delay + 1) if is_mixed else None
        #: predictions of the learner and its twin whose label is not known yet, and that label
        self._unweighed: deque[tuple[float, float, float]] = deque()
        forecasting = [each for each in (self.learner, self.alone) if each and model.horizon]
        self.forecasts = [Forecasts(each, model.horizon) for each in forecasting]  # of both
        if snapshot is not None:
            self._restore(snapshot)
        self.n_doubted = self._family.n_doubted(self.learner.state)  # samples not believed
        number = checks.whole("incarnation", incarnation, 1)
        self.edges = Edges(name, model, timing, number, self.measures)  # to the neighbors
        if self.bounds is not None:
            self.edges.codes = self.bounds.codes
        self.edges.set_neighbors(tuple(neighbors))
        self._queue: deque[events.Sample | events.Moment] = deque()  # what is not learned yet
        self._newest: events.Moment | None = None  # to forecast from when the step has ended
        self._words: Words | None = None  # of the step that is under way; None between steps
        self._step = 0  # number of the last step, with or without a sample
        self._step_time = -np.inf  # when the last step began
        self._is_following = False  # whether the last step was without a sample
        self._haste = 0  # hops left of the haste to hand on to neighbors that we wait for
        self._start_time: float | None = None  # when the first event was handled
        self._last_checkpoint = self.learned  # number of the sample at the last checkpoint

    @property
    def max_frame(self) -> int:
        """Bytes of the longest frame that a neighbor with the same model sends."""
        return longest_frame(self.edges.offers)

    @property
    def n_queued(self) -> int:
        """Number of samples that are not learned yet."""
        return len(self._queue)

    @property
    def is_waiting(self) -> bool:
        """Whether a step is under way and waits for offers."""
        return self._words is not None

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Take an event; return the effects that the driver must carry out, in order.

        ``now`` is the time in seconds, by any clock that does not go back.
        """
        if self._start_time is None:
            self._start_time = now
        if isinstance(event, events.Received):
            self.edges.receive(event.peer, event.data, now)
        elif isinstance(event, (events.Sample, events.Moment)):
            self._enqueue(event)
        elif isinstance(event, (events.PeerUp, events.PeerDown)):
            self.edges.set_connected(event.peer, isinstance(event, events.PeerUp), now)
        elif isinstance(event, events.Neighbors):
            self.edges.set_neighbors(event.names)
        else:
            self.edges.tick(now)
        self._apply_changes()
        self._advance(now)
        self._hand_on_haste(now)
        return self._take_effects()

    def look(self, x: Floats) -> tuple[float, float | None, tuple[float, ...] | None]:
        """Predict the label of a scaled input (d,), with its standard deviation and quantiles.

        Both are None if the algorithm has none.
        """
        inputs, prediction = self.learner.look(x)
        told = (
            self.learner.deviation(inputs, prediction),
            self.learner.quantiles(inputs, prediction),
        )
        y_alone = None
        if self.bounds is not None:
            alone = self._family.alone(prediction) if self.alone is None else self.alone.look(x)[1]
            y_alone = float(alone.y_hat[0])
        return self._given(float(prediction.y_hat[0]), y_alone), *told

    def trust(self) -> Mapping[str, float] | None:
        """Return the shares of what predictions rest on, by name; None if unknown."""
        return self._family.trust(self.learner.state)

    def leave(self) -> list[Effect]:
        """Say goodbye to all neighbors and end the step under way; return the effects."""
        self.edges.set_neighbors(())
        self._apply_changes()
        if self._words is not None:
            self._merge()
        return self._take_effects()

    def snapshot(self) -> Parts:
        """Return a copy of all that a restart needs."""
        arrays = self.learner.saved("state")
        for part in (self.bounds, self.sides):
            arrays |= {} if part is None else part.saved()
        if self.alone is not None:
            arrays |= self.alone.saved("alone")
        for name, forecasts in zip(FORECASTS, self.forecasts, strict=False):
            arrays |= forecasts.saved(name)
        header = {
            "model": dict(self.model.parts),
            "learned": self.learned,
            "has_neighbors": bool(self.edges.opened),
            "measures": self.measures.saved(),
        }
        return Parts(header, {name: values.copy() for name, values in arrays.items()})

    def _take_effects(self) -> list[Effect]:
        effects, self.edges.effects = self.edges.effects, []
        return effects

    def _apply_changes(self) -> None:
        """Bring the learner in step with what happened to its edges."""
        while self.edges.changes:
            change = self.edges.changes.pop(0)
            if isinstance(change, Completed):
                self._completed(change.edge, change.pair)
            elif isinstance(change, Closed):
                self._amend(change.in_force, -1)
            else:
                self._rewired(change.before, change.after)

    def _completed(self, edge: Edge, pair: Pair) -> None:
        """Keep the pair for the merge of this step, or add its gaps to the state now."""
        if self.bounds is not None:
            pair = self.bounds.limited(edge, pair)
            if self.bounds.became_suspicious:
                text = (
                    f"hardly anything that {edge.peer} says is let in: it is far from what we learn"
                )
                self.edges.effects.append(events.Alarm("suspicious", edge.peer, text))
        self._haste = max(self._haste, pair.theirs.haste - 1)
        self.put_in_force(edge, True)
        if self._words is not None and edge.own_step == self._step:
            edge.fresh = pair
        else:
            edge.late, gaps = pair, pair.gaps(self.learner.gap_fields)
            edge.contribute(gaps)
            self._amend(gaps, 1)

    def put_in_force(self, edge: Edge, is_in_force: bool) -> None:
        """Add the contribution of an edge to the algorithm's state, or put it aside."""
        if edge.is_in_force != is_in_force:
            edge.is_in_force = is_in_force
            self._amend(edge.contribution, 1 if is_in_force else -1)

    def _rewired(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Have other neighbors; without any, reset what ties the state to the network."""
        self.learner.rewire(before, after)
        if not after:
            self.learner.state = self.model.algorithm.leave(self.learner.state)

    def _amend(self, gaps: Fields, sign: int) -> None:
        """Add gaps to the algorithm's state, or subtract them."""
        dtype = self.model.dtype
        signed = {f: (sign * gap).astype(dtype, copy=False) for f, gap in gaps.items()}
        if signed:
            self.learner.amend(signed)

    def _enqueue(self, sample: events.Sample | events.Moment) -> None:
        if isinstance(sample, events.Moment) != bool(self.forecasts):
            kinds = ("Moment", "Sample") if self.forecasts else ("Sample", "Moment")
            does = "forecasts" if self.forecasts else "does not forecast"
            raise DataError(f"The model {does}: send {kinds[0]}, not {kinds[1]}.")
        last = self._queue[-1].number if self._queue else self.learned
        if sample.number != last + 1:
            raise DataError(f"sample must have number {last + 1}, got {sample.number}")
        self._queue.append(sample)

    def _advance(self, now: float) -> None:
        """Begin and end steps until there is nothing to do but wait."""
        while True:
            if self._words is not None and not (self._may_merge(now) and self._merge()):
                return
            if self._queue and not self._is_gated(now):
                happened = self._queue.popleft()
                if isinstance(happened, events.Moment):
                    self._take(happened, now)
                else:
                    self._learn(happened, now)
            elif not self._follow(now):
                return

    def _is_gated(self, now: float) -> bool:
        """Whether the first step must still wait for neighbors."""
        if self.mode == "async" or self._step > 0 or self._start_time is None:
            return False
        is_complete = len(self.edges.opened) == len(self.edges.by_peer)
        return not is_complete and now - self._start_time < self.timing.start_timeout

    def _take(self, moment: events.Moment, now: float) -> None:
        """Learn the label of now; forecast from the inputs of now when that step has ended."""
        self.learned, self._newest = moment.number, moment
        before_step = self._position()
        due = [each.due(moment.tick) for each in self.forecasts]
        self.edges.effects.append(self._score(moment, due))
        words = [each.learn(then, moment) for each, then in zip(self.forecasts, due, strict=True)]
        if self.alone is not None and words[1] is not None:
            self.alone.merge(words[1])
        self._has_learned(moment.y)
        self._has_moved(before_step, moment.y)
        if words[0] is None:
            self._forecast()
        else:
            self._is_following = False
            self._offer(words[0], HASTE * MOST_HASTE if self._queue else 0, now)

    def _score(
        self, moment: events.Moment, due: Sequence[WaitingForecast | None]
    ) -> events.Predicted:
        """Record how the forecasts of this moment went, with and without neighbors."""
        ours, alone = due[0], None if due[-1] is None else due[-1].prediction
        if alone is not None and len(due) == 1:
            alone = self._family.alone(alone) if self._measures_alone else None
        y_alone = None if alone is None else float(alone.y_hat[0])
        if y_alone is not None:
            self.measures.judge_alone(moment.y, y_alone)
        h = self.model.horizon
        if ours is None:
            return events.Predicted(moment.number, np.nan, moment.y, y_alone=y_alone, horizon=h)
        y_hat, naive = float(ours.given[0]), from_bits(ours.naive)[0]
        self._weigh_late(float(ours.y_hat[0]), y_alone, moment.y)
        self.measures.judge_forecast(moment.y, y_hat, naive)
        self.measures.judge_quantiles(moment.y, from_bits(ours.quantiles)[0])
        deviation, last = float(from_bits(ours.deviation)[0]), float(naive[0])
        given = (moment.number, y_hat, moment.y, deviation, y_alone, last, None, h)
        return events.Predicted(*given)

    def _forecast(self) -> None:
        """WaitingForecast from the newest inputs, once."""
        moment, self._newest = self._newest, None
        if moment is None:
            return
        ours, *second = self.forecasts
        alone = [each.make(moment) for each in second]

        def given(made: Prediction) -> float:
            y_alone = alone[0] if alone else float(self._family.alone(made).y_hat[0])
            return self._given(float(made.y_hat[0]), y_alone)

        y_hat = ours.make(moment, given)
        deviation = None if y_hat is None else ours.newest_deviation
        told = moment.number, moment.tick, self.model.horizon, y_hat, deviation
        self.edges.effects.append(events.Forecasted(*told, ours.newest_quantiles))
        if y_hat is not None:
            gap = self._neighbor_gap(self.learner.inputs(moment.x).z, y_hat)
            if gap is not None:
                self.measures.gaps.add(gap)

    def _neighbor_gap(self, z: Array, y_hat: float) -> float | None:
        """Return the mean squared distance to the neighbors' predictions for the same inputs.

        It uses what was last merged from each neighbor, with our kernel weights. None without
        neighbors, or if the algorithm's function has no such form.
        """
        heard = self.learner.heard
        found = self._family.functions(self.learner.state, heard) if heard else None
        if found is None or not self._measures_gaps:
            return None
        theirs = np.einsum("npd,pd,np->n", found.theta, z[0], found.weights)
        apart = theirs - y_hat
        return float(apart @ apart) / len(apart)

    def _learn(self, sample: events.Sample, now: float) -> None:
        """Predict a sample, and begin a step with the one whose label is known now."""
        before_step = self._position()
        inputs, prediction = self.learner.look(sample.x)
        y_hat = float(prediction.y_hat[0])
        deviation = self.learner.deviation(inputs, prediction)
        before, gap = self.measures.last_label, self._neighbor_gap(inputs.z, y_hat)
        y_alone = None
        if self._measures_alone:
            y_alone = self._judge_alone(inputs, sample, prediction)
        y_hat = self._given(y_hat, y_alone)
        self.measures.judge(sample.y, y_hat, gap)
        self._weigh_late(float(prediction.y_hat[0]), y_alone, sample.y)
        told = (sample.number, y_hat, sample.y, deviation, y_alone, before, gap)
        quantiles = self.learner.quantiles(inputs, prediction)
        self.measures.judge_quantiles(sample.y, quantiles)
        self.edges.effects.append(events.Predicted(*told, quantiles=quantiles))
        self.learned = sample.number
        due = self.learner.due(inputs, prediction, np.array([sample.y]))
        if due is None:
            return
        self.measures.see(float(due[2][0]))
        words = self.learner.local_step(*due)
        self._has_learned(float(due[2][0]))
        self._has_moved(before_step, float(due[2][0]))
        if words is not None:
            self._is_following = False
            self._offer(words, HASTE * MOST_HASTE if self._queue else 0, now)

    def _weigh_late(self, y_hat: float, y_alone: float | None, y: float) -> None:
        """Weigh the learner and its twin by the sample whose label is known now."""
        if self.sides is None or y_alone is None:
            return
        self._unweighed.append((y_hat, y_alone, y))
        if len(self._unweighed) > self.model.delay:
            self.sides.learn(*self._unweighed.popleft())

    def _given(self, y_hat: float, y_alone: float | None) -> float:
        """Give out a prediction: near the one without neighbors, and near the target's range."""
        if self.bounds is None or y_alone is None:
            return y_hat
        if self.sides is not None:
            y_hat = self.sides.given(y_hat, y_alone)
        if not self._has_range:
            return y_hat
        found = next((f for f in (y_hat, y_alone) if MOST_BELOW <= f <= MOST_ABOVE), None)
        if found != y_hat:
            text = f"a prediction of {self.model.target_of(y_hat):.4g} was not given out"
            self.edges.alarm("senseless", "", text)
        return self.measures.last_label if found is None else found

    def _has_learned(self, y: float) -> None:
        """Note that the state has changed; raise an alarm if the label was not believed."""
        before, self.n_doubted = self.n_doubted, self._family.n_doubted(self.learner.state)
        if self.n_doubted > before:
            text = f"a sample with the label {self.model.target_of(y):.6g} is not believed"
            self.edges.effects.append(events.Alarm("doubted", "", text))

    def _position(self) -> Fields:
        """Return what samples move in the learner without neighbors."""
        state = self.learner.state if self.alone is None else self.alone.state
        return {} if self.bounds is None else self._family.position(state)

    def _has_moved(self, before: Fields, y: float) -> None:
        """Take note of how far a label has moved the learner without neighbors."""
        if self.bounds is not None and not np.isnan(y):
            self.bounds.see(before, self._position())

    def _judge_alone(self, inputs: Inputs, sample: events.Sample, prediction: Prediction) -> float:
        """Return what was predicted without neighbors.

        A second learner learns the sample, too.
        """
        if self.alone is None:
            before = self._family.alone(prediction)
        else:
            before = self.alone.learn_seen(inputs, sample.y)
        self.measures.judge_alone(sample.y, float(before.y_hat[0]))
        return float(before.y_hat[0])

    def _hand_on_haste(self, now: float) -> None:
        """In a step that waits, ask at once for what is missing if a neighbor is in a hurry."""
        if self._words is not None:
            called = max((edge.haste for edge in self.edges.opened), default=0)
            self.edges.hurry(max(self._haste, called - 1), now)
        self._haste = 0

    def _follow(self, now: float) -> bool:
        """Begin a step without a sample, if one is called for."""
        if not self._is_called(now):
            return False
        haste = max(edge.haste for edge in self.edges.opened if edge.is_wanted)
        words = self.learner.idle_step()
        if words is None:
            return False
        self._is_following = True
        self.measures.n_idle += 1
        self._offer(words, IDLE + HASTE * max(haste - 1, 0), now)
        return True

    def _is_called(self, now: float) -> bool:
        """Whether a neighbor has waited long enough for our offer, or is in a hurry."""
        wanted = [edge for edge in self.edges.opened if edge.is_wanted]
        if not wanted or self._is_gated(now):
            return False
        offers = [edge.peer_offer for edge in wanted if edge.peer_offer is not None]
        is_led = self._is_following and not all(offer.is_idle for offer in offers)
        is_lockstep = self.mode == "lockstep"  # then our own sample may still come for this round
        since = min(edge.offer_came for edge in wanted) if is_lockstep else self._step_time
        is_hurried = any(edge.haste for edge in wanted)
        return is_hurried or is_led or now - since >= self.timing.idle_after

    def _offer(self, words: Words, flags: int, now: float) -> None:
        """Offer what is said in the step that begins to the neighbors."""
        self._words, self._step_time = words, now
        self._step += 1
        self.measures.n_rounds += 1
        self.edges.offer(words.said, flags, self._step, now)
        self._apply_changes()

    def _may_merge(self, now: float) -> bool:
        """Whether the step under way can end; after the time-out it can, whoever is missing."""
        missing = [e for e in self.edges.opened if e.is_awaited and not e.is_lagging]
        if not missing:
            return True
        if self.mode == "async" and (self._queue or self._is_called(now)):
            return True
        if now - self._step_time < self.timing.round_timeout:
            return False
        self.measures.n_waited += 1
        for edge in missing:
            edge.is_lagging = True
        return True

    def _merge(self) -> bool:
        """End the step under way; return whether the next one may begin at once."""
        words, opened, fields = self._words, self.edges.opened, self.learner.gap_fields
        assert words is not None, "a step is under way"
        self._words = None
        own = Offer(0, {f: getattr(words.said, f) for f in self.learner.pulling})
        heard = [edge.to_merge(own.fields, fields) for edge in opened]
        if self.bounds is not None:
            heard = self._near(words.said, heard)
        self.learner.merge(words, heard)
        self._follow_median(opened)
        for edge, theirs in zip(opened, heard, strict=True):
            if edge.fresh is not None:
                edge.contribute(edge.fresh.gaps(fields))
            elif theirs is not None:
                self._amend(Pair(own, theirs).gaps(fields), -1)
                self.put_in_force(edge, edge.late is not None)
            edge.fresh = edge.late = None
        self._forecast()
        if self.learned - self._last_checkpoint < self.checkpoint_every:
            return True
        self._last_checkpoint = self.learned
        self.edges.effects.append(events.Checkpoint(self.learned))
        return False  # the driver takes the snapshot before anything else happens

    def _near(self, said: Any, heard: Sequence[Offer | None]) -> list[Offer | None]:
        """Bring accounts that are added up near our own."""
        known = [each for each in heard if each is not None]
        near = iter(self._family.accounts(said._asdict(), [each.fields for each in known]))
        return [each and each._replace(fields=each.fields | next(near)) for each in heard]

    def _follow_median(self, opened: Sequence[Edge]) -> None:
        """Without labels of its own a learner takes over the median of its neighbors' words."""
        heard = [edge.newest.fields for edge in opened if edge.newest is not None]
        if self.bounds is not None and heard and self.bounds.n == 0:
            self.learner.state = self._family.follow(self.learner.state, heard)

    def _restore(self, snapshot: Parts) -> None:
        header, arrays = snapshot
        obstacle = self.model.obstacle(header["model"])
        if obstacle:
            raise DataError(f"checkpoint must be of the same model; {obstacle}")
        self.learned = checks.whole("learned", header["learned"], 0)
        self.measures.restore(header["measures"])
        self.learner.restore("state", arrays)
        if header["has_neighbors"]:
            self.learner.state = self.model.algorithm.leave(self.learner.state)
        if self.alone is not None and any(name.startswith("alone.") for name in arrays):
            self.alone.restore("alone", arrays)
        if self.bounds is not None:
            self.bounds.restore(arrays, self.measures.n_learned)
        if self.sides is not None:
            self.sides.restore(arrays)
        for name, forecasts in zip(FORECASTS, self.forecasts, strict=False):
            forecasts.restore(name, arrays)
