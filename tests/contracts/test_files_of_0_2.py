"""Files that version 0.2 wrote are read, and what goes on from them comes to the same numbers.

tests/data/v0.2 has files of 0.2 and, as JSON, what 0.2 said of them; write.py there shows how they
were made. On the machine that wrote them numbers are compared to the bit. Elsewhere sums are
rounded in another order: there 1e-9 is enough, and 1e-5 where the state is float32.
"""

import asyncio
import pickle
import shutil
import tarfile
import tomllib
from dataclasses import asdict, fields

import numpy as np
import pandas as pd
import pytest
from mesh_node import made as made_node
from mesh_node import until
from old_files import OldFiles

import domkl
from domkl.algorithms.registry import find
from domkl.estimators import river, sklearn
from domkl.mesh.config.file import read_config, write_config
from domkl.mesh.config.folder import apply_mesh
from domkl.mesh.config.settings import Forecasting, Member
from domkl.mesh.node.publish import Published
from domkl.mesh.node.telemetry import digest
from domkl.mesh.operate.backup import restore
from domkl.mesh.protocol.events import Timing
from domkl.mesh.protocol.model import Range
from domkl.mesh.store.checkpoint import Checkpoints, next_epoch
from domkl.mesh.transports.base import Address
from domkl.mesh.transports.memory import MemoryHub, MemoryTransport

FILES = OldFiles("0.2")
FOLDER, said, same = FILES.folder, FILES.said, FILES.same
N_SAMPLES = 18
SECOND = 14 * 126_489_600  # of the first sample, as write.py has it


def samples(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) + 0.5 * X[:, -1]


X, Y = samples(90)
BOTH = np.column_stack([Y, 100 * X[:, 0]])
WORDS = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.5, 0.5])]
LEARNERS, ESTIMATORS = said("learners"), said("learners", "estimators")


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_goes_on(name, tmp_path):
    check_goes_on(loaded(domkl.Learner, name, tmp_path), LEARNERS[name])


@pytest.mark.parametrize("name", ["domkrls-early", "domkrls-later"])
def test_a_pickled_learner_goes_on(name):
    check_goes_on(unpickled(domkl.Learner, name), LEARNERS[name])


def check_goes_on(learner, expected):
    assert learner.n_seen == expected["n_seen"]
    assert learner.algorithm == eval(expected["algorithm"], vars(domkl))
    same(learner.predict(X[80:]), expected["predictions"])
    if "deviations" in expected:
        same(learner.deviation(X[80:]), expected["deviations"])
    learner.learn(X[70:80], Y[70:80])
    same(learner.predict(X[80:]), expected["later"])


def loaded(kind, name, tmp_path):
    """A learner or estimator of a file, saved by this version and loaded again."""
    kind.load(FOLDER / "learners" / f"{name}.npz").save(tmp_path / "again.npz")
    return kind.load(tmp_path / "again.npz")


def unpickled(kind, name, tmp_path=None):
    """The same of a pickle, pickled by this version and loaded again."""
    made = pickle.loads((FOLDER / "learners" / f"{name}.pickle").read_bytes())
    assert type(made) is kind
    return pickle.loads(pickle.dumps(made))


FRAME = pd.DataFrame(X, columns=["a", "b"])
SKLEARN = {
    "sklearn-regressor": (
        sklearn.OnlineKernelRegressor, FRAME, Y, lambda made, rows: made.predict(rows, True)
    ),
    "sklearn-outputs": (
        sklearn.OnlineKernelRegressor, X, BOTH, lambda made, rows: made.predict(rows)
    ),
    "sklearn-classes": (
        sklearn.OnlineKernelClassifier, X, WORDS, lambda made, rows: made.predict_proba(rows)
    ),
    "sklearn-two-classes": (
        sklearn.OnlineKernelClassifier, X, Y > 0, lambda made, rows: made.predict_proba(rows)
    ),
}  # fmt: skip


@pytest.mark.parametrize("read", [loaded, unpickled])
@pytest.mark.parametrize("name", SKLEARN)
def test_a_scikit_learn_estimator_goes_on(name, read, tmp_path):
    kind, rows, labels, predict = SKLEARN[name]
    made = read(kind, name, tmp_path)
    same(predict(made, rows[80:]), ESTIMATORS[name]["before"])
    given = {"sample_weight": np.linspace(0.5, 2.0, 10)} if name == "sklearn-outputs" else {}
    made.partial_fit(rows[70:80], labels[70:80], **given)
    same(predict(made, rows[80:]), ESTIMATORS[name]["later"])


def proba(made, row):
    return list(made.predict_proba_one(row).values())


RIVER = {
    "river-regressor": (
        river.OnlineKernelRegressor, Y.tolist(), lambda made, row: made.predict_one(row)
    ),
    "river-outputs": (
        river.OnlineKernelMultiTargetRegressor,
        [{"one": one, "two": two} for one, two in BOTH.tolist()],
        lambda made, row: list(made.predict_one(row).values()),
    ),
    "river-classes": (river.OnlineKernelClassifier, WORDS.tolist(), proba),
    "river-two-classes": (river.OnlineKernelClassifier, (Y > 0).tolist(), proba),
}  # fmt: skip


@pytest.mark.parametrize("read", [loaded, unpickled])
@pytest.mark.parametrize("name", RIVER)
def test_a_river_estimator_goes_on(name, read, tmp_path):
    kind, labels, predict = RIVER[name]
    more = {"kind": "new"} if name == "river-regressor" else {}
    rows = [dict(zip(("a", "b"), row.tolist(), strict=True)) | more for row in X]
    made = read(kind, name, tmp_path)
    same([predict(made, row) for row in rows[80:]], ESTIMATORS[name]["before"])
    for row, label in zip(rows[70:80], labels[70:80], strict=True):
        made.learn_one({"late": 0.5, **row}, label)
    same([predict(made, row) for row in rows[80:]], ESTIMATORS[name]["later"])


STATES = said("states")
OTHERS = {
    "domkl-message-passing": domkl.DOMKL(weights="message-passing"),
    "domkrls-ahead": domkl.DOMKRLS(forget=0.99, newest_lag=1, steps_ahead=3),
}


def algorithm_of(name):
    return OTHERS[name] if name in OTHERS else find(name).make()


def features_for(algorithm, seed=2):
    bank = domkl.gaussian_bank([1.0] if algorithm.single_kernel else [0.5, 5.0])
    return domkl.RandomFeatures.draw(bank, 2, 2, seed=seed)


def network(n_rounds, seed=5):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n_rounds, 3, 2))
    return X, X[..., 0] * np.sin(4 * X[..., 1])


def arrays_of(state):
    """The arrays of a state by name; with a delay, also those of the samples that wait."""
    found = {}
    for name, value in state._asdict().items():
        inner = arrays_of(value) if hasattr(value, "_asdict") else {"": value}
        found |= {f"{name}.{field}".rstrip("."): each for field, each in inner.items()}
    return found


def restored(template, arrays, prefix=""):
    """A state like the template, from arrays by name."""
    values = []
    for name, value in template._asdict().items():
        is_inner = hasattr(value, "_asdict")
        key = f"{prefix}{name}"
        values.append(restored(value, arrays, f"{key}.") if is_inner else arrays[key])
    return type(template)(*values)


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize("name", STATES)
def test_a_run_goes_on_from_its_state(name, interpreted):
    kind, dtype, delay = name.rsplit("-", 2)
    algorithm = algorithm_of(kind)
    X, y = network(12)
    given = {
        "graph": domkl.Graph.path(3), "features": features_for(algorithm), "dtype": dtype,
        "delay": int(delay), "interpreted": interpreted,
    }  # fmt: skip
    template = domkl.simulate(algorithm, X[:4], y[:4], **given).state
    with np.load(FOLDER / "states" / f"{name}.npz") as stored:
        state = restored(template, dict(stored))
    run = domkl.simulate(algorithm, X[8:], y[8:], **given, state=state)
    tolerance = 1e-5 if dtype == "float32" else 1e-9
    same(run.predictions, STATES[name]["predictions"], tolerance)
    same(run.cv, STATES[name]["cv"], tolerance)
    sums = {field: float(values.sum()) for field, values in arrays_of(run.state).items()}
    assert list(sums) == list(STATES[name]["sums"])
    same(list(sums.values()), list(STATES[name]["sums"].values()), 10 * tolerance)


@pytest.mark.parametrize("name", said("mpi"))
def test_ranks_go_on_from_their_folder(name, tmp_path):
    from mpi4py import MPI

    shutil.copytree(FOLDER / "mpi" / name, tmp_path / name)
    kind, delay = name.rsplit("-", 1)
    algorithm, done = algorithm_of(kind), []
    run = domkl.simulate_sharded(
        algorithm, *network(12), domkl.Graph.ring(3), features_for(algorithm), comm=MPI.COMM_SELF,
        cv="moments", every=4, delay=int(delay), folder=tmp_path / name, progress=done.append,
    )  # fmt: skip
    assert done[0] == 9  # not from the beginning
    for curve, values in said("mpi")[name].items():
        if values is None:
            assert getattr(run, curve) is None
        else:
            same(getattr(run, curve), values)


def plain(value):
    """A setting as JSON has it."""
    if isinstance(value, Member):
        return [value.name, str(value.address), str(value.http), value.place and list(value.place)]
    if isinstance(value, (Range, Forecasting)):
        return plain(tuple(asdict(value).values()))
    if isinstance(value, Timing):
        return value._asdict()
    if isinstance(value, (domkl.Algorithm, Address)):
        return repr(value) if isinstance(value, domkl.Algorithm) else str(value)
    return [plain(each) for each in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize("name", said("config"))
def test_a_mesh_file_says_the_same(name, tmp_path):
    expected, path = said("config")[name], FOLDER / "config" / f"{name}.toml"
    config = read_config(path)
    found = {f.name: plain(getattr(config, f.name)) for f in fields(config)}
    assert {key: found[key] for key in expected["config"]} == expected["config"]
    near = {each: list(config.neighbors(each)) for each in config.names}
    assert near == expected["neighbors"]
    for model, before in zip(config.models(), expected["models"], strict=True):
        assert dict(model.parts) == before["parts"]
        assert model.fingerprint.hex() == before["fingerprint"]
    write_config(tmp_path / "mesh.toml", config)
    written = tomllib.loads((tmp_path / "mesh.toml").read_text())
    if name != "by-hand":  # that one leaves out what has a default
        assert written == tomllib.loads(path.read_text())
    assert read_config(tmp_path / "mesh.toml") == config


def unpacked(part, target):
    with tarfile.open(FOLDER / part / f"{part}.tar.gz") as tar:
        tar.extractall(target, filter="data")
    return target / part


class Stopwatch:
    """Gives a later time with each call: a learner waits for its neighbors, but not forever."""

    def __init__(self, step):
        self.now, self.step = float(SECOND), step

    def __call__(self):
        self.now += self.step
        return self.now


def goes_on(folder, expected, tolerance):
    """Start a node with a folder, and check it as it starts and when it has learned what waits."""

    async def story():
        node = made_node(folder, clock=Stopwatch(0.5))
        log, recorder = node.backlog.log, node.recorder
        assert (node.backlog.position, log.last) == (expected["position"], expected["last"])
        assert log.ids == expected["ids"]
        assert [list(each) for each in recorder.events] == expected["events"]
        seconds = recorder.history.rings[0].newest()
        assert seconds["index"].tolist() == expected["seconds"]
        for h, rows in expected["samples"].items():
            found = recorder.samples(int(h))
            names = [name for name in found.dtype.names if name != "check"]
            np.testing.assert_array_equal([[row[name] for name in names] for row in found], rows)
        await node.start()
        await until(lambda: node.is_idle)
        parts = node.state_parts()
        if node.folder.config.forecast is None:
            told = [node.predict(np.array(expected["x"]))]
        else:
            told = [tuple(each) for each in node.forecast({})]
        n_outside = node.backlog.n_outside
        await node.close()
        return parts, told, n_outside

    parts, told, n_outside = asyncio.run(story())
    assert parts.header["learned"] == expected["n_learned"]
    assert n_outside == expected["n_outside"]
    assert set(parts.arrays) == set(expected["sums"])
    for name, total in expected["sums"].items():
        same(float(parts.arrays[name].sum()), total, 100 * tolerance)
    if FILES.is_writer:
        assert digest(parts) == expected["digest"]
    before = [tuple(each) for each in expected.get("forecasts", [expected.get("prediction")])]
    for new, old in zip(told, before, strict=True):
        assert new[:-2] == old[:-2]  # horizon and time
        assert (new[-1] is None) == (old[-1] is None)
        same([v for v in new[-2:] if v is not None], [v for v in old[-2:] if v is not None], 1e-5)


NODES = said("nodes")


@pytest.mark.parametrize("name", NODES)
def test_a_node_goes_on_from_its_folder(name, tmp_path):
    folder = unpacked("nodes", tmp_path) / name
    goes_on(folder, NODES[name], 1e-5 if name == "single" else 1e-9)


def test_a_node_finds_its_checkpoints_epoch_and_published_predictions(tmp_path):
    folder = unpacked("nodes", tmp_path)
    for name, expected in NODES.items():
        data = folder / name / "data"
        checkpoints = Checkpoints(data)
        assert checkpoints.load().position == expected["position"]
        assert not checkpoints.damaged
        assert next_epoch(data / "epoch", 0) == expected["epoch"] + 1
    mark = Published(folder / "table" / "data" / "published-webhook", N_SAMPLES)
    mark.close()
    assert [mark.stream, mark.number] == NODES["table"]["published"]


MESH = said("mesh")


@pytest.mark.parametrize("name", MESH)
@pytest.mark.parametrize("is_restored", [False, True])
def test_a_node_of_a_mesh_goes_on_from_its_folder_and_its_backup(name, is_restored, tmp_path):
    if is_restored:
        folder = tmp_path / "mesh"
        made = restore(FOLDER / "mesh" / "backup.tar.gz", folder)
        assert made.learners == dict.fromkeys(MESH, N_SAMPLES)
    else:
        folder = unpacked("mesh", tmp_path)
    config, copied = apply_mesh(folder)
    assert (config.names, copied) == (tuple(MESH), [])
    goes_on(folder / name, MESH[name], 1e-9)


def test_the_nodes_of_a_mesh_exchange_again(tmp_path):
    folder = unpacked("mesh", tmp_path)

    async def story():
        hub, clock = MemoryHub(), Stopwatch(1e-4)  # too slow for a node to give the other up
        nodes = [made_node(folder / name, clock=clock) for name in MESH]
        for node in nodes:
            node.transport = MemoryTransport(hub, node.folder.name, node.folder.neighbors)
            await node.start()
        protocols = [protocol for node in nodes for protocol in node.protocols]
        edges = [edge for each in protocols for edge in each.measures.edges.values()]
        await until(lambda: all(node.is_idle for node in nodes))
        for node in nodes:
            await node.close()
        return [each.learned for each in protocols], [edge.n_exchanged for edge in edges]

    learned, exchanged = asyncio.run(story())
    assert learned == [N_SAMPLES] * 4  # two nodes, two horizons
    assert min(exchanged) >= N_SAMPLES - min(each["position"] for each in MESH.values())
