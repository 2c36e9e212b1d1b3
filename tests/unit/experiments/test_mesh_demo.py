"""What is made of a demonstration's record, of one that is made up and so known."""

from functools import cache

import numpy as np
import pytest

from domkl.experiments.mesh_demo import Plan, Record, as_records, as_table, write_figure
from domkl.mesh.config.file import MeshConfig
from domkl.mesh.config.settings import members_at
from domkl.mesh.config.topology import named_edges
from domkl.mesh.protocol.model import Range
from domkl.sim.simulate import simulate

PLAN = Plan(learners=4, rate=1.0, seconds=50.0)
MOMENTS = {"kill": 10.0, "restart": 20.0, "cut": 30.0, "heal": 40.0}
KILLED, CUT = PLAN.victims.values()


@cache
def _setting():
    target = Range("y", 0.0, 1.0)
    edges = named_edges("ring-with-chords", PLAN.names)
    config = MeshConfig(
        members_at(PLAN.names, ["127.0.0.1"]),
        edges,
        target,
        lags=2,
        kernels=(1.0,),
        n_frequencies=3,
    )
    rng = np.random.default_rng(0)
    x, y = rng.random((60, 4, 2)), rng.random((60, 4))
    model = config.model()
    run = simulate(model.algorithm, x, y, config.graph(), model.features, cv="off", threads=1)
    return config, x, y, np.concatenate([np.zeros((1, 4)), np.cumsum(run.squared_errors, axis=0)])


@pytest.fixture
def record():
    """A learner learns a sample a second as simulated; the killed one forgets five and is late."""
    config, x, y, sums = _setting()
    made = Record(PLAN, config, x, y, moments=dict(MOMENTS))
    made.noticed = {
        ("kill", "lost"): {"a": 0.01, "b": 0.02},
        ("kill", "down"): {"a": 4.0, "b": 4.2},
        ("cut", "lost"): {"a": 19.0},  # after it had healed
        ("cut", "down"): {"a": 4.1},
    }
    for t in range(1, 50):
        seen = np.full((4, 5), np.nan)
        for k, name in enumerate(PLAN.names):
            n = t if name != KILLED or t < 10 else t - 15
            if name == KILLED and 10 <= t < 20:
                continue
            worse = 0.1 * max(t - 30, 0) if name == CUT and t < 40 else 1.0 if name == CUT else 0.0
            seen[k, :2] = n, sums[n, k] + (worse if t >= 30 else 0.0)
            seen[k, 2] = 0 if name == CUT and 34 <= t < 42 else 3
            is_apart = (name == CUT and 30 <= t < 43) or (name == KILLED and t < 22)
            seen[k, 3:] = np.array([0.5, 0.5]) + 0.01 * k + (1.0 if is_apart else 0.0)
        made.times.append(t + 0.5)
        made.seen.append(seen)
    return made


def test_without_faults_errors_are_the_simulation(record):
    for group in record.groups.values():
        mesh, simulated = record.errors(group, 0.0, 10.0)
        assert mesh == pytest.approx(simulated, rel=1e-12)
    assert np.isnan(record.errors(record.groups[KILLED], 10.0, 20.0)).all()
    mesh, simulated = record.errors(
        record.groups[KILLED], 20.0, 50.0
    )  # what is learned again counts as it is
    assert mesh == pytest.approx(simulated, rel=1e-12)


def test_a_fault_shows(record):
    mesh, simulated = record.errors(record.groups[CUT], MOMENTS["cut"], MOMENTS["heal"])
    assert mesh == pytest.approx(simulated + 0.1 * 9 / 10, rel=0.01)
    kill, cut = as_records(record)["faults"]
    assert (kill["connection_lost_after"], kill["edges_closed_after"]) == (0.02, 4.2)
    assert (cut["connection_lost_after"], cut["edges_closed_after"]) == (None, 4.1)
    assert (kill["all_edges_open_after"], kill["agrees_after"]) == (0.5, 2.5)
    assert (cut["all_edges_open_after"], cut["agrees_after"]) == (2.5, 3.5)


def test_the_table_says_it(record):
    text = as_table(as_records(record))
    assert f"{KILLED} was killed for 10.0 s." in text
    assert (
        "lost the connection in 20 ms, went on without it, and closed their edges after 4.2" in text
    )
    assert f"{CUT} was cut off for 10.0 s." in text
    assert "saw no connection break" in text
    del record.distances  # computed above
    for seen in record.seen:
        seen[:, 2:] = np.nan
    assert "it had all its edges within (not seen)" in as_table(as_records(record))


def test_the_picture_is_drawn(record, tmp_path):
    write_figure(tmp_path / "a.png", record)
    assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
