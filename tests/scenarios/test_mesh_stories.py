"""Stories of a mesh in virtual time, as the alarms that its operators see."""

import heapq
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import domkl
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.testing import Conditions, VirtualNetwork

PERIOD = 0.2


class Story(VirtualNetwork):
    """A network with a stream and a model of its own."""

    def __init__(self, neighbors, mode, n_rounds=300, algorithm=None):
        generator = np.random.default_rng(5)
        x = generator.random((n_rounds, len(neighbors), 2))
        y = 0.5 + 0.3 * np.sin(5 * x[..., 0]) * x[..., 1]
        algorithm = domkl.DOMKL() if algorithm is None else algorithm
        features = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 1.0]), 2, 10, seed=1)
        ranges = Range("a", 0, 1), Range("b", 0, 1)
        model = Model(algorithm, features, ranges, Range("y", 0, 1))
        super().__init__(model, neighbors, x, y, mode=mode, period=PERIOD, checkpoint_every=20)

    def told(self, since=0.0):
        """The alarms since a time, as (time, name, text)."""
        lines = [(round(when, 1), name, alarm.text) for when, name, alarm in self.alarms]
        return [line for line in lines if line[0] >= since]

    def protocol(self, name) -> Protocol:
        found = self.machines[name].protocol
        assert found is not None
        return found

    def error(self, begin, end):
        rounds = slice(round((begin - 1) / PERIOD), round((end - 1) / PERIOD))
        return float(np.nanmean((self.predictions() - self.y)[rounds] ** 2))

    def dual_sum(self):
        return np.abs(sum(state.dual for state in self.states())).max()

    def disagreement(self):
        return self.spread(np.random.default_rng(0).random((30, 2)))


@pytest.fixture(params=["lockstep", "async"])
def mode(request):
    return request.param


def test_a_partition_and_its_end(mode):
    """a - b - c - d: nothing passes between b and c from 20 s to 40 s."""
    story = Story({"a": "b", "b": "ac", "c": "bd", "d": "c"}, mode)
    story.run(1.0)
    assert sorted(line[1:] for line in story.told()) == [
        ("a", "b is up"), ("b", "a is up"), ("b", "c is up"),
        ("c", "b is up"), ("c", "d is up"), ("d", "c is up"),
    ]  # fmt: skip

    story.run(20.0)
    story.cut("b", "c")
    story.run(40.0)
    told = story.told(since=1.1)
    assert sorted(line[1:] for line in told) == [
        ("b", "c was not heard for 4 s"),
        ("c", "b was not heard for 4 s"),
    ]
    assert all(23.5 <= when <= 24.5 for when, *_ in told)
    halves = story.states()
    for a, b in (halves[:2], halves[2:]):  # each half is a network of its own, mid-exchange
        assert np.abs(a.dual + b.dual).max() < 0.1 * np.abs(a.dual).max()
    assert story.protocol("a").learned > 150  # a round of 4 s was all that it cost

    story.heal("b", "c")
    story.run(61.0)
    told = story.told(since=40.0)
    assert sorted(line[1:] for line in told) == [("b", "c is up"), ("c", "b is up")]
    assert all(when <= 40.5 for when, *_ in told)
    story.settle(8.0)
    assert story.dual_sum() < 1e-12
    assert [story.protocol(name).learned for name in "abcd"] == [300] * 4
    assert story.disagreement() < story.error(41, 61)


def test_a_crash_and_a_restart_from_disk(mode):
    """b of a triangle crashes at 20 s and restarts at 30 s from its checkpoint and its log."""
    story = Story({"a": "bc", "b": "ac", "c": "ab"}, mode)
    story.run(20.0)
    learned = story.protocol("b").learned
    story.crash("b")
    story.run(30.0)
    down = [("a", "b was not heard for 4 s"), ("c", "b was not heard for 4 s")]
    assert sorted(line[1:] for line in story.told(since=1.1)) == down

    saved = story.machines["b"].disk.header["learned"]
    assert learned - 20 < saved <= learned  # what the disk lacks is in the log
    story.start("b")
    story.run(40.0)
    assert story.protocol("b").learned == story.protocol("a").learned  # it made haste
    story.run(70.0)
    up = [("a", "b is up"), ("b", "a is up"), ("b", "c is up"), ("c", "b is up")]
    assert sorted(line[1:] for line in story.told(since=29.9)) == up
    assert [story.protocol(name).learned for name in "abc"] == [300] * 3  # it caught up
    assert not np.isnan(story.predictions()).any()
    story.settle(8.0)
    assert story.dual_sum() < 1e-12
    assert story.protocol("a").measures.edges["b"].n_epochs == 2
    assert story.protocol("a").measures.edges["c"].n_epochs == 1  # others are not disturbed


def test_a_learner_that_stops_reading(mode):
    """b is suspended from 20 s to 26 s: its socket buffers fill, and nobody is told."""
    story = Story({"a": "bc", "b": "ac", "c": "ab"}, mode)
    story.run(20.0)
    story.suspend("b")
    before = story.protocol("a").learned
    story.run(23.0)
    assert story.told(since=1.1) == []
    learned = story.protocol("a").learned - before
    assert learned >= 14  # of 15: lockstep waits for it once, for a second, and catches up
    assert story.protocol("a").measures.n_waited == (1 if mode == "lockstep" else 0)

    story.run(26.0)
    told = story.told(since=1.1)
    assert [line[1:] for line in told] == [
        ("a", "b was not heard for 4 s"),
        ("c", "b was not heard for 4 s"),
    ]
    story.resume("b")
    story.run(61.0)
    story.settle(8.0)
    assert story.protocol("b").measures.refused["a", "epoch"] >= 0
    assert {line[1:] for line in story.told(since=26.0)} >= {("a", "b is up"), ("b", "a is up")}
    assert [story.protocol(name).learned for name in "abc"] == [300] * 3
    assert story.dual_sum() < 1e-12


def test_one_leaves_and_a_new_one_takes_its_place(mode):
    """a - b - c: b leaves at 20 s; d joins at 25 s without a state, with the same neighbors."""
    story = Story({"a": "b", "b": "ac", "c": "b"}, mode)
    story.run(20.0)
    story.remove("b")
    story.run(20.1)
    assert sorted(line[1:] for line in story.told(since=1.1)) == [("a", "b left"), ("c", "b left")]
    assert not any(state.dual.any() for state in story.states())  # nobody has a neighbor

    story.run(25.0)
    for name in "ac":
        story.rewire(name, ("d",))
    story.join("d", ("a", "c"), column=1, n_samples=180)
    story.run(61.0)
    up = {("a", "d is up"), ("c", "d is up"), ("d", "a is up"), ("d", "c is up")}
    assert {line[1:] for line in story.told(since=20.2)} == up
    story.settle(8.0)
    assert story.protocol("a").learned == story.protocol("c").learned == 300
    assert story.protocol("d").learned == 180
    assert story.dual_sum() < 1e-12
    assert story.disagreement() < story.error(41, 61)


@pytest.mark.parametrize("mode", ["lockstep", "async"])
def test_a_mesh_without_samples_comes_to_rest_after_faults(mode):
    """Version 0.1 went on with steps without a sample for ever."""
    ring = {"a": "bd", "b": "ac", "c": "bd", "d": "ac"}
    story = Story(ring, mode, n_rounds=50)
    story.conditions = replace(story.conditions, loss=0.2, latency=0.1)
    story.at(3.0, lambda: story.crash("a"))
    story.at(5.0, lambda: story.start("a"))
    story.at(6.0, lambda: setattr(story, "conditions", Conditions()))
    story.run(60.0)
    steps = [each.measures.n_rounds for each in story.protocols()]
    assert [each.learned for each in story.protocols()] == [50] * 4
    story.run(120.0)
    assert [each.measures.n_rounds for each in story.protocols()] == steps


def test_two_that_were_set_up_differently():
    """Both operators are told what differs, and no message is exchanged."""
    story = Story({"a": "b", "b": "a"}, "lockstep", n_rounds=20)
    story.run(-1.0)
    other = replace(story.model, algorithm=domkl.DOMKL(rho=5.0))
    story.at(0.0, lambda: _start_with(story, "b", other))
    story.run(20.0)
    texts = [line[1:] for line in story.told()]
    assert ("a", "model of b differs: rho is 5.0 there and 2.0 here") in texts
    assert any(name == "b" and "rho" in text for name, text in texts)
    assert len(texts) == len(set(texts))
    assert story.protocol("a").learned == 20  # alone, after start_timeout


def _start_with(story, name, model):
    agreed, story.model = story.model, model
    story.start(name)
    story.model = agreed


def test_a_backlog_is_cleared_although_neighbors_wait_in_rounds():
    """A ring under steady streams, out of step: what took 6 s to build is gone in less than 12.

    Version 0.1 kept it for as long as the streams went on: learners that waited in a round for a
    neighbor without a sample did not hand the haste on.
    """
    names = "abcdef"
    ring = {n: names[i - 1] + names[(i + 1) % 6] for i, n in enumerate(names)}
    story = Story(ring, "lockstep")
    story.conditions = replace(story.conditions, latency=0.02)
    story.run(0.9)
    story._agenda = [
        each for each in story._agenda if getattr(each[2], "func", None) != story._sense
    ]
    heapq.heapify(story._agenda)
    for t in range(300):
        for k, name in enumerate(names):
            story.at(1 + 0.1 * t + 0.016 * k, partial(story._sense, name))
    story.at(5.0, lambda: story.crash("a"))
    story.at(11.0, lambda: story.start("a"))
    story.run(11.5)
    assert story.protocol("a").n_queued > 30
    story.run(23.0)
    assert story.protocol("a").n_queued <= 1
