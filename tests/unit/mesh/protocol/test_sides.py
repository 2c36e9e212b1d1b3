"""What is given out of a learner and the same one without neighbors."""

import numpy as np
import pytest

import domkl
from domkl.core.belief import REACH
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.protocol.sides import BEHIND, Sides

SQUARE, LOGISTIC = (loss().compiled for loss in (domkl.Squared, domkl.Logistic))


def learned(errors, n=300, loss=SQUARE, horizon=1):
    """Both sides predict 0.5 and err by these deviations; what they said last, too."""
    made, generator = Sides(loss, horizon), np.random.default_rng(0)
    for _ in range(n):
        noise = generator.standard_normal(2) * errors
        made.learn(0.5 + noise[0], 0.5 + noise[1], 0.5)
    return made


def test_at_first_the_network_predicts():
    made = Sides(SQUARE, 1)
    assert made.trust.tolist() == [1.0, 0.0]
    assert made.given(3.0, 0.2) == 3.0


@pytest.mark.parametrize(("errors", "side"), [((0.1, 0.3), 0), ((0.3, 0.1), 1)])
@pytest.mark.parametrize("horizon", [1, 6])
def test_the_better_side_is_given_out(errors, side, horizon):
    made = learned(np.array(errors), horizon=horizon)
    assert made.trust[side] > 0.95
    assert made.trust.sum() == pytest.approx(1)
    assert made.given(0.4, 0.6) == pytest.approx((0.4, 0.6)[side], abs=0.02)


@pytest.mark.parametrize(("errors", "side"), [((0.1, 5.0), 0), ((5.0, 0.1), 1)])
def test_the_other_side_comes_back_soon_after_it_has_become_the_better_one(errors, side):
    """Neither is behind by more than `BEHIND` of the logarithm of the evidence."""
    made = learned(np.array(errors))
    assert made.trust[side] > 0.95
    better = np.array([0.0, 0.0])
    better[side] = 1.0
    n = 0
    while made.trust[1 - side] < 0.5:
        made.learn(0.5 + better[0], 0.5 + better[1], 0.5)
        n += 1
    assert 0 < n < 5 * BEHIND


def test_the_network_counts_within_reach_of_own_errors():
    """However well it was trusted; labels that confirm it widen the reach."""
    made = learned(np.array([0.02, 0.1]))
    assert made.trust[0] > 0.95
    far = made.given(1e6, 0.5)
    assert far < 0.5 + 1.05 * REACH * 0.1
    assert made.given(0.6, 0.5) == pytest.approx(0.6, abs=0.01)
    for _ in range(10):
        made.learn(far, 0.5, far)
    assert made.given(1e6, 0.5) > far + 0.5


def test_probabilities_are_weighed_by_their_logarithms():
    made = Sides(LOGISTIC, 1)
    for _ in range(100):
        made.learn(2.0, -2.0, 1.0)
    assert made.trust[0] > 0.95
    for _ in range(300):
        made.learn(2.0, -2.0, -1.0)
    assert made.trust[1] > 0.9


def test_it_goes_on_from_what_was_saved():
    made, again = learned(np.array([0.2, 0.21])), Sides(SQUARE, 1)
    again.restore({name: values.copy() for name, values in made.saved().items()})
    np.testing.assert_array_equal(again.trust, made.trust)
    for one in (made, again):
        one.learn(0.4, 0.7, 0.5)
    np.testing.assert_array_equal(again.trust, made.trust)
    assert again.given(0.1, 0.9) == made.given(0.1, 0.9)
    nothing = Sides(SQUARE, 1)
    nothing.restore({"state.theta": np.zeros(1)})  # as files of 0.5 are
    assert nothing.trust.tolist() == [1.0, 0.0]


def test_domkrls_has_both_in_its_law(model_of):
    for algorithm, is_mixed in ((domkl.DOMKRLS(), False), (domkl.DOMKL(), True)):
        for is_guarded in (False, True):
            made = Protocol("a", model_of(algorithm), (), incarnation=1, is_guarded=is_guarded)
            assert (made.sides is not None) == (is_mixed and is_guarded)
