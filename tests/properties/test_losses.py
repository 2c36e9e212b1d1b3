"""Laws of the losses: derivative, prox, and the exact step (11)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import domkl

LOSSES = [
    domkl.Squared(),
    domkl.Huber(0.7),
    domkl.Absolute(),
    domkl.Pinball(0.2),
    domkl.Logistic(),
]
numbers = st.floats(-50, 50)
steps = st.sampled_from([1e-6, 0.01, 1.0, 30.0, 1e4])


def label(loss, y):
    return (1.0 if y >= 0 else -1.0) if isinstance(loss, domkl.Logistic) else y


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(f=numbers, y=numbers)
def test_the_derivative_is_the_slope(loss, f, y):
    y, h = label(loss, y), 1e-6
    if not isinstance(loss, domkl.Logistic) and abs(abs(f - y) - getattr(loss, "delta", 0)) < 1e-3:
        return  # at a kink, of the loss or of Huber's slope
    slope = (loss.value(f + h, y) - loss.value(f - h, y)) / (2 * h)
    assert abs(slope - loss.derivative(f, y)) < 1e-6 * (1 + abs(f - y))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(v=numbers, y=numbers, tau=steps)
def test_the_prox_is_the_minimum(loss, v, y, tau):
    """(v − s)/τ is a subgradient at s: between the slopes on both sides of s."""
    y = label(loss, y)
    s = float(loss.prox(v, y, tau))
    g = (v - s) / tau
    width = 1e-7 * (1 + abs(s))
    below, above = loss.derivative(s - width, y), loss.derivative(s + width, y)
    slack = 1e-9 + 1e-13 * (abs(v) + abs(s)) / tau + 1e-9 * abs(g)
    assert below - slack <= g <= above + slack


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(a=numbers, b=numbers, y=numbers, tau=steps)
def test_the_prox_never_spreads_points(loss, a, b, y, tau):
    """Firmly nonexpansive: |prox a − prox b|² ≤ (prox a − prox b)(a − b)."""
    y = label(loss, y)
    move = float(loss.prox(a, y, tau) - loss.prox(b, y, tau))
    assert move * move <= move * (a - b) + 1e-9


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_values_do_not_overflow(loss):
    y = label(loss, -1.0)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        assert np.isfinite(loss.value([1e6, -1e6], y)).all()
        assert np.isfinite(loss.derivative([1e6, -1e6], y)).all()
        assert np.isfinite(loss.prox([1e6, -1e6], y, 1e3)).all()


def test_at_a_kink_the_derivative_is_zero():
    assert domkl.Absolute().derivative(3.0, 3.0) == 0
    assert domkl.Pinball(0.9).derivative(3.0, 3.0) == 0


def test_the_quantile_is_where_pinball_is_smallest():
    y = np.arange(101.0)
    theta = domkl.best_in_hindsight(np.ones((101, 1)), y, domkl.Pinball(0.9))
    assert theta == pytest.approx(90.0)
