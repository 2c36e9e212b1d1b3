"""The contract of an estimator, to be run on one's own as well.

>>> from domkl.estimators.learner import Learner
>>> check_estimator(lambda seed: Learner(seed=seed))

Any object will do that has `learn`, or `partial_fit` with ``predict`` as in scikit-learn, or
`learn_one` as in River; classifiers are known by their probabilities. Samples go in as arrays, or
as dictionaries where the estimator is River's.
"""

import copy
import math
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from domkl import rng
from domkl.typing import Floats

Make = Callable[[int], Any]  # an estimator that has learned nothing, by its seed
N_SAMPLES = 150


def check_estimator(make: Make) -> None:
    """Run every check; each raises AssertionError where the estimator breaks its contract."""
    for check in CHECKS:
        check(make)


class Face:
    """One way to speak to every estimator."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.is_classifier = hasattr(model, "predict_proba") or hasattr(model, "predict_proba_one")

    def learn(self, X: Floats, y: Floats) -> "Face":
        """Learn rows, in their order."""
        labels: Any = y > 0 if self.is_classifier else y
        if hasattr(self.model, "learn_one"):
            for row, label in zip(X.tolist(), labels.tolist(), strict=True):
                self.model.learn_one({f"x{j}": value for j, value in enumerate(row)}, label)
        elif hasattr(self.model, "partial_fit"):
            classes = {"classes": [False, True]} if self.is_classifier else {}
            self.model.partial_fit(X, labels, **classes)
        else:
            self.model.learn(X, labels)
        return self

    def predict(self, X: Floats) -> Floats:
        """Predictions, or the probabilities of a classifier's second class."""
        if hasattr(self.model, "learn_one"):
            rows = [{f"x{j}": v for j, v in enumerate(row)} for row in X.tolist()]
            if self.is_classifier:
                return np.array([self.model.predict_proba_one(row)[True] for row in rows])
            return np.array([self.model.predict_one(row) for row in rows])
        if self.is_classifier:
            return np.asarray(self.model.predict_proba(X)[:, 1])
        return np.asarray(self.model.predict(X))

    def clone(self) -> "Face":
        """The same parameters, and nothing learned."""
        if hasattr(self.model, "clone"):
            return Face(self.model.clone())
        return Face(type(self.model)(**self.model.get_params()))


def samples(n: int = N_SAMPLES, seed: int = 0) -> tuple[Floats, Floats]:
    """A smooth function of three inputs."""
    X = rng.child(seed, "estimator checks").uniform(-1, 1, size=(n, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


def check_learns(make: Make) -> None:
    """What it has learned is better than nothing."""
    X, y = samples(4 * N_SAMPLES)
    face = Face(make(0)).learn(X[N_SAMPLES:], y[N_SAMPLES:])
    guess, wanted = face.predict(X[:N_SAMPLES]), y[:N_SAMPLES]
    if face.is_classifier:
        assert np.mean((guess > 0.5) == (wanted > 0)) > 0.7
    else:
        assert np.mean((guess - wanted) ** 2) < 0.7 * wanted.var()


def check_inputs_are_untouched(make: Make) -> None:
    """Samples are read only."""
    X, y = samples()
    before = X.copy(), y.copy()
    X.setflags(write=False)
    y.setflags(write=False)
    Face(make(0)).learn(X, y).predict(X)
    assert np.array_equal(X, before[0])
    assert np.array_equal(y, before[1])


def check_works_cold(make: Make) -> None:
    """After a single sample, predictions are finite."""
    X, y = samples()
    assert np.isfinite(Face(make(0)).learn(X[:1], y[:1]).predict(X)).all()


def check_memory_is_flat(make: Make) -> None:
    """What it keeps does not grow with the samples."""
    X, y = samples()
    face = Face(make(0)).learn(X, y)
    before = len(pickle.dumps(face.model))
    for seed in range(1, 4):
        face.learn(*samples(seed=seed))
    assert len(pickle.dumps(face.model)) <= before + 100  # a counter may take more digits


def check_is_deterministic(make: Make) -> None:
    """The same seed gives the same run, another seed another."""
    X, y = samples()
    ours, same, other = (Face(make(seed)).learn(X, y).predict(X) for seed in (0, 0, 1))
    assert np.array_equal(ours, same)
    assert not np.array_equal(ours, other)


def check_clones(make: Make) -> None:
    """A clone has learned nothing, learns the same, and leaves its original alone."""
    X, y = samples()
    face = Face(make(0)).learn(X, y)
    before = face.predict(X)
    if hasattr(face.model, "clone") or hasattr(face.model, "get_params"):
        assert np.array_equal(face.clone().learn(X, y).predict(X), before)
    copied = Face(copy.deepcopy(face.model)).learn(X, -y)
    assert not np.array_equal(copied.predict(X), before)
    assert np.array_equal(face.predict(X), before)


def check_pickles(make: Make) -> None:
    """Unpickled, it goes on to the bit."""
    _check_goes_on(make, lambda model: pickle.loads(pickle.dumps(model)))


def check_saves(make: Make) -> None:
    """Saved and loaded without pickle, it goes on to the bit."""

    def saved(model: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.npz"
            model.save(path)
            return type(model).load(path)

    _check_goes_on(make, saved)


def _check_goes_on(make: Make, again: Callable[[Any], Any]) -> None:
    X, y = samples()
    whole = Face(make(0)).learn(X, y)
    half = Face(make(0)).learn(X[:70], y[:70])
    rest = Face(again(half.model))
    assert np.array_equal(rest.predict(X), half.predict(X))
    assert np.array_equal(rest.learn(X[70:], y[70:]).predict(X), whole.predict(X))


def check_a_failed_learn_changes_nothing(make: Make) -> None:
    """NaN, infinity and strings are refused, and the state is unharmed."""
    X, y = samples()
    face, other = (Face(make(0)).learn(X, y) for _ in range(2))
    for bad in (math.nan, math.inf, -math.inf):
        spoiled = X[:1].copy()
        spoiled[0, 1] = bad
        _assert_refused(face, spoiled, y[:1])
    _assert_refused(face, np.full((1, 3), "text"), y[:1])
    assert np.array_equal(face.predict(X), other.predict(X))
    assert np.array_equal(face.learn(X, y).predict(X), other.learn(X, y).predict(X))


def _assert_refused(face: Face, X: Any, y: Floats) -> None:
    try:
        face.learn(X, y)
    except ValueError:
        return
    raise AssertionError(f"{type(face.model).__name__} must refuse {X.ravel()[1]!r}")


CHECKS: tuple[Callable[[Make], None], ...] = (
    check_learns,
    check_inputs_are_untouched,
    check_works_cold,
    check_memory_is_flat,
    check_is_deterministic,
    check_clones,
    check_pickles,
    check_saves,
    check_a_failed_learn_changes_nothing,
)
