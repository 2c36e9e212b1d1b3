"""The case study of real nodes: its tasks on small streams, its verdicts on made-up outcomes."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import domkl
from domkl.cli.main import main
from domkl.data.forecast import Prepared
from domkl.experiments import figures
from domkl.experiments.compare import draw_graphs
from domkl.experiments.figures import Figure, Map, Panel
from domkl.experiments.options import Setting
from domkl.experiments.reproduce import case_studies
from domkl.experiments.reproduce.document import Section
from domkl.experiments.reproduce.session import Session
from domkl.experiments.rivals import installed
from domkl.experiments.store import Store

case_studies()  # so that they can be imported

from studies import day_ahead, homes, newcomer, parking, stations  # noqa: E402
from studies.nodes import (  # noqa: E402
    Nodes,
    network_gaps,
    newcomer_gaps,
    node_errors,
    node_rival,
    rmse,
)

SETTING = Setting(
    n_learners=3, connection=None, topology="nearest", n_trials=2, n_frequencies=5, seed=2
)
HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be checked here"


def prepared(horizon=1, n_rounds=80, n_nodes=3, **facts):
    """Streams of nodes whose labels follow from their inputs, one of them missing."""
    rng = np.random.default_rng(horizon)
    X = rng.random((n_rounds, n_nodes, 2))
    y = X[..., 0] + np.sin(3 * X[..., 1])
    y[5, 1] = np.nan
    own = {
        "horizon": horizon, "target_divisor": 10.0, "target_offset": 0.0, "first_tick": 23,
        "first_time": "2015-09-01 00:00:00", "last_time": "2016-02-29 23:00:00", "ticks": n_rounds,
    }  # fmt: skip
    places = np.array([[0.0, 0.0], [1.0, 0.5], [2.0, 5.0]])[:n_nodes]
    names = tuple(f"node {k}" for k in range(n_nodes))
    return Prepared(
        "made", X, y, False, ("a", "b"), own | facts, "", names, places, 0, "nearest"
    )  # fmt: skip


def silent(share):
    pass


@pytest.fixture
def session(tmp_path):
    return Session(SETTING, Store(tmp_path / "units"))


# ---- tasks


@pytest.mark.parametrize("horizon", [1, 4])
def test_gaps_are_those_of_simulate_with_labels_in_time(horizon):
    data = prepared(horizon)
    learner = domkl.DOMKRLS(newest_lag=0)
    found = network_gaps(silent, Nodes.of(data), learner, SETTING, True, False)
    graph = domkl.Graph.nearest(data.places, 2)
    maps = [
        domkl.RandomFeatures.draw(
            domkl.default_bank(), 2, 5, seed=domkl.rng.child(2, "features", b)
        )
        for b in range(2)
    ]
    run = domkl.simulate(
        domkl.DOMKRLS(newest_lag=0), data.X, data.y, graph, maps, delay=horizon - 1, deviation=True
    )
    np.testing.assert_array_equal(found["gaps"], 10 * (run.predictions - data.y))
    np.testing.assert_array_equal(found["deviation"], 10 * run.deviation)
    assert np.isnan(found["gaps"][:, 5, 1]).all()


def test_what_changes_the_outcome_changes_the_key(session, tmp_path):
    data, store = prepared(), session.store
    base = node_errors(session, data, "domkl")
    threaded = Session(replace(SETTING, threads=1), store)
    assert base.key == node_errors(threaded, data, "domkl").key
    others = [
        node_errors(session, prepared(4), "domkl"),
        node_errors(session, data, "domkl", rho=3.0),
        node_errors(session, data._replace(graph="ring"), "domkl"),
        node_errors(session, data, "domkl", has_predictions=True),
        node_errors(Session(replace(SETTING, seed=3), store), data, "domkl"),
    ]
    assert len({task.key for task in (base, *others)}) == 6


@pytest.mark.skipif(installed("river") is None, reason="river is not installed")
def test_a_rival_does_not_know_a_label_before_its_time():
    """Labels from round t on can change no prediction before round t + horizon."""
    data = prepared(4, n_rounds=30)
    changed = data._replace(y=data.y.copy())
    changed.y[10:] += 5.0
    one, two = (
        node_rival(each, "river linear", is_pooled=True).compute()["gaps"][0] / 10 + each.y
        for each in (data, changed)
    )
    np.testing.assert_allclose(one[:14], two[:14], equal_nan=True)
    assert not np.allclose(one[14:], two[14:], equal_nan=True)


LEARNER = domkl.DOMKRLS(newest_lag=0)


def joined(nodes):
    return newcomer_gaps(silent, nodes, LEARNER, SETTING, joins=(30, 45), n_rounds=20)


@pytest.fixture(scope="module")
def joining():
    nodes = Nodes.of(prepared(4))
    return nodes, joined(nodes)


def test_a_newcomer_meets_a_network_that_learned_without_it(joining):
    nodes, found = joining
    before = nodes.X.copy(), nodes.y.copy()
    before[0][:30, 2], before[1][:30, 2] = np.nan, np.nan
    features = domkl.RandomFeatures.draw(
        domkl.default_bank(), 2, 5, seed=domkl.rng.child(2, "features", 0)
    )
    without = domkl.Graph.from_edges(3, [(0, 1)])
    given = {"delay": 3, "cv": "off"}
    first = domkl.simulate(LEARNER, before[0][:30], before[1][:30], without, features, **given)
    graph = draw_graphs(SETTING, nodes.places)[0]
    then = domkl.simulate(
        LEARNER, nodes.X[30:50], nodes.y[30:50], graph, features, state=first.state, **given
    )
    expected = 10 * (then.predictions - nodes.y[30:50])[:, 2]
    np.testing.assert_array_equal(found["joined"][0, 2], expected)


def test_what_a_newcomer_measured_before_does_not_matter(joining):
    """What node 2 saw before round 30 changes nothing for it, and much for the others."""
    nodes, found = joining
    changed = replace(nodes, X=nodes.X.copy(), y=nodes.y.copy())
    changed.X[:30, 2] += 1.0
    changed.y[:30, 2] -= 1.0
    other = joined(changed)
    np.testing.assert_array_equal(other["joined"][0, 2], found["joined"][0, 2])
    assert not np.array_equal(other["joined"][0, 0], found["joined"][0, 0])
    np.testing.assert_array_equal(other["alone"], found["alone"])


# ---- sections


class MadeUp(Session):
    """A session with streams of zeros, whose results are what ``rule`` says of a task."""

    def __init__(self, folder, rule, names=(stations.AIR, homes.HOMES)):
        super().__init__(Setting(n_trials=2), Store(folder))
        self.rule, self.names = rule, names

    def available(self, names):
        for name in set(names) - set(self.names):
            self.missing[name] = "not there"
        return [name for name in names if name in self.names]

    def once(self, key, make):
        name, options = key[0], dict(key[1:])
        default = "1,4" if name == parking.PARKING else "1"
        horizons = map(int, str(options.get("horizon", default)).split(","))
        return super().once(key, lambda: {h: prepared(h, n_rounds=4344) for h in horizons})

    def __getitem__(self, task):
        return self.rule(task)


def constant(sizes):
    """Gaps of a constant size by name, (2, T, 3)."""

    def rule(task):
        if task.function is newcomer_gaps:
            shape = (len(task.arguments["joins"]), 3, task.arguments["n_rounds"])
            size = np.max(sizes["domkrls"])
            return {"joined": np.full(shape, size), "alone": np.full(shape, 3.0)}
        size = np.asarray(sizes.get(task.label.rpartition(", ")[2], 5.0))
        gaps = np.broadcast_to(size, (2, 4344, 3)).copy()
        made = {"gaps": gaps, "predictions": gaps + 1}
        return made | {"deviation": np.full(gaps.shape, sizes.get("deviation", 1.0))}

    return rule


def verdicts(*sections):
    return {claim.id: claim.verdict for made in sections for claim in made.claims}


ALL = (stations, newcomer, day_ahead, homes, parking)


def made(folder, sizes, **given):
    session = MadeUp(folder, constant(sizes), **given)
    return session, [each.section(session) for each in ALL]


def test_all_claims_hold_where_the_network_is_best(tmp_path, monkeypatch):
    monkeypatch.setattr(day_ahead, "LOW", 0.0)
    _, sections = made(tmp_path, {"domkrls": 1.0, "domkrls-alone": 2.0, "deviation": 0.1})
    assert set(verdicts(*sections).values()) == {HOLDS}


def test_all_claims_fail_where_it_is_worst(tmp_path):
    _, sections = made(tmp_path, {"domkrls": 9.0, "domkrls-alone": 2.0})
    assert set(verdicts(*sections).values()) == {FAILS}


def test_one_station_that_loses_is_named(tmp_path):
    _, sections = made(tmp_path, {"domkrls": [1.0, 1.0, 2.5], "domkrls-alone": 2.0})
    claim = next(claim for claim in sections[0].claims if claim.id == "air-network")
    assert claim.verdict == FAILS
    assert "1 h: -25.0 to +50.0 %, median +50.0 % (no gain: node 2)" in claim.evidence


def test_without_the_fetched_sets_only_the_car_parks_are_left(tmp_path):
    session, sections = made(tmp_path, {"domkrls": 1.0}, names=())
    found = verdicts(*sections)
    assert (found.pop("parking"), found.pop("parking-day")) == (HOLDS, HOLDS)
    assert set(found.values()) == {OPEN}
    assert [bool(each.runs(session)) for each in ALL] == [False, False, False, False, True]


def test_the_tables_have_what_the_outcomes_say(tmp_path):
    _, sections = made(tmp_path, {"domkrls": 1.0, "domkrls-alone": 2.0, "last-value": 4.0})
    errors, periods = sections[0].tables
    row = next(row for row in errors.rows if row[0] == "last-value")
    assert row[1:] == [4.0] * 6
    assert [row[1:3] for row in periods.rows] == [[50.0, 3]] * 4
    joined = sections[1].tables[0]
    assert joined.rows[0] == ["1 h ahead, first day", 1.0, 3.0, 4.0, "9 of 9"]
    assert len(joined.rows) == 6
    for section in sections:
        assert isinstance(section, Section)
        section.as_json()  # nothing in it that JSON does not hold


def test_a_band_covers_what_it_says():
    """Of 20000 normal gaps; a share beyond 1.5 % happens once in 10^4 at most."""
    gaps = np.random.default_rng(0).normal(0, 2, (1, 20000, 1))
    found = {"gaps": gaps, "deviation": np.full(gaps.shape, 2.0)}
    for level in day_ahead.LEVELS:
        assert np.nanmean(day_ahead.covered(found, level)) == pytest.approx(level, abs=0.015)
    found["gaps"][0, :5] = np.nan
    assert np.isnan(day_ahead.covered(found)).sum() == 5


def test_no_label_of_a_fetched_set_is_in_the_report(tmp_path):
    """Figures of the stations have errors and shares; the car parks alone show measured values."""
    _, sections = made(tmp_path, {"domkrls": 1.0, "domkrls-alone": 2.0})
    names = {
        line.name
        for section in sections[:4]
        for figure in section.figures
        for panel in figure.panels
        for line in panel.lines
    }
    assert names == {"domkrls", "domkrls-alone", "last-value", "as it should be"} | {
        f"{h} h ahead" for h in stations.HORIZONS
    }


def test_a_map_is_drawn():
    places = Map("a", "gain, %", ["x", "y", "z"], [0, 1, 1], [0, 5, 5.1], [1, -2, 0.5], [[0, 1]])
    figure = Section("s", "S", figures=[Figure("map", "A map.", [places, places])]).as_json()
    svg = figures.draw(figure["figures"][0], "svg")
    assert svg.startswith(b"<?xml")
    assert svg == figures.draw(figure["figures"][0], "svg")


def test_maps_and_curves_stand_in_one_figure():
    places = Map("a", "gain, %", ["x", "y"], [0, 1], [0, 5], [1, -2], [[0, 1]])
    figure = Figure("both", "Both.", [places, Panel("b", "x", "y", [])], panel_size=(3.0, 3.0))
    made = Section("s", "S", figures=[figure]).as_json()["figures"][0]
    assert figures.draw(made, "png")[:4] == b"\x89PNG"


def test_names_on_a_map_are_moved_apart():
    moved = figures._spread(np.array([0.0, 0.1, 5.0]), 1.0)
    np.testing.assert_allclose(moved, [0.0, 1.0, 5.0])


def test_errors_leave_missing_labels_out():
    assert rmse(np.array([[3.0, np.nan], [4.0, 0.0]]), 0).tolist() == [12.5**0.5, 0.0]
    assert np.isnan(rmse(np.array([[np.nan], [np.nan]]), 0))  # a node without any label


# ---- the command


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, and no data sets but the shipped ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOMKL_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_case_studies_take_any_number_of_trials(here, capsys):
    assert main(["reproduce", "stations", "--trials", "0"]) == 2
    assert capsys.readouterr().err == "domkl: error: trials must be >= 1, got 0\n"
    Path("taken").write_text("")
    assert main(["reproduce", "stations", "--trials", "1", "--out", "taken"]) == 2
    assert "out must be a folder" in capsys.readouterr().err  # the trials were accepted


@pytest.mark.slow
def test_the_command_in_a_clone_on_what_ships(here, capsys, monkeypatch):
    """The car parks need no fetched data; what the other sets would show is marked."""
    monkeypatch.setattr(parking, "QUICK_ROWS", "600")
    assert main(["reproduce", "stations", "--quick"]) == 0
    out, err = capsys.readouterr()
    assert "beijing-air is missing" in err
    assert "7 cannot be checked. A quick run" in out
    folder = Path("domkl-out/reproduce-001")
    document = json.loads((folder / "results.json").read_text())
    assert (document["part"], document["trials"]) == ("stations", 2)
    assert [data["name"] for data in document["data"]] == ["parking"]
    table = document["sections"][-1]["tables"][0]
    rows = {row[0]: row[1:] for row in table["rows"]}
    assert rows["domkrls"][0] < rows["last-value"][0]
    assert (folder / "figures/day-ahead.png").exists()
    page = (folder / "report.html").read_text()
    assert "What a network gains for real nodes" in page
    assert "not in the paper" not in page
