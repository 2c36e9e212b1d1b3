"""The edges of a learner: its end of each connection to a neighbor, and the frames on them.

`Edge` is this learner's end of one edge. `Edges` holds all of them: it decodes the frames that
arrive, opens and closes edges, and encodes the frames that leave.

The rules of this file:

- An epoch of an edge is a pair of numbers, one chosen by each end. Either end begins a new epoch by
  raising its own number. An end is open once it has heard that the other end knows its number. When
  an epoch begins, nothing has been exchanged in it, at either end.
- A number that is lower than one heard before is of a late frame, or of a node whose clock went
  back, or it was the earlier one that was a lie. A node that lives knows a number of ours that was
  chosen after the higher one was heard: it is believed. So no number closes an edge for good.
- The exchanges of an epoch are numbered from 1. Each end makes one offer per number, and the next
  one only after it has heard the other end's offer. So neither end is ahead by more than one, and
  nobody can ask again for any but the last two own offers.
- Exchange n is complete at an end that has made its own offer n and has heard the other one. Each
  end completes each number exactly once, with the same pair of messages, even if frames are lost,
  duplicated, reordered or late.
- The contribution of an edge is the sum of gaps (their message minus ours) that it has added to the
  algorithm's state in this epoch. Both ends have the same contribution with opposite signs. When
  the epoch ends, each end subtracts its contribution from the state.
- This file never calls the protocol. What the protocol must do about its learner is queued, in
  order, in `Edges.changes`: as `Completed`, `Closed` and `Rewired`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from domkl.errors import WireError
from domkl.mesh.protocol.bounds import UNLIMITED
from domkl.mesh.protocol.events import Alarm, Effect, Send, Timing
from domkl.mesh.protocol.measures import EdgeMeasures, Measures
from domkl.mesh.protocol.model import Model
from domkl.mesh.protocol.wire import (
    HASTE,
    IDLE,
    OPEN,
    Frame,
    Kind,
    Offer,
    decode,
    decode_parts,
    decode_text,
    encode,
    encode_parts,
)
from domkl.speech.base import Fields
from domkl.typing import Array

#: own epoch numbers of one incarnation: number = incarnation * COUNTS + count
COUNTS = 1 << 20
#: relative change of a message that is no news to a neighbor
SAME = 1e-4
#: last numbers of offers that may come again because they were asked for
MAX_REPEATED = 4
#: offers that break the rules of what can be said, after which a neighbor is not heeded any more
MAX_BROKEN = 3
#: different alarm texts about one neighbor; further refused frames are counted only
MAX_TOLD = 20


class Pair(NamedTuple):
    """The two messages of a completed exchange."""

    own: Offer
    theirs: Offer

    def gaps(self, fields: Sequence[str]) -> Fields:
        """Return their values minus ours; the other end computes the exact opposite."""
        return {f: self.theirs.fields[f] - self.own.fields[f] for f in fields}


class Edge:
    """This learner's end of the edge to one neighbor.

    An edge is *closed* until both ends know each other's number, and then *open*. While it is open,
    exchange ``n_done + 1`` is in one of three states:

    ========== =============================================== ==================================
    property   meaning                                         offers made
    ========== =============================================== ==================================
    is_due     the next step may make our offer                ours not; theirs maybe
    is_wanted  the neighbor waits for our offer                theirs only (this is also due)
    is_awaited we wait for the neighbor's offer                ours only
    ========== =============================================== ==================================

    With both offers the exchange is complete, and the next one is due.
    """

    def __init__(self, peer: str, number: int) -> None:
        self.peer = peer  # name of the neighbor
        self.own_number = number  # our half of the epoch
        self.peer_number = 0  # the neighbor's half; 0 while it is unknown
        self.is_own_newer = False  # whether ours was chosen after the neighbor's was heard
        self.is_open = False  # whether both ends know both numbers
        self.is_barred = False  # whether it is not to be opened, because of what was said on it
        self.n_broken = 0  # offers that no honest learner makes
        self.measures = EdgeMeasures()  # what the operator sees of this edge
        self.last_heard: float | None = None  # when the neighbor's last valid frame came
        self.last_sent = -np.inf  # when our last frame was sent
        self.offer_came = 0.0  # when the neighbor's newest offer came
        self.last_asked = 0.0  # when the missing offer was asked for, or ours was sent
        self.ask_pause = 0.0  # seconds from then until it is asked for (again)
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self.n_done = 0  # completed exchanges of this epoch
        self.own_offer: Offer | None = None  # our offer n_done + 1, while it is not complete
        self.last_own: Offer | None = None  # our last offer, complete or not
        self.own_step = 0  # the learner's step in which our last offer was made
        self.peer_offer: Offer | None = None  # the neighbor's offer n_done + 1, likewise
        self.early: Offer | None = None  # the neighbor's offer n_done + 2, if it has come first
        self.haste = 0  # hops left over which the neighbor wants our next offer at once
        self.told_haste = 0  # hops left that the neighbor was told, with our offer or since
        self.asked: dict[int, int] = {}  # by number: how often it was asked for, and not repeated
        self.newest: Offer | None = None  # the last offer that was heard
        self.fresh: Pair | None = None  # completed in the step under way, and not merged yet
        self.late: Pair | None = None  # completed outside of its step, since the last merge
        self.is_lagging = False  # made a lockstep round time out; is not waited for now
        self.sent: dict[int, bytes] = {}  # frames of our last two offers, by number
        self.contribution: Fields = {}  # sum of the gaps of this epoch, in float64
        self.is_in_force = True  # whether the contribution is in the state now
        self.was_limited: Array | None = None  # rows whose sum of gaps was limited in this epoch

    @property
    def is_due(self) -> bool:
        """Whether an own offer may be made."""
        return self.is_open and self.own_offer is None

    @property
    def is_awaited(self) -> bool:
        """Whether our offer is made and the neighbor's has not come."""
        return self.is_open and self.own_offer is not None

    @property
    def is_wanted(self) -> bool:
        """Whether the neighbor's offer has come and ours is not made."""
        return self.is_open and self.own_offer is None and self.peer_offer is not None

    def offer(self, own: Offer, frame: bytes, step: int) -> Pair | None:
        """Make the next own offer; return the pair if this completes the exchange."""
        assert self.is_due
        self.own_offer = self.last_own = own
        self.own_step = step
        number = self.n_done + 1
        self.sent = {n: f for n, f in self.sent.items() if n == number - 1} | {number: frame}
        return self._complete()

    def is_news(self, own: Offer) -> bool:
        """Whether a message is not what was offered last, within `SAME` of its size."""
        if self.last_own is None:
            return True
        before = self.last_own.fields
        return any(
            np.abs(values - before[f]).max(initial=0.0) > SAME * np.abs(values).max(initial=0.0)
            for f, values in own.fields.items()
        )

    def hear(self, number: int, offer: Offer) -> tuple[str, Pair | None]:
        """Take an offer of this epoch.

        Return why it is not taken ("" if it is), and the pair if it completes the exchange.
        """
        if number <= self.n_done or (number == self.n_done + 1 and self.peer_offer is not None):
            return self._repeated(number), None
        if number == self.n_done + 2 and self.own_offer is not None:
            self.early = offer  # the one before it was lost, and will be asked for
            return "early", None
        if number != self.n_done + 1:
            return "future", None
        self.peer_offer = self.newest = offer
        self.haste = max(self.haste, offer.haste)
        return "", self._complete()

    def ask(self) -> int:
        """Note that the missing offer is asked for; return its number."""
        number = self.n_done + 1
        kept = {n: count for n, count in self.asked.items() if n > number - MAX_REPEATED}
        self.asked = kept | {number: kept.get(number, 0) + 1}
        return number

    def _repeated(self, number: int) -> str:
        """Whether an offer that was heard before is the answer to a question, or replayed."""
        if not self.asked.get(number):
            return "replayed"
        self.asked[number] -= 1
        return "repeated"

    def _complete(self) -> Pair | None:
        if self.own_offer is None or self.peer_offer is None:
            return None
        pair = Pair(self.own_offer, self.peer_offer)
        self.own_offer, self.peer_offer, self.early = None, self.early, None
        self.newest = self.peer_offer or self.newest
        self.haste = 0 if self.peer_offer is None else self.peer_offer.haste
        self.n_done += 1
        self.measures.n_exchanged += 1
        self.is_lagging = False
        return pair

    def to_merge(self, own: Fields, summed: Sequence[str]) -> Offer | None:
        """Return what the step under way merges from this neighbor; None if nothing.

        Nothing comes of a neighbor before its first offer.

        That is the neighbor's offer of this exchange if it has come. Otherwise it is the newest one
        heard, with the fields in ``own`` (those that are averaged, and those whose gaps are
        ``summed``) replaced by our own values, so that they have no effect, unless an exchange was
        completed since the last merge. Then averaged ones are the neighbor's, and the gaps of that
        exchange are added to summed ones. So each exchange pulls once, whenever it completes, and
        between exchanges nothing does: the learner keeps what its samples teach it.
        """
        if self.fresh is not None:
            return self.fresh.theirs
        if self.newest is None:
            return None
        held = dict(own)
        if self.late is not None:
            gaps = self.late.gaps(summed)
            held = {
                f: values + gaps[f] if f in gaps else self.late.theirs.fields[f]
                for f, values in own.items()
            }
        return self.newest._replace(fields=self.newest.fields | held)

    def contribute(self, gaps: Fields) -> None:
        """Record gaps that are added to the algorithm's state."""
        for field, gap in gaps.items():
            if field in self.contribution:
                self.contribution[field] += gap
            else:
                self.contribution[field] = gap.astype(np.float64)

    def open(self) -> None:
        """Both ends know both numbers: exchanges may begin."""
        self.is_open = self.measures.is_open = True
        self.measures.n_epochs += 1

    def close(self, *, own: int | None = None, peer: int | None = None) -> Fields:
        """End the epoch because one end has a new number; return what it has in the state."""
        contribution = self.contribution if self.is_in_force else {}
        self.is_own_newer = peer is None
        self.own_number = self.own_number if own is None else own
        self.peer_number = self.peer_number if peer is None else peer
        self.is_open = self.measures.is_open = False
        self._begin_epoch()
        return contribution


class Completed(NamedTuple):
    """An exchange is complete: merge the pair in this step, or add its gaps to the state now."""

    edge: Edge
    pair: Pair


class Closed(NamedTuple):
    """An open edge was closed: subtract from the state what it has in force there."""

    in_force: Fields


class Rewired(NamedTuple):
    """Other edges are open than before: the names of their neighbors, in the order of sums."""

    before: list[str]
    after: list[str]


Change = Completed | Closed | Rewired


class Edges:
    """All edges of a learner.

    Parameters
    ----------
    name : str
        Of this learner.
    model : Model
    timing : Timing
    incarnation : int
        Greater than at any earlier start of this learner.
    measures : Measures
        Where refused frames and the measures of each edge are recorded.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        timing: Timing,
        incarnation: int,
        measures: Measures,
    ) -> None:
        self.offers = model.offers()  # the format of what learners say
        self._name, self._model, self._timing, self._measures = name, model, timing, measures
        self._number = incarnation * COUNTS  # the last own number given to an edge
        self._told: dict[str, set[str]] = {}  # alarm texts by neighbor, each raised once
        #: the radii to state with that many neighbors, as codes: no limit unless it is replaced
        self.codes: Callable[[int], bytes] = lambda degree: bytes([UNLIMITED]) * self.offers.n_rows
        self.by_peer: dict[str, Edge] = {}  # in the order of sums
        self.opened: list[Edge] = []  # those that are open, in the same order
        #: what happened to the edges, in order; the protocol applies it to the learner, and empties
        #: the list
        self.changes: list[Change] = []
        #: what the driver must do, in order; the protocol appends its own effects, and empties it
        self.effects: list[Effect] = []

    def set_neighbors(self, names: Sequence[str]) -> None:
        """Have these neighbors from now on, in this order; edges to others are closed."""
        for name in [name for name in self.by_peer if name not in names]:
            edge = self.by_peer.pop(name)
            if edge.is_open:
                self._send(edge, Kind.BYE, 0.0)
                self.restart(edge)
        self.by_peer = {n: self.by_peer.get(n) or Edge(n, self._next()) for n in names}
        self._measures.edges = {name: edge.measures for name, edge in self.by_peer.items()}
        self._rewire()

    def set_connected(self, peer: str, is_up: bool, now: float) -> None:
        """The transport has made or lost a connection; a short loss does not close the edge."""
        edge = self.by_peer.get(peer)
        if edge is None:
            return
        if not is_up:
            edge.is_lagging = edge.is_awaited
        elif edge.is_open:
            edge.ask_pause = 0.0
        else:
            self._greet(edge, now)

    def receive(self, peer: str, data: bytes, now: float) -> None:
        """Take bytes from a peer; whatever is wrong with them is counted, and never raised."""
        edge = self.by_peer.get(peer)
        if edge is None:
            self._refuse(peer, "stranger")
            return
        try:
            frame = decode(data, self.offers.n_bytes)
            if frame.sender != peer:
                self._refuse(peer, "sender")
            elif frame.fingerprint != self._model.fingerprint:
                self._mismatch(edge, frame, now)
            elif frame.kind is Kind.HELLO:
                self._hello(edge, frame, now)
            elif frame.kind is Kind.REFUSE:
                self.alarm("refused", peer, f"{peer} refuses us: {decode_text(frame.payload)}")
            elif not edge.is_open or frame.epoch != (edge.peer_number, edge.own_number):
                self._refuse(peer, "epoch")
            else:
                edge.last_heard = edge.measures.last_heard = now
                self._accept(edge, frame, now)
        except WireError as error:
            self._refuse(peer, "malformed")
            self.alarm("refused", peer, f"frame of {peer} refused: {error}")

    def offer(self, said: Any, flags: int, step: int, now: float) -> None:
        """Send what is said in a step on every open edge where an offer is due.

        A step without a sample answers those who wait, and tells others what is news to them. So a
        mesh without samples comes to rest.
        """
        payload, n = b"", len(self.opened)
        codes = self.codes(n)
        for i, edge in enumerate(self.opened):
            if not edge.is_due:
                continue
            if not payload or self.offers.is_by_edge:
                payload = self.offers.pack(said, i, n, codes)
                own = self.offers.unpack(payload)
            if flags & IDLE and not edge.is_wanted and not edge.is_news(own):
                continue
            frame = self._frame(edge, Kind.OFFER, edge.n_done + 1, flags, payload)
            pair = edge.offer(own, frame, step)
            edge.last_asked, edge.ask_pause = now, self._timing.resend_after
            edge.told_haste = flags // HASTE
            self._post(edge, frame, now)
            if pair is not None:
                self.changes.append(Completed(edge, pair))

    def tick(self, now: float) -> None:
        """Close silent edges, greet on closed ones, ask for missing offers, send signs of life."""
        silence, alive_every = self._timing.silence, self._timing.alive_every
        for edge in self.by_peer.values():
            if edge.is_open and now - (edge.last_heard or 0.0) >= silence:
                self.restart(edge)
                text = f"{edge.peer} was not heard for {silence:g} s"
                self.alarm("down", edge.peer, text, is_repeated=True)
            if not edge.is_open:
                if now - edge.last_sent >= alive_every / 2:
                    self._greet(edge, now)
            elif edge.own_offer is not None and now - edge.last_asked >= edge.ask_pause:
                self._ask(edge, now)
            elif now - edge.last_sent >= alive_every:
                self._send(edge, Kind.ALIVE, now)

    def hurry(self, haste: int, now: float) -> None:
        """Ask for all missing offers now, because a neighbor with a backlog waits for us."""
        for edge in self.opened:
            if edge.is_awaited and haste > edge.told_haste:
                edge.told_haste = haste
                self._send(edge, Kind.ASK, now, round=edge.ask(), flags=HASTE * haste)

    def restart(self, edge: Edge) -> None:
        """End the epoch of an edge by raising our number."""
        self._close(edge, own=self._next())

    def bar(self, edge: Edge, text: str) -> None:
        """Say goodbye to a neighbor, and do not open the edge again before the next start."""
        self._send(edge, Kind.BYE, edge.last_sent)
        self.restart(edge)
        edge.is_barred = edge.measures.is_barred = True
        edge.measures.n_barred += 1
        self.alarm("distrusted", edge.peer, text, is_repeated=True)

    def _accept(self, edge: Edge, frame: Frame, now: float) -> None:
        """Act on a frame of the edge's epoch."""
        if frame.kind is Kind.OFFER:
            self._hear(edge, frame, now)
        elif frame.kind is Kind.ASK:
            again = edge.sent.get(frame.round)
            if again is not None:
                self._post(edge, again, now)
            elif frame.round == edge.n_done + 1:
                edge.haste = max(edge.haste, frame.flags // HASTE)
        elif frame.kind is Kind.BYE:
            self.restart(edge)
            self.alarm("left", edge.peer, f"{edge.peer} left", is_repeated=True)

    def _hear(self, edge: Edge, frame: Frame, now: float) -> None:
        try:
            offer = self.offers.heard(frame)
        except WireError as error:
            edge.n_broken += 1
            if edge.n_broken == MAX_BROKEN:
                text = f"{edge.peer} is ignored from now on: no honest learner says this: {error}"
                self.bar(edge, text)
            raise
        why, pair = edge.hear(frame.round, offer)
        if why == "early":
            self._ask(edge, now)
        elif not why:
            edge.offer_came = now
        elif why != "repeated":  # it was late, and asked for meanwhile: nobody is at fault
            self._refuse(edge.peer, why)
        if pair is not None:
            self.changes.append(Completed(edge, pair))

    def _hello(self, edge: Edge, frame: Frame, now: float) -> None:
        if frame.from_epoch < edge.peer_number and not self._is_of_now(edge, frame):
            self._refuse(edge.peer, "epoch")
            return
        if not edge.is_barred:
            edge.last_heard = edge.measures.last_heard = now
        if frame.from_epoch != edge.peer_number:
            self._close(edge, peer=frame.from_epoch)
        if edge.is_barred:
            self._refuse(edge.peer, "distrusted")
            return
        if frame.to_epoch == edge.own_number and not edge.is_open:
            edge.open()
            self._rewire()
            self.alarm("up", edge.peer, f"{edge.peer} is up", is_repeated=True)
        if not frame.flags & OPEN:
            self._greet(edge, now)

    def _is_of_now(self, edge: Edge, frame: Frame) -> bool:
        """Whether a HELLO with a lower number is no late one; if that is open, see to it."""
        if frame.from_epoch // COUNTS < edge.peer_number // COUNTS:
            text = f"{edge.peer} is of an earlier start than heard before; is its clock behind?"
            self.alarm("refused", edge.peer, text)
        if not edge.is_open and not edge.is_own_newer:
            self.restart(edge)
        return edge.is_own_newer and frame.to_epoch == edge.own_number

    def _mismatch(self, edge: Edge, frame: Frame, now: float) -> None:
        """Tell both operators what differs between the two models."""
        self._refuse(edge.peer, "model")
        if frame.kind is Kind.HELLO:
            difference = self._model.difference(decode_parts(frame.payload))
            text = f"model of {edge.peer} differs: {difference or 'its text is the same'}"
            self.alarm("mismatch", edge.peer, text)
            self._send(edge, Kind.REFUSE, now, payload=text.encode()[:2000])
        elif frame.kind is Kind.REFUSE:
            text = f"{edge.peer} refuses us: {decode_text(frame.payload)}"
            self.alarm("mismatch", edge.peer, text)

    def _greet(self, edge: Edge, now: float) -> None:
        if edge.is_barred:
            return
        flags = OPEN if edge.is_open else 0
        self._send(edge, Kind.HELLO, now, flags=flags, payload=encode_parts(self._model.parts))

    def _ask(self, edge: Edge, now: float) -> None:
        """Ask for the missing offer, and double the pause before the next time, up to a limit."""
        shortest, longest = self._timing.resend_after, 4 * self._timing.resend_after
        edge.last_asked, edge.ask_pause = now, min(max(2 * edge.ask_pause, shortest), longest)
        edge.measures.n_asked += 1
        flags = HASTE * edge.told_haste
        self._send(edge, Kind.ASK, now, round=edge.ask(), flags=flags)

    def _send(
        self, edge: Edge, kind: Kind, now: float, *, round: int = 0, flags: int = 0,
        payload: bytes = b"",
    ) -> None:  # fmt: skip
        self._post(edge, self._frame(edge, kind, round, flags, payload), now)

    def _frame(self, edge: Edge, kind: Kind, round: int, flags: int, payload: bytes) -> bytes:
        epoch = edge.own_number, edge.peer_number
        return encode(
            Frame(kind, self._model.fingerprint, self._name, *epoch, round, flags, payload)
        )

    def _post(self, edge: Edge, frame: bytes, now: float) -> None:
        edge.last_sent = now
        self.effects.append(Send(edge.peer, frame))

    def _close(self, edge: Edge, *, own: int | None = None, peer: int | None = None) -> None:
        was_open = edge.is_open
        contribution = edge.close(own=own, peer=peer)
        if was_open:
            self.changes.append(Closed(contribution))
            self._rewire()

    def _rewire(self) -> None:
        before = [edge.peer for edge in self.opened]
        self.opened = [edge for edge in self.by_peer.values() if edge.is_open]
        after = [edge.peer for edge in self.opened]
        if before != after:
            self.changes.append(Rewired(before, after))

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _refuse(self, peer: str, why: str) -> None:
        self._measures.refused[peer, why] += 1

    def alarm(self, kind: str, peer: str, text: str, *, is_repeated: bool = False) -> None:
        """Raise an alarm; without ``is_repeated``, each text once and MAX_TOLD texts per peer."""
        told = self._told.setdefault(peer, set())
        if is_repeated or (text not in told and len(told) < MAX_TOLD):
            self.effects.append(Alarm(kind, peer, text))
            if not is_repeated:
                told.add(text)
