"""Every estimator keeps the contract of `domkl.estimators.checks`, which users can run too."""

import pytest

import domkl
from domkl.estimators import checks, river, sklearn
from domkl.estimators.learner import Learner

ESTIMATORS = {
    "learner": lambda seed: Learner(seed=seed),
    "learner-unscaled": lambda seed: Learner(domkl.RFFDOMKL(), is_scaled=False, seed=seed),
    "sklearn-regressor": lambda seed: sklearn.OnlineKernelRegressor(random_state=seed),
    "sklearn-classifier": lambda seed: sklearn.OnlineKernelClassifier(random_state=seed),
    "river-regressor": lambda seed: river.OnlineKernelRegressor(seed=seed),
    "river-classifier": lambda seed: river.OnlineKernelClassifier(seed=seed),
    "sklearn-domkl": lambda seed: sklearn.OnlineKernelRegressor(
        domkl.DOMKL(loss=domkl.Huber(2.0)), bank=domkl.gaussian_bank([0.1, 1.0]), random_state=seed
    ),
}


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_contract(name, check):
    check(ESTIMATORS[name])


class Forgetful:
    """Breaks every promise that a check looks for."""

    def __init__(self, seed):
        self.kept = []

    def learn(self, X, y):
        self.kept.append((X, y))

    def predict(self, X):
        n = sum(len(y) for _, y in self.kept)
        return X[:, 0] * n + (float("inf") if n == 1 else 0)

    def save(self, path):
        path.touch()

    @classmethod
    def load(cls, path):
        return cls(0)


@pytest.mark.parametrize(
    "check",
    [
        check
        for check in checks.CHECKS
        if check.__name__ not in ("check_inputs_are_untouched", "check_pickles", "check_clones")
    ],
    ids=lambda check: check.__name__,
)
def test_broken_promises_are_found(check):
    with pytest.raises((AssertionError, ValueError)):
        check(Forgetful)


class Greedy(Forgetful):
    def learn(self, X, y):
        X[0] = 0


def test_written_inputs_are_found():
    with pytest.raises((AssertionError, ValueError)):
        checks.check_inputs_are_untouched(Greedy)


def test_all_at_once():
    checks.check_estimator(ESTIMATORS["learner"])
