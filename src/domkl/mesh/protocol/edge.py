"""One end of an edge: its epoch, its numbered exchanges, its ledger.

The rules of this file:

- An epoch is a pair of numbers, one of each end; either end begins a new one by raising its own.
  An end is open once it has heard that the other knows its number. At the beginning of an epoch
  nothing is exchanged and the ledger is empty, at both ends.
- Exchanges of an epoch are numbered from 1. Each end makes one offer per number, and the next only
  when it has heard the other's: so an end is never ahead of the other by more than one, and two
  own offers are all that anyone can ask for again.
- Exchange n is complete at an end that has made its offer n and heard the other's. Each end
  completes each number once, with the same pair of messages: lost, doubled, reordered, or late.
- The ledger is the sum of gaps (theirs less own) that went into the law's state by this edge. At
  both ends it is the same but for the sign. When an epoch ends it is taken back.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from domkl.mesh.protocol.measures import EdgeMeasures
from domkl.mesh.protocol.wire import Offer

Gaps = dict[str, NDArray[Any]]


class Pair(NamedTuple):
    """A completed exchange."""

    own: Offer
    theirs: Offer


class Edge:
    """The end of an edge at this learner.

    Attributes
    ----------
    mine, theirs : int
        The numbers of the epoch; ``theirs`` is 0 while it is not known.
    n_done : int
        Exchanges of this epoch that are complete here.
    fresh : Pair or None
        Completed in the step that is under way, and not yet in the law's state.
    newest : Offer or None
        What was heard last.
    """

    def __init__(self, peer: str, number: int) -> None:
        self.peer = peer
        self.mine, self.theirs = number, 0
        self.is_open = False
        self.is_linked = False  # the transport has a connection
        self.is_lagging = False  # lockstep does not wait for it
        self.last_heard: float | None = None
        self.last_sent = -np.inf
        self.came = 0.0  # when the newest offer did
        self.asked = 0.0  # when the outstanding offer's counterpart was asked for last
        self.ask_pause = 0.0
        self.stats = EdgeMeasures()
        self._begin()

    def _begin(self) -> None:
        self.n_done = 0
        self.own: Offer | None = None  # offer n_done + 1, made and not yet complete
        self.step = 0  # in which it was made
        self.frames: dict[int, bytes] = {}  # the last two own offers
        self.ahead: Offer | None = None  # the peer's offer n_done + 1
        self.newest: Offer | None = None
        self.fresh: Pair | None = None
        self.last: Pair | None = None  # completed
        self.is_lagging = False
        self.ledger: Gaps = {}

    @property
    def is_due(self) -> bool:
        """Whether an offer may be made."""
        return self.is_open and self.own is None

    @property
    def is_awaited(self) -> bool:
        """Whether an own offer is without its counterpart."""
        return self.is_open and self.own is not None

    @property
    def is_wanted(self) -> bool:
        """Whether the peer has made an offer and waits for ours."""
        return self.is_open and self.own is None and self.ahead is not None

    def offer(self, own: Offer, frame: bytes, step: int) -> Pair | None:
        """Make the next offer; give the pair if that completes the exchange."""
        assert self.is_due
        self.own, self.step = own, step
        number = self.n_done + 1
        self.frames = {n: f for n, f in self.frames.items() if n == number - 1} | {number: frame}
        return self._completed()

    def hear(self, number: int, offer: Offer) -> tuple[str, Pair | None]:
        """Take an offer of this epoch; give "" or why it is not heeded, and the completed pair."""
        if number <= self.n_done or (number == self.n_done + 1 and self.ahead is not None):
            return "replayed", None
        if number == self.n_done + 2 and self.own is not None:
            return "early", None  # the one before was lost, and will be asked for
        if number != self.n_done + 1:
            return "future", None
        self.ahead = self.newest = offer
        return "", self._completed()

    def _completed(self) -> Pair | None:
        if self.own is None or self.ahead is None:
            return None
        pair = self.last = Pair(self.own, self.ahead)
        self.own = self.ahead = None
        self.n_done += 1
        self.stats.n_exchanged += 1
        self.is_lagging = False
        return pair

    def frame(self, number: int) -> bytes | None:
        """An own offer to send again; None where there is none, or no more."""
        return self.frames.get(number)

    def note(self, gaps: Gaps) -> None:
        """Enter in the ledger what goes into the law's state."""
        for field, gap in gaps.items():
            if field in self.ledger:
                self.ledger[field] += gap
            else:
                self.ledger[field] = gap.astype(np.float64)

    def open(self) -> None:
        """The other end knows our number, and we know its."""
        self.is_open = self.stats.is_open = True
        self.stats.epoch = self.mine, self.theirs
        self.stats.n_epochs += 1

    def close(self, *, mine: int | None = None, theirs: int | None = None) -> Gaps:
        """End the epoch, an end having a new number; give the ledger, to be taken back."""
        ledger = self.ledger
        self.mine = self.mine if mine is None else mine
        self.theirs = self.theirs if theirs is None else theirs
        self.is_open = self.stats.is_open = False
        self._begin()
        return ledger


def anchored(edge: Edge, own: Gaps) -> Offer | None:
    """What to merge of an edge whose exchange is under way: the middle of the last pair holds.

    The step (11) pulls θ to the middle of both messages. Pulled to the middle of a *later* own
    message and an old one of the neighbor, step after step, both ends would go all the way to
    where the other was, and with the duals beyond: that diverges.
    """
    if edge.last is None or edge.newest is None:
        return edge.newest
    mine, theirs = edge.last.own.fields, edge.last.theirs.fields
    held = {f: mine[f] + theirs[f] - values for f, values in own.items()}
    return edge.newest._replace(fields=edge.newest.fields | held)


def gaps_of(pair: Pair, fields: list[str]) -> Gaps:
    """Theirs less own: at the other end it is the exact opposite."""
    return {f: pair.theirs.fields[f] - pair.own.fields[f] for f in fields}
