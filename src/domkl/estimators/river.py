"""River faces of a learner: a regressor and a binary classifier, by sample and by mini-batch.

Inputs go by name. One that was not there before counts as one that has been there all along at its
mean; one that is missing in a sample counts as its mean. A call that fails leaves the model as it
was.
"""

import math
import numbers
import secrets
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.special import expit

from domkl import storage
from domkl.algorithms.base import Algorithm
from domkl.core.kernels import Dictionary
from domkl.core.losses import Logistic, Loss, Squared
from domkl.errors import DataError
from domkl.estimators import parts, store
from domkl.estimators.defaults import N_FREQUENCIES, algorithm_for
from domkl.estimators.learner import Learner
from domkl.estimators.rows import all_names, number, row_of, rows_of, values_of
from domkl.sim.result import Run
from domkl.typing import Floats

try:
    from river import base, proba
except ImportError as missing:
    raise ImportError("River is missing: pip install 'domkl[river]'") from missing

Sample = Mapping[Hashable, Any]


class _Online:
    """What regressor and classifier share: parameters, and a `Learner` in ``learner``."""

    _loss: Loss

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
        names = all_names(self.learner.names, x)
        self.learner.learn_rows(names, row_of(x, names), np.array([y]))

    def _predict_one(self, x: Sample) -> float:
        return float(self.learner.predict_rows(row_of(x, self.learner.names))[0])

    def _learn_many(self, X: Any, y: Floats) -> None:
        if len(X) != len(y):
            raise DataError(f"y must have {len(X)} values as X has rows, got {len(y)}")
        if len(y):
            names = all_names(self.learner.names, list(X.columns))
            self.learner.learn_rows(names, rows_of(X, names), y)

    def _predict_many(self, X: Any) -> Floats:
        return self.learner.predict_rows(rows_of(X, self.learner.names))

    def save(self, path: str | Path) -> None:
        """Write parameters and all that was learned to a file, without pickle."""
        held = ("algorithm", "bank", "n_frequencies", "scale", "seed")
        params = {name: store.encode(getattr(self, name)) for name in held}
        header, arrays = parts.of_learner(self.learner)
        made = storage.Parts({"params": params, "learner": header}, arrays)
        storage.write(path, storage.pack(self._kind(), made))

    @classmethod
    def load(cls, path: str | Path, algorithm: Algorithm | None = None) -> Self:
        """Read what `save` wrote; an algorithm that is not domkl's own must be given."""
        return parts.from_file(cls._kind(), path, lambda held: cls._of_parts(held, algorithm))

    @classmethod
    def _of_parts(cls, held: storage.Parts, algorithm: Algorithm | None) -> Self:
        made, learner = parts.revived(cls, held, algorithm)
        made.learner = parts.as_learner(Learner, learner, algorithm)
        return made

    def from_run(self, run: Run, k: int) -> Self:
        """Give a model that knows what learner k of a run knows, and scales as this one."""
        made = type(self)(self.algorithm, self.bank, self.n_frequencies, self.scale, self.seed)
        made.learner = self.learner.joined(run, k)
        return made

    @classmethod
    def _kind(cls) -> str:
        return f"River {cls.__name__}"


class OnlineKernelRegressor(_Online, base.MiniBatchRegressor):
    """Online regression with many kernels, in memory that samples do not make grow.

    Parameters
    ----------
    algorithm
        What it learns by, one of domkl's algorithms; `DOMKRLS` by default.
    bank
        The dictionary of kernels; by default that of the algorithm.
    n_frequencies
        M, of each kernel; there are 2M features.
    scale
        Scale inputs and targets by running means and deviations.
    seed
        Of the random features.

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
        self._learn_one(x, number("y", y))

    def predict_one(self, x: Sample, with_dist: bool = False) -> Any:
        """Predict; with ``with_dist`` give a normal distribution, as River's Bayesian models do."""
        if not with_dist:
            return self._predict_one(x)
        row = row_of(x, self.learner.names)
        deviation = float(self.learner.deviation_of_rows(row)[0])
        normal: Any = proba.Gaussian
        return normal._from_state(n=1, m=self._predict_one(x), var=deviation**2, ddof=0)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame, in their order; the same as one by one."""
        self._learn_many(X, values_of("y", y))

    def predict_many(self, X: Any) -> Any:
        """Predict for the rows of a data frame."""
        import pandas as pd

        return pd.Series(self._predict_many(X), index=X.index, dtype="float64")


class OnlineKernelClassifier(_Online, base.MiniBatchClassifier):
    """Online classification in two classes, True and False, by the logistic loss and many kernels.

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
        """Learn the rows of a data frame, in their order; the same as one by one."""
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
