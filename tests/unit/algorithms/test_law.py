"""A user's law: equal in every host, refused where it is wrong, interpreted where Numba fails."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import domkl
from domkl.algorithms import base
from domkl.algorithms.law import LAWS


class State(NamedTuple):
    theta: np.ndarray


class Message(NamedTuple):
    theta: np.ndarray


def predict(state, params, inputs, prediction):
    for k in range(len(state.theta)):
        for p in range(state.theta.shape[1]):
            prediction.by_kernel[k, p] = np.sum(state.theta[k, p] * inputs.z[k, p])
        prediction.y_hat[k] = prediction.by_kernel[k].mean()


def local_step(state, params, inputs, y, prediction, net, message):
    for k in range(len(y)):
        for p in range(state.theta.shape[1]):
            rate = params.step * (y[k] - prediction.by_kernel[k, p]) / inputs.energy[k, p]
            message.theta[k, p] = state.theta[k, p] + rate * inputs.z[k, p]


def merge(state, params, heard, net):
    state.theta[:] = heard.theta


@dataclass(frozen=True)
class Gossip(domkl.CompiledAlgorithm):
    step: float = 0.5

    law = domkl.Law(State, Message, predict, local_step, merge, exchange={"theta": "metropolis"})

    def init(self, sizes):
        return State(np.zeros(sizes.theta, dtype=sizes.dtype))


def problem():
    rng = np.random.default_rng(0)
    X = rng.random((12, 9, 2))
    graph = domkl.Graph.random(9, 0.3, seed=1)
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 1.0]), 2, 5, seed=2)
    return X, np.sin(6 * X[..., 0]), graph, features


@pytest.mark.slow
@pytest.mark.parametrize("cv", ["exact", "off"])
def test_it_is_the_same_in_every_host(cv, monkeypatch):
    monkeypatch.setattr(base, "PATIENCE", 0.0)
    first, *others = (
        domkl.simulate(Gossip(), *problem(), cv=cv, threads=threads, interpreted=interpreted)
        for threads, interpreted in ((1, True), (1, False), (2, False))
    )
    for other in others:
        np.testing.assert_array_equal(first.predictions, other.predictions)
        np.testing.assert_array_equal(first.state.theta, other.state.theta)


def test_parameters_are_passed_by_name():
    assert Gossip(0.25).compiled == (0.25,)
    assert Gossip(0.25).compiled.step == 0.25
    assert domkl.DOMKL(weights="message-passing").compiled._fields == (
        "rho", "eta_l", "eta_g", "loss",
    )  # fmt: skip


def test_a_state_belongs_to_one_law():
    with pytest.raises(domkl.ParameterError, match="State must belong to one law"):
        domkl.Law(State, Message, predict, local_step, merge, exchange={"theta": "sum"})


class TwoKept(NamedTuple):
    theta: np.ndarray
    center: np.ndarray


class TwoSaid(NamedTuple):
    theta: np.ndarray
    gradient: np.ndarray


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"carried": ("gradient",)}, "carried of the law of TwoKept must be one of theta, got 'gr"),
        ({"carried": "theta"}, "carried must be a tuple of names, got 'theta'"),
        ({"scratch": ("psi",)}, "scratch of the law of TwoKept must be one of theta, center, got"),
        ({"by_edge": ("edges",)}, "by_edge of the law of TwoKept must be one of theta, center"),
        ({"exchange": {"theta": "sum"}}, "exchange must name the fields of TwoSaid, theta, grad"),
        ({"exchange": {}}, "exchange must name the fields of TwoSaid, theta, gradient, got none"),
        ({"room": {"step": "theta"}}, "room must be one of theta, gradient, got 'step'"),
        ({"room": {"gradient": "z"}}, "shape of 'gradient' of the message: one of theta, center"),
        ({"room": {}}, "room must name a field of TwoKept .* 'gradient' .* got 'gradient'"),
        ({"state": dict}, "state must be a NamedTuple class, got <class 'dict'>"),
    ],
)
def test_names_of_fields_are_checked(given, message):
    """A wrong name would not fail later: it would change results, or be ignored."""
    right = {
        "state": TwoKept,
        "message": TwoSaid,
        "exchange": {"theta": "metropolis", "gradient": "sum"},
        "room": {"gradient": "center"},
    }
    with pytest.raises(domkl.ParameterError, match=message):
        domkl.Law(predict=predict, local_step=local_step, merge=merge, **right | given)
    assert TwoKept not in LAWS


def test_what_numba_refuses_is_run_as_python():
    class Kept(NamedTuple):
        theta: np.ndarray

    class Said(NamedTuple):
        theta: np.ndarray

    def odd(state, params, inputs, prediction):
        prediction.y_hat[:] = np.einsum("kpd,kpd->k", state.theta, inputs.z)
        prediction.by_kernel[:] = prediction.y_hat[:, None]

    @dataclass(frozen=True)
    class Odd(Gossip):
        law = domkl.Law(Kept, Said, odd, local_step, merge, exchange={"theta": "metropolis"})

        def init(self, sizes):
            return Kept(np.zeros(sizes.theta, dtype=sizes.dtype))

    with pytest.warns(UserWarning, match="predict of the law of .*Kept cannot be compiled"):
        run = domkl.simulate(Odd(), *problem(), cv="off")
    assert np.isfinite(run.mse).all()
    assert not Odd.law.is_compiled


def test_a_loss_of_ones_own_in_every_family_that_takes_one():
    @dataclass(frozen=True)
    class Scaled(domkl.Loss):
        """The squared loss under another name."""

        factor: float = 1.0

        @staticmethod
        def value_at(params, f, y):
            return params.factor * (f - y) ** 2

        @staticmethod
        def derivative_at(params, f, y):
            return params.factor * 2 * (f - y)

    X, y, graph, features = problem()
    for kind in (domkl.DOMKL, domkl.RFFDOMKL, domkl.COMKL):
        ours = domkl.simulate(kind(loss=Scaled()), X, y, graph, features, cv="off")
        theirs = domkl.simulate(kind(), X, y, graph, features, cv="off")
        np.testing.assert_allclose(ours.predictions, theirs.predictions, atol=1e-12)
    assert Scaled(2.0).prox(1.0, 0.0, 0.5) == pytest.approx(1 / 3)
    with pytest.raises(domkl.ParameterError, match="must have a static function value_at"):
        type("Empty", (domkl.Loss,), {})().value(0.0, 0.0)
