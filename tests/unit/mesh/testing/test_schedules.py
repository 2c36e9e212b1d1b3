"""Schedules of faults: drawn from a seed, repeatable, for any algorithm that a mesh can run."""

from dataclasses import replace

import numpy as np
import pytest
from schedules import (
    DRAWN,
    MESSAGE_PASSING,
    Outcome,
    algorithm_of,
    draw,
    draw_harsh,
    model,
    play,
    stream,
)

import domkl
from domkl.algorithms.registry import ALGORITHMS
from domkl.errors import ParameterError
from domkl.mesh.testing import Conditions


def test_every_registered_algorithm_that_can_be_meshed_is_drawn():
    meshable = {name for name, entry in ALGORITHMS.items() if entry.is_meshable}
    assert set(DRAWN) == meshable | {MESSAGE_PASSING}
    assert {draw(seed).algorithm for seed in range(60)} == set(DRAWN)


def test_an_algorithm_is_named_as_in_the_registry():
    assert algorithm_of("domkrls") == domkl.DOMKRLS()
    assert algorithm_of(MESSAGE_PASSING) == domkl.DOMKL(weights="message-passing")
    home = f"{domkl.DOKL.__module__}:DOKL"
    assert algorithm_of(home) == domkl.DOKL()
    with pytest.raises(ParameterError, match="algorithm must"):
        algorithm_of("comkl")


def test_a_seed_draws_the_same_schedule_with_any_algorithm():
    """As far as the algorithm allows: message passing needs a tree."""
    assert draw(5) == draw(5)
    assert draw(5) != draw(6)
    given = draw(5, "rff-dokl")
    assert given == replace(draw(5, "dokl"), algorithm="rff-dokl")
    assert draw(5, draw(5).algorithm) == draw(5)
    assert draw(7, MESSAGE_PASSING).graph.is_acyclic
    assert model(given).algorithm == domkl.RFFDOKL()


def test_schedules_are_connected_and_heal_before_the_end():
    schedules = [draw(seed) for seed in range(50)]
    assert all(schedule.graph.is_connected for schedule in schedules)
    faults = [fault for schedule in schedules for fault in schedule.faults]
    assert {fault.kind for fault in faults} == {"cut", "crash", "suspend"}
    assert all(1 <= fault.begin <= fault.end <= 37 for fault in faults)


def test_without_faults_all_else_is_the_same():
    schedule = next(s for s in map(draw, range(20)) if s.faults and s.conditions.loss)
    healthy = schedule.without_faults()
    assert (healthy.faults, healthy.conditions) == ((), Conditions())
    for one, other in zip(stream(schedule), stream(healthy), strict=True):
        np.testing.assert_array_equal(one, other)
    assert model(schedule).fingerprint == model(healthy).fingerprint


def test_a_schedule_repeats_itself_to_the_bit():
    one, other = play(draw(9)), play(draw(9))
    np.testing.assert_array_equal(one.predictions, other.predictions)
    assert (one.error, one.spread, one.dual_sum) == (other.error, other.spread, other.dual_sum)


def test_harsh_schedules_have_every_fault_and_end_in_time():
    schedules = [draw_harsh(seed) for seed in range(10)]
    assert {each.mode for each in schedules} == {"lockstep", "async"}
    kinds = {fault.kind for each in schedules for fault in each.faults}
    assert kinds == {"cut", "crash", "suspend"}
    for each in schedules:
        assert all(1 < fault.begin < fault.end <= each.moment(each.healed) for fault in each.faults)
        crashes = [fault for fault in each.faults if fault.kind == "crash"]
        assert 1 < len(crashes) < 20
    assert draw_harsh(3) == draw_harsh(3) != draw_harsh(4)


def test_a_healthy_run_breaks_no_guarantee():
    outcome = play(draw(9).without_faults())
    assert outcome.broken(outcome.error) == []
    assert outcome.broken(0.0) == ["consensus recovers"]


def test_each_guarantee_can_be_broken():
    given = draw(9), np.zeros((1, 1)), 1.0, 1.0, 1.0, 1e-6, 1
    broken = Outcome(*given, is_sound=False, is_whole=False)
    assert broken.broken(0.5) == [
        "every sample is learned",
        "states are sound",
        "edges are open again",
        "duals sum to 0",
        "consensus recovers",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [20, 21])
def test_guards_break_no_guarantee(seed):
    """Limits act after cuts and crashes, and are the same at both ends: duals sum to 0."""
    schedule = draw_harsh(seed)
    outcome = play(schedule, is_guarded=True)
    assert outcome.broken(play(schedule.without_faults()).error) == []
    assert outcome.n_suspicious == 0
