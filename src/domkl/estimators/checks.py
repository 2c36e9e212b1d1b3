"""Checks that every estimator must pass; users can run them on estimators of their own.

>>> from domkl.estimators.learner import Learner
>>> check_estimator(lambda seed: Learner(seed=seed))

An estimator is any object with `learn`, with `partial_fit` and ``predict`` as in scikit-learn, or
with `learn_one` as in River; an estimator that gives probabilities is a classifier. Samples are
passed as arrays, or as dictionaries if the estimator is made for River.
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

Make = Callable[[int], Any]  # makes an estimator from a seed
N_SAMPLES = 150


def check_estimator(make: Make) -> None:
    """Run every check; each raises AssertionError if the estimator fails it."""
    for check in CHECKS:
        check(make)


class Adapter:
    """One interface to every estimator."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.is_river = hasattr(model, "learn_one")
        self.is_classifier = hasattr(model, "predict_proba") or hasattr(model, "predict_proba_one")

    def learn(self, X: Floats, y: Floats) -> "Adapter":
        """Learn rows in their order."""
        labels: Any = y > 0 if self.is_classifier else y
        if self.is_river:
            for row, label in zip(_dictionaries(X), labels.tolist(), strict=True):
                self.model.learn_one(row, label)
        elif hasattr(self.model, "partial_fit"):
            classes = {"classes": [False, True]} if self.is_classifier else {}
            self.model.partial_fit(X, labels, **classes)
        else:
            self.model.learn(X, labels)
        return self

    def predict(self, X: Floats) -> Floats:
        """Predictions; of a classifier, the probabilities of the second class."""
        model = self.model
        if self.is_river and self.is_classifier:
            return np.array([model.predict_proba_one(row)[True] for row in _dictionaries(X)])
        if self.is_river:
            return np.array([model.predict_one(row) for row in _dictionaries(X)])
        return np.asarray(model.predict_proba(X)[:, 1] if self.is_classifier else model.predict(X))

    def clone(self) -> "Adapter":
        """A new estimator with the same parameters."""
        if hasattr(self.model, "clone"):
            return Adapter(self.model.clone())
        return Adapter(type(self.model)(**self.model.get_params()))


def _dictionaries(X: Floats) -> list[dict[str, float]]:
    return [{f"x{j}": value for j, value in enumerate(row)} for row in X.tolist()]


def samples(n: int = N_SAMPLES, seed: int = 0) -> tuple[Floats, Floats]:
    """A smooth function of three inputs."""
    X = rng.child(seed, "estimator checks").uniform(-1, 1, size=(n, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


def check_learns(make: Make) -> None:
    """Learning makes predictions better."""
    X, y = samples(4 * N_SAMPLES)
    adapter = Adapter(make(0)).learn(X[N_SAMPLES:], y[N_SAMPLES:])
    guess, wanted = adapter.predict(X[:N_SAMPLES]), y[:N_SAMPLES]
    if adapter.is_classifier:
        assert np.mean((guess > 0.5) == (wanted > 0)) > 0.7
    else:
        assert np.mean((guess - wanted) ** 2) < 0.7 * wanted.var()


def check_inputs_are_untouched(make: Make) -> None:
    """Samples are not modified."""
    X, y = samples()
    before = X.copy(), y.copy()
    X.setflags(write=False)
    y.setflags(write=False)
    Adapter(make(0)).learn(X, y).predict(X)
    assert np.array_equal(X, before[0])
    assert np.array_equal(y, before[1])


def check_works_cold(make: Make) -> None:
    """After a single sample, predictions are finite."""
    X, y = samples()
    assert np.isfinite(Adapter(make(0)).learn(X[:1], y[:1]).predict(X)).all()


def check_memory_is_flat(make: Make) -> None:
    """Memory does not grow with the number of samples."""
    X, y = samples()
    adapter = Adapter(make(0)).learn(X, y)
    before = len(pickle.dumps(adapter.model))
    for seed in range(1, 4):
        adapter.learn(*samples(seed=seed))
    assert len(pickle.dumps(adapter.model)) <= before + 100  # a counter may take more digits


def check_is_deterministic(make: Make) -> None:
    """The same seed gives the same predictions, another seed gives others."""
    X, y = samples()
    ours, same, other = (Adapter(make(seed)).learn(X, y).predict(X) for seed in (0, 0, 1))
    assert np.array_equal(ours, same)
    assert not np.array_equal(ours, other)


def check_clones(make: Make) -> None:
    """A clone starts untrained, learns the same, and does not affect the original."""
    X, y = samples()
    adapter = Adapter(make(0)).learn(X, y)
    before = adapter.predict(X)
    if hasattr(adapter.model, "clone") or hasattr(adapter.model, "get_params"):
        assert np.array_equal(adapter.clone().learn(X, y).predict(X), before)
    copied = Adapter(copy.deepcopy(adapter.model)).learn(X, -y)
    assert not np.array_equal(copied.predict(X), before)
    assert np.array_equal(adapter.predict(X), before)


def check_pickles(make: Make) -> None:
    """After pickling, it continues to the bit."""
    _check_goes_on(make, lambda model: pickle.loads(pickle.dumps(model)))


def check_saves(make: Make) -> None:
    """After saving and loading, it continues to the bit."""

    def saved(model: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.npz"
            model.save(path)
            return type(model).load(path)

    _check_goes_on(make, saved)


def _check_goes_on(make: Make, again: Callable[[Any], Any]) -> None:
    X, y = samples()
    whole = Adapter(make(0)).learn(X, y)
    half = Adapter(make(0)).learn(X[:70], y[:70])
    rest = Adapter(again(half.model))
    assert np.array_equal(rest.predict(X), half.predict(X))
    assert np.array_equal(rest.learn(X[70:], y[70:]).predict(X), whole.predict(X))


def check_a_failed_learn_changes_nothing(make: Make) -> None:
    """Infinity is refused, and the state does not change; so are NaN and strings in arrays.

    In River NaN is a missing value and a string is a level of a category; a list is refused there.
    """
    X, y = samples()
    adapter, other = (Adapter(make(0)).learn(X, y) for _ in range(2))
    bad = [math.inf, -math.inf, *([[1.0]] if adapter.is_river else [math.nan, "text"])]
    for value in bad:
        spoiled = X[:1].astype(object)
        spoiled[0, 1] = value
        _assert_refused(adapter, spoiled, y[:1])
    assert np.array_equal(adapter.predict(X), other.predict(X))
    assert np.array_equal(adapter.learn(X, y).predict(X), other.learn(X, y).predict(X))


def _assert_refused(adapter: Adapter, X: Any, y: Floats) -> None:
    try:
        adapter.learn(X, y)
    except (ValueError, TypeError):
        return
    raise AssertionError(f"{type(adapter.model).__name__} must refuse {X.ravel()[1]!r}")


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
