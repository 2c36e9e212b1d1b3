"""Files that version 0.1 wrote are read, and what goes on from them comes to the same numbers.

tests/data/v0.1 holds files of 0.1 and, as JSON, what 0.1 said of them; write.py there tells how
they were made. On the machine that wrote them numbers are compared to the bit. Elsewhere sums are
rounded in another order (vector registers are wider or narrower): there 1e-9 is enough, and 1e-5
where the state is float32.

DOMKRLS has another form since: from a state of 0.1 it takes the fits and their curvature, and
begins its accounts anew. Of the wire only the version differs, and what a DOMKRLS learner says.
"""

import asyncio
import json
import secrets
import shutil
import tomllib
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mesh_node import made as made_node
from mesh_node import until
from old_files import OldFiles

import domkl
from domkl.estimators import river, sklearn
from domkl.mesh.config.file import read_config, write_config
from domkl.mesh.config.settings import Member
from domkl.mesh.node.telemetry import digest
from domkl.mesh.protocol import events
from domkl.mesh.protocol.bounds import UNLIMITED
from domkl.mesh.protocol.events import Timing
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.protocol.wire import VERSION, decode, encode
from domkl.mesh.store import wal
from domkl.mesh.store.checkpoint import Checkpoints, next_epoch
from domkl.mesh.transports.base import Address
from domkl.sim.sharded import simulate_sharded

FILES = OldFiles("0.1")
FOLDER, IS_WRITER, said, same = FILES.folder, FILES.is_writer, FILES.said, FILES.same
SALT, EPOCH, SEGMENT = 123456789, 1_700_000_000_000, 300  # as write.py has them


def contents(path):
    """Header and arrays of a stored learner or checkpoint, with the types of the arrays."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = dict(stored)
    header = json.loads(arrays.pop("header").tobytes())
    return header, {name: (v.dtype.str, v.tolist()) for name, v in arrays.items()}


def samples(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) + 0.5 * X[:, -1]


X, Y = samples(90)
LEARNERS = said("learners")
PLAIN = [
    name for name in LEARNERS if not name.startswith(("sklearn", "river", "domkrls", "kernels"))
]
FIRST_FORM = {
    "domkrls-early": domkl.Learner,
    "domkrls-later": domkl.Learner,
    "domkrls-forget-early": domkl.Learner,
    "domkrls-forget-later": domkl.Learner,
    "kernels": domkl.Learner,
    "sklearn-classifier": sklearn.OnlineKernelClassifier,
    "river-regressor": river.OnlineKernelRegressor,
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_learner_goes_on(name, tmp_path):
    expected = LEARNERS[name]
    path = FOLDER / "learners" / f"{name}.npz"
    learner = domkl.Learner.load(path)
    assert learner.n_seen == expected["n_seen"]
    assert learner.algorithm == eval(expected["algorithm"], vars(domkl))
    same(learner.predict(X[80:]), expected["predictions"])
    if "deviations" in expected:
        same(learner.deviation(X[80:]), expected["deviations"])
    learner.save(tmp_path / "again.npz")
    again, before = contents(tmp_path / "again.npz"), contents(path)
    if name.startswith("linear-rls"):
        before[0]["algorithm"]["fields"]["forget"] = 1.0  # which 0.1 did not have
    assert again == before
    learner.learn(X[70:80], Y[70:80])
    same(learner.predict(X[80:]), expected["later"])


def has_first_form(state, stored):
    """Whether a state has the fits and the curvature of these arrays of version 0.1."""
    n_fits = state.own.shape[1]
    for kernel in range(n_fits - 1):
        fits = [kernel] if kernel < n_fits - 2 else [kernel, kernel + 1]
        for name in ("own", "diagonal", "factor"):
            for fit in fits:
                values = getattr(state, name)[:, fit]
                np.testing.assert_array_equal(values, stored[f"state.{name}"][:, kernel])
    n = state.counts[:, 0, None, None]
    expected = stored["state.theta"][:, 0::2][:, : n_fits // 2]
    first = state.sums[:, 0 : n_fits - 2 : 2]
    if state.own_counts[0, 0] > 0:
        np.testing.assert_allclose(first / n, expected[:, : first.shape[1]], rtol=1e-6, atol=1e-12)
    for side in range(2):  # in the network, and alone
        np.testing.assert_array_equal(state.loss[:, side, :-1], stored["state.loss"])
        np.testing.assert_array_equal(state.rounds[:, side], stored["state.rounds"])
    np.testing.assert_array_equal(state.counts, state.own_counts)
    assert not state.own_rounds.any()


@pytest.mark.parametrize("name", FIRST_FORM)
def test_the_fits_of_the_first_form_go_on(name, tmp_path):
    path = FOLDER / "learners" / f"{name}.npz"
    made = FIRST_FORM[name].load(path)
    learner = getattr(made, "learner", getattr(made, "learner_", made))
    with np.load(path, allow_pickle=False) as stored:
        has_first_form(learner.state, stored)
    assert learner.n_seen == LEARNERS[name].get("n_seen", learner.n_seen)
    made.save(tmp_path / "again.npz")
    again = FIRST_FORM[name].load(tmp_path / "again.npz")
    same_again = getattr(again, "learner", getattr(again, "learner_", again))
    for field, values in learner.state._asdict().items():
        np.testing.assert_array_equal(getattr(same_again.state, field), values)


def test_what_goes_on_from_the_first_form_is_as_good_as_it_was():
    learner = domkl.Learner.load(FOLDER / "learners" / "domkrls-later.npz")
    before = np.mean((np.array(LEARNERS["domkrls-later"]["later"]) - Y[80:]) ** 2)
    learner.learn(X[70:80], Y[70:80])
    assert np.mean((learner.predict(X[80:]) - Y[80:]) ** 2) < 2 * before + 1e-6


def test_a_scikit_learn_regressor_goes_on(tmp_path):
    expected, path = LEARNERS["sklearn-regressor"], FOLDER / "learners" / "sklearn-regressor.npz"
    frame = pd.DataFrame(X, columns=["a", "b"])
    made = sklearn.OnlineKernelRegressor.load(path)
    assert list(made.feature_names_in_) == expected["names"]
    later = ("forget", "ridge", "newest_lag", "steps_ahead", "period")  # that 0.1 did not have
    params = made.get_params()
    assert [params.pop(name) for name in later] == [None] * 5
    assert repr(params) == expected["params"]
    same(made.predict(frame[80:]), expected["predictions"])
    made.save(tmp_path / "again.npz")
    assert contents(tmp_path / "again.npz") == contents(path)
    made.partial_fit(frame[70:80], Y[70:80])
    same(made.predict(frame[80:]), expected["later"])


def named(row):
    return dict(zip(("a", "b"), row.tolist(), strict=True))


def test_a_river_classifier_goes_on(tmp_path):
    expected, path = LEARNERS["river-classifier"], FOLDER / "learners" / "river-classifier.npz"
    made = river.OnlineKernelClassifier.load(path)
    same([made.predict_proba_one(named(row))[True] for row in X[80:]], expected["predictions"])
    made.save(tmp_path / "again.npz")
    assert contents(tmp_path / "again.npz") == contents(path)
    for row, y in zip(X[70:80], Y[70:80], strict=True):
        made.learn_one(named(row), bool(y > 0))
    same([made.predict_proba_one(named(row))[True] for row in X[80:]], expected["later"])


ALGORITHMS = {
    "domkl": domkl.DOMKL(),
    "domkrls": domkl.DOMKRLS(),
    "dokl": domkl.DOKL(),
    "comkl": domkl.COMKL(),
    "rff-dokl": domkl.RFFDOKL(),
    "rff-domkl": domkl.RFFDOMKL(),
    "alone": domkl.Alone(domkl.DOMKL()),
    "last-value": domkl.LastValue(),
    "linear-rls": domkl.LinearRLS(),
    "domkl-huber": domkl.DOMKL(rho=0.5, loss=domkl.Huber(0.2)),
    "domkrls-forget": domkl.DOMKRLS(forget=0.99, ridge=0.01),
    "rff-domkl-pinball": domkl.RFFDOMKL(step=0.1, loss=domkl.Pinball(0.3)),
    "domkl-message-passing": domkl.DOMKL(weights="message-passing"),
    "message-passing": domkl.DOMKL(weights="message-passing"),
}
STATES = said("states")


def features_for(algorithm, seed):
    bank = domkl.gaussian_bank([1.0] if algorithm.single_kernel else [0.5, 5.0])
    return domkl.RandomFeatures.draw(bank, 2, 2, seed=seed)


def network(n_rounds, seed=5):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n_rounds, 3, 2))
    return X, X[..., 0] * np.sin(4 * X[..., 1])


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize("name", [name for name in STATES if not name.startswith("domkrls")])
def test_a_run_goes_on_from_its_state(name, interpreted):
    kind, dtype = name.rsplit("-", 1)
    algorithm = ALGORITHMS[kind]
    X, y = network(12)
    given = {
        "graph": domkl.Graph.path(3), "features": features_for(algorithm, seed=2), "dtype": dtype,
        "interpreted": interpreted,
    }  # fmt: skip
    template = domkl.simulate(algorithm, X[:1], y[:1], **given).state
    with np.load(FOLDER / "states" / f"{name}.npz") as stored:
        state = type(template)(**stored)
    run = domkl.simulate(algorithm, X[8:], y[8:], **given, state=state)
    tolerance = 1e-5 if dtype == "float32" else 1e-9
    same(run.predictions, STATES[name]["predictions"], tolerance)
    same(run.cv, STATES[name]["cv"], tolerance)
    assert list(run.state._fields) == list(STATES[name]["state"])
    for field, values in STATES[name]["state"].items():
        same(getattr(run.state, field), values, tolerance)


@pytest.mark.parametrize("name", said("mpi"))
def test_ranks_go_on_from_their_folder(name, tmp_path):
    from mpi4py import MPI

    shutil.copytree(FOLDER / "mpi" / name, tmp_path / name)
    X, y = network(12)
    done = []
    run = simulate_sharded(
        ALGORITHMS[name], X, y, domkl.Graph.ring(3), features_for(ALGORITHMS[name], seed=2),
        comm=MPI.COMM_SELF, cv="moments", every=4, folder=tmp_path / name, progress=done.append,
    )  # fmt: skip
    assert done[0] == 9  # not from the beginning
    if name == "domkrls":
        before = said("mpi")[name]["mse"]
        same(run.mse[:8], before[:8])
        now, then = (12 * mse[-1] - 8 * mse[7] for mse in (run.mse, before))  # of the rounds since
        assert now < 2 * then  # its accounts begin anew
    else:
        for curve, values in said("mpi")[name].items():
            same(getattr(run, curve), values)
    assert [path.name for path in (tmp_path / name).iterdir()] == ["rank0of1-12.npz"]
    with (
        np.load(tmp_path / name / "rank0of1-12.npz") as new,
        np.load(FOLDER / "mpi" / name / "rank0of1-8.npz") as old,
    ):
        assert name == "domkrls" or new.files == old.files
        assert str(new["fingerprint"]) == str(old["fingerprint"])


def plain(value):
    """A setting as JSON has it."""
    if isinstance(value, Member):
        return [value.name, str(value.address), str(value.http)]
    if isinstance(value, Range):
        return [value.name, value.low, value.high]
    if isinstance(value, Timing):
        return value._asdict()
    if isinstance(value, (domkl.Algorithm, Address)):
        return repr(value) if isinstance(value, domkl.Algorithm) else str(value)
    return [plain(each) for each in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize("name", said("mesh"))
def test_a_mesh_file_says_the_same(name, tmp_path):
    expected, path = said("mesh")[name], FOLDER / "mesh" / f"{name}.toml"
    config = read_config(path)
    found = {f.name: plain(getattr(config, f.name)) for f in fields(config)}
    later = {"delay": 0, "forecast": None, "guard": True}  # that 0.1 did not have
    assert found == expected["config"] | later
    near = {each: list(config.neighbors(each)) for each in config.names}
    assert near == expected["neighbors"]
    assert dict(config.model().parts) == expected["parts"]
    assert config.model().fingerprint.hex() == expected["fingerprint"]
    write_config(tmp_path / "mesh.toml", config)
    written = tomllib.loads((tmp_path / "mesh.toml").read_text())
    if name != "by-hand":  # that one leaves out what has a default
        assert written == tomllib.loads(path.read_text())
    assert read_config(tmp_path / "mesh.toml") == config


NODES = said("nodes")


@pytest.fixture
def node_folder(request, tmp_path):
    """A copy of a node's folder; git does not keep that a log is for its owner alone."""
    return Path(shutil.copytree(FOLDER / "nodes" / request.param, tmp_path / request.param))


@pytest.mark.parametrize("node_folder", NODES, indirect=True)
def test_a_node_goes_on_from_its_folder(node_folder):
    expected = NODES[node_folder.name]
    tolerance = 1e-5 if node_folder.name == "single" else 1e-9

    async def story():
        node = made_node(node_folder)
        await node.start()
        await until(lambda: node.is_idle)
        parts, (y_hat, deviation, _) = node.state_parts(), node.predict(np.array(expected["x"]))
        await node.close()
        return parts, y_hat / 100, deviation and deviation / 100  # the target's range is 0 .. 100

    parts, y_hat, deviation = asyncio.run(story())
    assert parts.header["learned"] == expected["n_learned"]
    if "state.combined" in expected["arrays"] and "state.own_loss" in expected["arrays"]:
        assert parts.arrays["state.own_counts"][0, 0] == pytest.approx(expected["n_learned"], abs=1)
        assert np.isfinite([y_hat, deviation]).all()
        return
    since = {name for name in parts.arrays if name.startswith(("bounds.", "sides."))}
    assert set(parts.arrays) - since == set(expected["arrays"])
    for name, values in expected["arrays"].items():
        same(parts.arrays[name], values, tolerance)
    if IS_WRITER:
        assert digest(parts) == expected["digest"]
    assert y_hat == pytest.approx(expected["prediction"], rel=tolerance)
    if expected["deviation"] is None:
        assert deviation is None
    else:
        assert deviation == pytest.approx(expected["deviation"], rel=tolerance)


@pytest.mark.parametrize("node_folder", NODES, indirect=True)
def test_a_node_finds_its_log_checkpoints_and_epoch(node_folder):
    expected, data = NODES[node_folder.name], node_folder / "data"
    checkpoints = Checkpoints(data)
    saved = checkpoints.load()
    assert not checkpoints.damaged
    assert saved.state.header["learned"] == expected["saved"]
    assert saved.position == expected["position"]
    log = wal.WriteAheadLog(data / "journal", len(expected["entries"][0][0]))
    assert (log.last, log.ids) == (expected["last"], expected["ids"])
    assert {**saved.rows, **log.rows} == expected["rows"]
    found = [(number, values.tolist()) for number, values in log.after(0)]
    log.close()
    assert found == [(n, values) for n, (values, _, _) in enumerate(expected["entries"], 1)]
    assert next_epoch(data / "epoch", 0) == EPOCH + 1


@pytest.mark.parametrize("node_folder", NODES, indirect=True)
def test_logs_and_checkpoints_are_written_as_before(node_folder, tmp_path, monkeypatch):
    expected = NODES[node_folder.name]
    monkeypatch.setattr(secrets, "randbits", lambda bits: SALT)
    monkeypatch.setattr(wal, "SEGMENT", SEGMENT)
    entries = [wal.Entry(np.array(values), *rest) for values, *rest in expected["entries"]]
    log = wal.WriteAheadLog(tmp_path / "journal", len(entries[0].values))
    for frame in np.split(np.arange(len(entries)), [1, 2, 5, 6, 9, 10, 13, 14, 17]):
        log.append([entries[k] for k in frame])
    log.close()
    before = {path.name: path.read_bytes() for path in (node_folder / "data/journal").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "journal").iterdir()} == before

    saved = Checkpoints(node_folder / "data").load()
    Checkpoints(tmp_path).save(saved)
    (new,) = tmp_path.glob("checkpoint-*.npz")
    assert contents(new) in [contents(old) for old in (node_folder / "data").glob("*.npz")]


WIRE = sorted(path.stem for path in (FOLDER / "wire").glob("*.json"))
EVENTS = {
    kind.__name__: kind
    for kind in (
        events.Sample,
        events.Received,
        events.Tick,
        events.PeerUp,
        events.PeerDown,
        events.Neighbors,
    )
}


def model_for(algorithm, dtype, seed):
    ranges = Range("a", 0.0, 1.0), Range("b", 0.0, 1.0)
    return Model(algorithm, features_for(algorithm, seed), ranges, Range("y", 0.0, 1.0), dtype)


def event_of(name, given, frames):
    if name == "Sample":
        number, x, y = given
        return events.Sample(number, np.array(x), y)
    if name == "Received":
        return events.Received(given[0], frames[given[1]])
    if name == "Neighbors":
        return events.Neighbors(tuple(given[0]))
    return EVENTS[name](*given)


@pytest.mark.parametrize("name", [name for name in WIRE if name not in ("domkrls", "dokl")])
def test_a_conversation_goes_as_before_byte_by_byte(name):
    """Every learner is told what it was told then, and must answer with the same frames.

    Not DOMKRLS, which has a second form, and not DOKL, whose conversation is the one in async mode:
    steps wait there now, so that they merge what 0.1 merged a round later.
    """
    expected = said("wire", name)
    algorithm, dtype = ALGORITHMS[name], expected["dtype"]
    n_rows = model_for(algorithm, dtype, 1).offers().n_rows
    frames = [as_of_now(bytes.fromhex(frame), n_rows) for frame in expected["frames"]]
    assert repr(algorithm) == expected["algorithm"]
    given = {"incarnation": 5, "mode": expected["mode"], "checkpoint_every": 3}
    model, other = (model_for(algorithm, dtype, seed) for seed in (1, 9))
    learners = {
        "a": Protocol("a", model, ("b", "c"), **given),
        "b": Protocol("b", model, ("a",), **given),
        "c": Protocol("c", other, ("a",), **given),
    }
    for who, now, (kind, *rest), effects in expected["calls"]:
        learner = learners[who]
        if kind == "leave":
            found = learner.leave()
        else:
            found = learner.handle(event_of(kind, rest, frames), now)
        assert [type(each).__name__ for each in found] == [effect[0] for effect in effects]
        for effect, before in zip(found, effects, strict=True):
            check_effect(effect, before[1:], frames, dtype, n_rows)
    x = np.array([0.4, 0.6])
    for who, y_hat in expected["predictions"].items():
        same(learners[who].look(x)[0], y_hat, 1e-5 if dtype == "float32" else 1e-9)


def check_effect(effect, before, frames, dtype, n_rows):
    tolerance = 1e-5 if dtype == "float32" else 1e-9
    if isinstance(effect, events.Send):
        assert effect.peer == before[0]
        check_frame(effect.data, frames[before[1]], dtype, n_rows, tolerance)
    elif isinstance(effect, events.Predicted):
        assert effect.number == before[0]
        same(effect.y_hat, before[1], tolerance)
    elif isinstance(effect, events.Alarm):
        assert [effect.kind, effect.peer] == before
    else:
        assert list(effect) == before


def as_of_now(frame, n_rows=0):
    """A frame of 0.1 under the version that is spoken now; its offers state no limit."""
    made = decode(frame[:2] + bytes([VERSION]) + frame[3:], 10**6)
    if made.kind.name == "OFFER":
        made = made._replace(payload=bytes(made.payload) + bytes([UNLIMITED] * n_rows))
    return encode(made)


def check_frame(found, before, dtype, n_rows, tolerance):
    new, old = decode(found, 10**6), decode(before, 10**6)
    assert new._replace(payload=b"") == old._replace(payload=b"")
    if new.kind.name == "REFUSE":  # words for people, which may change
        return
    if IS_WRITER or new.kind.name != "OFFER":
        assert found == before
    else:
        words = [frame.payload[8:-n_rows] for frame in (new, old)]
        numbers = (np.frombuffer(each, f"<{dtype[0]}8"[:3]) for each in words)
        np.testing.assert_allclose(*numbers, rtol=tolerance, atol=tolerance)


def test_frames_of_every_kind_are_written_as_before():
    kinds = set()
    for name in WIRE:
        for text in said("wire", name)["frames"]:
            written = bytes.fromhex(text)
            written = written[:2] + bytes([VERSION]) + written[3:]
            frame = decode(written, 10**6)
            assert encode(frame) == written
            kinds.add(frame.kind.name)
    assert kinds == {"HELLO", "OFFER", "ASK", "ALIVE", "REFUSE", "BYE"}


def test_frames_of_version_1_are_refused_with_a_clear_line():
    written = bytes.fromhex(said("wire", "domkl")["frames"][0])
    with pytest.raises(domkl.errors.WireError, match=f"of version {VERSION}, got b'dk', version 1"):
        decode(written, 10**6)
