"""The row maker: any cutting of a table gives the same rows, and nothing is known too early."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domkl.data.clock import HOUR, Clock
from domkl.data.forecast import rounds_of
from domkl.data.rows import RowMaker, RowPlan, default_hold
from domkl.errors import DataError, ParameterError

PLAN = RowPlan(
    "y", lags=(1, 2, 5), inputs=("a", "hour", "weekday"), input_lags=(1, 3), ahead=("b", "yearday"),
    horizons=(1, 4), hold=2, scales={"y": (3.0, 7.0), "a": (0.1, 0.3)}, clock=Clock(12345, HOUR),
)  # fmt: skip


def table(n=60, seed=0, share=0.3):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 3))
    values[rng.random((n, 3)) < share] = np.nan
    return values


@given(st.lists(st.integers(0, 20), max_size=8), st.integers(0, 5))
def test_any_cutting_gives_the_same_rows_to_the_bit(sizes, seed):
    values = table(seed=seed)
    whole = RowMaker(PLAN).push(values)
    maker, blocks = RowMaker(PLAN), []
    for part in np.split(values, np.minimum(np.cumsum(sizes), len(values)).astype(int)):
        blocks.append(maker.push(part))
        maker = RowMaker(PLAN, maker.state())  # as after a restart
    np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), whole.X)
    for h in PLAN.horizons:
        for i in range(2):
            cut = np.concatenate([b.pairs[h][i] for b in blocks])
            np.testing.assert_array_equal(cut, whole.pairs[h][i])


def oracle(values, plan, t, h):
    """Inputs and label of tick t, written out."""

    def held(column, tick):
        for age in range(plan.hold + 1):
            if tick - age >= 0 and not np.isnan(values[tick - age, column]):
                return values[tick - age, column]
        return np.nan

    def circle(name, tick):
        when = np.datetime64(plan.clock.time(tick), "ms")
        day = when.astype("datetime64[D]")
        part = {
            "hour": (when - day).astype(float) / 86_400_000,
            "weekday": day.astype(object).weekday() / 7,
            "yearday": (day - day.astype("datetime64[Y]")).astype(float) / 366,
        }[name]
        return [(np.sin(2 * np.pi * part) + 1) / 2, (np.cos(2 * np.pi * part) + 1) / 2]

    x = [(held(0, t - lag + 1) - 3) / 7 for lag in plan.lags]
    x += [(held(1, t - lag + 1) - 0.1) / 0.3 for lag in plan.input_lags]
    x += [*circle("hour", t), *circle("weekday", t), held(2, t + h), *circle("yearday", t + h)]
    return x, (values[t + h, 0] - 3) / 7


@pytest.mark.parametrize("h", [1, 4])
def test_rows_are_what_they_say(h):
    values = table(seed=3)
    pairs = RowMaker(PLAN).push(values).pairs[h]
    for t in range(10, 50):
        x, y = oracle(values, PLAN, t, h)
        np.testing.assert_allclose(pairs.X[t + h], x, rtol=1e-12)
        np.testing.assert_allclose(pairs.y[t + h], y, rtol=1e-12)
    assert len(PLAN.names) == pairs.X.shape[1]


def test_a_forecast_row_uses_nothing_later():
    values = table(share=0.0)
    maker = RowMaker(PLAN)
    block = maker.push(values[:30])
    row = maker.row(block.X[-1], 4, {"b": values[33, 2]})
    whole = RowMaker(PLAN).push(values).pairs[4]
    np.testing.assert_array_equal(row, whole.X[33])
    plain = maker.row(block.X[-1], 4)
    np.testing.assert_array_equal(plain[:-3], row[:-3])
    assert plain[-3] == values[29, 2]  # the last known one stands in
    with pytest.raises(DataError, match="future input must be one of"):
        maker.row(block.X[-1], 4, {"a": 1.0})


def test_skipping_is_pushing_nothing():
    values = table()
    for n in (1, 3, 500):
        slow, fast = RowMaker(PLAN), RowMaker(PLAN)
        slow.push(values)
        fast.push(values)
        slow.push(np.full((n, 3), np.nan))
        fast.skip(n)
        np.testing.assert_array_equal(slow.push(values).X, fast.push(values).X)


def test_horizon_0_does_not_know_its_own_row():
    plan = RowPlan("y", lags=(1, 2), inputs=("a",), horizons=(0,))
    values = np.arange(10.0).reshape(5, 2)
    pairs = RowMaker(plan).push(values).pairs[0]
    assert pairs.X[2].tolist() == [values[1, 0], values[0, 0], values[2, 1]]
    assert pairs.y[2] == values[2, 0]


def test_rounds_know_their_delay_and_leave_out_the_first():
    values = np.arange(20.0)[:, None, None] + np.zeros((1, 2, 1))
    made = rounds_of(values, RowPlan("y", lags=(1, 4), horizons=(1, 3)))
    assert made[3].first == 3
    assert made[3].X[0, 0].tolist() == [3, 0]
    assert made[3].y[0].tolist() == [6, 6]
    assert (made[1].y.shape, made[3].y.shape) == ((16, 2), (14, 2))
    assert (getattr(made[1].y, "delay", 0), made[3].y.delay) == (0, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lags": (0,)}, "lags must be an integer >= 1"),
        ({"lags": (1, 1)}, "lags must not repeat"),
        ({"inputs": ("y",)}, "inputs must not have the target 'y' without lag"),
        ({"inputs": ("hour",)}, "input 'hour' needs the time of the rows; give --time"),
        ({"horizons": (0, 1)}, "horizon must be 0 or numbers >= 1"),
        ({"lags": ()}, "at least one input"),
        ({"hold": -1}, "hold must be an integer >= 0"),
    ],
)
def test_bad_plans(given, message):
    with pytest.raises(ParameterError, match=message):
        RowPlan("y", **given)


def test_streams_too_short():
    values = np.zeros((5, 1, 1))
    with pytest.raises(DataError, match="horizon must be below the 5 ticks"):
        rounds_of(values, RowPlan("y", horizons=(5,)))
    with pytest.raises(DataError, match="lags may be too long"):
        rounds_of(values, RowPlan("y", lags=(5,), horizons=(1,)))


def test_hold():
    assert default_hold(Clock(0, HOUR // 2)) == 48
    assert default_hold(Clock(0, 1, is_dated=False)) == 24
