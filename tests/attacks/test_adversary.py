"""A short search of `benchmarks/adversary.py`, its scenes, and frames of members that are revoked.

`make attack` runs the long form on all cells.
"""

import contextlib
import importlib
import sys
from functools import partial
from pathlib import Path

import lying_node
import numpy as np
import pytest
from mesh_node import TARGET, Process, mesh_config, sample, wait_until

from domkl.errors import ParameterError
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.protocol.events import Received
from domkl.mesh.protocol.protocol import MOST_ABOVE
from domkl.mesh.protocol.wire import Kind
from domkl.mesh.testing.liars import LIES, Lie

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
adversary = importlib.import_module("adversary")

ROUNDS, BUDGET = 120, 12  # of each run, and runs of each search
#: what the worst lie of the search may have as its score, and scenes over what they are allowed
WORST = 1.0
#: what is known not to hold yet
WORST_SCENE = {
    ("domkrls", "two frames after a restart"): 2.2,
    ("domkrls", "without labels"): 1.7,
    ("domkrls", "without labels, from 150"): 2.2,
}
#: honest, whole run and last fifth over without a defence; so few rounds are dear to DOMKL, whose
#: predictions are mixed with those of the learner alone
HONEST = {"domkl": (1.01, 1.05), "domkrls": (1.005, 1.005)}

SCENES = {name: scene for name, scene in adversary.SCENES.items() if not scene.gone}
#: what a node may predict after two frames of a liar, in widths of the target's range from it
MOST_OUTSIDE = 1.0
CELLS = {name: adversary.Cell(name, "traffic", 6, rounds=ROUNDS) for name in HONEST}


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_a_short_search_finds_nothing_beyond_the_bound(name):
    """The worst can be repeated by its text."""
    cell = CELLS[name]
    trial = partial(adversary.tried, cell)
    found = adversary.search(trial, BUDGET, adversary.fields_of(cell), np.random.default_rng(1))
    worst = found[0]
    assert worst.score <= WORST, worst.lie
    assert max(row.outcome.largest for row in found) <= MOST_ABOVE
    assert trial(Lie.parse(worst.lie)).score == worst.score


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_the_defence_costs_honest_learners_next_to_nothing(name):
    row = adversary.tried(CELLS[name])
    whole, last = HONEST[name]
    assert row.whole <= whole
    assert row.last <= last
    assert row.outcome.honest_alarmed == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("scene", SCENES)
def test_what_a_liar_does_to_its_victim(name, scene):
    cell = CELLS[name]._replace(rounds=210)
    short = SCENES[scene]._replace(lies=SCENES[scene].lies[:1])
    for lie, over, outcome in adversary.staged(cell, short):
        assert over <= WORST_SCENE.get((name, scene), WORST), lie
        assert outcome.largest <= MOST_ABOVE, lie


def test_undefended_honest_runs_are_the_simulator():
    """So the ratios are of the same run."""
    cell = CELLS["domkl"]._replace(rounds=30)
    found = adversary.play(cell, is_guarded=False).errors
    np.testing.assert_array_equal(found, adversary.references(cell)[0])


def test_a_lie_is_its_text():
    lies = [*LIES.values(), *adversary.FIXED.values()]
    lies += [adversary.random_lie(adversary.SPACE, np.random.default_rng(k)) for k in range(50)]
    assert [Lie.parse(str(lie)) for lie in lies] == lies
    for wrong in ("size=1", "push=much"):
        with pytest.raises(ParameterError, match="lie must"):
            Lie.parse(wrong)


def network(lie=None, n=40):
    """DOMKL on six learners, and what learner 2 has sent to learner 3."""
    cell = CELLS["domkl"]._replace(rounds=n)
    made, sent = adversary.network_of(cell, lie), []
    send = made._send

    def recorded(sender, effect):
        if (sender, effect.peer) == ("2", "3"):
            sent.append(effect.data)
        send(sender, effect)

    made._send = recorded
    return made, sent


def test_a_revoked_member_that_replays_is_refused():
    """Its frames were valid, and the connection is that of a neighbor before."""
    made, sent = network()
    made.run(adversary.begin_of(19.5))
    made.rewire("3", [name for name in made.machines["3"].neighbors if name != "2"])
    victim = made.machines["3"].protocol
    before = victim.learner.state
    for data in sent:
        made._arrive("3", Received("2", data))
    assert victim.measures.refused["2", "stranger"] >= len(sent)
    assert all(np.array_equal(a, b) for a, b in zip(before, victim.learner.state, strict=True))


def test_frames_of_an_earlier_epoch_are_refused():
    made, sent = network()
    made.run(adversary.begin_of(19.5))
    old = [data for data in sent if data[3] == Kind.OFFER]
    made.crash("3")
    made.start("3")
    made.run(adversary.begin_of(24.5))
    victim = made.machines["3"].protocol
    before, refused = victim.learner.state, victim.measures.refused.total()
    for data in old:
        made._arrive("3", Received("2", data))
    assert victim.measures.refused.total() == refused + len(old)
    assert len(old) == 20
    assert all(np.array_equal(a, b) for a, b in zip(before, victim.learner.state, strict=True))


@pytest.mark.slow
def test_two_frames_after_a_restart_of_a_real_node(tmp_path):
    """0.5: b predicts half a million, says it a hundred rounds later, and after another restart."""
    names, lie = "abc", adversary.FIXED["two frames"]._replace(since=44)
    init_mesh(tmp_path / "mesh", mesh_config(names, (("a", "b"), ("b", "c"))))
    program = {"a": (lying_node.__file__, str(lie))}
    with contextlib.ExitStack() as stack:

        def start(name):
            given = {"program": program[name]} if name in program else {}
            node = stack.enter_context(Process(tmp_path / "mesh" / name, **given))
            return node, node.client()

        nodes = {name: start(name) for name in names}

        def learn(first, end):
            clients = [client for _, client in nodes.values()]
            for client in clients:
                client.learn([sample(k) for k in range(first, end)])
            for client in clients:
                client.wait_learned(end)

        def wait_joined():
            wait_until(lambda: is_joined(nodes["a"][1], "b") and is_joined(nodes["b"][1], "a"))

        def outside():
            """How far b's predictions are outside of the range, in its widths."""
            x = [sample(k)["x"] for k in range(20)]
            told = [nodes["b"][1].ask("/predict", {"x": each})[1]["prediction"] for each in x]
            scaled = (np.array(told) - TARGET.low) / (TARGET.high - TARGET.low)
            return np.abs(scaled - 0.5).max() - 0.5

        wait_joined()
        learn(0, 40)
        assert nodes["b"][0].stop() == 0
        nodes["b"] = start("b")
        wait_joined()
        learn(40, 43)
        assert outside() <= 1
        learn(43, 46)
        assert outside() <= MOST_OUTSIDE
        learn(46, 66)
        assert nodes["b"][0].stop() == 0
        nodes["b"] = start("b")
        assert outside() <= MOST_OUTSIDE


def is_joined(client, peer):
    return client.ask("/state")[1]["neighbors"][peer]["is_open"]
