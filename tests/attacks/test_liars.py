"""One neighbor with a valid certificate lies: six learners on a ring with chords, virtual time.

Version 0.1, errors of the honest learners' last fifth relative to no liar, on Traffic: DOMKL with θ
flipped 43, shifted by 0.02 6e4, with noise 83, frozen 1.6, after one frame of θ = 1e6 4e11 and for
good; DOMKRLS 1.05 to 1.23. `benchmarks/bench_liar.py` measures it on data; here are small streams.
"""

from functools import cache, partial

import numpy as np
import pytest

import domkl
from domkl.mesh.protocol.families import family_of
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.testing import VirtualNetwork
from domkl.mesh.testing.liars import LIES, Liar

NEIGHBORS = {"0": "135", "1": "024", "2": "13", "3": "024", "4": "135", "5": "04"}
LIAR, PERIOD, N_ROUNDS, SINCE = "2", 0.1, 300, 60
HONEST = [0, 1, 3, 4, 5]
PLAIN = ("flip", "noise", "frozen", "single")
ALGORITHMS = {"domkl": domkl.DOMKL(), "domkrls": domkl.DOMKRLS()}


def stream():
    generator = np.random.default_rng(5)
    x = generator.random((N_ROUNDS, 6, 2))
    noise = 0.05 * generator.standard_normal(x.shape[:2])
    return x, 0.5 + 0.3 * np.sin(5 * x[..., 0]) * x[..., 1] + noise


def model(name):
    bank = domkl.gaussian_bank([0.1, 1.0, 10.0])
    features = domkl.RandomFeatures.draw(bank, 2, 10, seed=1)
    ranges = Range("a", 0, 1), Range("b", 0, 1)
    return Model(ALGORITHMS[name], features, ranges, Range("y", 0, 1))


@cache
def network(name, lie=None, is_guarded=True, until=np.inf):
    made = VirtualNetwork(model(name), NEIGHBORS, *stream(), period=PERIOD, is_guarded=is_guarded)
    if lie is not None:
        made.liars[LIAR] = Liar(lie, SINCE, until)
    made.run(1 + N_ROUNDS * PERIOD + 20)
    return made


def error(made, begin=0):
    return float(np.mean((made.predictions() - made.y)[begin:, HONEST] ** 2))


def distrusted(made):
    """Who distrusted whom, of the honest learners."""
    return {
        (name, each.peer)
        for _, name, each in made.alarms
        if each.kind == "distrusted" and name != LIAR
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "lie"),
    # what is known not to hold: these three kernels have much the same losses, and DOMKL does not
    # notice that they are told in reverse; the error of the last fifth is 1.19 times as large
    [(name, lie) for name in ALGORITHMS for lie in LIES if (name, lie) != ("domkl", "rigged")],
)
def test_one_liar_does_little_harm(name, lie):
    """The honest ones err little more, and where the lie is plain, distrust the liar only."""
    found, base = network(name, lie), network(name, is_guarded=False)
    last = N_ROUNDS * 4 // 5
    assert error(found, last) <= 1.1 * error(base, last)
    assert error(found) <= 1.3 * error(base)
    assert all(np.isfinite(values).all() for state in found.states() for values in state)
    if lie in PLAIN:
        assert distrusted(found) == {("1", LIAR), ("3", LIAR)}
        assert found.machines["1"].protocol.measures.edges[LIAR].n_barred > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_without_a_liar_a_guard_changes_no_bit(name):
    guarded, base = network(name), network(name, is_guarded=False)
    np.testing.assert_array_equal(guarded.predictions(), base.predictions())
    assert distrusted(guarded) == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_learner_without_labels_moves_with_its_neighbors(name):
    """It says what it hears, and is not taken for one that always says the same."""
    x, y = stream()
    y[SINCE:, int(LIAR)] = np.nan
    made = VirtualNetwork(model(name), NEIGHBORS, x, y, period=PERIOD, is_guarded=True)
    made.run(1 + N_ROUNDS * PERIOD + 20)
    assert distrusted(made) == set()


@pytest.mark.slow
@pytest.mark.parametrize("n_own", [1, 5, 20])
def test_a_newcomer_that_knows_little_is_not_distrusted(n_own):
    """It was alone with few samples; its losses and its function are far off, and weigh little."""
    x, y = stream()
    joins = 200
    y[: joins - n_own, 5] = np.nan
    y -= 0.9 * (y - 0.5 - 0.3 * np.sin(5 * x[..., 0]) * x[..., 1])  # little noise
    made = VirtualNetwork(model("domkrls"), NEIGHBORS, x, y, period=PERIOD, is_guarded=True)
    for other in NEIGHBORS["5"]:
        made.cut("5", other)
        made.at(1 + joins * PERIOD + 0.05, partial(made.heal, "5", other))
    made.run(1 + N_ROUNDS * PERIOD + 20)
    assert {pair for pair in distrusted(made) if "5" in pair} == set()


@pytest.mark.slow
def test_who_was_distrusted_once_is_heeded_again():
    """After two rounds of 1e6 the learner is honest, and 100 steps later its edges are open."""
    made = network("domkl", "single")
    for name in ("1", "3"):
        edge = made.machines[name].protocol.measures.edges[LIAR]
        assert (edge.is_open, edge.is_barred, edge.n_barred) == (True, False, 1)
    duals = np.array([state.dual for state in made.states()])
    assert np.abs(duals.sum(axis=0)).max() < 0.2 * np.abs(duals).max()  # mid-exchange


def test_negative_losses_are_refused():
    """0.1 took them: DOMKRLS was NaN within three rounds, and did not start again."""
    message = {"theta": np.zeros((1, 3, 20)), "loss": np.array([[1.0, -1.0, 0.0]])}
    for algorithm in (domkl.DOMKL(), domkl.RFFDOMKL()):
        refusal = family_of(algorithm).refusal
        assert "loss must not be negative, got -1" in refusal(message)
        assert refusal({**message, "loss": np.zeros((1, 3))}) is None
