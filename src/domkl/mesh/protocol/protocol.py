"""A learner among neighbors: events in, effects out. No I/O, no clock, no randomness.

The rules of this file:

- The law is hosted, not changed: a step is predict, local_step, offers to all open edges, merge.
  *Lockstep* waits between offers and merge until every offer has its counterpart, or for
  `Timing.round_timeout`; *async* does not wait. That is the only difference of the two.
- A merge takes in, of each open edge, the counterpart of the offer made in this step (*fresh*), or
  else the newest that was heard. Gaps of the latter are taken back at once from what sums up gaps:
  only completed exchanges stay there, each once and at both ends the same (edge.py).
- An exchange completed between steps goes there directly.
- A neighbor that made a round wait is not waited for again until it has caught up; one with samples
  waiting makes haste: those without follow it at once.
- Nothing that a neighbor sends is trusted: what is not heeded is counted, with its reason.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from domkl import checks
from domkl.errors import DataError
from domkl.mesh.protocol.edge import Edge, Gaps, Pair, anchored, gaps_of
from domkl.mesh.protocol.events import (
    Checkpoint,
    Effect,
    Event,
    Neighbors,
    PeerDown,
    PeerUp,
    Predicted,
    Received,
    Sample,
)
from domkl.mesh.protocol.learner import LocalLearner
from domkl.mesh.protocol.learner import Snapshot as Snapshot
from domkl.mesh.protocol.links import Links
from domkl.mesh.protocol.measures import Measures
from domkl.mesh.protocol.model import Model
from domkl.mesh.protocol.timing import Timing as Timing
from domkl.mesh.protocol.wire import HASTE, IDLE, MOST_HASTE, Kind, Offer
from domkl.typing import Floats


class Protocol:
    """One learner of a mesh.

    Parameters
    ----------
    name : str
    model : Model
        The agreed one.
    neighbors : names, in the order in which sums are taken
        The simulator's is ascending; with the same order results agree to the bit.
    mode : "lockstep" or "async"
    timing : Timing
    incarnation : int
        Greater at each start of this learner than ever before.
    checkpoint_every : int
        Samples between two `Checkpoint` effects.
    measures_alone : bool
        Run the same learner without neighbors beside, to tell what the neighbors are worth.
    snapshot : Snapshot, optional
        To go on from. One without neighbors goes on to the bit; one with rejoins as a new epoch.
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
        snapshot: Snapshot | None = None,
    ) -> None:
        self.name, self.model = name, model
        self.mode = checks.choice("mode", mode, ("lockstep", "async"))
        self.timing = timing.check()
        self.checkpoint_every = checks.whole("checkpoint_every", checkpoint_every, 1)
        self.measures = Measures()
        self.learned = 0
        self.learner = LocalLearner(model)
        self.alone = LocalLearner(model) if measures_alone else None
        if snapshot is not None:
            self._restore(snapshot)
        self._layout = self.learner.layout()
        number = checks.whole("incarnation", incarnation, 1)
        self.links = Links(name, model, self._layout, timing, number, self.measures, owner=self)
        self.links.set_neighbors(tuple(neighbors))
        self._queue: deque[Sample] = deque()
        self._said: Any = None  # the message of the step under way, while it waits
        self._step, self._stepped = 0, -np.inf  # number and time of the last step
        self._is_following = False  # the last step had no sample
        self._started: float | None = None
        self._saved = self.learned

    @property
    def n_queued(self) -> int:
        """Samples handed over and not yet learned."""
        return len(self._queue)

    @property
    def is_waiting(self) -> bool:
        """Whether a round is under way."""
        return self._said is not None

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Take an event at a time; give what is to be done, in order."""
        if self._started is None:
            self._started = now
        if isinstance(event, Received):
            self.links.receive(event.peer, event.data, now)
        elif isinstance(event, Sample):
            self._take(event)
        elif isinstance(event, (PeerUp, PeerDown)):
            self.links.link(event.peer, isinstance(event, PeerUp), now)
        elif isinstance(event, Neighbors):
            self.links.set_neighbors(event.names)
        else:
            self.links.tick(now)
        self._advance(now)
        return self._effects()

    def predict(self, x: Floats) -> float:
        """Predict the label of a scaled input (d,), and change nothing."""
        return float(self.learner.look(x)[1].y_hat[0])

    def deviation(self, x: Floats) -> float | None:
        """Its standard deviation, where the algorithm has one."""
        return self.learner.deviation(x)

    def leave(self) -> list[Effect]:
        """Say goodbye to all neighbors, and have none."""
        self.links.set_neighbors(())
        if self._said is not None:
            self._merge()
        return self._effects()

    def snapshot(self) -> Snapshot:
        """What to go on from."""
        arrays = {f"state.{f}": v for f, v in self.learner.state._asdict().items()}
        if self.alone is not None:
            arrays |= {f"alone.{f}": v for f, v in self.alone.state._asdict().items()}
        header = {
            "model": dict(self.model.parts),
            "learned": self.learned,
            "has_neighbors": bool(self.links.opened),
            "measures": self.measures.saved(),
        }
        return Snapshot(header, {name: values.copy() for name, values in arrays.items()})

    def _effects(self) -> list[Effect]:
        out, self.links.out = self.links.out, []
        return out

    def _take(self, sample: Sample) -> None:
        last = self._queue[-1].number if self._queue else self.learned
        if sample.number != last + 1:
            raise DataError(f"sample must have number {last + 1}, got {sample.number}")
        self._queue.append(sample)

    def _advance(self, now: float) -> None:
        """Begin and end steps, as long as something can be done."""
        while True:
            if self._said is not None and not (self._may_merge(now) and self._merge()):
                return
            if self._queue and not self._is_gated(now):
                self._learn(self._queue.popleft(), now)
            elif not self._follow(now):
                return

    def _is_gated(self, now: float) -> bool:
        """Whether the first round still waits for neighbors."""
        if self.mode == "async" or self._step > 0 or self._started is None:
            return False
        is_complete = len(self.links.opened) == len(self.links.edges)
        return not is_complete and now - self._started < self.timing.start_timeout

    def _learn(self, sample: Sample, now: float) -> None:
        inputs, prediction = self.learner.look(sample.x)
        y_hat = float(prediction.y_hat[0])
        self.links.out.append(Predicted(sample.number, y_hat))
        self.measures.judge(sample.y, y_hat, self.learner.neighbor_gap(inputs, y_hat))
        if self.alone is not None:
            self.measures.errors_alone.add((self.alone.learn(sample.x, sample.y) - sample.y) ** 2)
        self.learned = sample.number
        self._is_following = False
        message = self.learner.local_step(inputs, prediction, np.array([sample.y]))[1]
        self._offer(message, HASTE * MOST_HASTE if self._queue else 0, now)

    def _follow(self, now: float) -> bool:
        """Step without a sample, if a neighbor has waited long enough for an offer."""
        wanted = [edge for edge in self.links.opened if edge.is_wanted]
        if not wanted or self._is_gated(now):
            return False
        ahead = [edge.ahead for edge in wanted if edge.ahead is not None]
        haste = max(offer.haste for offer in ahead)
        is_led = self._is_following and not all(offer.is_idle for offer in ahead)
        is_lockstep = self.mode == "lockstep"  # then a sample may be under way, everywhere
        since = min(edge.came for edge in wanted) if is_lockstep else self._stepped
        if not haste and not is_led and now - since < self.timing.idle_after:
            return False
        message = self.learner.idle_step()
        if message is None:
            return False
        self._is_following = True
        self.measures.n_idle += 1
        self._offer(message, IDLE + HASTE * max(haste - 1, 0), now)
        return True

    def _offer(self, message: Any, flags: int, now: float) -> None:
        self._said, self._stepped = message, now
        self._step += 1
        self.measures.n_rounds += 1
        links, payload = self.links, b""
        for i, edge in enumerate(links.opened):
            if edge.is_due:
                if not payload or self._layout.is_by_edge:
                    payload = self._layout.pack(message, i, len(links.opened))
                    own = self._layout.unpack(payload)
                frame = links.frame(edge, Kind.OFFER, edge.n_done + 1, flags, payload)
                pair = edge.offer(own, frame, self._step)
                links.offered(edge, frame, now)
                if pair is not None:
                    self.completed(edge, pair)

    def _may_merge(self, now: float) -> bool:
        if self.mode == "async":
            return True
        missing = [e for e in self.links.opened if e.own is not None and not e.is_lagging]
        if not missing:
            return True
        if now - self._stepped < self.timing.round_timeout:
            return False
        self.measures.n_waited += 1
        for edge in missing:
            edge.is_lagging = True
        return True

    def _merge(self) -> bool:
        message, opened, fields = self._said, self.links.opened, self.learner.gap_fields
        self._said = None
        own = Offer(0, {f: getattr(message, f) for f in fields})
        heard = [e.fresh.theirs if e.fresh else anchored(e, own.fields) for e in opened]
        self.learner.merge(message, heard)
        for edge, theirs in zip(opened, heard, strict=True) if fields else ():
            if edge.fresh is not None:
                edge.note(gaps_of(edge.fresh, fields))
            elif theirs is not None:
                self._amend(gaps_of(Pair(own, theirs), fields), -1)
        for edge in opened:
            edge.fresh = None
        if self.learned - self._saved < self.checkpoint_every:
            return True
        self._saved = self.learned
        self.links.out.append(Checkpoint(self.learned))
        return False  # nothing more in this call: the snapshot must be of this very sample

    def completed(self, edge: Edge, pair: Pair) -> None:
        """Keep the pair for the merge of this step, or take it in now."""
        if self._said is not None and edge.step == self._step:
            edge.fresh = pair
        elif self.learner.gap_fields:
            gaps = gaps_of(pair, self.learner.gap_fields)
            edge.note(gaps)
            self._amend(gaps, 1)

    def untied(self, ledger: Gaps) -> None:
        """Take back what went into the state by an edge."""
        if ledger:
            self._amend(ledger, -1)

    def rewired(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Have other neighbors; without any, nothing ties the state, not even what was rounded."""
        self.learner.rewire(before, after)
        if not after:
            self.learner.state = self.model.algorithm.leave(self.learner.state)

    def _amend(self, gaps: Gaps, sign: int) -> None:
        dtype = self.model.dtype
        self.learner.amend({f: (sign * gap).astype(dtype, copy=False) for f, gap in gaps.items()})

    def _restore(self, snapshot: Snapshot) -> None:
        header, arrays = snapshot
        difference = self.model.difference(header["model"])
        if difference:
            raise DataError(f"checkpoint must be of the same model; {difference}")
        self.learned = checks.whole("learned", header["learned"], 0)
        self.measures.restore(header["measures"])
        self.learner.restore("state", arrays)
        if header["has_neighbors"]:
            self.learner.state = self.model.algorithm.leave(self.learner.state)
        if self.alone is not None and any(name.startswith("alone.") for name in arrays):
            self.alone.restore("alone", arrays)
