"""The rungs, one by one."""

import pytest

from domkl.mesh.operate.verdict import RUNGS, is_stale, verdict_of, window_of

EMPTY = {"n": 0, "rmse": None, "rmse_alone": None, "rmse_last_value": None}


def errors(n, rmse, alone, last):
    return {"n": n, "rmse": rmse, "rmse_alone": alone, "rmse_last_value": last}


def state(recent=EMPTY, age=1.0, n_open=2, n_edges=2, **more):
    edges = {f"n{k}": {"is_open": k < n_open} for k in range(n_edges)}
    names = ("hour", "day", "week", "last 100", "last 1000")
    return {
        "is_ready": True, "neighbors": edges, "sample_age": age, "target": "kW",
        "recent": {"1": dict.fromkeys(names, recent)},
    } | more  # fmt: skip


@pytest.mark.parametrize(
    ("given", "word", "says"),
    [
        (None, "down", "it does not answer"),
        (state(is_ready=False), "starting", "it is starting or stopping"),
        (state(n_open=0), "up", "it exchanges nothing: none of its 2 neighbors is heard"),
        (state(age=None), "exchanging", "it has had no sample yet"),
        (state(age=None, n_open=0, n_edges=0), "up", "it has had no sample yet"),
        (state(errors(12, 1, 2, 3)), "exchanging", "too early to tell: 12 samples"),
        (state(errors(500, 1, 2, 3), age=86400.0), "exchanging", "no sample for 24 h"),
        (state(errors(12, 1, 2, 3), n_learned=300, n_doubted=4), "exchanging",
         "too early to tell: 12 samples; 4 samples not believed"),
        (state(errors(12, 1, 2, 3), n_learned=300, n_doubted=3), "exchanging",
         "too early to tell: 12 samples"),
        (state(errors(500, 4, 2, 3)), "exchanging",
         "last hour: it errs by 4 kW, the last value by 3"),
        (state(errors(500, 2, None, 3)), "learning",
         "last hour: it errs by 2 kW, the last value by 3"),
        (state(errors(500, 2.2, 2, 3)), "learning",
         "last hour: it errs by 2.2 kW, the last value by 3, alone by 2: the network costs 10.0 %"),
        (state(errors(500, 1.5, 2, 3), n_open=1), "worth it",
         "last hour: it errs by 1.5 kW, the last value by 3, alone by 2: the network saves 25.0 %"
         "; 1 of 2 edges silent"),
    ],
)  # fmt: skip
def test_the_rungs(given, word, says):
    found = verdict_of(given)
    assert (found.word, found.says) == (word, says)
    assert word in RUNGS
    claims = (found.is_up, found.exchanges, found.learns, found.is_worth_it)
    first_no = claims.index(False) if False in claims else 4
    assert True not in claims[first_no:]  # no rung above one that is missing


def test_the_window_is_the_shortest_that_tells():
    recent = {"1": {"hour": errors(99, 1, 1, 1), "day": errors(100, 2, 2, 2)}}
    assert window_of({"recent": recent}) == ("day", recent["1"]["day"])
    assert window_of({}) == ("last 1000", {})


def test_a_sensor_has_stopped_when_ten_of_its_samples_are_missing():
    hourly = {"1": {"week": errors(168, 1, 1, 1)}}
    assert not is_stale({"recent": hourly, "sample_age": 9 * 3600.0})
    assert is_stale({"recent": hourly, "sample_age": 11 * 3600.0})
    often = {"1": {"hour": errors(3600, 1, 1, 1)}}
    assert not is_stale({"recent": often, "sample_age": 59.0})
    assert is_stale({"recent": often, "sample_age": 61.0})
    assert not is_stale({"recent": {}, "sample_age": 1e9})
