"""Sweeps on a real Dask cluster of processes on this machine."""

import os
import signal
import socket
import threading

import pytest

distributed = pytest.importorskip("distributed")

from domkl.errors import DataError, ParameterError, WorkerError  # noqa: E402
from domkl.experiments import workers as backends  # noqa: E402
from domkl.experiments.store import Store  # noqa: E402
from domkl.experiments.sweep import plan as planning  # noqa: E402
from domkl.experiments.sweep.plan import make_plan, run_unit  # noqa: E402
from domkl.experiments.sweep.run import complete, finished, sweep  # noqa: E402
from domkl.experiments.sweep.spec import read_spec  # noqa: E402

TABLES = {
    "sweep": {"trials": 6},
    "data": {"name": "traffic", "rounds": 15},
    "algorithms": {"name": "domkl", "rho": [0.5, 2]},
}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes; on 127.0.0.1 alone."""
    options = {"dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"}
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, silence_logs=50, **options
    ) as made:
        yield made


@pytest.fixture
def plan(monkeypatch):
    """Six units of two trials."""
    monkeypatch.setattr(planning, "UNIT_COST", 2000.0)
    monkeypatch.setattr(planning, "cost_of", lambda *_: 1000.0)
    return make_plan(read_spec(TABLES))


def same(table):
    return {name: values for name, values in table.columns.items() if name != "seconds"}


def test_a_worker_killed_in_the_middle_costs_nothing(cluster, plan, tmp_path):
    expected = same(complete(plan, Store(tmp_path / "here"), workers=1))
    marker, victim = tmp_path / "marker", plan.units[2].key

    def deadly(unit):
        if unit.key == victim and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return run_unit(unit)

    store = Store(tmp_path / "there")
    table = complete(plan, store, cluster=cluster.scheduler_address, run=deadly)
    assert marker.exists()
    assert same(table) == expected
    assert len(finished(plan, store)[0]) == len(plan.units)


def test_the_active_client_is_used(cluster, tmp_path):
    with distributed.Client(cluster) as client:
        before = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)
        table = sweep(TABLES, out=tmp_path / "there")
        after = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)
        assert after > before
    assert same(table) == same(sweep(TABLES, out=tmp_path / "here", workers=1))


def test_a_unit_that_kills_every_worker_is_an_error(cluster, plan, tmp_path, monkeypatch):
    """joblib's Dask backend would wait for ever."""
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)  # 3: that many more to restart
    store, victim = Store(tmp_path), plan.units[-1].key

    def deadly(unit):
        if unit.key == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        return run_unit(unit)

    with pytest.raises(WorkerError, match=r"lost a unit for good: .*workers died"):
        complete(plan, store, cluster=cluster.scheduler_address, run=deadly)
    table = complete(plan, store, cluster=cluster.scheduler_address)
    assert len(table) == 12


def test_a_worker_without_the_data_says_so(cluster, plan, tmp_path):
    def unable(unit):
        raise DataError("no such file: own.csv")

    with pytest.raises(DataError, match=r"a worker of the cluster: no such file: .* shared"):
        complete(plan, Store(tmp_path), cluster=cluster.scheduler_address, run=unable)


def test_a_cluster_that_goes_away_is_an_error(plan, tmp_path):
    """The worker finishes one unit, and keeps the second until the cluster closes."""
    options = {"dashboard_address": "127.0.0.1:0", "host": "127.0.0.1", "silence_logs": 50}
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, **options)
    store, marker = Store(tmp_path / "units"), tmp_path / "marker"

    def only_one(unit):
        if marker.exists():
            threading.Event().wait()
        marker.touch()
        return run_unit(unit)

    def closing(label, done, total):
        if label.startswith("1 of"):
            cluster.close()

    address = cluster.scheduler_address
    with pytest.raises(WorkerError, match="what was finished is kept"):
        complete(plan, store, cluster=address, progress=closing, run=only_one)
    assert len(finished(plan, store)[0]) == 1


def test_nobody_at_the_address(tmp_path, monkeypatch):
    monkeypatch.setattr(backends, "CONNECT_SECONDS", 0.5)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets it
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(WorkerError, match=f"no answer from {address}: "):
            sweep(TABLES, out=tmp_path, cluster=address)


@pytest.mark.parametrize("wrong", ["nowhere://x:1", "tcp://127.0.0.1:port", "host", ""])
def test_what_is_no_address(tmp_path, wrong):
    with pytest.raises(ParameterError, match=f"cluster must be an address, .* got '{wrong}'"):
        sweep(TABLES, out=tmp_path, cluster=wrong)


def test_a_cluster_without_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(backends, "WORKER_SECONDS", 0.2)
    options = {"dashboard_address": "127.0.0.1:0", "host": "127.0.0.1", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=0, **options) as empty:
        address = empty.scheduler_address
        with pytest.raises(WorkerError, match="must have at least one worker"):
            sweep(TABLES, out=tmp_path, cluster=address)
