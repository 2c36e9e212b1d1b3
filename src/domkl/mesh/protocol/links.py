"""All edges of a learner: shake hands, hear, ask again, stay alive, notice silence."""

from collections.abc import Sequence
from typing import Protocol

from domkl.errors import WireError
from domkl.mesh.protocol.edge import Edge, Gaps, Pair
from domkl.mesh.protocol.events import Alarm, Effect, Send
from domkl.mesh.protocol.measures import Measures
from domkl.mesh.protocol.model import Model
from domkl.mesh.protocol.timing import Timing
from domkl.mesh.protocol.wire import (
    OPEN,
    Frame,
    Kind,
    Layout,
    decode,
    decode_parts,
    decode_text,
    encode,
    encode_parts,
)

#: an own epoch number is the incarnation and a count
COUNTS = 1 << 20
#: different texts about a neighbor, beyond which its refused frames are counted and no more
MAX_TOLD = 20


class Owner(Protocol):
    """What a learner does about its edges."""

    def completed(self, edge: Edge, pair: Pair) -> None:
        """An exchange is complete."""

    def untied(self, ledger: Gaps) -> None:
        """An epoch has ended: take back what went into the state by it."""

    def rewired(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Other edges are open than before."""


class Links:
    """The edges, in the order of sums, and the frames that go over them."""

    def __init__(
        self,
        name: str,
        model: Model,
        layout: Layout,
        timing: Timing,
        incarnation: int,
        measures: Measures,
        *,
        owner: Owner,
    ) -> None:
        self.name, self._model, self._layout = name, model, layout
        self.timing, self._measures, self._owner = timing, measures, owner
        self._number = incarnation * COUNTS
        self._told: dict[str, set[str]] = {}  # alarms that need no repetition
        self.edges: dict[str, Edge] = {}
        self.opened: list[Edge] = []  # in order
        self.out: list[Effect] = []

    def set_neighbors(self, names: Sequence[str]) -> None:
        """Have these neighbors from now on, in this order."""
        for name in [name for name in self.edges if name not in names]:
            edge = self.edges.pop(name)
            if edge.is_open:
                self.send(edge, Kind.BYE, 0.0)
                self._close(edge, mine=self._next())
        self.edges = {name: self.edges.get(name) or Edge(name, self._next()) for name in names}
        self._measures.edges = {name: edge.stats for name, edge in self.edges.items()}
        self._rewire()

    def link(self, peer: str, is_up: bool, now: float) -> None:
        """The transport has, or lost, a connection: the edge may outlive a short loss."""
        edge = self.edges.get(peer)
        if edge is None:
            return
        edge.is_linked = is_up
        if not is_up:
            edge.is_lagging = edge.is_awaited
        elif edge.is_open:
            edge.ask_pause = 0.0
        else:
            self._greet(edge, now)

    def receive(self, peer: str, data: bytes, now: float) -> None:
        """Take bytes of a neighbor."""
        edge = self.edges.get(peer)
        if edge is None:
            self._refuse(peer, "stranger")
            return
        try:
            frame = decode(data, self._layout.n_bytes)
            if frame.sender != peer:
                self._refuse(peer, "sender")
            elif frame.fingerprint != self._model.fingerprint:
                self._mismatch(edge, frame, now)
            elif frame.kind is Kind.HELLO:
                self._hello(edge, frame, now)
            elif frame.kind is Kind.REFUSE:
                self._alarm("refused", peer, f"{peer} refuses us: {decode_text(frame.payload)}")
            elif not edge.is_open or (frame.from_epoch, frame.to_epoch) != (edge.theirs, edge.mine):
                self._refuse(peer, "epoch")
            else:
                edge.last_heard = edge.stats.last_heard = now
                self._heed(edge, frame, now)
        except WireError as error:
            self._refuse(peer, "malformed")
            self._alarm("refused", peer, f"frame of {peer} refused: {error}")

    def _heed(self, edge: Edge, frame: Frame, now: float) -> None:
        if frame.kind is Kind.OFFER:
            offer = self._layout.heard(frame)
            why, pair = edge.hear(frame.round, offer)
            if why:
                self._refuse(edge.peer, why)
            else:
                edge.came = now
            if why == "early":
                self._ask(edge, now)
            if pair is not None:
                self._owner.completed(edge, pair)
        elif frame.kind is Kind.ASK:
            again = edge.frame(frame.round)
            if again is not None:
                self.post(edge, again, now)
        elif frame.kind is Kind.BYE:
            self._close(edge, mine=self._next())
            self._alarm("left", edge.peer, f"{edge.peer} left", is_repeated=True)

    def _hello(self, edge: Edge, frame: Frame, now: float) -> None:
        if frame.from_epoch < edge.theirs:
            self._refuse(edge.peer, "epoch")
            if frame.from_epoch // COUNTS < edge.theirs // COUNTS:
                text = f"{edge.peer} is of an earlier start than heard before; is its clock behind?"
                self._alarm("refused", edge.peer, text)
            return
        edge.last_heard = edge.stats.last_heard = now
        if frame.from_epoch > edge.theirs:
            self._close(edge, theirs=frame.from_epoch)
        if frame.to_epoch == edge.mine and not edge.is_open:
            edge.open()
            self._rewire()
            self._alarm("up", edge.peer, f"{edge.peer} is up", is_repeated=True)
        if not frame.flags & OPEN:
            self._greet(edge, now)

    def _mismatch(self, edge: Edge, frame: Frame, now: float) -> None:
        self._refuse(edge.peer, "model")
        if frame.kind is Kind.HELLO:
            difference = self._model.difference(decode_parts(frame.payload))
            text = f"model of {edge.peer} differs: {difference or 'its text is the same'}"
            self._alarm("mismatch", edge.peer, text)
            self.send(edge, Kind.REFUSE, now, payload=text.encode()[:2000])
        elif frame.kind is Kind.REFUSE:
            text = f"{edge.peer} refuses us: {decode_text(frame.payload)}"
            self._alarm("mismatch", edge.peer, text)

    def tick(self, now: float) -> None:
        """Do what time demands."""
        for edge in list(self.edges.values()):
            if edge.is_open and now - (edge.last_heard or 0.0) >= self.timing.silence:
                self._close(edge, mine=self._next())
                text = f"{edge.peer} was not heard for {self.timing.silence:g} s"
                self._alarm("down", edge.peer, text, is_repeated=True)
            if not edge.is_open:
                if now - edge.last_sent >= self.timing.alive_every / 2:
                    self._greet(edge, now)
            elif edge.is_awaited and now - edge.asked >= edge.ask_pause:
                self._ask(edge, now)
            elif now - edge.last_sent >= self.timing.alive_every:
                self.send(edge, Kind.ALIVE, now)

    def offered(self, edge: Edge, frame: bytes, now: float) -> None:
        """Send an offer, and mind when to ask for its counterpart."""
        edge.asked, edge.ask_pause = now, self.timing.resend_after
        self.post(edge, frame, now)

    def frame(self, edge: Edge, kind: Kind, round: int, flags: int, payload: bytes) -> bytes:
        """Bytes of a frame of this edge's epoch."""
        epoch = edge.mine, edge.theirs
        return encode(
            Frame(kind, self._model.fingerprint, self.name, *epoch, round, flags, payload)
        )

    def send(
        self, edge: Edge, kind: Kind, now: float, *, round: int = 0, flags: int = 0,
        payload: bytes = b"",
    ) -> None:  # fmt: skip
        """Send a frame of this edge's epoch."""
        self.post(edge, self.frame(edge, kind, round, flags, payload), now)

    def post(self, edge: Edge, frame: bytes, now: float) -> None:
        """Send bytes."""
        edge.last_sent = now
        self.out.append(Send(edge.peer, frame))

    def _greet(self, edge: Edge, now: float) -> None:
        flags = OPEN if edge.is_open else 0
        self.send(edge, Kind.HELLO, now, flags=flags, payload=encode_parts(self._model.parts))

    def _ask(self, edge: Edge, now: float) -> None:
        shortest, longest = self.timing.resend_after, 4 * self.timing.resend_after
        edge.asked, edge.ask_pause = now, min(max(2 * edge.ask_pause, shortest), longest)
        edge.stats.n_asked += 1
        self.send(edge, Kind.ASK, now, round=edge.n_done + 1)

    def _close(self, edge: Edge, *, mine: int | None = None, theirs: int | None = None) -> None:
        was_open = edge.is_open
        ledger = edge.close(mine=mine, theirs=theirs)
        if was_open:
            self._owner.untied(ledger)
            self._rewire()

    def _rewire(self) -> None:
        before = [edge.peer for edge in self.opened]
        self.opened = [edge for edge in self.edges.values() if edge.is_open]
        after = [edge.peer for edge in self.opened]
        if before != after:
            self._owner.rewired(before, after)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _refuse(self, peer: str, why: str) -> None:
        self._measures.refused[peer, why] += 1

    def _alarm(self, kind: str, peer: str, text: str, *, is_repeated: bool = False) -> None:
        told = self._told.setdefault(peer, set())
        if is_repeated or (text not in told and len(told) < MAX_TOLD):
            self.out.append(Alarm(kind, peer, text))
            if not is_repeated:
                told.add(text)
