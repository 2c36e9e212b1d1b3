"""Nodes that forecast: over HTTP, with gaps, killed and started again."""

import asyncio
import logging

import numpy as np
import pytest
from mesh_http import served
from mesh_node import DEADLINE, Client, made, solo_config, until, wait_until

import domkl
from domkl.data.forecast import rounds_of
from domkl.data.nodes import Form
from domkl.errors import DataError
from domkl.mesh.config.file import Member, write_config
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.config.settings import Forecasting
from domkl.mesh.node.intake import Format, OrderError, milliseconds
from domkl.mesh.node.node import Node
from domkl.mesh.node.sources import Replay, accept
from domkl.mesh.node.telemetry import state_of
from domkl.mesh.protocol.model import Range
from domkl.mesh.store.folder import open_folder
from domkl.mesh.transports.base import Address
from domkl.mesh.transports.memory import MemoryHub, MemoryTransport

HORIZONS = (1, 3)
N = 60


def config(**changes):
    given = {
        "target": Range("load", 0.0, 100.0), "inputs": (Range("temp", -20.0, 40.0),),
        "forecast": Forecasting(HORIZONS, lags=(1, 2, 4), calendar=("hour",), season="6h"),
        "algorithm": domkl.DOMKRLS(), "kernels": (0.1, 1.0), "linear": True,
    }  # fmt: skip
    return solo_config(**given | changes)


def at(k):
    return f"2026-01-{1 + k // 24:02}T{k % 24:02}:00"


def value(k):
    return 50 + 20 * np.sin(k / 4) + (k * 7919 % 13)


def body(k, **changes):
    return {"time": at(k), "y": value(k), "x": {"temp": 10 + k % 24 / 2}, "id": f"s{k}"} | changes


def flat(k):
    return {"time": at(k), "load": value(k), "temp": 10 + k % 24 / 2, "battery": "low"}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Of a node that has learned N samples; tests may run in any order."""
    with served(tmp_path_factory.mktemp("node"), config()) as (_, address):
        client = Client(address)
        assert client.ask("/predict", {})[0] == 409  # nothing is known yet
        assert client.learn([flat(k) if k % 2 else body(k) for k in range(N)])[0] == 202
        wait_until(lambda: client.state()["n_queued"] == 0)
        yield client


def test_a_stream_is_forecast_and_scored_as_in_the_simulator(client):
    state = client.state()
    forecasting, given = config().forecast, config()
    plan = forecasting.plan(given.target, given.inputs)
    plan = plan.__class__(**{**vars(plan), "clock": plan.clock._replace(start=int(
        milliseconds(at(0))))})  # fmt: skip
    table = np.array([[[value(k), 10 + k % 24 / 2]] for k in range(N)])
    for model in given.models():
        h = model.horizon
        rounds = rounds_of(table, plan)[h]
        first = plan.clock.start // plan.clock.step + rounds.first
        run = domkl.simulate(
            domkl.DOMKRLS(newest_lag=0), rounds.X, rounds.y, domkl.Graph.empty(1), model.features,
            period=6, times=first + np.arange(len(rounds.y)),
        )  # fmt: skip
        found = state["horizons"][str(h)]
        expected = np.mean((run.predictions - np.asarray(rounds.y)) ** 2)
        assert found["mse"] == pytest.approx(expected, rel=1e-12)
        assert found["n_scored"] == len(rounds.y)
        naive = np.mean([(value(k) - value(k - h)) ** 2 for k in range(N - len(rounds.y), N)])
        assert found["in_units"]["mse_last_value"] == pytest.approx(naive)
        assert found["mse_seasonal"] is not None


def test_all_horizons_are_answered_with_deviations_and_times(client):
    status, found = client.ask("/predict", {})
    assert status == 200
    assert [each["horizon"] for each in found["forecasts"]] == list(HORIZONS)
    assert [each["time"] for each in found["forecasts"]] == [
        "2026-01-03T12:00:00", "2026-01-03T14:00:00"
    ]  # fmt: skip
    assert all(0 < each["deviation"] < 100 for each in found["forecasts"])
    assert all(each["in_units"]["pinball"] > 0 for each in client.state()["horizons"].values())
    for each in found["forecasts"]:
        quantiles = each["quantiles"]
        assert list(quantiles) == ["0.025", "0.1", "0.25", "0.5", "0.75", "0.9", "0.975"]
        assert list(quantiles.values()) == sorted(quantiles.values())
        width = quantiles["0.975"] - quantiles["0.025"]
        assert width == pytest.approx(2 * 1.96 * each["deviation"])
    text = client.ask("/metrics")[1]
    assert 'domkl_forecast_mse{by="last season",horizon="3"}' in text
    assert 'domkl_forecasts_scored_total{horizon="1"}' in text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (body(N - 1, id="late"), "time must be after 2026-01-03T11:00:00"),
        (body(5, id="late"), "one for each step of 1h"),
        (body(N, time="yesterday"), "time must be ISO 8601"),
        (body(N, time=1.7951e12), "8999, got 1795100000000.0; a number is seconds"),
        (body(N, time="9999-12-31T23:59"), "years 1000 to 8999, got '9999-12-31T23:59'"),
        (body(N, time="0001-01-01T00:00+14:00"), "time must be in the years 1000 to 8999, got"),
        (body(N, x={"wind": 1}), "has no place for 'wind'; inputs are temp"),
        (body(N, value=3), "sample must have y or value, got both"),
        ({"time": at(N), "tmp": 3}, "sample must name inputs or target, got ['tmp']"),
        ([body(N, id="a"), body(N, id="b")], "time must be after"),
    ],
)
def test_wrong_samples_are_refused_and_nothing_is_lost(client, wrong, said):
    before = client.state()["n_accepted"]
    status, found = client.learn(wrong)
    assert status == 422
    assert said in found["detail"]
    assert client.state()["n_accepted"] == before


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"x": [1]}, "x must not be given"),
        ({"future": [{"time": at(N - 1), "x": {"temp": 3}}]}, "future must be after"),
        ({"future": [{"time": at(0), "x": {"temp": 3}}]}, "got 2026-01-01T00:00:00"),
        ({"future": [{"time": at(N), "x": {"temp": 3}}]}, "must be one of none, got 'temp'; inp"),
        ({"future": [{"time": at(N + 9), "x": {"load": 3}}]}, "must be one of none, got 'load'"),
        ({"future": [{"time": 1.7951e12, "x": {}}]}, "time must be in the years 1000 to 8999"),
        ({"future": [{"time": at(N), "x": {}}] * 2}, "each step of 1h once, got 2026-01-03T12:00:"),
    ],
)
def test_wrong_requests_for_forecasts(client, asked, said):
    before = client.ask("/predict", {})
    status, found = client.ask("/predict", asked)
    assert (status, said in found["detail"]) == (422, True), found
    assert client.ask("/predict", {}) == before


@pytest.mark.parametrize("outside", ["clip", "refuse"])
def test_a_future_input_outside_its_range_is_as_one_of_a_sample(tmp_path, outside):
    forecasting = Forecasting((1,), lags=(1,), ahead=("temp",), season="6h")
    with served(tmp_path, config(forecast=forecasting, outside=outside)) as (_, address):
        client = Client(address)
        assert client.learn([body(k) for k in range(12)])[0] == 202
        client.wait_learned(12)

        def ask(temp):
            return client.ask("/predict", {"future": [{"time": at(12), "x": {"temp": temp}}]})

        (status, found), (_, most) = ask(1e9), ask(40)
        if outside == "refuse":
            said = "temp must be in -20.0 .. 40.0, got 1000000000.0"
            assert (status, found["detail"]) == (422, said)
        else:
            assert (found["forecasts"], found["n_outside"]) == (most["forecasts"], 1)
        assert most["n_outside"] == 0


def run(folder, samples, **options):
    """Give samples to a node of a folder, until they are learned; close it, or not."""

    async def story():
        node = made(folder, **options)
        await node.start()
        for each in samples:
            await node.intake.accept([node.format.sample(each)])
        await until(lambda: node.is_idle)
        state = state_of(node, with_digest=True)
        forecasts = node.forecast({})
        await node.close()
        return state, forecasts

    return asyncio.run(story())


def folder_of(parent, **changes):
    path = parent / "solo"
    path.mkdir(parents=True)
    write_config(path / "mesh.toml", config(**changes))
    return path


def test_it_goes_on_where_it_was_with_gaps_and_missing_values(tmp_path):
    """Times left out, labels and inputs missing; restarted in the middle: equal to the bit."""
    samples = [body(k) for k in range(N) if k not in range(20, 27)]
    samples[5] |= {"y": None}
    samples[9] |= {"x": {}}
    whole, restarted = folder_of(tmp_path / "a"), folder_of(tmp_path / "b")
    expected = run(whole, samples)
    run(restarted, samples[:30])
    found = run(restarted, samples[30:])
    assert found[1] == expected[1]
    assert found[0]["digest"] == expected[0]["digest"]
    assert found[0]["horizons"] == expected[0]["horizons"]
    # of 53 values one is missing; rows begin at tick 3, and a gap of 7 costs labels and forecasts
    scored = {h: each["n_scored"] for h, each in expected[0]["horizons"].items()}
    known = {k for k in range(N) if k not in range(20, 27) and k != 5}
    made_at = {k for k in range(3, N) if k not in range(20, 27)}
    assert scored == {str(h): len({k for k in known if k - h in made_at}) for h in HORIZONS}


def test_a_stream_of_before_1970_is_as_any_other(tmp_path):
    """As a sensor sends it whose clock begins anew at midnight of another time zone."""
    day, found = 86400, []
    for start in (-day, 50 * day):
        samples = [body(k, time=start + 3600 * k, id=None) for k in range(N)]
        folder = folder_of(tmp_path / str(start))
        run(folder, samples[:30])
        found.append(run(folder, samples[30:]))
    (early, earlier), (late, later) = found
    assert early["horizons"] == late["horizons"]
    assert early["horizons"]["3"]["n_scored"] == N - 6
    assert [each.prediction for each in earlier] == [each.prediction for each in later]
    assert earlier[0].time == "1970-01-02T12:00:00"


def test_a_clock_that_goes_back_is_refused_after_a_restart(tmp_path):
    """Also where all is learned, so that the log has nothing to say about the newest time."""
    folder = folder_of(tmp_path)
    run(folder, [body(k) for k in range(9)])
    for wrong in (8, 3):
        with pytest.raises(OrderError, match="time must be after 2026-01-01T08:00:00"):
            run(folder, [body(wrong, id="late")])
    state, forecasts = run(folder, [body(9)])
    assert (state["n_accepted"], state["n_learned"]) == (10, 10)
    assert forecasts[0].time == "2026-01-01T10:00:00"


def test_a_log_whose_times_go_back_stops_the_node(tmp_path):
    """It cannot learn such a sample, and must not go on as if it could."""

    async def story():
        node = made(folder_of(tmp_path))
        await node.start()
        items = [node.format.sample(body(k, id=None)) for k in (5, 4)]
        for number, item in enumerate(items, 1):
            node.backlog.log.append([item.entry])
            node.backlog.add(number, item.values, 0)
        node.intake._on_accepted()
        with pytest.raises(DataError, match="time must ascend, got 2026-01-01T04:00:00"):
            await asyncio.wait_for(node.wait(), DEADLINE)
        await node.close()

    asyncio.run(story())


def test_a_source_goes_on_after_a_sample_out_of_order(tmp_path):
    """As a topic does whose sensor sends a value again: it is logged, and the rest is taken."""
    folder = folder_of(tmp_path / "a")

    async def story():
        node = made(folder)
        await node.start()
        for ks in ([0, 1, 2], [1, 3], [3, 4], [4]):
            await accept(node, [node.format.sample(body(k, id=None)) for k in ks])
        found = node.backlog.log.last, dict(node.intake.rejected)
        await node.close()
        return found

    assert asyncio.run(story()) == (5, {"out of order": 3})


@pytest.mark.parametrize("n", [3, 4])
def test_a_horizon_beyond_a_file_is_told_and_the_file_is_taken(tmp_path, caplog, n):
    path, given = tmp_path / "short.csv", config()
    lines = [f"{at(k)},{value(k)},{k}" for k in range(n)]
    path.write_text("when,load,temp\n" + "\n".join(lines) + "\n")
    caplog.set_level(logging.INFO)
    replay = Replay(path, Format.of(given), form=Form(time=("when",)))
    assert len(replay.values) == n
    said = [each for each in caplog.records if each.getMessage() == "short file"]
    assert len(said) == (n == 3)
    for each in said:
        assert "horizon must be below the 3 steps of" in each.facts["text"]
        assert each.levelno == logging.WARNING


def test_inputs_known_ahead(tmp_path):
    forecasting = Forecasting((2,), lags=(1,), ahead=("temp",))
    folder = folder_of(tmp_path / "a", forecast=forecasting)

    async def story():
        node = made(folder)
        await node.start()
        await node.intake.accept([node.format.sample(body(k)) for k in range(N)])
        await until(lambda: node.is_idle)
        tick = node.backlog.rows.known.tick
        plain, warm = (
            node.forecast(given)[0].prediction for given in ({}, {tick + 2: {"temp": 30.0}})
        )
        await node.close()
        return plain, warm

    plain, warm = asyncio.run(story())
    assert plain != warm


def test_several_horizons_are_exchanged_between_nodes(tmp_path):

    names = ("north", "south")
    members = tuple(
        Member(n, Address("127.0.0.1", 21000 + k), Address("127.0.0.1", 22000 + k))
        for k, n in enumerate(names)
    )
    init_mesh(tmp_path / "mesh", config(members=members, edges=(names,)))

    async def story():
        hub, nodes = MemoryHub(), []
        for name in names:
            folder = open_folder(tmp_path / "mesh" / name)
            transport = MemoryTransport(hub, name, folder.neighbors)
            nodes.append(Node(folder, transport, save_pause=0.0))
        for node in nodes:
            await node.start()
        for k in range(20):
            for node in nodes:
                await node.intake.accept([node.format.sample(body(k))])
        await until(lambda: all(node.is_idle for node in nodes))
        states = [state_of(node) for node in nodes]
        exchanged = [[p.measures.edges[o].n_exchanged for p in n.protocols]
                     for n, o in zip(nodes, names[::-1], strict=True)]  # fmt: skip
        for node in nodes:
            await node.close()
        return states, exchanged

    states, exchanged = asyncio.run(story())
    assert all(n >= 14 for each in exchanged for n in each)
    assert [each["horizons"]["3"]["n_scored"] for each in states] == [14, 14]
