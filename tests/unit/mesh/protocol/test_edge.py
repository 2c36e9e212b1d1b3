"""Two ends of an edge, and a network between them that loses, doubles and reorders."""

import ast

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from domkl.mesh.protocol.edge import Edge, gaps_of
from domkl.mesh.protocol.wire import Offer


def offer_of(value):
    return Offer(1, {"theta": np.array([[value]])})


class End:
    """An end, and what its owner did: each pair taken in at once."""

    def __init__(self, peer):
        self.edge = Edge(peer, 1)
        self.edge.theirs = 1
        self.edge.open()
        self.pairs = []

    def take(self, pair):
        if pair is not None:
            self.pairs.append(tuple(float(o.fields["theta"][0, 0]) for o in pair))
            self.edge.note(gaps_of(pair, ["theta"]))


class TwoEnds(RuleBasedStateMachine):
    """Frames are (epoch, to, number, value); those in `air` may go to anyone, at any time."""

    def __init__(self):
        super().__init__()
        self.ends = [End("b"), End("a")]
        self.air = []
        self.count = 0.0
        self.made = {}  # (epoch, end, number) -> value
        self.epoch = 1

    @rule(end=st.integers(0, 1), is_lost=st.booleans())
    def offer(self, end, is_lost):
        mine = self.ends[end]
        if not mine.edge.is_due:
            return
        self.count += 1 / 3  # sums of these round
        number = mine.edge.n_done + 1
        self.made[self.epoch, end, number] = self.count
        frame = self.epoch, 1 - end, number, self.count
        mine.take(mine.edge.offer(offer_of(self.count), repr(frame).encode(), 1))
        if not is_lost:
            self.air.append(frame)

    @precondition(lambda self: self.air)
    @rule(data=st.data(), is_kept=st.booleans())
    def deliver(self, data, is_kept):
        frame = self.air[data.draw(st.integers(0, len(self.air) - 1))]
        if not is_kept:
            self.air.remove(frame)
        self.arrive(frame)

    def arrive(self, frame):
        epoch, to, number, value = frame
        if epoch != self.epoch:
            return  # links.py refuses it
        end = self.ends[to]
        before = end.edge.n_done, end.edge.ahead
        why, pair = end.edge.hear(number, offer_of(value))
        if why:
            assert pair is None
            assert (end.edge.n_done, end.edge.ahead) == before
            assert why in ("replayed", "early")  # this network invents nothing
        end.take(pair)

    @rule(end=st.integers(0, 1))
    def ask(self, end):
        """What an awaited offer's owner does; the answer arrives."""
        edge = self.ends[end].edge
        if not edge.is_awaited:
            return
        again = self.ends[1 - end].edge.frame(edge.n_done + 1)
        if again is not None:
            self.arrive(ast.literal_eval(again.decode()))

    @rule()
    def begin_an_epoch(self):
        self.epoch += 1
        for end in self.ends:
            ledger = end.edge.close(mine=self.epoch)
            expected = sum(theirs - own for own, theirs in end.pairs)
            np.testing.assert_allclose(ledger.get("theta", 0.0), expected, atol=1e-12)
            assert not end.edge.is_due
            end.edge.open()
            end.pairs = []

    @invariant()
    def each_number_completes_once_and_with_the_same_pair(self):
        a, b = self.ends
        for n, (pair, other) in enumerate(zip(a.pairs, b.pairs, strict=False), 1):
            assert pair == other[::-1]
            assert pair == (self.made[self.epoch, 0, n], self.made[self.epoch, 1, n])
        for end in self.ends:
            assert len(end.pairs) == end.edge.n_done

    @invariant()
    def nobody_is_ahead_by_more_than_one(self):
        a, b = (end.edge.n_done for end in self.ends)
        assert abs(a - b) <= 1
        assert all(len(end.edge.frames) <= 2 for end in self.ends)

    @invariant()
    def at_rest_the_ledgers_are_opposite_to_the_bit(self):
        a, b = (end.edge for end in self.ends)
        if a.n_done == b.n_done and a.n_done:
            np.testing.assert_array_equal(a.ledger["theta"], -b.ledger["theta"])

    def teardown(self):
        """Whatever was lost, asking completes what both have offered."""
        for _ in range(3):
            self.ask(0)
            self.ask(1)
        assert len({end.edge.n_done for end in self.ends}) == 1
        assert sum(end.edge.is_awaited for end in self.ends) <= 1


TestTwoEnds = TwoEnds.TestCase
TestTwoEnds.settings = settings(max_examples=150, stateful_step_count=40)


def opened():
    edge = Edge("b", 1)
    edge.theirs = 1
    edge.open()
    return edge


def test_what_was_not_offered_yet_is_future():
    edge = opened()
    assert edge.hear(2, offer_of(1.0)) == ("future", None)
    assert edge.hear(2**64 - 1, offer_of(1.0)) == ("future", None)
    assert edge.hear(0, offer_of(1.0)) == ("replayed", None)
    assert edge.newest is None
    edge.offer(offer_of(1.0), b"", 1)
    assert edge.hear(2, offer_of(1.0)) == ("early", None)
    assert edge.hear(3, offer_of(1.0)) == ("future", None)


def test_an_end_offers_once_per_number_and_when_it_is_open():
    edge = Edge("b", 1)
    assert not edge.is_due
    edge = opened()
    assert edge.is_due
    edge.offer(offer_of(1.0), b"one", 1)
    assert not edge.is_due
    assert edge.is_awaited
    assert edge.frame(1) == b"one"
    assert edge.frame(2) is None
    edge.hear(1, offer_of(2.0))
    assert edge.is_due
    assert edge.frame(1) == b"one"  # who did not hear it may still ask


def test_a_ledger_sums_in_double_precision():
    edge = opened()
    gap = np.array([0.1], dtype=np.float32)
    for _ in range(3):
        edge.note({"theta": gap})
    assert edge.ledger["theta"].dtype == np.float64
    assert edge.close(mine=2)["theta"] == 3 * np.float64(gap)
    assert edge.ledger == {}
    assert gap[0] == np.float32(0.1)
