"""Weights of kernels: on the simplex, by hand where that can be done, and never undefined."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import domkl
from domkl.core import hedge as hedge_module
from domkl.core.hedge import add_regrets, hedge_weights, pass_messages

LOSSES = arrays(np.float64, (3, 4), elements=st.floats(0, 1e6))


def hedge(loss, heard=None, eta_g=1.0):
    loss = np.atleast_2d(np.asarray(loss, dtype=float))
    weights = np.empty_like(loss)
    hedge_weights(weights, loss, np.zeros_like(loss) if heard is None else heard, eta_g)
    return weights


def evidence(loss, scale, prior):
    loss = np.atleast_2d(np.asarray(loss, dtype=float))
    weights = np.empty_like(loss)
    prior = np.broadcast_to(np.asarray(prior, dtype=float), loss.shape).copy()
    for k in range(len(loss)):
        hedge_module.evidence(weights[k], loss[k], float(scale), prior[k])
    return weights


def test_a_loss_of_log_2_halves_a_weight():
    np.testing.assert_allclose(hedge([0.0, math.log(2)]), [[2 / 3, 1 / 3]])
    np.testing.assert_allclose(hedge([0.0, 10 * math.log(2)], eta_g=10.0), [[2 / 3, 1 / 3]])


def test_what_is_heard_counts_as_ones_own():
    heard = np.array([[math.log(2), 0.0]])
    np.testing.assert_allclose(hedge([0.0, math.log(2)], heard), [[0.5, 0.5]])


@given(LOSSES, st.floats(0.01, 100))
def test_weights_are_on_the_simplex_and_ordered_by_loss(loss, eta_g):
    weights = hedge(loss, eta_g=eta_g)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert (weights >= 0).all()
    order = np.argsort(loss, axis=1, kind="stable")
    assert (np.diff(np.take_along_axis(weights, order, axis=1), axis=1) <= 1e-15).all()


@given(arrays(np.float64, (2, 3), elements=st.integers(0, 1000)), st.integers(0, 10**6))
def test_a_constant_added_to_all_losses_changes_nothing(loss, constant):
    np.testing.assert_array_equal(hedge(loss + constant), hedge(loss))


def test_losses_that_underflow_every_product_still_give_weights():
    np.testing.assert_array_equal(hedge([1e6, 2e6, 1e6]), [[0.5, 0.0, 0.5]])


def test_evidence_is_the_prior_times_the_likelihood():
    found = evidence([0.0, math.log(3)], 1.0, [0.25, 0.75])
    np.testing.assert_allclose(found, [[0.5, 0.5]])
    np.testing.assert_allclose(evidence([5.0, 5.0, 5.0], 2.0, [0.2, 0.3, 0.5]), [[0.2, 0.3, 0.5]])


def test_a_scale_of_0_leaves_the_best_kernels_alone():
    found = evidence([1.0, 2.0, 1.0], 0.0, [0.25, 0.25, 0.5])
    np.testing.assert_allclose(found, [[1 / 3, 0.0, 2 / 3]])


@given(LOSSES, st.floats(0.1, 10))
def test_evidence_is_on_the_simplex(loss, scale):
    weights = evidence(loss, scale, np.array([0.1, 0.2, 0.3, 0.4]))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert (weights >= 0).all()


def weigh(name, *given):
    """Of one learner's experts."""
    given = [each if np.isscalar(each) else np.array(each, dtype=float) for each in given]
    weights = np.empty_like(given[0])
    getattr(hedge_module, name)(weights, *given)
    return weights


@given(LOSSES, st.floats(0.1, 10))
def test_evidence_of_one_learner_is_that_of_many(loss, scale):
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    together = evidence(loss, scale, prior)
    for k in range(len(loss)):
        alone = weigh("evidence", loss[k], scale, prior)
        np.testing.assert_allclose(alone, together[k], rtol=1e-12, atol=1e-300)


def test_a_loss_however_large_does_not_overflow():
    found = weigh("evidence", [0.0, 1e300, 5e-324], 1e-300, [0.5, 0.25, 0.25])
    np.testing.assert_allclose(found, [2 / 3, 0.0, 1 / 3])


def test_polynomial_weights_by_hand():
    found = weigh("polynomial", [2.0, -1.0, 1.0], [4.0, 1.0, 1.0], [0.2, 0.3, 0.5])
    np.testing.assert_allclose(found, [1 / 3, 0.0, 2 / 3])


@pytest.mark.parametrize("regret", [[0.0, 0.0], [-1.0, 0.0], [-1.0, -2.0]])
def test_without_positive_regret_there_is_the_prior(regret):
    """Normalised: it need not be."""
    found = weigh("polynomial", regret, [1.0, 0.0], [0.3, 0.9])
    np.testing.assert_allclose(found, [0.25, 0.75])


def test_an_expert_without_variance_has_no_weight():
    found = weigh("polynomial", [1.0, 1.0], [0.0, 2.0], [0.5, 0.5])
    np.testing.assert_array_equal(found, [0.0, 1.0])


REGRETS = arrays(np.float64, 4, elements=st.floats(-1e3, 1e3))
SPREADS = arrays(np.float64, 4, elements=st.floats(1e-3, 1e6))


@given(REGRETS, SPREADS, st.sampled_from([1e-6, 1.0, 1e6]))
def test_polynomial_weights_are_on_the_simplex_and_have_no_scale(regret, spread, factor):
    """Losses in other units: regrets times c, their squares times c²."""
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    found = weigh("polynomial", regret, spread, prior)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1)
    other = weigh("polynomial", factor * regret, factor**2 * spread, prior)
    np.testing.assert_allclose(other, found, rtol=1e-9)


def regrets(before, spread, f, y_hat, slope, keep):
    regret, spread, f = (np.array(each, dtype=float) for each in (before, spread, f))
    add_regrets(regret, spread, f, y_hat, slope, keep)
    return regret, spread


def test_regrets_by_hand():
    regret, spread = regrets([1.0, -2.0], [1.0, 4.0], [3.0, 1.0], 2.0, 0.5, 0.75)
    np.testing.assert_allclose(regret, [0.75 - 0.5, -1.5 + 0.5])
    np.testing.assert_allclose(spread, [0.75 + 0.25, 3.0 + 0.25])


@given(REGRETS, st.floats(-10, 10))
def test_weighed_regrets_of_a_round_sum_to_0(f, slope):
    """Towards a mixture's own experts: what some gain on it, the others lose."""
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    regret, _ = regrets(np.zeros(4), np.zeros(4), f, float(weights @ f), slope, 1.0)
    assert weights @ regret == pytest.approx(0, abs=1e-9)


def test_rounding_is_no_regret():
    """Weights of 0.1, 0.2, … do not add up to 1 to the last digit."""
    weights, f = np.full(10, 0.1), np.full(10, 0.7)
    y_hat = sum(w * each for w, each in zip(weights, f, strict=True))
    assert y_hat != 0.7
    regret, spread = regrets(np.zeros(10), np.zeros(10), f, y_hat, 0.3, 1.0)
    np.testing.assert_array_equal(regret, 0)
    np.testing.assert_array_equal(spread, 0)
    regret, _ = regrets(np.zeros(1), np.zeros(1), [0.7], 0.7 * (1 + 1e-9), 0.3, 1.0)
    assert regret[0] > 0


TREES = {
    "path": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "fork": [(0, 1), (1, 2), (1, 3), (3, 4)],
}


@pytest.mark.parametrize("edges", TREES.values(), ids=TREES.keys())
def test_messages_bring_every_loss_once_to_every_learner(edges):
    """On a tree, after as many rounds as it is wide: (20) is the sum over all others."""
    graph = domkl.Graph.from_edges(5, edges)
    loss = np.arange(10.0).reshape(5, 2) ** 2
    sender = np.repeat(np.arange(5), np.diff(graph.indptr))
    places = {(k, j): e for e, (k, j) in enumerate(zip(sender, graph.indices, strict=True))}
    back = [places[j, k] for k, j in zip(sender, graph.indices, strict=True)]
    outbox, inbox, heard = np.zeros((8, 2)), np.zeros((8, 2)), np.zeros((5, 2))
    for _ in range(5):
        pass_messages(outbox, heard, loss, inbox, graph.indptr)
        inbox = outbox[back]
    np.testing.assert_allclose(loss + heard, np.broadcast_to(loss.sum(axis=0), (5, 2)))


def test_a_message_does_not_return_to_its_sender():
    """Learner 1 of a path tells each neighbor its own loss and what the other one said."""
    indptr, inbox = np.array([0, 1, 3, 4]), np.array([[0.0], [10.0], [20.0], [0.0]])
    outbox, heard = np.empty((4, 1)), np.empty((3, 1))
    pass_messages(outbox, heard, np.array([[1.0], [2.0], [3.0]]), inbox, indptr)
    assert outbox.ravel().tolist() == [1.0, 2.0 + 20.0, 2.0 + 10.0, 3.0]
    assert heard.ravel().tolist() == [0.0, 30.0, 0.0]


def test_relabelling_kernels_relabels_weights():
    loss = np.array([[3.0, 1.0, 2.0]])
    for order in itertools.permutations(range(3)):
        np.testing.assert_allclose(hedge(loss[:, order]), hedge(loss)[:, order])
