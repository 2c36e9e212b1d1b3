"""What is said after each sample, in the target's units."""

import asyncio

import pytest
from mesh_node import made, prepared, sample, solo_config, solo_folder, until

import domkl
from domkl.mesh.config.file import write_config
from domkl.mesh.config.settings import Forecasting
from domkl.mesh.node.sources import accept
from domkl.mesh.protocol.model import Range


def told(folder, feed, at_end=lambda node: None):
    """All that a node says while it learns, by number; and what it says at the end."""

    async def story():
        node, found = made(folder), {}

        def listen(number, content):
            assert number not in found
            assert content["number"] == number
            found[number] = content

        node.outgoing.listeners.append(listen)
        await node.start()
        await feed(node)
        await until(lambda: node.is_idle)
        last = at_end(node)
        await node.close()
        return found, last

    return asyncio.run(story())


def test_a_sample_is_predicted_before_its_label_is_used(tmp_path):
    async def feed(node):
        unlabelled = node.format.sample({"x": [1, 0], "y": None})
        await accept(node, [*prepared(node, range(5)), unlabelled])

    folder = solo_folder(tmp_path, algorithm=domkl.DOMKRLS(), kernels="default")
    found, _ = told(folder, feed)
    assert list(found) == [1, 2, 3, 4, 5, 6]
    assert found[3]["y"] == pytest.approx(sample(2)["y"])
    assert found[6]["y"] is None
    assert all(each["learner"] == "solo" and each["target"] == "load" for each in found.values())
    assert 0 < found[6]["deviation"] < 100
    quantiles = found[6]["quantiles"]
    assert quantiles["0.025"] < found[6]["prediction"] < quantiles["0.975"]
    again, _ = told(solo_folder(tmp_path, "other", algorithm=domkl.DOMKRLS(), kernels="default"),
                    lambda node: accept(node, prepared(node, [0, 1, 7])))  # fmt: skip
    assert again[2]["prediction"] == found[2]["prediction"]  # another stream after it


def test_a_series_says_what_comes_next(tmp_path):
    async def feed(node):
        for k in range(6):
            await accept(node, [node.format.sample({"value": 10.0 + k % 3})])
            await until(lambda: node.is_idle)

    folder = solo_folder(tmp_path, lags=2)
    found, last = told(folder, feed, lambda node: node.predict(node.backlog.newest_lags()))
    assert list(found) == [3, 4, 5, 6]  # before, there were lags only
    assert found[6]["prediction"] == last[0]
    assert "y" not in found[6]


def test_all_horizons_are_said_together_as_on_request(tmp_path):
    forecast = Forecasting((1, 3), lags=(1, 2), season="6h")
    config = solo_config(
        target=Range("load", 0.0, 100.0), inputs=(), forecast=forecast,
        algorithm=domkl.DOMKRLS(), kernels=(0.1, 1.0),
    )  # fmt: skip
    (tmp_path / "solo").mkdir()
    write_config(tmp_path / "solo" / "mesh.toml", config)

    async def feed(node):
        for k in range(8):
            given = {"time": f"2026-01-01T{k:02}:00", "load": 40 + k}
            await accept(node, [node.format.sample(given)])
            await until(lambda: node.is_idle)

    found, last = told(tmp_path / "solo", feed, lambda node: node.forecast({}))
    assert sorted(found) == list(range(2, 9))  # after the first there is no second lag
    assert found[8]["time"] == "2026-01-01T07:00:00"
    assert found[8]["forecasts"] == [each._asdict() for each in last]
    assert [each["time"] for each in found[8]["forecasts"]] == [
        "2026-01-01T08:00:00", "2026-01-01T10:00:00"
    ]  # fmt: skip
