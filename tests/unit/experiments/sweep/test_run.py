"""Results are the same whoever ran the units; what was finished is never run again."""

import os
import signal

import numpy as np
import pytest

import domkl
from domkl import rng
from domkl.errors import DataError, ParameterError, WorkerError
from domkl.experiments.store import Store, code_of
from domkl.experiments.sweep import plan as planning
from domkl.experiments.sweep.plan import make_plan, run_unit
from domkl.experiments.sweep.run import complete, finished, sweep
from domkl.experiments.sweep.spec import read_spec
from domkl.experiments.workers import on_processes

TABLES = {
    "sweep": {"trials": 5, "seed": 3},
    "data": {"name": "traffic", "rounds": 15},
    "graphs": {"connect": [0.3, 0.6], "learners": 6},
    "algorithms": [{"name": "domkl", "rho": [0.5, 2]}, {"name": "last-value"}],
}


@pytest.fixture
def plan(monkeypatch):
    """Twelve units: two or three trials each."""
    monkeypatch.setattr(planning, "UNIT_COST", 2000.0)
    monkeypatch.setattr(planning, "cost_of", lambda *_: 700.0)
    return make_plan(read_spec(TABLES))


def same(table):
    """All but the time."""
    return {name: values for name, values in table.columns.items() if name != "seconds"}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Every trial by itself, as a user would run it."""
    made = domkl.load_set("traffic", scale="minmax")
    X, y = (values[:15] for values in domkl.deal(made.X, made.y, 6))
    found = []
    for connect in (0.3, 0.6):
        for algorithm in (domkl.DOMKL(rho=0.5), domkl.DOMKL(rho=2.0), domkl.LastValue(0)):
            for trial in range(5):
                graph = domkl.Graph.random(6, connect, seed=child("graph", trial))
                features = domkl.RandomFeatures.draw(
                    domkl.gaussian_bank(),
                    n_inputs=5,
                    n_frequencies=50,
                    seed=child("features", trial),
                )
                run = domkl.simulate(algorithm, X, y, graph, features)
                found.append((float(run.mse[-1]), float(run.cv[-1])))
    return found


def child(*names):
    return rng.child(3, *names)


def test_a_sweep_gives_what_its_trials_give_one_by_one(plan, tmp_path, expected):
    table = complete(plan, Store(tmp_path), workers=1)
    assert len(plan.units) == 12
    found = list(zip(table.columns["mse"], table.columns["cv"], strict=True))
    assert found == expected
    assert table.columns["trial"] == [0, 1, 2, 3, 4] * 6
    assert table.columns["rho"][::5] == [0.5, 2.0, None] * 2
    assert len(table) == 30


@pytest.mark.slow
def test_two_processes_give_what_one_gives(plan, tmp_path, expected):
    table = complete(plan, Store(tmp_path), workers=2)
    assert list(zip(table.columns["mse"], table.columns["cv"], strict=True)) == expected
    assert all(seconds > 0 for seconds in table.columns["seconds"])


def test_an_interrupted_sweep_goes_on_where_it_was(plan, tmp_path, expected):
    store, whole = Store(tmp_path), len(plan.units)

    def impatient(label, done, total):
        if label.startswith("5 of"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        complete(plan, store, workers=1, progress=impatient)
    kept, left = finished(plan, store)
    assert (len(kept), len(left)) == (5, whole - 5)
    ran, reports = [], []

    def counted(unit):
        ran.append(unit.key)
        return run_unit(unit)

    def progress(*report):
        reports.append(report)

    table = complete(plan, store, workers=1, run=counted, progress=progress)
    assert sorted(ran) == sorted(unit.key for unit in left)
    assert [label for label, _, _ in reports][-1] == "7 of 7 units"
    assert reports[-1][1] == pytest.approx(reports[-1][2])
    assert list(zip(table.columns["mse"], table.columns["cv"], strict=True)) == expected
    again = complete(plan, store, workers=1, run=lambda unit: pytest.fail("ran again"))
    assert again.columns == table.columns


def test_a_torn_file_is_run_again(plan, tmp_path):
    table = complete(plan, Store(tmp_path), workers=1)
    torn = tmp_path / f"{plan.units[3].key}.npz"
    torn.write_bytes(torn.read_bytes()[:50])
    ran = []

    def counted(unit):
        ran.append(unit)
        return run_unit(unit)

    assert same(complete(plan, Store(tmp_path), workers=1, run=counted)) == same(table)
    assert ran == [plan.units[3]]


def test_more_trials_keep_those_that_are_there(monkeypatch, tmp_path):
    monkeypatch.setattr(planning, "cost_of", lambda *_: planning.UNIT_COST / 2)
    few = TABLES | {"sweep": {"trials": 4}}
    complete(make_plan(read_spec(few)), Store(tmp_path), workers=1)
    more = make_plan(read_spec(TABLES | {"sweep": {"trials": 6}}))
    _, left = finished(more, Store(tmp_path))
    assert {unit.first for unit in left} == {4}


def test_an_error_in_a_unit_is_raised_and_what_is_finished_is_kept(plan, tmp_path):
    units = sorted(plan.units, key=lambda unit: -unit.cost)

    def failing(unit):
        if unit == units[2]:
            raise DataError("no more data")
        return run_unit(unit)

    with pytest.raises(DataError, match="no more data"):
        complete(plan, Store(tmp_path), workers=1, run=failing)
    assert len(finished(plan, Store(tmp_path))[0]) == 2


@pytest.mark.slow
def test_an_interrupt_does_not_reach_the_processes(plan, tmp_path):
    """A terminal sends Ctrl-C to them too; it is the parent's to say what then."""

    def interrupted(unit):
        os.kill(os.getpid(), signal.SIGINT)
        return {**run_unit(unit), "pid": np.array(os.getpid())}

    outcomes = list(on_processes(interrupted, plan.units[:4], 2))
    assert len(outcomes) == 4
    assert os.getpid() not in {int(kept["pid"]) for _, kept in outcomes}


@pytest.mark.slow
def test_a_killed_process_costs_nothing_but_its_unit(plan, tmp_path, expected):
    """The unit kills its process when it is run first: then it is run again elsewhere."""
    marker, victim = tmp_path / "marker", plan.units[4].key

    def deadly(unit):
        if unit.key == victim and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return run_unit(unit)

    table = complete(plan, Store(tmp_path / "units"), workers=2, run=deadly)
    assert marker.exists()
    assert list(zip(table.columns["mse"], table.columns["cv"], strict=True)) == expected


@pytest.mark.slow
def test_a_unit_that_always_kills_its_process_is_an_error(plan, tmp_path, expected):
    store, victim = Store(tmp_path), plan.units[-1].key

    def deadly(unit):
        if unit.key == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        return run_unit(unit)

    with pytest.raises(WorkerError, match=r"killed twice, .* what was finished is kept"):
        complete(plan, store, workers=2, run=deadly)
    table = complete(plan, store, workers=1)
    assert list(zip(table.columns["mse"], table.columns["cv"], strict=True)) == expected


def test_workers_with_other_code_are_refused(plan):
    unit = plan.units[0]
    object.__setattr__(unit, "code", "other " + code_of(unit.combination.algorithm))
    with pytest.raises(WorkerError, match="workers must run the same domkl"):
        run_unit(unit)


def test_data_that_change_are_refused(tmp_path):
    own = tmp_path / "own.csv"
    own.write_text("x,y\n" + "".join(f"{i},{i % 7}\n" for i in range(60)))
    plan = make_plan(read_spec({
        "data": {"csv": str(own), "target": "y"}, "graphs": {"learners": 4},
        "algorithms": {"name": "domkl"},
    }))  # fmt: skip
    own.write_text("x,y\n" + "".join(f"{i},{i % 5}\n" for i in range(60)))
    with pytest.raises(DataError, match=r"own.csv must not change while a sweep runs"):
        complete(plan, Store(tmp_path / "units"), workers=1)


def test_divergence_is_data(tmp_path):
    tables = TABLES | {"algorithms": {"name": "rff-domkl", "step": [0.5, 1e6]}, "graphs": {}}
    table = sweep(tables, out=tmp_path, workers=1)
    assert table.columns["diverged"] == [False] * 5 + [True] * 5
    json_ready = table.as_records()
    assert json_ready[1]["diverged"] == 5
    assert np.isfinite(json_ready[0]["mse"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers must be an integer >= 1, got 0"),
        ({"workers": 2, "cluster": "tcp://host:1"}, "workers and cluster exclude each other"),
    ],
)
def test_options_that_cannot_be(tmp_path, options, message):
    with pytest.raises(ParameterError, match=message):
        sweep(TABLES, out=tmp_path, **options)
