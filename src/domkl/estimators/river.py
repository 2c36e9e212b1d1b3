"""A regressor and a binary classifier for River, by sample or by mini-batch; they wrap a `Learner`.

Inputs are identified by their names. An input that is new is treated as if it had always been there
with its mean as its value; an input that is missing in a sample counts as its mean. A call that
fails leaves the model as it was.
"""

import math
import numbers
import secrets
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from scipy.special import expit

from domkl.algorithms.base import Algorithm
from domkl.core.kernels import Dictionary
from domkl.core.losses import Logistic, Loss, Squared
from domkl.errors import DataError
from domkl.estimators.learner import MAX_SIZE, N_FREQUENCIES, Learner, algorithm_for
from domkl.estimators.serialize import Saving
from domkl.sim.result import Run
from domkl.typing import Floats

try:
    from river import base, proba
except ImportError as missing:
    raise ImportError("River is missing: pip install 'domkl[river]'") from missing

Sample = Mapping[Hashable, Any]
Names = tuple[Hashable, ...]
#: name of the only input of a learner whose first sample has no inputs
NO_INPUTS: Names = ("",)


class _Online(Saving):
    """What regressor and classifier share: parameters, and a `Learner` in ``learner``."""

    _loss: Loss
    _library = "River"
    _learner_name, _learner_class = "learner", Learner

    def __init__(
        self,
        algorithm: Algorithm | None = None,
        bank: Dictionary | None = None,
        n_frequencies: int = N_FREQUENCIES,
        scale: bool = True,
        seed: int | None = 0,
    ) -> None:
        self.algorithm = algorithm
        self.bank = bank
        self.n_frequencies = n_frequencies
        self.scale = scale
        self.seed = seed
        self.learner = Learner(
            algorithm_for(self._loss, algorithm),
            bank=bank,
            n_frequencies=n_frequencies,
            is_scaled=scale,
            seed=secrets.randbits(31) if seed is None else seed,
        )

    def _learn_one(self, x: Sample, y: float) -> None:
        names = _all_names(self.learner.names, x)
        self.learner.learn_rows(names, _row_of(x, names), np.array([y]))

    def _predict_one(self, x: Sample) -> float:
        return float(self.learner.predict_rows(_row_of(x, self.learner.names))[0])

    def _learn_many(self, X: Any, y: Floats) -> None:
        if len(X) != len(y):
            raise DataError(f"y must have {len(X)} values as X has rows, got {len(y)}")
        if len(y):
            names = _all_names(self.learner.names, list(X.columns))
            self.learner.learn_rows(names, _rows_of(X, names), y)

    def _predict_many(self, X: Any) -> Floats:
        return self.learner.predict_rows(_rows_of(X, self.learner.names))

    def _saved_params(self) -> dict[str, Any]:
        names = ("algorithm", "bank", "n_frequencies", "scale", "seed")
        return {name: getattr(self, name) for name in names}

    def from_run(self, run: Run, k: int) -> Self:
        """Give a model with the state of learner k of a run, and the scaling of this one."""
        made = type(self)(self.algorithm, self.bank, self.n_frequencies, self.scale, self.seed)
        made.learner = self.learner.joined(run, k)
        return made


class OnlineKernelRegressor(_Online, base.MiniBatchRegressor):
    """Online regression with multiple kernels, in memory that does not grow with the samples.

    Parameters
    ----------
    algorithm
        The algorithm that learns; `DOMKRLS` by default.
    bank
        The dictionary of kernels; by default that of the algorithm.
    n_frequencies
        M, the number of frequencies of each kernel; it then has 2M features.
    scale
        Whether to scale inputs and targets by running means and deviations.
    seed
        Seed of the random features.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> model = OnlineKernelRegressor()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0...
    """

    _loss = Squared()

    def learn_one(self, x: Sample, y: float) -> None:
        """Learn a sample."""
        self._learn_one(x, _number("y", y))

    def predict_one(self, x: Sample, with_dist: bool = False) -> Any:
        """Predict; with ``with_dist``, return a normal distribution, as River's Bayesian models."""
        if not with_dist:
            return self._predict_one(x)
        row = _row_of(x, self.learner.names)
        deviation = float(self.learner.deviation_of_rows(row)[0])
        normal: Any = proba.Gaussian
        return normal._from_state(n=1, m=self._predict_one(x), var=deviation**2, ddof=0)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame in their order; the result is the same as one by one."""
        self._learn_many(X, _values_of("y", y))

    def predict_many(self, X: Any) -> Any:
        """Predict for the rows of a data frame."""
        import pandas as pd

        return pd.Series(self._predict_many(X), index=X.index, dtype="float64")


class OnlineKernelClassifier(_Online, base.MiniBatchClassifier):
    """Online classification into True and False, by the logistic loss and multiple kernels.

    Parameters are those of `OnlineKernelRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> model = OnlineKernelClassifier()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: ...
    """

    _loss = Logistic()

    def learn_one(self, x: Sample, y: Any) -> None:
        """Learn a sample."""
        self._learn_one(x, _sign(y))

    def predict_proba_one(self, x: Sample, **kwargs: Any) -> dict[bool | str | int, float]:
        """Give the probability of each class."""
        log_odds = self._predict_one(x)
        return {False: _sigmoid(-log_odds), True: _sigmoid(log_odds)}

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame in their order; the result is the same as one by one."""
        self._learn_many(X, np.array([_sign(label) for label in y]))

    def predict_proba_many(self, X: Any) -> Any:
        """Give the probability of each class for the rows of a data frame."""
        import pandas as pd

        log_odds = self._predict_many(X)
        return pd.DataFrame({False: expit(-log_odds), True: expit(log_odds)}, index=X.index)


def _sign(label: Any) -> float:
    if isinstance(label, (numbers.Real, np.bool_)) and label in (True, False):
        return 1.0 if label else -1.0
    raise DataError(f"y must be True or False, got {label!r}")


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value > 0 else math.exp(value) / (1 + math.exp(value))


def _all_names(known: Names, given: Sequence[Hashable] | Mapping[Hashable, Any]) -> Names:
    """Known names, then the new ones, sorted so that the caller's order does not matter."""
    if known and len(given) == len(known) and all(name in given for name in known):
        return known
    old = set(known)
    new = sorted((name for name in given if name not in old), key=lambda n: (str(type(n)), repr(n)))
    return (*known, *new) or NO_INPUTS


def _row_of(x: Mapping[Hashable, Any], names: Names) -> Floats:
    """One sample as (1, d), with NaN where an input is missing; other inputs are ignored."""
    try:
        row = np.array([[x[name] for name in names]])
    except (KeyError, ValueError):  # an input is missing, or a value is a sequence
        return _row_with_gaps(x, names)
    if row.ndim != 2 or row.dtype.kind not in "fiub" or not (np.abs(row) <= MAX_SIZE).all():
        return _row_with_gaps(x, names)
    return row.astype(np.float64, copy=False)


def _row_with_gaps(x: Mapping[Hashable, Any], names: Names) -> Floats:
    row = [_number(f"x[{name!r}]", x[name]) if name in x else np.nan for name in names]
    return np.array([row])


def _number(name: str, value: Any) -> float:
    """Accept a finite number."""
    if not isinstance(value, (numbers.Real, np.bool_)):
        raise DataError(f"{name} must be a number, got {value!r}; encode it, or leave it out")
    try:
        found = float(value)
    except OverflowError:
        found = np.inf
    if not abs(found) <= MAX_SIZE:
        raise DataError(f"{name} must be finite and within ±{MAX_SIZE:g}, got {value!r}")
    return found


def _rows_of(X: Any, names: Names) -> Floats:
    """A data frame as (n, d), with NaN where a column is missing."""
    rows = np.full((len(X), len(names)), np.nan)
    columns = set(X.columns)
    if len(columns) != len(X.columns):
        raise DataError(f"X must have columns of different names, got {list(X.columns)}")
    for j, name in enumerate(names):
        if name in columns:
            rows[:, j] = _values_of(f"X[{name!r}]", X[name])
    return rows


def _values_of(name: str, column: Any) -> Floats:
    """A column of a frame, or a series, as finite numbers."""
    values = np.asarray(column)
    if values.dtype.kind not in "fiub":
        return np.array([_number(f"{name}[{i}]", value) for i, value in enumerate(values)])
    is_good = np.abs(values) <= MAX_SIZE if values.dtype.kind == "f" else np.ones(len(values), bool)
    if not is_good.all():
        return np.array([_number(f"{name}[{i}]", value) for i, value in enumerate(values.tolist())])
    return values.astype(np.float64)
