"""One neighbor with a valid certificate lies: six learners on a ring with chords, virtual time.

Version 0.1, errors of the honest learners' last fifth relative to no liar, on Traffic: DOMKL with θ
flipped 43, shifted by 0.02 6e4, with noise 83, frozen 1.6, after one frame of θ = 1e6 4e11 and for
good; DOMKRLS 1.05 to 1.23. `benchmarks/adversary.py` measures it on data; here are small streams.
"""

from functools import cache, partial

import numpy as np
import pytest

import domkl
from domkl.mesh.protocol import families
from domkl.mesh.protocol.families import family_of
from domkl.mesh.protocol.measures import CLEARED
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.protocol.protocol import MOST_ABOVE, MOST_BELOW
from domkl.mesh.testing import VirtualNetwork
from domkl.mesh.testing.liars import LIES, Liar

NEIGHBORS = {"0": "135", "1": "024", "2": "13", "3": "024", "4": "135", "5": "04"}
LIAR, PERIOD, N_ROUNDS, SINCE = "2", 0.1, 300, 60
HONEST = [0, 1, 3, 4, 5]
ALGORITHMS = {"domkl": domkl.DOMKL(), "domkrls": domkl.DOMKRLS()}
#: what is known not to hold: the error of the last fifth over that of all honest, if not 1.1
MOST_OVER = {("domkrls", "noise"): 1.16}


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


@cache
def alone(name):
    """The same learners without neighbors."""
    made = VirtualNetwork(model(name), dict.fromkeys(NEIGHBORS, ""), *stream(), period=PERIOD)
    made.run(1 + N_ROUNDS * PERIOD + 20)
    return made


def accused(made):
    """Who called whom suspicious, or ignored it, of the honest learners."""
    kinds = ("suspicious", "distrusted")
    return {(name, a.peer) for _, name, a in made.alarms if a.kind in kinds and name != LIAR}


def edges(made):
    return [each for p in made.protocols() for each in p.measures.edges.values()]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lie"), [(name, lie) for name in ALGORITHMS for lie in LIES])
def test_one_liar_does_little_harm(name, lie):
    """In the last fifth the honest ones err little more than all honest, or than alone."""
    found, base = network(name, lie), network(name, is_guarded=False)
    last = N_ROUNDS * 4 // 5
    most = max(MOST_OVER.get((name, lie), 1.1) * error(base, last), 1.03 * error(alone(name), last))
    assert error(found, last) <= most
    assert error(found) <= 1.2 * error(base)
    assert np.nanmin(found.predictions()) >= MOST_BELOW
    assert np.nanmax(found.predictions()) <= MOST_ABOVE
    assert all(np.isfinite(values).all() for state in found.states() for values in state)
    assert accused(found) <= {("1", LIAR), ("3", LIAR)}


@pytest.mark.slow
def test_who_always_says_the_same_is_told():
    assert accused(network("domkrls", "frozen")) == {("1", LIAR), ("3", LIAR)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_without_a_liar_a_guard_costs_next_to_nothing(name):
    guarded, base = network(name), network(name, is_guarded=False)
    assert error(guarded) <= 1.005 * error(base)
    assert error(guarded, N_ROUNDS * 4 // 5) <= 1.005 * error(base, N_ROUNDS * 4 // 5)
    assert accused(guarded) == set()


@pytest.mark.slow
def test_where_nothing_is_limited_no_bit_of_domkrls_is_changed(monkeypatch):
    """With radii that nobody reaches; those of today act in the first rounds."""
    for name in ("APART", "ACCOUNT_FACTOR"):
        monkeypatch.setattr(families, name, 1e12)
    monkeypatch.setattr(families.LeastSquares, "radius", 1e12)
    made = network.__wrapped__("domkrls")
    assert sum(edge.n_limited for edge in edges(made)) == 0
    base = network("domkrls", is_guarded=False)
    np.testing.assert_array_equal(made.predictions(), base.predictions())


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_learner_without_labels_moves_with_its_neighbors(name):
    """It says what it hears, and is not taken for one that always says the same."""
    x, y = stream()
    y[SINCE:, int(LIAR)] = np.nan
    made = VirtualNetwork(model(name), NEIGHBORS, x, y, period=PERIOD, is_guarded=True)
    made.run(1 + N_ROUNDS * PERIOD + 20)
    assert accused(made) == set()


@pytest.mark.slow
@pytest.mark.parametrize("n_own", [1, 5, 20])
def test_a_newcomer_that_knows_little_is_not_suspicious(n_own):
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
    assert {pair for pair in accused(made) if "5" in pair} == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_who_lied_for_two_rounds_is_let_in_again(name):
    """After two rounds of 1e6 the learner is honest, and most of what it says is let in."""
    made = network(name, "single")
    for neighbor in ("1", "3"):
        edge = made.machines[neighbor].protocol.measures.edges[LIAR]
        assert (edge.is_open, edge.is_barred, edge.is_suspicious) == (True, False, False)
        assert edge.n_limited > 0
        assert edge.share > CLEARED
    last = N_ROUNDS * 4 // 5
    assert error(made, last) <= 1.05 * error(network(name, is_guarded=False), last)


def test_negative_losses_are_refused():
    """0.1 took them: DOMKRLS was NaN within three rounds, and did not start again."""
    message = {"theta": np.zeros((1, 3, 20)), "loss": np.array([[1.0, -1.0, 0.0]])}
    for algorithm in (domkl.DOMKL(), domkl.RFFDOMKL()):
        refusal = family_of(algorithm).refusal
        assert "loss must not be negative, got -1" in refusal(message)
        assert refusal({**message, "loss": np.zeros((1, 3))}) is None
