"""Models outside the network that a practitioner would hold against it, honest by round.

The rules of this file: in every round all K samples are predicted before any label of the round is
learned, also where one pooled model serves all learners; with a delay of n, what is learned at the
end of round t are the labels of round t − n; a sample without a label is predicted and not learned.
So a pooled model knows exactly what all learners together know.
"""

import warnings
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from domkl import checks
from domkl.errors import ParameterError
from domkl.typing import Floats

#: rounds after which a model that cannot learn sample by sample is fitted anew
REFIT_EVERY = 24


class Model(Protocol):
    """What `play` needs of a model."""

    def predict(self, x: Floats) -> Floats:
        """Predict the labels (n,) of inputs (n, d)."""
        ...

    def learn(self, x: Floats, y: Floats) -> None:
        """Learn one round's labelled samples, (n, d) and (n,); n may be 0."""
        ...


def play(
    make: Callable[[], Model],
    X: Floats,
    y: Floats,
    *,
    is_pooled: bool,
    delay: int | None = None,
    report: Callable[[float], None] = lambda share: None,
) -> Floats:
    """Predictions (T, K) of one model for all learners, or of one model for each.

    By default the delay is what y knows of itself, as in `simulate`.
    """
    needed = getattr(y, "delay", 0)
    delay = needed if delay is None else checks.whole("delay", delay, 0)
    if delay < needed:
        raise ParameterError(f"delay must be at least {needed} for these labels, got {delay}")
    n_rounds, n_learners, _ = X.shape
    groups = [slice(None)] if is_pooled else [slice(k, k + 1) for k in range(n_learners)]
    models = [make() for _ in groups]
    labels = np.asarray(y)
    is_seen = np.asarray(~np.isnan(X).any(axis=2))
    predictions = np.full((n_rounds, n_learners), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow, where a model diverges
        for t in range(n_rounds):
            for model, group in zip(models, groups, strict=True):
                here = is_seen[t, group]
                predictions[t, group][here] = model.predict(X[t, group][here])
            then = t - delay
            for model, group in zip(models, groups, strict=True) if then >= 0 else ():
                known = is_seen[then, group] & ~np.isnan(labels[then, group])
                model.learn(X[then, group][known], labels[then, group][known])
            report((t + 1) / n_rounds)
    return predictions


class River:
    """A regressor of River as a `Model`: it learns a round's samples one by one."""

    def __init__(self, model: Any, n_inputs: int) -> None:
        self.model, self.names = model, [f"x{i}" for i in range(n_inputs)]

    def predict(self, x: Floats) -> Floats:
        """Predict each row."""
        return np.array([float(self.model.predict_one(row)) for row in self._rows(x)])

    def learn(self, x: Floats, y: Floats) -> None:
        """Learn row after row."""
        for row, label in zip(self._rows(x), y.tolist(), strict=True):
            self.model.learn_one(row, label)

    def _rows(self, x: Floats) -> list[dict[str, float]]:
        return [dict(zip(self.names, row, strict=True)) for row in x.tolist()]


class Refitted:
    """LightGBM with its defaults, fitted to all samples so far every so many rounds.

    Until the first fit it predicts the mean of the labels seen; 0 before the first label.
    """

    def __init__(self, every: int = REFIT_EVERY) -> None:
        self.every = checks.whole("every", every, 1)
        self.x: list[Floats] = []
        self.y: list[Floats] = []
        self.n_rounds = 0
        self.fitted: Any = None

    def predict(self, x: Floats) -> Floats:
        """Predict by the last fit."""
        if self.fitted is not None and len(x):
            return np.asarray(self.fitted.predict(x, num_threads=1), dtype=np.float64)
        seen = np.concatenate(self.y) if self.y else np.zeros(0)
        return np.full(len(x), seen.mean() if seen.size else 0.0)

    def learn(self, x: Floats, y: Floats) -> None:
        """Keep the samples; fit anew if it is time."""
        self.x.append(x.copy())
        self.y.append(y.copy())
        self.n_rounds += 1
        if self.n_rounds % self.every == 0 and sum(map(len, self.y)) > 1:
            import lightgbm

            data = lightgbm.Dataset(np.concatenate(self.x), np.concatenate(self.y))
            self.fitted = lightgbm.train(LIGHTGBM, data, num_boost_round=100)


LIGHTGBM = {
    "objective": "regression",
    "seed": 1,
    "deterministic": True,
    "force_col_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}
_RIVER = ("linear", "tree", "forest", "neighbors")


def installed(package: str) -> str | None:
    """The version of a package; None if it is not installed."""
    return None if find_spec(package) is None else version(package)


def rivals() -> dict[str, str]:
    """The rivals that can be run here, each with the version of its library."""
    found = {f"river {name}": installed("river") for name in _RIVER}
    found |= {"lightgbm": installed("lightgbm")}
    return {name: each for name, each in found.items() if each is not None}


def maker(name: str, n_inputs: int) -> Callable[[], Model]:
    """How a rival is made: with its library's defaults, seed 1, behind River's scaler where needed.

    Inputs are scaled for models of River that look at distances or take gradient steps.
    """
    if name == "lightgbm":
        return Refitted
    from river import forest, linear_model, neighbors, preprocessing, tree

    scaler = preprocessing.StandardScaler
    made: dict[str, Callable[[], Any]] = {
        "river linear": lambda: scaler() | linear_model.LinearRegression(),
        "river tree": lambda: tree.HoeffdingAdaptiveTreeRegressor(seed=1),
        "river forest": lambda: forest.ARFRegressor(seed=1),
        "river neighbors": lambda: scaler() | neighbors.KNNRegressor(),
    }
    return lambda: River(made[checks.choice("rival", name, made)](), n_inputs)
