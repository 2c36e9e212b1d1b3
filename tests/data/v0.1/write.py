"""Write the files of this folder, with version 0.1 of domkl.

    git worktree add ../domkl-0.1 v0.1      # and install it there, make .venv/dev.stamp
    ../domkl-0.1/.venv/bin/python tests/data/v0.1/write.py

The files are kept as 0.1 wrote them: later versions must read them, and must go on from them to
the same numbers (tests/contracts/test_files_of_0_1.py). So this script runs with 0.1 and with
nothing else; it is kept to show how the files came about. Two runs on one machine give the same
bytes: every seed is fixed, and so is the salt that a journal draws.

    learners/  files of Learner.save and of the estimators; learners.json has their predictions
    states/    run.state of `simulate` for each algorithm; states.json has how the run went on
    mpi/       a folder of `simulate_sharded`; mpi.json has how the run went on
    mesh/      mesh files; mesh.json has what they say
    nodes/     folders of nodes: mesh file, journal, both checkpoints, epoch; nodes.json
    wire/      conversations of two or three learners: every event and effect, every frame in hex
"""

import json
import os
import platform
import secrets
import shutil
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
from domkl.archive import Parts
from domkl.estimators import river, sklearn
from domkl.mesh import events
from domkl.mesh.model import Model, Range
from domkl.mesh.process import journal as journals
from domkl.mesh.process.checkpoint import next_epoch
from domkl.mesh.process.ledger import Ledger
from domkl.mesh.process.report import digest
from domkl.mesh.process.segment import Entry
from domkl.mesh.protocol import Protocol, Snapshot
from domkl.mesh.setup.config import read_config, write_config
from domkl.mesh.setup.settings import MESH_ALGORITHMS, Member, MeshConfig
from domkl.mesh.timing import Timing
from domkl.mesh.transports.base import Address
from domkl.mesh.wire import decode
from domkl.sim.sharded import simulate_sharded

HERE = Path(__file__).parent
SALT = 123456789
EPOCH = 1_700_000_000_000
SEGMENT = 300  # bytes, so that a small journal has several files

BANK = domkl.gaussian_bank([0.5, 5.0])
ONE = domkl.gaussian_bank([1.0])


def write_json(path, content):
    """One entry a line: readable, and small changes stay small."""
    rows = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items()]
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def samples(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) + 0.5 * X[:, -1]


def bank_for(algorithm):
    return ONE if algorithm.single_kernel else BANK


def machine():
    """What decides how a sum of floating-point numbers is rounded."""
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
    **{name: make() for name, make in ALGORITHMS.items()},
    "domkl-huber": domkl.DOMKL(rho=0.5, loss=domkl.Huber(0.2)),
    "domkrls-forget": domkl.DOMKRLS(forget=0.99, ridge=0.01),
    "rff-domkl-pinball": domkl.RFFDOMKL(step=0.1, loss=domkl.Pinball(0.3)),
}


def learners():
    folder = HERE / "learners"
    folder.mkdir()
    said = {}
    X, y = samples(90)
    for name, algorithm in LEARNERS.items():
        for stage, n in (("early", 10), ("later", 70)):
            learner = domkl.Learner(algorithm, bank=bank_for(algorithm), n_frequencies=2, seed=3)
            learner.learn(X[:n], y[:n]).save(folder / f"{name}-{stage}.npz")
            said[f"{name}-{stage}"] = learner_said(folder / f"{name}-{stage}.npz", X, y)
    kernels = (
        domkl.Laplacian(1.0),
        domkl.Cauchy(2.0),
        domkl.Matern(bandwidth=1.0, smoothness=1.5),
        domkl.Linear(),
    )
    learner = domkl.Learner(bank=kernels, n_frequencies=2, is_scaled=False)
    learner.learn(X[:20], y[:20]).save(folder / "kernels.npz")
    said["kernels"] = learner_said(folder / "kernels.npz", X, y)
    domkl.Learner(domkl.DOMKL(rho=3.0), bank=BANK, n_frequencies=2).save(folder / "new.npz")
    said["new"] = learner_said(folder / "new.npz", X, y)
    said["sklearn-regressor"] = sklearn_regressor(folder / "sklearn-regressor.npz", X, y)
    said["sklearn-classifier"] = sklearn_classifier(folder / "sklearn-classifier.npz", X, y)
    said["river-regressor"] = river_regressor(folder / "river-regressor.npz", X, y)
    said["river-classifier"] = river_classifier(folder / "river-classifier.npz", X, y)
    write_json(folder / "learners.json", said)


def learner_said(path, X, y):
    learner = domkl.Learner.load(path)
    said = {"n_seen": learner.n_seen, "algorithm": repr(learner.algorithm)}
    said["predictions"] = learner.predict(X[80:]).tolist()
    if isinstance(learner.algorithm, domkl.DOMKRLS):
        said["deviations"] = learner.deviation(X[80:]).tolist()
    learner.learn(X[70:80], y[70:80])
    return said | {"later": learner.predict(X[80:]).tolist()}


def sklearn_regressor(path, X, y):
    frame = pd.DataFrame(X, columns=["a", "b"])
    made = sklearn.OnlineKernelRegressor(domkl.DOMKL(), bank=BANK, n_frequencies=2)
    made.fit(frame[:70], y[:70]).save(path)
    loaded = sklearn.OnlineKernelRegressor.load(path)
    said = {"names": list(loaded.feature_names_in_), "params": repr(loaded.get_params())}
    said["predictions"] = loaded.predict(frame[80:]).tolist()
    loaded.partial_fit(frame[70:80], y[70:80])
    return said | {"later": loaded.predict(frame[80:]).tolist()}


def sklearn_classifier(path, X, y):
    labels = np.where(y > 0, "yes", "no")
    made = sklearn.OnlineKernelClassifier(bank=BANK, n_frequencies=2, random_state=4)
    made.fit(X[:70], labels[:70]).save(path)
    loaded = sklearn.OnlineKernelClassifier.load(path)
    said = {"classes": loaded.classes_.tolist(), "params": repr(loaded.get_params())}
    said["predictions"] = loaded.decision_function(X[80:]).tolist()
    loaded.partial_fit(X[70:80], labels[70:80])
    return said | {"later": loaded.decision_function(X[80:]).tolist()}


def named(row):
    return dict(zip(("a", "b"), row.tolist(), strict=True))


def river_regressor(path, X, y):
    made = river.OnlineKernelRegressor(bank=BANK, n_frequencies=2)
    for row, label in zip(X[:70], y[:70], strict=True):
        made.learn_one(named(row), label)
    made.save(path)
    loaded = river.OnlineKernelRegressor.load(path)
    said = {"names": list(loaded.learner.names)}
    said["predictions"] = [loaded.predict_one(named(row)) for row in X[80:]]
    for row, label in zip(X[70:80], y[70:80], strict=True):
        loaded.learn_one({"late": 0.5, **named(row)}, label)
    return said | {"later": [loaded.predict_one(named(row)) for row in X[80:]]}


def river_classifier(path, X, y):
    logistic = domkl.RFFDOMKL(loss=domkl.Logistic())
    made = river.OnlineKernelClassifier(logistic, bank=BANK, n_frequencies=2)
    for row, label in zip(X[:70], y[:70], strict=True):
        made.learn_one(named(row), bool(label > 0))
    made.save(path)
    loaded = river.OnlineKernelClassifier.load(path)
    said = {"predictions": [loaded.predict_proba_one(named(row))[True] for row in X[80:]]}
    for row, label in zip(X[70:80], y[70:80], strict=True):
        loaded.learn_one(named(row), bool(label > 0))
    return said | {"later": [loaded.predict_proba_one(named(row))[True] for row in X[80:]]}


# --- states of simulate, and of simulate_sharded --------------------------------------------------

STATES = {
    **LEARNERS,
    "domkl-message-passing": domkl.DOMKL(weights="message-passing"),
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
            features = domkl.RandomFeatures.draw(bank_for(algorithm), 2, 2, seed=2)
            options = {"graph": path, "features": features, "dtype": dtype}
            run = domkl.simulate(algorithm, X[:8], y[:8], **options)
            np.savez(folder / f"{name}-{dtype}.npz", **run.state._asdict())
            later = domkl.simulate(algorithm, X[8:], y[8:], **options, state=run.state)
            said[f"{name}-{dtype}"] = {
                "predictions": later.predictions.tolist(),
                "cv": later.cv.tolist(),
                "state": {field: v.tolist() for field, v in later.state._asdict().items()},
            }
    write_json(folder / "states.json", said)


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
    for name in ("domkl", "domkrls", "rff-domkl"):
        features = domkl.RandomFeatures.draw(BANK, 2, 2, seed=2)
        given = {"comm": MPI.COMM_SELF, "cv": "moments", "every": 4, "folder": folder / name}
        rest = domkl.Graph.ring(3), features
        simulate_sharded(ALGORITHMS[name](), X[:8], y[:8], *rest, **given)
        with tempfile.TemporaryDirectory() as copy:
            shutil.copytree(folder / name, Path(copy) / name)
            given["folder"] = Path(copy) / name
            later = simulate_sharded(ALGORITHMS[name](), X, y, *rest, **given)
        said[name] = {
            "mse": later.mse.tolist(),
            "cv": later.cv.tolist(),
            "theta": later.theta.tolist(),
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
CONFIGS = {
    "table": MeshConfig(**PAIR, **TABLE),
    "series": MeshConfig(
        **PAIR,
        target=Range("größte Last", 0.0, 1e3),
        lags=3,
        algorithm=domkl.DOMKL(rho=0.25, loss=domkl.Huber(0.1)),
        kernels=(0.1, 1.0, 10.0),
        linear=True,
        n_frequencies=20,
        seed=11,
        dtype="float32",
        mode="async",
        outside="refuse",
        checkpoint_every=50,
        queue=200,
        timing=Timing(0.5, 0.2, 0.4, 0.8, 3.0, 5.0),
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
    "zenoh-series": MeshConfig(
        **PAIR, target=Range("y", -1.0, 1.0), lags=1, transport="zenoh", mode="async"
    ),
    "one-kernel": MeshConfig(**PAIR, **TABLE, algorithm=domkl.DOKL(rho=1.5), kernels=(2.0,)),
    "one-default-kernel": MeshConfig(**PAIR, **TABLE, algorithm=domkl.RFFDOKL()),
    "message-passing": MeshConfig(
        **PAIR, **TABLE, algorithm=domkl.DOMKL(weights="message-passing")
    ),
    "forgetting": MeshConfig(**PAIR, **TABLE, algorithm=domkl.DOMKRLS(forget=0.999)),
}
BY_HAND = """\
edges = [["a", "b"]]
target = { name = "y", low = 0, high = 1 }
inputs = [{ name = "x", low = 0, high = 1 }]
[[learners]]
name = "a"
address = "[::1]:9000"
http = "127.0.0.1:9100"
[[learners]]
name = "b"
address = "b.example:9000"
http = "127.0.0.1:9101"
[model]
algorithm = "domkl"
parameters = { rho = 1, loss = "absolute" }
"""


def mesh():
    folder = HERE / "mesh"
    folder.mkdir()
    for name, config in CONFIGS.items():
        write_config(folder / f"{name}.toml", config)
    (folder / "by-hand.toml").write_text(BY_HAND)
    said = {}
    for path in sorted(folder.glob("*.toml")):
        config = read_config(path)
        model = config.model()
        said[path.stem] = {
            "config": {f.name: said_of(getattr(config, f.name)) for f in fields(config)},
            "neighbors": {name: list(config.neighbors(name)) for name in config.names},
            "parts": dict(model.parts),
            "fingerprint": model.fingerprint.hex(),
        }
    write_json(folder / "mesh.json", said)


def said_of(value):
    """A setting as JSON has it."""
    if isinstance(value, Member):
        return [value.name, str(value.address), str(value.http)]
    if isinstance(value, Range):
        return list(asdict(value).values())
    if isinstance(value, Timing):
        return value._asdict()
    if isinstance(value, (domkl.Algorithm, Address)):
        return repr(value) if isinstance(value, domkl.Algorithm) else str(value)
    return [said_of(each) for each in value] if isinstance(value, tuple) else value


# --- folders of nodes -----------------------------------------------------------------------------

NODES = {
    "table": {**TABLE, "algorithm": domkl.DOMKRLS()},
    "series": {"target": TABLE["target"], "lags": 2, "algorithm": domkl.DOMKL()},
    "single": {**TABLE, "algorithm": domkl.RFFDOMKL(), "dtype": "float32"},
}


def nodes():
    folder = HERE / "nodes"
    folder.mkdir()
    said = {}
    for name, given in NODES.items():
        config = MeshConfig(
            members=members(name), edges=(), kernels=(1.0, 10.0), n_frequencies=2,
            checkpoint_every=7, **given,
        )  # fmt: skip
        (folder / name).mkdir()
        write_config(folder / name / "mesh.toml", config)
        write_node(folder / name, config)
        with tempfile.TemporaryDirectory() as copy:
            shutil.copytree(folder / name, Path(copy) / name)
            said[name] = {"entries": entries_of(config), **node_said(Path(copy) / name, config)}
    write_json(folder / "nodes.json", said)


def entries_of(config):
    """Values, id and whether it is a row of a file, of 18 samples; some outside of their ranges."""
    made = []
    for k in range(1, 19):
        a, b = (k * 0.37) % 10, ((k * 0.61) % 2) - 1
        values = [10 * a * (b + 1) / 2] if config.lags else [a, b, 10 * a * (b + 1) / 2]
        if k == 5:
            values[-1] = 150.0
        id, is_row = (f"meter:{k}", False) if k % 3 else (f"house.csv:{k}", True)
        made.append([values, "" if k % 3 == 1 else id, is_row])
    return made


def write_node(folder, config):
    """Learn 18 samples, in frames of one to three; the last checkpoint is behind them."""
    ledger = Ledger(folder / "data", config.model(), config.lags)
    protocol = started(folder, config, ledger)
    entries = [Entry(np.array(v), id, is_row) for v, id, is_row in entries_of(config)]
    for frame in np.split(np.arange(len(entries)), [1, 2, 5, 6, 9, 10, 13, 14, 17]):
        items = [ledger.desk.prepared(entries[k]) for k in frame]
        ledger.accepted(ledger.journal.append([item.entry for item in items]), items)
        learn(ledger, protocol)
    ledger.close()


def started(folder, config, ledger):
    epoch = next_epoch(folder / "data" / "epoch", EPOCH)
    snapshot = None if ledger.state is None else Snapshot(*ledger.state)
    (name,) = config.names
    return Protocol(
        name, config.model(), (), incarnation=epoch, checkpoint_every=config.checkpoint_every,
        snapshot=snapshot,
    )  # fmt: skip


def learn(ledger, protocol):
    while ledger.waiting:
        for effect in protocol.handle(ledger.waiting.popleft(), 0.0):
            if isinstance(effect, events.Predicted):
                ledger.learned(effect.number)
            elif isinstance(effect, events.Checkpoint):
                ledger.tidy()
                ledger.store(ledger.saved(Parts(*protocol.snapshot())))


def node_said(folder, config):
    """What a node says that starts with this folder, once it has learned what was waiting."""
    ledger = Ledger(folder / "data", config.model(), config.lags)
    said = {"position": ledger.position, "n_waiting": ledger.n_waiting, "last": ledger.journal.last}
    said |= {"ids": ledger.journal.ids, "rows": ledger.journal.rows}
    said["saved"] = int(ledger.state.header["learned"])
    protocol = started(folder, config, ledger)
    learn(ledger, protocol)
    x = np.linspace(0.2, 0.8, len(config.inputs))
    said |= {
        "n_learned": protocol.learned,
        "n_outside": ledger.n_outside,
        "x": x.tolist(),
        "prediction": protocol.predict(x),
        "deviation": protocol.deviation(x),
        "digest": digest(Parts(*protocol.snapshot())),
        "arrays": {name: v.tolist() for name, v in protocol.snapshot().arrays.items()},
        "mse": protocol.measures.mse,
        "mse_alone": protocol.measures.mse_alone,
    }
    ledger.close()
    return said


# --- conversations --------------------------------------------------------------------------------


def model_for(algorithm, dtype="float64", seed=1):
    features = domkl.RandomFeatures.draw(bank_for(algorithm), 2, 2, seed=seed)
    ranges = Range("a", 0.0, 1.0), Range("b", 0.0, 1.0)
    return Model(algorithm, features, ranges, Range("y", 0.0, 1.0), dtype)


class Transcript:
    """Learners that speak with each other, and all that they were told and asked for."""

    def __init__(self, protocols):
        self.protocols = {each.name: each for each in protocols}
        self.air, self.calls, self.frames, self.now = [], [], [], 0.0

    def tell(self, name, event):
        protocol = self.protocols[name]
        found = protocol.leave() if event is None else protocol.handle(event, self.now)
        effects = [self.written(each) for each in found]
        self.calls.append([name, self.now, self.written(event), effects])
        self.air += [(e.peer, name, e.data) for e in found if isinstance(e, events.Send)]

    def written(self, value):
        """An event or effect as JSON has it: a frame by its number, an alarm without its words."""
        if value is None:
            return ["leave"]
        if isinstance(value, events.Alarm):
            return ["Alarm", value.kind, value.peer]
        return [type(value).__name__, *(self._plain(each) for each in value)]

    def _plain(self, value):
        if not isinstance(value, bytes):
            return np.asarray(value).tolist()
        if value.hex() not in self.frames:
            self.frames.append(value.hex())
        return self.frames.index(value.hex())

    def deliver(self, is_lost=lambda to, kind: False):
        while self.air:
            to, sender, data = self.air.pop(0)
            if not is_lost(to, decode(data, 10**6).kind.name):
                self.tell(to, events.Received(sender, data))

    def wait(self, seconds, is_lost=lambda to, kind: False):
        for _ in range(round(seconds / 0.125)):
            self.now += 0.125
            for name in self.protocols:
                self.tell(name, events.Tick())
            self.deliver(is_lost)


def conversation(algorithm, dtype, mode):
    """Two learners and a stranger to their model: meet, learn, lose, follow, part."""
    model, other = model_for(algorithm, dtype), model_for(algorithm, dtype, seed=9)
    given = {"incarnation": 5, "mode": mode, "checkpoint_every": 3}
    talk = Transcript(
        [
            Protocol("a", model, ("b", "c"), **given),
            Protocol("b", model, ("a",), **given),
            Protocol("c", other, ("a",), **given),
        ]
    )
    talk.tell("a", events.PeerUp("b"))
    talk.tell("b", events.PeerUp("a"))
    talk.deliver()
    for k in range(1, 6):
        for name in ("a", "b"):
            x = np.array([0.1 * k, 0.3 if name == "a" else 0.9])
            talk.tell(name, events.Sample(k, x, float(x[0] * x[1])))
            talk.deliver(lambda to, kind, k=k: kind == "OFFER" and to == "a" and k == 3)
        talk.wait(0.5)
        if k == 1:
            talk.tell("a", events.PeerUp("c"))
            talk.tell("c", events.PeerUp("a"))
            talk.deliver()
    talk.tell("a", events.Sample(6, np.array([0.5, 0.5]), 0.5))  # b has no sample
    talk.wait(1.5)
    talk.tell("a", events.PeerDown("b"))
    talk.tell("a", events.PeerUp("b"))
    talk.wait(0.5)
    talk.tell("b", events.Neighbors(()))
    talk.tell("a", None)
    talk.deliver()
    return talk


def wire():
    folder = HERE / "wire"
    folder.mkdir()
    kinds = set()
    for name, make in {
        **MESH_ALGORITHMS, "message-passing": lambda: domkl.DOMKL(weights="message-passing")
    }.items():  # fmt: skip
        dtype = "float32" if name == "rff-dokl" else "float64"
        mode = "async" if name == "dokl" else "lockstep"
        talk = conversation(make(), dtype, mode)
        x = np.array([0.4, 0.6])
        said = {
            "algorithm": repr(make()), "dtype": dtype, "mode": mode,
            "predictions": {n: each.predict(x) for n, each in talk.protocols.items()},
        }  # fmt: skip
        head, calls, frames = json.dumps(said)[:-1], rows(talk.calls), rows(talk.frames)
        text = f'{head},\n"calls": {calls},\n"frames": {frames}}}\n'
        (folder / f"{name}.json").write_text(text)
        kinds |= {decode(bytes.fromhex(frame), 10**6).kind.name for frame in talk.frames}
    print("kinds of frames:", ", ".join(sorted(kinds)))


def rows(values):
    return "[\n" + ",\n".join(json.dumps(each) for each in values) + "\n]"


def main():
    assert domkl.__version__ == "0.1.0", domkl.__version__
    for each in HERE.iterdir():
        if each.is_dir() and each.name != "__pycache__":
            shutil.rmtree(each)
    secrets.randbits = lambda bits: SALT
    journals.SEGMENT = SEGMENT
    os.umask(0o022)
    for part in (machine, learners, states, mpi, mesh, nodes, wire):
        part()


if __name__ == "__main__":
    main()
