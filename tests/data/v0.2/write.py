"""Write the files of this folder, with version 0.2 of domkl.

    git worktree add ../domkl-0.2 6aa6b24      # the last commit before 0.3
    PYTHONPATH=../domkl-0.2/src python tests/data/v0.2/write.py

Later versions must read these files, and must go on from them to the same numbers
(tests/contracts/test_files_of_0_2.py). This script therefore runs with 0.2 only; it is kept to
document how the files were made. Seeds, clocks and salts are fixed. Certificates, the times in
archives and the ids of published predictions differ from run to run.

    learners/  files of Learner.save and of the estimators, and pickles of the latter and of two
               learners; learners.json and estimators.json have their predictions
    states/    run.state of `simulate`, also with a delay; states.json has how the run went on
    mpi/       folders of `simulate_sharded`; mpi.json has how the run went on
    config/    mesh files; config.json has their content
    nodes/     folders of nodes without neighbors, killed after 18 samples: nodes.tar.gz; what they
               say is in nodes.json
    mesh/      the folder of a mesh of two nodes that forecast, without its private keys:
               mesh.tar.gz, and its backup, backup.tar.gz; mesh.json
"""

import asyncio
import json
import os
import pickle
import platform
import secrets
import shutil
import tarfile
import tempfile
from dataclasses import asdict, fields
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np
import pandas as pd
from mpi4py import MPI

import domkl
from domkl.algorithms.registry import ALGORITHMS
from domkl.estimators import river, sklearn
from domkl.mesh.config.file import read_config, write_config
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.config.forecasting import Forecasting
from domkl.mesh.config.settings import Member, MeshConfig
from domkl.mesh.history.recorder import Recorder
from domkl.mesh.local.backup import back_up
from domkl.mesh.node import node as nodes_module
from domkl.mesh.node import wal
from domkl.mesh.node.folder import open_folder
from domkl.mesh.node.intake import Given
from domkl.mesh.node.node import Node
from domkl.mesh.node.publish import Published
from domkl.mesh.node.telemetry import digest
from domkl.mesh.protocol.events import Timing
from domkl.mesh.protocol.model import Range
from domkl.mesh.transports.base import Address
from domkl.mesh.transports.memory import MemoryHub, MemoryTransport

HERE = Path(__file__).parent
SALT = 123456789
SEGMENT = 300  # bytes, so that a small journal has several files
NOON = 14 * 126_489_600  # seconds since 1970: every ring of the history begins with this second
DAYS = 36500  # until certificates expire
N_SAMPLES, CHECKPOINT_EVERY = 18, 5

BANK = domkl.gaussian_bank([0.5, 5.0])
ONE = domkl.gaussian_bank([1.0])


def write_json(path, content):
    """Write one entry per line."""
    rows = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items()]
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def samples(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) + 0.5 * X[:, -1]


def bank_for(algorithm):
    return ONE if algorithm.single_kernel else BANK


def machine():
    """Write what decides how a sum of floating-point numbers is rounded."""
    features = ",".join(sorted(name for name, has in llvm.get_host_cpu_features().items() if has))
    write_json(
        HERE / "machine.json",
        {
            "version": domkl.__version__,
            "processor": f"{platform.machine()} {llvm.get_host_cpu_name()} {features}",
            "numpy": np.__version__,
            "numba": numba.__version__,
        },
    )


# --- learners -------------------------------------------------------------------------------------

LEARNERS = {
    "domkl": domkl.DOMKL(),
    "domkl-huber": domkl.DOMKL(rho=0.5, loss=domkl.Huber(0.2)),
    "domkrls": domkl.DOMKRLS(),
    "domkrls-forget": domkl.DOMKRLS(forget=0.99, ridge=0.01),
    "domkrls-ahead": domkl.DOMKRLS(newest_lag=1, steps_ahead=3),
    "dokl": domkl.DOKL(),
    "rff-domkl": domkl.RFFDOMKL(),
    "rff-dokl": domkl.RFFDOKL(),
    "linear-rls": domkl.LinearRLS(forget=0.99),
}


def learners():
    folder = HERE / "learners"
    folder.mkdir()
    said = {}
    X, y = samples(90)
    for name, algorithm in LEARNERS.items():
        for stage, n in (("early", 10), ("later", 70)):  # samples are kept up to 64
            if stage == "early" and "-" in name:
                continue
            learner = domkl.Learner(algorithm, bank=bank_for(algorithm), n_frequencies=2, seed=3)
            learner.learn(X[:n], y[:n]).save(folder / f"{name}-{stage}.npz")
            if name == "domkrls":
                (folder / f"{name}-{stage}.pickle").write_bytes(pickle.dumps(learner))
            said[f"{name}-{stage}"] = learner_said(folder / f"{name}-{stage}.npz", X, y)
    write_json(folder / "learners.json", said)

    said, frame = {}, pd.DataFrame(X, columns=["a", "b"])
    both = np.column_stack([y, 100 * X[:, 0]])
    classes = np.digitize(y, [-0.5, 0.5])
    words = np.array(["low", "middle", "high"])[classes]
    small = {"bank": BANK, "n_frequencies": 2}

    def keep(name, made):
        made.save(folder / f"{name}.npz")
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(made))
        return type(made).load(folder / f"{name}.npz")

    made = sklearn.OnlineKernelRegressor(**small, newest_lag="b", steps_ahead=2)
    made = keep("sklearn-regressor", made.fit(frame[:70], y[:70]))
    said["sklearn-regressor"] = {"before": [v.tolist() for v in made.predict(frame[80:], True)]}
    made.partial_fit(frame[70:80], y[70:80])
    said["sklearn-regressor"]["later"] = [v.tolist() for v in made.predict(frame[80:], True)]

    made = sklearn.OnlineKernelRegressor(**small, forget=0.99, ridge=0.01)
    made = keep("sklearn-outputs", made.fit(X[:70], both[:70]))
    said["sklearn-outputs"] = {"before": made.predict(X[80:]).tolist()}
    made.partial_fit(X[70:80], both[70:80], np.linspace(0.5, 2.0, 10))
    said["sklearn-outputs"]["later"] = made.predict(X[80:]).tolist()

    made = sklearn.OnlineKernelClassifier(**small, random_state=4)
    made = keep("sklearn-classes", made.fit(X[:30], words[:30]))  # its first samples are kept
    said["sklearn-classes"] = {"before": made.predict_proba(X[80:]).tolist()}
    made.partial_fit(X[70:80], words[70:80])
    said["sklearn-classes"]["later"] = made.predict_proba(X[80:]).tolist()

    made = sklearn.OnlineKernelClassifier(**small)
    made = keep("sklearn-two-classes", made.fit(X[:70], y[:70] > 0))
    said["sklearn-two-classes"] = {"before": made.predict_proba(X[80:]).tolist()}
    made.partial_fit(X[70:80], y[70:80] > 0)
    said["sklearn-two-classes"]["later"] = made.predict_proba(X[80:]).tolist()

    def follow(name, made, labels, predict, n=70, **more):
        for i in range(n):
            made.learn_one(named(X[i]) | more, labels[i])
        made = keep(name, made)
        rows = [named(row) | more for row in X[80:]]
        said[name] = {"before": [predict(made, row) for row in rows]}
        for i in range(70, 80):
            made.learn_one({"late": 0.5, **named(X[i]), **more}, labels[i])
        said[name]["later"] = [predict(made, row) for row in rows]

    def proba(made, row):
        return list(made.predict_proba_one(row).values())

    follow(
        "river-regressor", river.OnlineKernelRegressor(**small, newest_lag="a", steps_ahead=2),
        y.tolist(), lambda made, row: made.predict_one(row), kind="new",
    )  # fmt: skip
    follow(
        "river-outputs", river.OnlineKernelMultiTargetRegressor(**small),
        [{"one": one, "two": two} for one, two in both.tolist()],
        lambda made, row: list(made.predict_one(row).values()),
    )  # fmt: skip
    follow("river-classes", river.OnlineKernelClassifier(**small), words.tolist(), proba, n=30)
    follow("river-two-classes", river.OnlineKernelClassifier(**small), (y > 0).tolist(), proba)
    write_json(folder / "estimators.json", said)


def named(row):
    return dict(zip(("a", "b"), row.tolist(), strict=True))


def learner_said(path, X, y):
    learner = domkl.Learner.load(path)
    said = {"n_seen": learner.n_seen, "algorithm": repr(learner.algorithm)}
    said["predictions"] = learner.predict(X[80:]).tolist()
    if isinstance(learner.algorithm, domkl.DOMKRLS):
        said["deviations"] = learner.deviation(X[80:]).tolist()
    learner.learn(X[70:80], y[70:80])
    return said | {"later": learner.predict(X[80:]).tolist()}


# --- states of simulate, and of simulate_sharded --------------------------------------------------

STATES = {
    **{name: entry.make() for name, entry in ALGORITHMS.items() if name != "domkrls-alone"},
    "domkl-message-passing": domkl.DOMKL(weights="message-passing"),
    "domkrls-ahead": domkl.DOMKRLS(forget=0.99, newest_lag=1, steps_ahead=3),
}


def network(n_rounds, seed=5):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n_rounds, 3, 2))
    return X, X[..., 0] * np.sin(4 * X[..., 1])


def states():
    folder = HERE / "states"
    folder.mkdir()
    said, path = {}, domkl.Graph.path(3)
    X, y = network(12)
    for name, algorithm in STATES.items():
        for dtype in ("float64", "float32"):
            if not supports(algorithm, dtype):
                continue
            for delay in (0, 3) if name.startswith("dom") or dtype == "float64" else (0,):
                features = domkl.RandomFeatures.draw(bank_for(algorithm), 2, 2, seed=2)
                options = {"graph": path, "features": features, "dtype": dtype, "delay": delay}
                run = domkl.simulate(algorithm, X[:8], y[:8], **options)
                key = f"{name}-{dtype}-{delay}"
                np.savez_compressed(folder / f"{key}.npz", **arrays_of(run.state))
                later = domkl.simulate(algorithm, X[8:], y[8:], **options, state=run.state)
                said[key] = {
                    "predictions": later.predictions.tolist(),
                    "cv": later.cv.tolist(),
                    "sums": {name: float(v.sum()) for name, v in arrays_of(later.state).items()},
                }
    write_json(folder / "states.json", said)


def arrays_of(state):
    """The arrays of a state by name; with a delay, also those of the samples that wait."""
    found = {}
    for name, value in state._asdict().items():
        inner = arrays_of(value) if hasattr(value, "_asdict") else {"": value}
        found |= {f"{name}.{field}".rstrip("."): each for field, each in inner.items()}
    return found


def supports(algorithm, dtype):
    try:
        features = domkl.RandomFeatures.draw(bank_for(algorithm), 2, 2, seed=2)
        domkl.simulate(algorithm, *network(1), domkl.Graph.path(3), features, dtype=dtype)
    except domkl.ParameterError:
        return False
    return True


def mpi():
    folder = HERE / "mpi"
    folder.mkdir()
    X, y = network(12)
    said = {}
    for name, delay in (
        ("domkl", 0), ("domkrls", 0), ("rff-domkl", 0), ("dokl", 0), ("domkrls", 2), ("domkl", 2)
    ):  # fmt: skip
        algorithm, key = STATES[name], f"{name}-{delay}"
        features = domkl.RandomFeatures.draw(bank_for(algorithm), 2, 2, seed=2)
        given = {"comm": MPI.COMM_SELF, "cv": "moments", "every": 4, "delay": delay}
        rest = domkl.Graph.ring(3), features
        domkl.simulate_sharded(algorithm, X[:8], y[:8], *rest, **given, folder=folder / key)
        with tempfile.TemporaryDirectory() as copy:
            shutil.copytree(folder / key, Path(copy) / key)
            given["folder"] = Path(copy) / key
            later = domkl.simulate_sharded(algorithm, X, y, *rest, **given)
        said[key] = {
            "mse": later.mse.tolist(),
            "cv": later.cv.tolist(),
            "theta": later.theta.tolist() if later.theta is not None else None,
        }
    write_json(folder / "mpi.json", said)


# --- mesh files -----------------------------------------------------------------------------------


def members(*names, host="127.0.0.1"):
    return tuple(
        Member(name, Address(host, 9000 + k), Address("127.0.0.1", 9100 + k))
        for k, name in enumerate(names)
    )


TABLE = {
    "target": Range("load", 0.0, 100.0),
    "inputs": (Range("a", 0.0, 10.0), Range("b", -1.0, 1.0)),
}
PAIR = {"members": members("north", "south"), "edges": (("north", "south"),)}
SMALL = {"kernels": (0.5, 5.0), "n_frequencies": 2}
FORECAST = Forecasting((1, 3), lags=(1, 2), calendar=("hour",), ahead=("b",), season="6h")
CONFIGS = {
    "table": MeshConfig(**PAIR, **TABLE),
    "forecast": MeshConfig(**PAIR, **TABLE, forecast=FORECAST),
    "forecast-half-hours": MeshConfig(
        **PAIR,
        target=Range("größte Last", 0.0, 1e3),
        forecast=Forecasting(
            (1, 2, 48), step="30min", lags=(1, 2, 48), calendar=("hour", "weekday", "yearday"),
            ahead=("hour",), hold="2h", season="24h",
        ),
        algorithm=domkl.DOMKRLS(forget=0.999, ridge=0.01),
    ),
    "places": MeshConfig(
        members=(
            Member("eins", Address("a.example", 1), Address("0.0.0.0", 2), (1.5, -2.0)),
            Member("zwei", Address("b.example", 1), Address("0.0.0.0", 2), (0.0, 47.25)),
        ),
        edges=(("eins", "zwei"),),
        **TABLE,
        delay=4,
        guard=False,
        mode="async",
        outside="refuse",
        timing=Timing(0.5, 0.2, 0.4, 0.8, 3.0, 5.0),
        checkpoint_every=50,
        queue=200,
    ),
    "zenoh": MeshConfig(
        members=members("eins", "zwei", "drei", host="mesh.example"),
        edges=(("eins", "zwei"), ("zwei", "drei"), ("drei", "eins")),
        transport="zenoh",
        router=Address("router.example", 7447),
        name="brook-9",
        algorithm=domkl.RFFDOMKL(step=0.3, loss=domkl.Pinball(0.9)),
        **TABLE,
    ),
    "series": MeshConfig(
        **PAIR, target=Range("y", -1.0, 1.0), lags=3, dtype="float32", linear=True,
        kernels=(0.1, 1.0), n_frequencies=20, seed=11,
        algorithm=domkl.DOMKL(rho=0.25, loss=domkl.Huber(0.1)),
    ),
    "one-kernel": MeshConfig(**PAIR, **TABLE, algorithm=domkl.DOKL(rho=1.5), kernels=(2.0,)),
    "message-passing": MeshConfig(
        **PAIR, **TABLE, algorithm=domkl.DOMKL(weights="message-passing")
    ),
}  # fmt: skip
BY_HAND = """\
edges = [["a", "b"]]
target = { name = "y", low = 0, high = 1 }
[[learners]]
name = "a"
address = "[::1]:9000"
http = "127.0.0.1:9100"
place = [1, 2.5]
[[learners]]
name = "b"
address = "b.example:9000"
http = "127.0.0.1:9101"
[forecast]
horizons = 6
[model]
algorithm = "domkrls"
"""


def config():
    folder = HERE / "config"
    folder.mkdir()
    for name, made in CONFIGS.items():
        write_config(folder / f"{name}.toml", made)
    (folder / "by-hand.toml").write_text(BY_HAND)
    said = {}
    for path in sorted(folder.glob("*.toml")):
        found = read_config(path)
        said[path.stem] = {
            "config": {f.name: said_of(getattr(found, f.name)) for f in fields(found)},
            "neighbors": {name: list(found.neighbors(name)) for name in found.names},
            "models": [
                {"parts": dict(model.parts), "fingerprint": model.fingerprint.hex()}
                for model in found.models()
            ],
        }
    write_json(folder / "config.json", said)


def said_of(value):
    """A setting as JSON has it."""
    if isinstance(value, Member):
        place = value.place and list(value.place)
        return [value.name, str(value.address), str(value.http), place]
    if isinstance(value, (Range, Forecasting)):
        return said_of(tuple(asdict(value).values()))
    if isinstance(value, Timing):
        return value._asdict()
    if isinstance(value, (domkl.Algorithm, Address)):
        return repr(value) if isinstance(value, domkl.Algorithm) else str(value)
    return [said_of(each) for each in value] if isinstance(value, tuple) else value


# --- folders of nodes -----------------------------------------------------------------------------

NODES = {
    "table": {**TABLE, "algorithm": domkl.DOMKRLS()},
    "delayed": {**TABLE, "algorithm": domkl.DOMKRLS(), "delay": 3},
    "series": {"target": TABLE["target"], "lags": 2, "algorithm": domkl.DOMKL()},
    "single": {**TABLE, "algorithm": domkl.RFFDOMKL(), "dtype": "float32"},
    "forecast": {
        "target": TABLE["target"],
        "algorithm": domkl.DOMKL(),
        "forecast": Forecasting((2,), lags=(1, 2), season="6h"),
    },
}


class Clock:
    """Gives the time that it was set to."""

    def __init__(self):
        self.now = float(NOON)

    def __call__(self):
        return self.now


CLOCK = Clock()


class Stopwatch(Clock):
    """Gives a later time with each call: a learner waits for its neighbors, but not forever."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def __call__(self):
        self.now += self.step
        return self.now


def sample(config, k):
    """The k-th sample of a node, as a client sends it."""
    a, b = (k * 0.37) % 10, ((k * 0.61) % 2) - 1
    y = 150.0 if k == 5 else 10 * a * (b + 1) / 2  # one is outside its range
    given = {} if k % 3 == 1 else {"id": f"meter:{k}"}
    if config.forecast is not None:
        names = {each.name for each in config.inputs}
        x = {name: value for name, value in (("a", a), ("b", b)) if name in names}
        given |= {"time": 3600.0 * (500_000 + k), "x": x}
        return given | ({} if k == 7 else {"y": y})
    if config.lags:
        return given | {"value": y}
    return given | {"x": [a, b], "y": None if k == 8 else y}


def nodes():
    folder = HERE / "nodes" / "nodes"
    folder.mkdir(parents=True)
    said = {}
    for name, given in NODES.items():
        with tempfile.TemporaryDirectory() as parent:
            place = Path(parent) / name
            place.mkdir()
            made = MeshConfig(
                members=members(name), edges=(), checkpoint_every=CHECKPOINT_EVERY, **SMALL, **given
            )
            write_config(place / "mesh.toml", made)
            asyncio.run(write_nodes([place], folder, MemoryHub()))
            said[name] = asyncio.run(node_said(place, folder / name))
    mark = Published(folder / "table" / "data" / "published-webhook", N_SAMPLES)
    mark.set(12)
    said["table"]["published"] = [mark.stream, mark.number]
    mark.close()
    write_json(HERE / "nodes" / "nodes.json", said)
    pack(folder)


def pack(folder):
    """Replace a folder by an archive."""

    def plain(entry):
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(folder.with_name(f"{folder.name}.tar.gz"), "w:gz") as tar:
        tar.add(folder, folder.name, filter=plain)
    shutil.rmtree(folder)


async def write_nodes(places, target, hub):
    """Learn 18 samples each, and copy the folders as a kill would leave them."""
    CLOCK.now = float(NOON)
    made = []
    for place in places:
        opened = open_folder(place)
        transport = MemoryTransport(hub, opened.name, opened.neighbors)
        given = {"clock": Stopwatch(1e-4), "save_pause": 0.0}
        node = Node(opened, transport if len(places) > 1 else None, **given)
        await node.start()
        made.append(node)
    edges = [each for node in made for p in node.protocols for each in p.measures.edges.values()]
    await until(lambda: all(edge.is_open for edge in edges))
    for k in range(1, N_SAMPLES + 1):
        for node in made:
            given = Given.read(sample(node.folder.config, k))
            await node.intake.accept([node.format.sample(given)])
        await until(lambda: all(node.is_idle for node in made))
        for node in made:
            node._save()
            await node.saver.wait()
            node.record()
        CLOCK.now += 1.0
        for node in made:
            node.recorder.tick()
            if node.recorder._task is not None:
                await node.recorder._task
    for place, node in zip(places, made, strict=True):
        assert node.backlog.log.last == N_SAMPLES
        shutil.copytree(place, target / place.name, dirs_exist_ok=True)
        await node.close()


async def until(claim):
    while not claim():
        await asyncio.sleep(0.001)


async def node_said(place, folder):
    """What a node says that starts with a copy of this folder, once it has learned what waits."""
    with tempfile.TemporaryDirectory() as parent:
        copy = Path(shutil.copytree(folder, Path(parent) / place.name))
        node = Node(open_folder(copy), None, clock=Stopwatch(0.5), save_pause=0.0)
        backlog = node.backlog
        said = {
            "position": backlog.position, "last": backlog.log.last, "ids": backlog.log.ids,
            "epoch": int((folder / "data" / "epoch").read_text()),
            "events": [list(each) for each in node.recorder.events],
            "samples": {
                str(h): [[row[name].item() for name in row.dtype.names if name != "check"]
                         for row in node.recorder.samples(h)]
                for h in node.recorder.horizons
            },
            "seconds": node.recorder.seconds_after(NOON - 1)["index"].tolist(),
        }  # fmt: skip
        await node.start()
        await until(lambda: node.is_idle)
        parts = node.state_parts()
        said |= {
            "n_learned": parts.header["learned"],
            "n_outside": backlog.n_outside,
            "digest": digest(parts),
            "sums": {name: float(v.sum()) for name, v in parts.arrays.items()},
        }
        if node.folder.config.forecast is not None:
            said["forecasts"] = [list(each) for each in node.forecast({})]
        else:
            x = np.linspace(0.2, 0.8, len(node.format.model.inputs))
            said |= {"x": x.tolist(), "prediction": list(node.predict(x))}
        await node.close()
    return said


def mesh():
    made = MeshConfig(
        **PAIR, **TABLE, **SMALL, forecast=FORECAST, checkpoint_every=CHECKPOINT_EVERY
    )
    folder, said = HERE / "mesh" / "mesh", {}
    with tempfile.TemporaryDirectory() as parent:
        root = Path(parent) / "mesh"
        init_mesh(root, made, days=DAYS)
        folder.mkdir(parents=True)
        places = [root / name for name in made.names]
        asyncio.run(write_nodes(places, folder, MemoryHub()))
        for path in ("mesh.toml", "mesh.toml.copied"):
            shutil.copy(root / path, folder / path)
        for path in (*folder.rglob("*.key"), *folder.rglob("token")):
            path.unlink()
        for place in places:
            said[place.name] = asyncio.run(node_said(place, folder / place.name))
    back_up(folder, HERE / "mesh" / "backup.tar.gz")
    write_json(HERE / "mesh" / "mesh.json", said)
    pack(folder)


def main():
    assert domkl.__version__ == "0.2.0", domkl.__version__
    for each in HERE.iterdir():
        if each.is_dir() and each.name != "__pycache__":
            shutil.rmtree(each)
    secrets.randbits = lambda bits: SALT
    wal.SEGMENT = SEGMENT
    nodes_module.SAVE_BYTES = 10**9  # a checkpoint is worth its size after every sample
    nodes_module.time.time_ns = lambda: NOON * 10**9
    Recorder.__init__.__kwdefaults__["clock"] = CLOCK
    os.umask(0o022)
    for part in (machine, learners, states, mpi, config, nodes, mesh):
        part()


if __name__ == "__main__":
    main()
