"""Learners that forecast tick by tick are the simulator with a delay, to the bit."""

from collections import deque

import numpy as np
import pytest

import domkl
from domkl.data.forecast import rounds_of
from domkl.data.rows import RowMaker, RowPlan
from domkl.mesh.protocol import events
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.protocol.protocol import Protocol

K, N_TICKS = 4, 40
GRAPH = domkl.Graph.from_edges(K, [(0, 1), (1, 2), (2, 3), (0, 2)])


def plan_of(horizon):
    return RowPlan("y", lags=(1, 2, 4), inputs=("a",), horizons=(horizon,), hold=3)


def model_of(horizon, dtype="float64", period=None):
    plan = plan_of(horizon)
    features = domkl.RandomFeatures.draw(domkl.default_bank(), len(plan.names), 5, seed=1)
    inputs = tuple(Range(name, 0, 1) for name in plan.names)
    algorithm = domkl.DOMKRLS(newest_lag=plan.newest_lag, period=period)
    return Model(algorithm, features, inputs, Range("y", 0, 1), dtype=dtype, horizon=horizon)


def values(missing=0.0):
    generator = np.random.default_rng(3)
    made = np.cumsum(generator.normal(0, 0.1, (N_TICKS, K, 2)), axis=0)
    made[..., 0][generator.random((N_TICKS, K)) < missing] = np.nan
    made[:6, :, 0] = 0.1  # all learners know their first rows at the same tick
    return made


def moments(table, horizon):
    """The moments of one learner."""
    maker = RowMaker(plan_of(horizon))
    for t, row in enumerate(table):
        block = maker.push(row[None])
        then = block.pairs[horizon].X[0]
        naive = (float(row[0]), np.nan)
        yield events.Moment(t + 1, t, float(row[0]), then, block.X[0], naive)


def started(model, snapshots=None):
    names = [str(k) for k in range(K)]
    near = {n: tuple(str(j) for j in GRAPH.indices[GRAPH.indptr[int(n)] : GRAPH.indptr[int(n) + 1]])
            for n in names}  # fmt: skip
    protocols = {n: Protocol(n, model, near[n], incarnation=1) for n in names}
    carry(protocols, [(n, events.PeerUp(other)) for n in names for other in near[n]])
    return protocols


def carry(protocols, happened):
    """Tell all of it, and deliver what is sent, until nothing is under way."""
    under_way = deque(happened)
    while under_way:
        name, event = under_way.popleft()
        for effect in protocols[name].handle(event, 0.0):
            if isinstance(effect, events.Send):
                under_way.append((effect.peer, events.Received(name, effect.data)))
            elif isinstance(effect, events.Checkpoint):
                under_way.append((name, events.Tick()))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("period", [None, 5])
def test_forecasts_are_those_of_the_simulator(period, horizon, missing, dtype):
    model, table = model_of(horizon, dtype, period), values(missing)
    protocols = started(model)
    streams = [list(moments(table[:, k], horizon)) for k in range(K)]
    for t in range(N_TICKS - horizon + 1):  # the simulator leaves the newest pairs waiting
        carry(protocols, [(str(k), streams[k][t]) for k in range(K)])
    rounds = rounds_of(table, plan_of(horizon))[horizon]
    ticks = rounds.first + np.arange(len(rounds.y))
    run = domkl.simulate(
        domkl.DOMKRLS(newest_lag=0), rounds.X, rounds.y, GRAPH, model.features, dtype=dtype,
        times=ticks, period=period,
    )  # fmt: skip
    state = run.state.state if horizon > 1 else run.state
    for field, expected in state._asdict().items():
        found = np.concatenate([getattr(p.learner.state, field) for p in protocols.values()])
        np.testing.assert_array_equal(found, expected, err_msg=field)
    errors = [each.measures.errors for each in protocols.values()]
    squares = (run.predictions - np.asarray(rounds.y))[: len(rounds.y) - horizon + 1] ** 2
    assert sum(each.n for each in errors) == (~np.isnan(squares)).sum()
    assert sum(each.total for each in errors) == pytest.approx(np.nansum(squares))


def test_a_learner_that_forecasts_continues_from_its_checkpoint():
    model, table = model_of(3), values(0.2)[:, 0]
    whole = Protocol("0", model, (), incarnation=1)
    killed = Protocol("0", model, (), incarnation=1)
    for moment in moments(table, 3):
        whole.handle(moment, 0.0)
        if moment.number == 21:
            killed = Protocol("0", model, (), incarnation=2, snapshot=killed.snapshot())
        killed.handle(moment, 0.0)
        if moment.number % 100 == 0:
            killed.handle(events.Tick(), 0.0)
    for field in whole.learner.state._fields:
        found, expected = (getattr(p.learner.state, field) for p in (killed, whole))
        np.testing.assert_array_equal(found, expected, err_msg=field)
    assert killed.measures.saved() == whole.measures.saved()
    assert whole.measures.mse_alone == pytest.approx(whole.measures.mse)


def test_forecasts_with_other_notes_are_refused():
    """A node then goes on from an older checkpoint, or from its log, and loses no sample."""
    model, protocol = model_of(3), Protocol("0", model_of(3), (), incarnation=1)
    for moment in list(moments(values()[:, 0], 3))[:20]:
        protocol.handle(moment, 0.0)
    snapshot = protocol.snapshot()
    other = {
        name: array[:, :-2] for name, array in snapshot.arrays.items() if name.endswith(".notes")
    }
    assert other
    snapshot = snapshot._replace(arrays=snapshot.arrays | other)
    with pytest.raises(domkl.DataError, match=r"forecasts\.notes must have shape"):
        Protocol("0", model, (), incarnation=2, snapshot=snapshot)


def test_a_label_that_never_comes_is_not_scored():
    model, protocol = model_of(3), None
    protocol = Protocol("0", model, (), incarnation=1)
    late = [each._replace(tick=each.tick + (5 if each.tick > 20 else 0))
            for each in moments(values()[:, 0], 3)]  # fmt: skip
    for moment in late:
        protocol.handle(moment, 0.0)
    whole = Protocol("0", model, (), incarnation=1)
    for moment in moments(values()[:, 0], 3):
        whole.handle(moment, 0.0)
    assert protocol.measures.errors.n == whole.measures.errors.n - 3


def test_samples_and_moments_are_told_apart():
    protocol = Protocol("0", model_of(1), (), incarnation=1)
    with pytest.raises(domkl.DataError, match="The model forecasts: send Moment, not Sample"):
        protocol.handle(events.Sample(1, np.zeros(4), 0.5), 0.0)
