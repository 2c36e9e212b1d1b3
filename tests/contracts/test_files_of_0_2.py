"""Files that versions 0.2 to 0.5 wrote are read, and what goes on from them comes to the same.

tests/data/v0.2 has files of 0.2 and, as JSON, what 0.2 said of them; write.py there shows how they
were made. On the machine that wrote them numbers are compared to the bit. Elsewhere sums are
rounded in another order: there 1e-9 is enough, and 1e-5 where the state is float32.

DOMKRLS has another law since 0.4, again since 0.5, and again since; tests/data/v0.3 to v0.5 have
files of it alone. Its fits go on as they were; what is made of them may err by a tenth more than it
did.
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
from domkl.algorithms import least_squares
from domkl.algorithms.mixtures import side_of
from domkl.algorithms.registry import find
from domkl.estimators import river, sklearn
from domkl.learner.restore import notes_of_now, of_now
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
BOTH_FILES = {"0.2": FILES} | {version: OldFiles(version) for version in ("0.3", "0.4", "0.5")}
MEMORIES = [0, 0, 1]  # of the fits of two kernels
FITS = ("own", "diagonal", "factor", "sums")
N_SAMPLES = 18
SECOND = 14 * 126_489_600  # of the first sample, as write.py has it


def samples(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) + 0.5 * X[:, -1]


X, Y = samples(90)
BOTH = np.column_stack([Y, 100 * X[:, 0]])
WORDS = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.5, 0.5])]


def cases(part, name=None):
    """What both versions said of the files of a part: version, name, what it said."""
    return [
        pytest.param(version, key, told, id=f"{version}-{key}")
        for version, files in BOTH_FILES.items()
        for key, told in files.said(part, name).items()
    ]


def is_as_good(found, before, truth, most=1.1):
    """Check that errors are at most a tenth above those of before."""
    now, then = (np.mean((np.asarray(each) - truth) ** 2) for each in (found, before))
    assert now <= most * then


def has_fits(state, stored):
    """Check that a state of DOMKRLS has these fits, each with the counts of its memory."""
    for field in FITS:
        np.testing.assert_array_equal(getattr(state, field), stored[field])
    for field in ("counts", "own_counts"):
        counts = stored[field]  # of memories before 0.4, then of fits
        counts = counts[:, MEMORIES] if counts.shape[1] == 2 else counts
        np.testing.assert_array_equal(getattr(state, field), counts)


def has_accounts(state, old):
    """Check that what is left of the accounts and of the corrector goes on, on both sides."""
    of_side = {"score": slice(1, 4), "final": slice(0, 3, 2), "regret": slice(None)}
    for field, kept in of_side.items():
        values = getattr(old, field)
        values = values if values.ndim == 3 else values[:, None]  # there was one side
        found = getattr(state, field)
        np.testing.assert_array_equal(found, np.broadcast_to(values[..., kept], found.shape))
    clues = [0, 1, 2, 4] if np.shape(old.correction)[-1] == 8 else slice(None)  # no season
    found = state.correction[..., clues]
    second = np.reshape(old.correction, (len(found), -1, 2, found.shape[-1]))[:, :, 1]
    np.testing.assert_array_equal(found, np.broadcast_to(second, found.shape))


def state_in(arrays, prefix="state."):
    return {name[len(prefix) :]: v for name, v in arrays.items() if name.startswith(prefix)}


@pytest.mark.parametrize(("version", "name", "expected"), cases("learners"))
def test_a_learner_goes_on(version, name, expected, tmp_path):
    path = learners_of(version) / f"{name}.npz"
    if name.startswith("domkrls"):
        with np.load(path) as stored:
            has_fits(domkl.Learner.load(path).state, state_in(dict(stored)))
    check_goes_on(loaded(domkl.Learner, path, tmp_path), name, expected)


@pytest.mark.parametrize("version", BOTH_FILES)
@pytest.mark.parametrize("name", ["domkrls-early", "domkrls-later"])
def test_a_pickled_learner_goes_on(version, name):
    path = learners_of(version) / f"{name}.npz"
    made = unpickled(domkl.Learner, path)
    with np.load(path) as stored:
        has_fits(made.state, state_in(dict(stored)))
    check_goes_on(made, name, BOTH_FILES[version].said("learners")[name])


def check_goes_on(learner, name, expected):
    assert learner.n_seen == expected["n_seen"]
    assert learner.algorithm == eval(
        expected["algorithm"], {**vars(domkl), "Squared": domkl.Squared}
    )
    if name.startswith("domkrls"):
        is_as_good(learner.predict(X[80:]), expected["predictions"], Y[80:])
        # deviations have another law since
        np.testing.assert_allclose(learner.deviation(X[80:]), expected["deviations"], rtol=0.25)
        learner.learn(X[70:80], Y[70:80])
        is_as_good(learner.predict(X[80:]), expected["later"], Y[80:])
        return
    same(learner.predict(X[80:]), expected["predictions"])
    if "deviations" in expected:
        same(learner.deviation(X[80:]), expected["deviations"])
    learner.learn(X[70:80], Y[70:80])
    same(learner.predict(X[80:]), expected["later"])


def learners_of(version):
    return BOTH_FILES[version].folder / "learners"


def loaded(kind, path, tmp_path):
    """A learner or estimator of a file, saved by this version and loaded again."""
    kind.load(path).save(tmp_path / "again.npz")
    return kind.load(tmp_path / "again.npz")


def unpickled(kind, path, tmp_path=None):
    """The same of the pickle beside it, pickled by this version and loaded again."""
    made = pickle.loads(path.with_suffix(".pickle").read_bytes())
    assert type(made) is kind
    return pickle.loads(pickle.dumps(made))


ESTIMATORS = cases("learners", "estimators")


def estimators(kinds):
    return [case for case in ESTIMATORS if case.values[1] in kinds]


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
@pytest.mark.parametrize(("version", "name", "expected"), estimators(SKLEARN))
def test_a_scikit_learn_estimator_goes_on(version, name, expected, read, tmp_path):
    kind, rows, labels, predict = SKLEARN[name]
    made = read(kind, learners_of(version) / f"{name}.npz", tmp_path)
    truth = labels[80:, None] == made.classes_ if hasattr(made, "classes_") else labels[80:]
    found, before = predict(made, rows[80:]), expected["before"]
    if name == "sklearn-regressor":  # with deviations, which have another law since
        np.testing.assert_allclose(found[1], before[1], rtol=0.25)
        found, before = found[0], before[0]
    is_as_good(found, before, truth)
    given = {"sample_weight": np.linspace(0.5, 2.0, 10)} if name == "sklearn-outputs" else {}
    made.partial_fit(rows[70:80], labels[70:80], **given)
    found, before = predict(made, rows[80:]), expected["later"]
    if name == "sklearn-regressor":
        np.testing.assert_allclose(found[1], before[1], rtol=0.25)
        found, before = found[0], before[0]
    is_as_good(found, before, truth)


def named(row):
    return dict(zip(("a", "b"), row.tolist(), strict=True))


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
@pytest.mark.parametrize(("version", "name", "expected"), estimators(RIVER))
def test_a_river_estimator_goes_on(version, name, expected, read, tmp_path):
    kind, labels, predict = RIVER[name]
    more = {"kind": "new"} if name == "river-regressor" else {}
    rows = [named(row) | more for row in X]
    made = read(kind, learners_of(version) / f"{name}.npz", tmp_path)
    found = [predict(made, row) for row in rows[80:]]
    if "classes" in name:
        classes = list(made.predict_proba_one(rows[80]))
        truth = [[label == each for each in classes] for label in labels[80:]]
    else:
        truth = BOTH[80:] if name == "river-outputs" else Y[80:]
    most = 2.0 if name == "river-outputs" else 1.1  # one of its labels is an input, without noise
    is_as_good(found, expected["before"], truth, most)
    for row, label in zip(rows[70:80], labels[70:80], strict=True):
        made.learn_one({"late": 0.5, **row}, label)
    found = [predict(made, row) for row in rows[80:]]
    is_as_good(found, expected["later"], truth, most)


@pytest.mark.parametrize("version", ["0.3", "0.4", "0.5"])
@pytest.mark.parametrize("read", [loaded, unpickled])
def test_an_estimator_goes_on_whose_labels_come_late(version, read, tmp_path):
    """A file has the predictions that wait; a pickle that has them is of another form, and they
    are made again."""
    made = read(river.OnlineKernelRegressor, learners_of(version) / "river-late.npz", tmp_path)
    asked, told, rows = made.learner.asked, [], [named(row) for row in X]
    assert (asked.delay, len(asked)) == (3, 3 if read is loaded else 0)
    for i in range(70, 90):
        told.append(made.predict_one(rows[i]))
        made.learn_one(rows[i - 3], Y[i - 3])
    before = BOTH_FILES[version].said("learners", "estimators")["river-late"]["later"]
    is_as_good(told, before, Y[70:])


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
    if isinstance(template, least_squares.State):  # by position, as pickles have it
        found = arrays if not prefix else state_in(arrays, prefix)
        return least_squares.State(*found.values())
    values = []
    for name, value in template._asdict().items():
        is_inner = hasattr(value, "_asdict")
        key = f"{prefix}{name}"
        values.append(restored(value, arrays, f"{key}.") if is_inner else arrays[key])
    return type(template)(*values)


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize(("version", "name", "expected"), cases("states"))
def test_a_run_goes_on_from_its_state(version, name, expected, interpreted):
    kind, dtype, delay = name.rsplit("-", 2)
    algorithm = algorithm_of(kind)
    X, y = network(12)
    given = {
        "graph": domkl.Graph.path(3), "features": features_for(algorithm), "dtype": dtype,
        "delay": int(delay), "interpreted": interpreted,
    }  # fmt: skip
    template = domkl.simulate(algorithm, X[:4], y[:4], **given).state
    with np.load(BOTH_FILES[version].folder / "states" / f"{name}.npz") as stored:
        state = restored(template, dict(stored))
    run = domkl.simulate(algorithm, X[8:], y[8:], **given, state=state)
    tolerance = 1e-5 if dtype == "float32" else 1e-9
    sums = {field: float(values.sum()) for field, values in arrays_of(run.state).items()}
    if kind.startswith("domkrls"):
        learners = [getattr(each, "state", each) for each in (state, template)]
        for each in (algorithm, domkl.Alone(algorithm)):
            now = of_now(each, *learners)
            has_fits(now, learners[0]._asdict())
            old = learners[0]
            has_accounts(now, old)
            rounds = old.bound[:, 1] if old.bound.size else old.own_rounds
            np.testing.assert_array_equal(now.bound[:, 1], rounds)
            assert not now.bound[:, -1].any()  # nothing was confirmed before 0.6
            assert (now.bound[:, 0] > 0).all()  # labels are believed by the errors of before
        most = 2.0 if "ahead" in name else 1.1  # a lag that tells nothing, and eight labels
        is_as_good(run.predictions, expected["predictions"], y[8:], most)
        for field, total in expected["sums"].items():
            if field.split(".")[-1] in FITS:
                np.testing.assert_allclose(sums[field], total, rtol=100 * tolerance)
        return
    same(run.predictions, expected["predictions"], tolerance)
    same(run.cv, expected["cv"], tolerance)
    assert list(sums) == list(expected["sums"])
    same(list(sums.values()), list(expected["sums"].values()), 10 * tolerance)


@pytest.mark.parametrize("version", ["0.3", "0.4", "0.5"])
@pytest.mark.parametrize("delay", [0, 3])
def test_ranks_go_on_from_a_state_as_one_process_does(delay, version):
    from mpi4py import MPI

    algorithm, (X, y) = domkl.DOMKRLS(), network(12)
    given = {"graph": domkl.Graph.path(3), "features": features_for(algorithm), "delay": delay}
    template = domkl.simulate(algorithm, X[:4], y[:4], **given).state
    with np.load(BOTH_FILES[version].folder / "states" / f"domkrls-float64-{delay}.npz") as stored:
        state = restored(template, dict(stored))
    run = domkl.simulate(algorithm, X[8:], y[8:], **given, state=state)
    ranks = domkl.simulate_sharded(
        algorithm, X[8:], y[8:], **given, state=state, comm=MPI.COMM_SELF
    )
    np.testing.assert_allclose(ranks.mse, run.mse, rtol=1e-9)


def named_notes(**lengths):
    return {name: 10.0 * i + np.arange(n) for i, (name, n) in enumerate(lengths.items())}


def check_side(made, side, old, clues):
    """Of two fits: m and A are gone, and the lag is beside the mixtures."""
    told = getattr(side_of, "py_func", side_of)(made, 2, side)
    np.testing.assert_array_equal(told.experts, old["experts"])
    np.testing.assert_array_equal(told.mixtures, [*old["mixtures"][1:], old["experts"][-1]])
    np.testing.assert_array_equal(told.final, old["final"][[0, 2]])
    np.testing.assert_array_equal(told.clues[clues], old["clues"])
    assert told.y_hat.tolist() == [99.0]


N_NOTES = 41  # of two fits


def test_notes_of_0_2_keep_their_names():
    old = named_notes(experts=6, mixtures=4, final=3, shares=2, clues=4, spread=2, weight=1)
    (made,) = notes_of_now(np.concatenate([*old.values()])[None], np.array([99.0]), N_NOTES)
    for side in range(2):
        check_side(made, side, old, [0, 1, 2, 4])  # there was no season
    apart = 30 * 20**2 + 31 * 19**2  # shares, and how far experts are from the prediction, 20
    assert made[-3:].tolist() == [50.0, apart, 60.0]


@pytest.mark.parametrize(("n_clues", "clues"), [(4, [0, 1, 2, 4]), (6, slice(None))])
def test_notes_of_0_4_and_0_5_keep_their_names(n_clues, clues):
    side = named_notes(experts=6, mixtures=4, final=3, clues=n_clues) | {"y_hat": [99.0]}
    both = {"shares": [1.0, 2.0], "f": [3.0], "spread": [4.0, 5.0, 6.0], "weight": [7.0]}
    row = np.concatenate([*side.values(), *side.values(), *both.values()])
    (made,) = notes_of_now(row[None], np.array([99.0]), N_NOTES)
    for number in range(2):
        check_side(made, number, side, clues)
    assert made[-3:].tolist() == [4.0, 6.0, 7.0]
    np.testing.assert_array_equal(notes_of_now(made[None], np.array([99.0]), N_NOTES), [made])


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
    if kind == "domkrls":
        before = said("mpi")[name]["mse"]
        same(run.mse[:8], before[:8])
        now, then = (12 * mse[-1] - 8 * mse[7] for mse in (run.mse, before))  # of the rounds since
        assert now <= 1.1 * then
        return
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
        period = {"period": model.parts["period"]} if config.forecast else {}  # since 0.5
        assert dict(model.parts) == before["parts"] | period
        assert (model.fingerprint.hex() == before["fingerprint"]) == (not period)
        assert not model.obstacle(before["parts"])
    write_config(tmp_path / "mesh.toml", config)
    written = tomllib.loads((tmp_path / "mesh.toml").read_text())
    if name != "by-hand":  # that one leaves out what has a default
        assert written == tomllib.loads(path.read_text())
    assert read_config(tmp_path / "mesh.toml") == config


def unpacked(part, target, version="0.2"):
    with tarfile.open(BOTH_FILES[version].folder / part / f"{part}.tar.gz") as tar:
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
            told = [node.predict(np.array(expected["x"]))[:-1]]  # without quantiles
        else:
            told = [tuple(each)[:-1] for each in node.forecast({})]
        n_outside = node.backlog.n_outside
        await node.close()
        return parts, told, n_outside

    parts, told, n_outside = asyncio.run(story())
    assert parts.header["learned"] == expected["n_learned"]
    assert n_outside == expected["n_outside"]
    was = {name.split(".")[-1] for name in expected["sums"]}
    is_law_new = bool(was & {"residual", "by_evidence"})
    if is_law_new:
        assert not any("alone." in name for name in parts.arrays)  # it is in the state
        for name, total in expected["sums"].items():
            if name.split(".")[-1] in FITS and "alone." not in name:
                np.testing.assert_allclose(parts.arrays[name].sum(), total, rtol=100 * tolerance)
    else:
        since = {f for f in parts.arrays if f.endswith((".quantiles", ".given"))}
        since |= {f for f in parts.arrays if "bounds." in f or "sides." in f}
        assert set(parts.arrays) - since == set(expected["sums"]) - since
        for name, total in expected["sums"].items():
            same(float(parts.arrays[name].sum()), total, 100 * tolerance)
        if FILES.is_writer:
            assert digest(parts) == expected["digest"]
    before = [tuple(each) for each in expected.get("forecasts", [expected.get("prediction")])]
    for new, with_quantiles in zip(told, before, strict=True):
        old = with_quantiles[: len(new)]
        assert new[:-2] == old[:-2]  # horizon and time
        assert (new[-1] is None) == (old[-1] is None)
        if is_law_new:
            assert new[-2] == pytest.approx(old[-2], abs=0.1 * old[-1])  # deviations
            assert new[-1] == pytest.approx(old[-1], rel=0.1)
            continue
        same([v for v in new[-2:] if v is not None], [v for v in old[-2:] if v is not None], 1e-5)


NODES = said("nodes")


@pytest.mark.parametrize(("version", "name", "expected"), cases("nodes"))
def test_a_node_goes_on_from_its_folder(version, name, expected, tmp_path):
    folder = unpacked("nodes", tmp_path, version) / name
    goes_on(folder, expected, 1e-5 if name == "single" else 1e-9)


@pytest.mark.parametrize("version", BOTH_FILES)
@pytest.mark.parametrize("name", ["table", "delayed"])
def test_the_fits_of_a_node_are_those_of_its_folder(version, name, tmp_path):
    folder = unpacked("nodes", tmp_path, version) / name
    arrays = Checkpoints(folder / "data").load().state.arrays
    learner = read_config(folder / "mesh.toml").model().learner()
    learner.restore("state", arrays)
    has_fits(learner.state, state_in(arrays))
    n_waiting = len(arrays.get("waiting.state.y", ()))
    assert len(learner.saved("state").get("waiting.state.notes", ())) == n_waiting
    assert bool(n_waiting) == (name == "delayed")


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
