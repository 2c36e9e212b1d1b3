"""Handshakes, epochs, refusals, silence; whatever frames come."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domkl.algorithms.admm import DOMKL
from domkl.mesh.protocol.events import Neighbors, PeerDown, PeerUp, Received, Tick
from domkl.mesh.protocol.links import MAX_TOLD
from domkl.mesh.protocol.wire import Frame, Kind, decode, encode


def epochs(talk):
    return [
        (edge.is_open, edge.mine, edge.theirs)
        for protocol in talk.all.values()
        for edge in protocol.links.edges.values()
    ]


def is_whole(talk):
    (a_open, a, b_there), (b_open, b, a_there) = epochs(talk)
    return a_open and b_open and (a, b_there) == (a_there, b)


def edge_of(talk, name):
    return next(iter(talk.all[name].links.edges.values()))


def state_of(protocol):
    arrays = protocol.snapshot().arrays
    edge = next(iter(protocol.links.edges.values()))
    arrays |= {f"ledger.{f}": v.copy() for f, v in edge.ledger.items()}
    return arrays | {"edge": np.array([edge.n_done, edge.is_open, edge.mine, edge.theirs])}


def assert_same_state(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


def test_neighbors_shake_hands(model_of, talk_of):
    talk = talk_of(model_of())
    talk.meet()
    assert is_whole(talk)
    assert talk.alarms("a", "up") == ["b is up"]
    assert talk.all["a"].measures.edges["b"].n_epochs == 1


@pytest.mark.parametrize("lost", range(6))
def test_a_handshake_survives_any_one_loss(model_of, talk_of, lost):
    talk, frames = talk_of(model_of()), count()
    for name, other in (("a", "b"), ("b", "a")):
        talk.tell(name, PeerUp(other))
    talk.deliver(lambda *_: next(frames) == lost)
    talk.tick(2.0, lambda *_: next(frames) == lost)
    assert is_whole(talk)
    talk.learn("a")
    talk.learn("b")
    talk.tick(1.0)
    assert edge_of(talk, "a").n_done == edge_of(talk, "b").n_done == 1


@given(seed=st.integers(0, 10_000), loss=st.floats(0, 0.5))
def test_a_handshake_survives_loss_and_reorder(model_of, talk_of, seed, loss):
    generator, talk = np.random.default_rng(seed), talk_of(model_of())
    for beat in range(40):
        talk.now = beat / 4
        for name in "ab":
            talk.tell(name, Tick())
        for i in reversed(range(len(talk.air))):  # late first, some not before the next beat
            if generator.random() < 0.7:
                to, sender, data = talk.air.pop(i)
                if generator.random() >= loss:
                    talk.tell(to, Received(sender, data))
    talk.deliver()
    talk.tick(2.0)
    assert is_whole(talk)


def silent(talk, seconds=4.2):
    talk.tick(seconds, lambda *_: True)


def test_silence_is_noticed_and_ends_the_epoch_at_both_ends(model_of, talk_of):
    talk = talk_of(model_of())
    talk.meet()
    before = epochs(talk)
    silent(talk)
    assert talk.alarms("a", "down") == ["b was not heard for 4 s"]
    assert not any(is_open for is_open, *_ in epochs(talk))
    talk.tick(1.0)  # both have begun a new epoch at the same time
    assert is_whole(talk)
    assert all(mine > old for (_, mine, _), (_, old, _) in zip(epochs(talk), before, strict=True))


def test_neighbors_without_samples_keep_each_other_awake(model_of, talk_of):
    talk = talk_of(model_of())
    talk.meet()
    talk.tick(20.0)
    assert is_whole(talk)
    assert talk.alarms("a", "down") == []
    assert talk.now - talk.all["a"].measures.edges["b"].last_heard <= 1.1


def test_a_frame_of_an_old_epoch_is_refused(model_of, talk_of):
    talk = talk_of(model_of())
    talk.meet()
    talk.learn("a")
    offer = next(each for each in talk.air if decode(each[2], 10**6).kind is Kind.OFFER)
    talk.air.clear()
    silent(talk)
    talk.tick(1.0)
    b = talk.all["b"]
    before, refused = state_of(b), b.measures.refused["a", "epoch"]
    talk.tell("b", Received("a", offer[2]))
    assert b.measures.refused["a", "epoch"] == refused + 1
    assert_same_state(before, state_of(b))


def test_one_of_an_earlier_start_is_refused_and_the_operator_told(model_of, talk_of):
    talk = talk_of(model_of(), a={"incarnation": 7})
    talk.meet()
    old = talk_of(model_of(), a={"incarnation": 6})
    old.tell("a", PeerUp("b"))
    talk.tell("b", Received("a", old.air[0][2]))
    assert is_whole(talk)
    assert talk.alarms("b", "refused") == [
        "a is of an earlier start than heard before; is its clock behind?"
    ]


def test_who_starts_again_is_met_anew(model_of, talk_of):
    talk = talk_of(model_of())
    talk.meet()
    talk.all["a"] = talk_of(model_of(), a={"incarnation": 2}).all["a"]
    talk.meet()
    assert is_whole(talk)
    assert talk.all["b"].measures.edges["a"].n_epochs == 2


def test_another_model_is_refused_with_the_difference_at_both(model_of, talk_of):
    model = model_of(DOMKL(rho=2.0))
    talk = talk_of(model, replace(model, algorithm=DOMKL(rho=3.0)))
    talk.meet()
    talk.tick(3.0)
    assert not any(is_open for is_open, *_ in epochs(talk))
    told = talk.alarms("a", "mismatch") + talk.alarms("b", "mismatch")
    assert "model of b differs: rho is 3.0 there and 2.0 here" in told
    assert "b refuses us: model of a differs: rho is 2.0 there and 3.0 here" in told
    assert len(told) == len(set(told)) <= 4  # said once, not at each greeting
    assert talk.all["a"].measures.refused["b", "model"] > 0


def test_a_goodbye_closes_the_edge(model_of, talk_of):
    talk = talk_of(model_of())
    talk.meet()
    talk.tell("a", Neighbors(()))
    talk.deliver()
    assert talk.alarms("b", "left") == ["a left"]
    assert not edge_of(talk, "b").is_open
    talk.tick(1.0)
    assert talk.all["a"].measures.refused["b", "stranger"] > 0  # b still greets


def test_losing_and_finding_the_connection_keeps_the_epoch(model_of, talk_of):
    talk = talk_of(model_of())
    talk.meet()
    talk.learn("a")
    talk.air.clear()
    before = epochs(talk)
    talk.tell("a", PeerDown("b"))
    assert talk.all["a"].measures.n_waited == 0
    talk.tell("a", PeerUp("b"))
    talk.tell("a", PeerUp("nobody"))
    talk.learn("b")
    talk.tick(0.5)
    assert epochs(talk) == before
    assert edge_of(talk, "a").n_done == edge_of(talk, "b").n_done == 1


def test_a_lost_offer_is_asked_for(model_of, talk_of):
    talk, lost = talk_of(model_of()), []
    talk.meet()
    talk.learn("a")
    talk.learn("b")
    talk.deliver(lambda to, f: f.kind is Kind.OFFER and to == "b" and not lost.append(f))
    assert (edge_of(talk, "a").n_done, edge_of(talk, "b").n_done) == (1, 0)
    talk.tick(0.15)
    assert edge_of(talk, "b").n_done == 1
    assert talk.all["b"].measures.edges["a"].n_asked >= 1


# what hostile or broken neighbors may send


@pytest.fixture
def learned(model_of, talk_of):
    """Two neighbors in the middle of things: a has offered, b has not."""
    talk = talk_of(model_of())
    talk.meet()
    for y in (0.3, 0.8):
        talk.learn("a", y)
        talk.learn("b", y / 2)
        talk.deliver()
    return talk


def hostile(talk, frame):
    """Give bytes to a as if of b: nothing but counts may change."""
    a = talk.all["a"]
    before, n_refused = state_of(a), a.measures.refused.total()
    talk.tell("a", Received("b", frame))
    assert_same_state(before, state_of(a))
    return a.measures.refused.total() - n_refused


def frame_to(talk, kind=Kind.OFFER, **changes):
    edge = edge_of(talk, "a")
    fingerprint = talk.all["a"].model.fingerprint
    return Frame(kind, fingerprint, "b", edge.theirs, edge.mine)._replace(**changes)


@pytest.mark.parametrize("round", [0, 1, 2, 4, 5, 2**64 - 1])
def test_replayed_and_future_rounds_are_refused(learned, round):
    payload = bytes(learned.all["a"]._layout.n_bytes)
    frame = frame_to(learned, round=round, payload=payload)
    assert hostile(learned, encode(frame)) == 1
    reason = "replayed" if round <= 2 else "future"
    assert learned.all["a"].measures.refused["b", reason] == 1


def test_an_early_round_is_asked_for_and_not_kept(learned):
    learned.learn("a")
    learned.air.clear()
    payload = bytes(learned.all["a"]._layout.n_bytes)
    assert hostile(learned, encode(frame_to(learned, round=4, payload=payload))) == 1
    assert learned.all["a"].measures.refused["b", "early"] == 1
    (asked,) = learned.air
    assert decode(asked[2], 0)[:1] + decode(asked[2], 0)[5:6] == (Kind.ASK, 3)


BAD = {
    "sender": ("sender", lambda f: f._replace(sender="c")),
    "epoch": ("epoch", lambda f: f._replace(to_epoch=f.to_epoch + 1)),
    "their epoch": ("epoch", lambda f: f._replace(from_epoch=f.from_epoch + 1)),
    "model": ("model", lambda f: f._replace(fingerprint=b"x" * 16)),
    "size": ("malformed", lambda f: f._replace(payload=f.payload[:-8])),
    "nan": ("malformed", lambda f: f._replace(payload=f.payload[:-8] + b"\xff" * 8)),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_offers_are_counted_and_never_reach_the_state(learned, what):
    reason, spoil = BAD[what]
    good = frame_to(learned, round=3, payload=bytes(learned.all["a"]._layout.n_bytes))
    assert hostile(learned, encode(spoil(good))) == 1
    assert learned.all["a"].measures.refused["b", reason] == 1
    learned.tell("a", Received("b", encode(good)))  # while this one is heeded
    assert edge_of(learned, "a").ahead is not None


def test_bytes_of_a_stranger_are_counted(learned):
    learned.tell("a", Received("mallory", b"anything"))
    assert learned.all["a"].measures.refused["mallory", "stranger"] == 1


@given(data=st.data())
def test_no_bytes_break_a_learner(model_of, talk_of, data):
    talk = talk_of(model_of())
    talk.meet()
    talk.learn("a")
    talk.learn("b")
    good = [each[2] for each in talk.air if each[0] == "a"]
    talk.deliver()
    a = talk.all["a"]
    good += [encode(frame_to(talk, kind, round=data.draw(st.integers(0, 4)))) for kind in Kind]
    for _ in range(data.draw(st.integers(1, 8))):
        frame = bytearray(data.draw(st.sampled_from(good)))
        for _ in range(data.draw(st.integers(0, 3))):
            frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
        end = data.draw(st.integers(0, len(frame)))
        talk.tell("a", Received("b", bytes(frame[:end]) if end % 3 == 0 else bytes(frame)))
    for name, value in a.snapshot().arrays.items():
        assert np.isfinite(value).all(), name
        assert np.abs(value).max(initial=0) < 1e3, name
    talk.air.clear()
    talk.learn("a")
    talk.tick(1.1)
    assert a.learned == 2  # and it goes on


@given(noise=st.binary(max_size=300))
def test_noise_is_counted_and_changes_nothing(model_of, talk_of, noise):
    talk = talk_of(model_of())
    talk.meet()
    assert hostile(talk, noise) == 1
    assert hostile(talk, b"dk\x01\x02" + talk.all["a"].model.fingerprint + noise) == 1


def test_a_peer_cannot_fill_the_log_or_the_memory(learned):
    for n in range(1000):
        text = f"text {n}".encode()
        learned.tell("a", Received("b", bytes(n)))
        learned.tell("a", Received("b", encode(frame_to(learned, Kind.REFUSE, payload=text))))
    a = learned.all["a"]
    assert a.measures.refused["b", "malformed"] == 1000
    assert len(learned.alarms("a", "refused")) == MAX_TOLD
    assert len(a.links._told["b"]) == MAX_TOLD
