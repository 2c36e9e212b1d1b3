"""Saved learners: any bytes load or raise DataError, and none run code."""

import contextlib
import io
import json
import runpy
import zipfile
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import domkl
from domkl import storage
from domkl.estimators import river, serialize, sklearn
from domkl.estimators.learner import Learner


def learned(**options):
    X = np.random.default_rng(0).uniform(size=(60, 2))
    return Learner(n_frequencies=4, **options).learn(X, X[:, 0]), X


@pytest.fixture(scope="module")
def saved():
    return storage.pack("learner", serialize.parts_of(learned()[0]))


def loaded(data):
    with storage.sound("learner"):
        return serialize.learner_of(Learner, storage.unpack("learner", data))


def rewritten(data, change=None, compression=zipfile.ZIP_STORED, **arrays):
    """The same archive with another header or other arrays."""
    with np.load(io.BytesIO(data)) as stored:
        held = dict(stored)
    header = json.loads(held["header"].tobytes())
    if change is not None:
        change(header)
    held["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    held |= arrays
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        for name, values in held.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, values, allow_pickle=True)
    return made.getvalue()


@pytest.mark.parametrize(
    "algorithm",
    [
        domkl.DOMKL(rho=1.0, loss=domkl.Pinball(0.3)),
        domkl.Alone(domkl.RFFDOMKL(step=0.1)),
        domkl.LinearRLS(),
        domkl.LastValue(newest_lag=1),
    ],
)
def test_every_algorithm_comes_back(algorithm, tmp_path):
    learner, X = learned(algorithm=algorithm, bank=domkl.gaussian_bank([0.5, 2.0]))
    learner.save(tmp_path / "learner.npz")
    again = Learner.load(tmp_path / "learner.npz")
    assert again.algorithm == algorithm
    assert again.features == learner.features
    np.testing.assert_array_equal(again.predict(X), learner.predict(X))
    assert [path.name for path in tmp_path.iterdir()] == ["learner.npz"]


def test_a_learner_that_has_learned_nothing_comes_back(tmp_path):
    Learner(seed=5).save(tmp_path / "learner.npz")
    again = Learner.load(tmp_path / "learner.npz")
    assert again.features is None
    assert again.columns.seed == 5


@pytest.mark.parametrize("n", [1, 3, 50, 100])
def test_it_goes_on_from_the_first_samples_as_from_later_ones(n, tmp_path):
    X = np.random.default_rng(0).uniform(size=(200, 2))
    learner = Learner().learn(X[:n], X[:n, 0])
    learner.save(tmp_path / "learner.npz")
    again = Learner.load(tmp_path / "learner.npz")
    ours, theirs = (each.learn(X[n:], X[n:, 0]).predict(X) for each in (learner, again))
    np.testing.assert_array_equal(ours, theirs)


class OwnState(NamedTuple):
    theta: np.ndarray  # (K, P, D)


class OwnMessage(NamedTuple):
    pass


class Own(domkl.Algorithm):
    """Least mean squares in NumPy: no dataclass, and with a parameter that no file can hold."""

    exchange: ClassVar = {}

    def __init__(self, rate=lambda: 0.5):
        self.rate = rate

    def init(self, sizes):
        return OwnState(np.zeros(sizes.theta))

    def predict(self, state, inputs):
        by_kernel = np.sum(state.theta * inputs.z, axis=-1)
        return domkl.Prediction(by_kernel.mean(axis=1), by_kernel)

    def local_step(self, state, inputs, y, prediction, net):
        error = self.rate() * (y[:, None] - prediction.by_kernel)
        return OwnState(state.theta + error[:, :, None] * inputs.z), OwnMessage()

    def merge(self, state, heard, net):
        return state


def test_a_users_algorithm_learns():
    learner, X = learned(algorithm=Own())
    assert np.mean((learner.predict(X) - X[:, 0]) ** 2) < 0.8 * X[:, 0].var()
    long = Learner(Own(), n_frequencies=4).learn(np.tile(X, (3, 1)), np.tile(X[:, 0], 3))
    short = Learner(Own(), n_frequencies=4)
    for _ in range(3):
        for x in X:
            short.learn(x[None], x[:1])
    np.testing.assert_array_equal(long.state.theta, short.state.theta)


def test_a_users_algorithm_takes_new_inputs():
    model = river.OnlineKernelRegressor(Own())
    model.learn_one({"a": 1.0}, 2.0)
    model.learn_one({"a": 2.0, "b": 1.0}, 3.0)
    assert np.isfinite(model.predict_one({"b": 1.0}))


def test_a_users_algorithm_with_the_name_of_ours_is_not_taken_for_it(tmp_path):
    made = type("DOMKL", (Own,), {})
    learned(algorithm=made())[0].save(tmp_path / "learner.npz")
    with pytest.raises(domkl.DataError, match=":DOMKL' is not a part of domkl"):
        Learner.load(tmp_path / "learner.npz")


def test_a_users_algorithm_is_given_on_loading(tmp_path):
    learner, X = learned(algorithm=Own())
    learner.save(tmp_path / "learner.npz")
    with pytest.raises(domkl.DataError, match=":Own' is not a part of domkl"):
        Learner.load(tmp_path / "learner.npz")
    again = Learner.load(tmp_path / "learner.npz", algorithm=Own())
    np.testing.assert_array_equal(again.predict(X), learner.predict(X))
    model = sklearn.OnlineKernelRegressor(Own()).fit(X, X[:, 0])
    model.save(tmp_path / "model.npz")
    again = sklearn.OnlineKernelRegressor.load(tmp_path / "model.npz", algorithm=Own())
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    model = river.OnlineKernelRegressor(Own())
    model.learn_one({"a": 1}, 2)
    model.save(tmp_path / "model.npz")
    again = river.OnlineKernelRegressor.load(tmp_path / "model.npz", algorithm=Own())
    assert again.predict_one({"a": 1}) == model.predict_one({"a": 1})


def test_names_and_classes_come_back(tmp_path):
    import pandas as pd

    X = np.random.default_rng(0).normal(size=(60, 2))
    table, labels = pd.DataFrame(X, columns=["a", "b"]), np.where(X[:, 0] > 0, "up", "down")
    model = sklearn.OnlineKernelClassifier(random_state=np.int64(3)).fit(table, labels)
    model.save(tmp_path / "model.npz")
    again = sklearn.OnlineKernelClassifier.load(tmp_path / "model.npz")
    assert again.get_params() == model.get_params()
    assert again.predict(table).tolist() == model.predict(table).tolist()
    again.partial_fit(table, labels)
    with pytest.raises(domkl.DataError, match="must hold a scikit-learn OnlineKernelRegressor"):
        sklearn.OnlineKernelRegressor.load(tmp_path / "model.npz")
    tuples = river.OnlineKernelRegressor()
    tuples.learn_one({("lag", 1): 1.0, "a": 2.0, 3: 4.0}, 2)
    tuples.save(tmp_path / "model.npz")
    assert river.OnlineKernelRegressor.load(tmp_path / "model.npz").learner.names == (
        *tuples.learner.names,
    )


def test_what_cannot_be_written_says_so(tmp_path):
    model = river.OnlineKernelRegressor()
    model.learn_one({frozenset(): 1.0}, 2)
    with pytest.raises(domkl.ParameterError, match="parameters must be numbers"):
        model.save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def wrong(name, value):
    return lambda header: header.__setitem__(name, value)


HEADERS = {
    "version": wrong("version", 2),
    "kind": wrong("kind", "model"),
    "format": wrong("format", None),
    "missing": lambda header: header.pop("bank"),
    "class": wrong("algorithm", {"class": "Graph", "fields": {}}),
    "module": wrong("algorithm", {"class": "os.system", "fields": {"command": "true"}}),
    "builtin": wrong("algorithm", {"class": "eval", "fields": {}}),
    "kernel": wrong("algorithm", {"class": "Gaussian", "fields": {}}),
    "parameter": wrong("algorithm", {"class": "DOMKL", "fields": {"rho": -1}}),
    "unknown": wrong("algorithm", {"class": "DOMKL", "fields": {"colour": 1}}),
    "names": wrong("names", {"items": [0, 0], "list": False}),
    "fewer names": wrong("names", {"items": [0], "list": False}),
    "no names": wrong("names", None),
    "seed": wrong("seed", -1),
    "count": wrong("n_seen", -1),
    "fingerprint": wrong("fingerprint", "abc"),
    "list": lambda header: header.clear(),
}


@pytest.mark.parametrize("name", HEADERS)
def test_wrong_headers_are_refused(name, saved):
    with pytest.raises(domkl.DataError, match="file must hold a learner"):
        loaded(rewritten(saved, HEADERS[name]))


ARRAYS = {
    "shape": {"state.own": np.zeros((1, 2, 3))},
    "type": {"state.loss": np.zeros((1, 5), dtype=np.int64)},
    "nan": {"x_seen.mean": np.array([np.nan, 0.0])},
    "early": {"early.x": np.zeros((3, 2))},
    "early infinity": {"early.y": np.full(60, np.inf)},
    "early absent": {"early.x": np.full((60, 2), np.inf)},
    "objects": {"x_seen.mean": np.array([{}, 0.0], dtype=object)},
    "frequencies": {"frequencies": np.ones((3, 4, 2))},
    "header": {"header": np.array([1, 2], dtype=np.uint8)},
    "nested": {"header": np.frombuffer(b"[" * 100_000, dtype=np.uint8)},
}


@pytest.mark.parametrize("name", ARRAYS)
def test_wrong_arrays_are_refused(name, saved):
    with pytest.raises(domkl.DataError, match="file must hold a learner"):
        loaded(rewritten(saved, **ARRAYS[name]))


def test_compressed_archives_are_refused(saved):
    with pytest.raises(domkl.DataError, match="compressed"):
        loaded(rewritten(saved, compression=zipfile.ZIP_DEFLATED))


def test_an_untouched_archive_loads(saved):
    assert loaded(rewritten(saved)).n_seen == 60


@settings(max_examples=200)
@given(st.data())
def test_any_bytes_load_or_raise(saved, data):
    """Cut, changed and made up."""
    how = data.draw(st.sampled_from(["cut", "change", "made up"]))
    if how == "made up":
        spoiled = data.draw(st.binary(max_size=200))
    elif how == "cut":
        spoiled = saved[: data.draw(st.integers(0, len(saved) - 1))]
    else:
        spoiled = bytearray(saved)
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(0, len(saved) - 1))
            spoiled[place] = data.draw(st.integers(0, 255))
        spoiled = bytes(spoiled)
    with contextlib.suppress(domkl.DataError):
        loaded(spoiled)


def test_a_missing_file_is_just_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Learner.load(tmp_path / "nothing.npz")


@pytest.mark.parametrize(
    "header", ["{'descr': '<f8', 'fortran_order': False, 'shape': (3, ", "((((("]
)
def test_an_array_header_that_does_not_end_is_refused(tmp_path, header):
    text = header.encode().ljust(117) + b"\n"
    array = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(24)
    path = tmp_path / "hostile.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.npy", array)
    with pytest.raises(domkl.DataError, match="must hold a learner"):
        domkl.Learner.load(path)


GOLDEN = Path(__file__).parents[2] / "golden" / "estimators"
#: files of algorithms whose law has not changed since; the others are DOMKRLS's
SAME_LAW = ("early", "river-regressor")
WRITTEN = runpy.run_path(str(GOLDEN / "write.py"))


@pytest.mark.parametrize("name", json.loads((GOLDEN / "expected.json").read_text()))
def test_files_of_version_0_1_load(name):
    kinds = {
        "learner": Learner,
        "early": Learner,
        "sklearn-regressor": sklearn.OnlineKernelRegressor,
        "sklearn-classifier": sklearn.OnlineKernelClassifier,
        "river-regressor": river.OnlineKernelRegressor,
        "river-classifier": river.OnlineKernelClassifier,
    }
    expected = json.loads((GOLDEN / "expected.json").read_text())[name]
    found = WRITTEN["predictions"](kinds[name].load(GOLDEN / f"{name}.npz"))
    if name in SAME_LAW:
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    else:  # the same fits, mixed by another law
        np.testing.assert_allclose(found, expected, atol=0.3)


def test_the_files_are_what_is_written_today(tmp_path):
    """Byte for byte but for the last digits of what was learned: names, shapes and headers."""
    for name, model in WRITTEN["models"]():
        if name not in SAME_LAW:
            continue
        model.save(tmp_path / f"{name}.npz")
        with np.load(tmp_path / f"{name}.npz") as ours, np.load(GOLDEN / f"{name}.npz") as theirs:
            assert ours.files == theirs.files
            assert ours["header"].tobytes() == theirs["header"].tobytes()
            for field in ours.files:
                assert ours[field].dtype == theirs[field].dtype
                np.testing.assert_allclose(ours[field], theirs[field], rtol=1e-6, atol=1e-9)
