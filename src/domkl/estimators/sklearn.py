"""A regressor and a classifier for scikit-learn; both wrap a `Learner`.

`fit` learns the rows once, in their order; `partial_fit` continues with more rows. A call that
fails leaves the estimator as it was.
"""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domkl.algorithms.base import Algorithm
from domkl.core.kernels import Dictionary
from domkl.core.losses import Logistic, Loss, Squared
from domkl.errors import DataError, ParameterError
from domkl.estimators.learner import Learner, algorithm_for
from domkl.estimators.probabilities import class_probabilities
from domkl.estimators.serialize import Saving, decode, encode
from domkl.sim.result import Run
from domkl.typing import Floats

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
    from sklearn.exceptions import DataConversionWarning
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        _check_sample_weight,
        check_is_fitted,
        validate_data,
    )
except ImportError as missing:
    raise ImportError("scikit-learn is missing: pip install 'domkl[sklearn]'") from missing

#: for ``check_estimator(model, expected_failed_checks=…)``
EXPECTED_FAILED_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data": (
        "the weighted rows are shuffled before they are compared with repeated ones, and what is"
        " learned depends on the order of the rows"
    )
}
COLUMN = (
    "A column-vector y was passed when a 1d array was expected; "
    "y.ravel() has the shape (n_samples,)."
)


class _Online(Saving, BaseEstimator):  # type: ignore[misc]
    """What regressor and classifier share: parameters, and a `Learner` in ``learner_``."""

    learner_: Learner
    algorithm: Algorithm | None
    bank: Dictionary | None
    n_frequencies: int | None
    scale: bool
    random_state: Any
    forget: float | None
    ridge: float | None
    steps_ahead: int | None
    _loss: Loss
    _library = "scikit-learn"
    _learner_name, _learner_class = "learner_", Learner

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def _new_learner(self, n_outputs: int | None) -> Learner:
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(2**31)
        tuned = {"forget": self.forget, "ridge": self.ridge, "steps_ahead": self.steps_ahead}
        return Learner(
            algorithm_for(self._loss, self.algorithm, **tuned, newest_lag=self._lag_column()),
            bank=self.bank,
            n_frequencies=self.n_frequencies,
            is_scaled=self.scale,
            seed=int(seed),
            n_outputs=n_outputs,
        )

    def _lag_column(self) -> int | None:
        """The column of ``newest_lag``, which may be a name where columns have names."""
        given = getattr(self, "newest_lag", None)
        if not isinstance(given, str):
            return given
        names = list(getattr(self, "feature_names_in_", ()))
        if given not in names:
            raise ParameterError(f"newest_lag must be one of the columns {names}, got {given!r}")
        return names.index(given)

    def _weights(self, sample_weight: Any, rows: Floats) -> Floats | None:
        if sample_weight is None:
            return None
        checked: Floats = _check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
        return checked

    def _rows(self, X: Any) -> Floats:
        """Check the inputs for a fitted estimator."""
        check_is_fitted(self)
        return self.learner_.checked(validate_data(self, X, reset=False, dtype=np.float64))

    def _saved_params(self) -> dict[str, Any]:
        check_is_fitted(self)
        params: dict[str, Any] = self.get_params(False)
        return params

    def _saved_more(self) -> dict[str, Any]:
        known = {
            name: encode(getattr(self, name).tolist())
            for name in ("feature_names_in_", "classes_")
            if hasattr(self, name)
        }
        return {"known": known}

    def _restore_more(self, header: dict[str, Any]) -> None:
        self.n_features_in_ = self.learner_.n_inputs
        known = {name: decode(value) for name, value in header["known"].items()}
        if "feature_names_in_" in known:
            self.feature_names_in_ = np.array(known["feature_names_in_"], dtype=object)
        if "classes_" in known:
            self.classes_ = np.array(known["classes_"])

    def from_run(self, run: Run, k: int) -> Self:
        """Give an estimator with the state of learner k of a run, and the scaling of this one."""
        check_is_fitted(self)
        made = type(self)(**self.get_params(False))
        made.__dict__.update(self.__dict__)
        made.learner_ = self.learner_.joined(run, k)
        return made

    @contextlib.contextmanager
    def _atomic(self) -> Iterator[None]:
        """Undo all changes to the estimator if the block raises."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise


class OnlineKernelRegressor(MultiOutputMixin, RegressorMixin, _Online):  # type: ignore[misc]
    """Online regression with multiple kernels: one pass over the rows, constant memory.

    It follows the level and the last label where that helps, without any setting. With y of
    several columns, each is a target of its own.

    Parameters
    ----------
    algorithm : Algorithm, optional
        The algorithm that learns; `DOMKRLS` by default.
    bank : kernels, optional
        The dictionary; by default that of the algorithm.
    n_frequencies : int, optional
        M, the number of frequencies of each kernel; it then has 2M features. By default 20 for each
        input, at least 50 and at most 200.
    scale : bool
        Whether to scale inputs and targets by running means and deviations.
    random_state : int, RandomState or None
        Seed of the random features.
    forget, ridge : float, optional
        Of `DOMKRLS`, 1 and 0.001 by default: its first memory, and the weight of ‖φ‖² beside the
        squared errors.
    newest_lag : int or str, optional
        Of `DOMKRLS`: the column that holds the newest value of the target, if there is one.
    steps_ahead : int, optional
        Of `DOMKRLS`: how many steps ahead it predicts, 1 by default.

    Attributes
    ----------
    learner_ : Learner
    n_features_in_ : int
    feature_names_in_ : array of str, where inputs have names

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(500, 2))
    >>> y = np.sin(6 * X[:, 0])
    >>> bool(OnlineKernelRegressor().fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.8)
    True
    """

    _loss = Squared()

    def __init__(
        self,
        algorithm: Algorithm | None = None,
        *,
        bank: Dictionary | None = None,
        n_frequencies: int | None = None,
        scale: bool = True,
        random_state: Any = 0,
        forget: float | None = None,
        ridge: float | None = None,
        newest_lag: int | str | None = None,
        steps_ahead: int | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.bank = bank
        self.n_frequencies = n_frequencies
        self.scale = scale
        self.random_state = random_state
        self.forget = forget
        self.ridge = ridge
        self.newest_lag = newest_lag
        self.steps_ahead = steps_ahead

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything, then learn these rows; a weight w counts as w equal rows do."""
        with self._atomic():
            self.__dict__.pop("learner_", None)
            return self.partial_fit(X, y, sample_weight)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Continue with these rows, in their order."""
        with self._atomic():
            is_first = not hasattr(self, "learner_")
            how: Any = {"reset": is_first, "dtype": np.float64, "y_numeric": True}
            rows, targets = validate_data(self, X, y, multi_output=True, **how)
            if targets.ndim == 2 and targets.shape[1] == 1:
                warnings.warn(COLUMN, DataConversionWarning, stacklevel=2)
                targets = targets[:, 0]
            n_outputs = targets.shape[1] if targets.ndim == 2 else None
            learner = self._new_learner(n_outputs) if is_first else self.learner_
            if n_outputs != learner.n_outputs:
                raise DataError(f"y must have {learner.n_rows} columns, got {n_outputs or 1}")
            weights = self._weights(sample_weight, rows)
            self.learner_ = learner.learn(rows, targets, weights)
        return self

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predict; with ``return_std``, return the standard deviations too."""
        rows = self._rows(X)
        y_hat = self.learner_.predict_rows(rows)
        return (y_hat, self.learner_.deviation_of_rows(rows)) if return_std else y_hat


class OnlineKernelClassifier(ClassifierMixin, _Online):  # type: ignore[misc]
    """Online classification by the logistic loss and multiple kernels.

    Two classes share one learner; of more, each has one that knows it from the rest. Parameters
    and attributes are those of `OnlineKernelRegressor`, without ``newest_lag`` and with
    ``classes_``.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> y = np.where(np.hypot(*X.T) < 1, "in", "out")
    >>> bool(OnlineKernelClassifier().fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.8)
    True
    """

    _loss = Logistic()
    classes_: NDArray[Any]

    def __init__(
        self,
        algorithm: Algorithm | None = None,
        *,
        bank: Dictionary | None = None,
        n_frequencies: int | None = None,
        scale: bool = True,
        random_state: Any = 0,
        forget: float | None = None,
        ridge: float | None = None,
        steps_ahead: int | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.bank = bank
        self.n_frequencies = n_frequencies
        self.scale = scale
        self.random_state = random_state
        self.forget = forget
        self.ridge = ridge
        self.steps_ahead = steps_ahead

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything, then learn these rows; a weight w counts as w equal rows do."""
        with self._atomic():
            for name in ("learner_", "classes_"):
                self.__dict__.pop(name, None)
            return self._learn(X, y, None, sample_weight)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Continue with these rows; the first call must name the classes."""
        if classes is None and not hasattr(self, "learner_"):
            raise DataError("classes must be passed on the first call to partial_fit")
        with self._atomic():
            return self._learn(X, y, classes, sample_weight)

    def _learn(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None, sample_weight: Any
    ) -> Self:
        is_first = not hasattr(self, "learner_")
        rows, labels = validate_data(self, X, y, reset=is_first, dtype=np.float64)
        check_classification_targets(labels)
        weights = self._weights(sample_weight, rows)
        seen = labels if weights is None else labels[weights > 0]
        self._set_classes(seen, classes)
        is_known = np.isin(labels, self.classes_)
        if weights is not None:
            is_known |= weights == 0
        if not is_known.all():
            raise DataError(f"y must be one of the classes, got {labels[~is_known][0]!r}")
        n = len(self.classes_)
        own = self.classes_[1:2] if n == 2 else self.classes_
        signs = np.where(labels[:, None] == own, 1.0, -1.0)
        learner = self._new_learner(None if n == 2 else n) if is_first else self.learner_
        self.learner_ = learner.learn(rows, signs[:, 0] if n == 2 else signs, weights)
        return self

    def _set_classes(self, labels: NDArray[Any], classes: ArrayLike | None) -> None:
        found = np.unique(labels if classes is None else np.asarray(classes))
        if hasattr(self, "classes_"):
            if classes is not None and not np.array_equal(found, self.classes_):
                raise DataError(f"classes must be {self.classes_} as before, got {found}")
            return
        if len(found) < 2:
            got = f"one class {found[0]!r}" if len(found) else "none"
            raise DataError(f"y must hold at least two classes, got {got}")
        self.classes_ = found

    def decision_function(self, X: ArrayLike) -> Floats:
        """Give the log-odds of the second class, (n,), or of each of several, (n, C)."""
        rows = self._rows(X)
        return self.learner_.predict_rows(rows)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Give the probabilities (n, C) of the classes, in the order of ``classes_``."""
        rows = self._rows(X)
        log_odds = self.learner_.predict_rows(rows).reshape(len(rows), -1)
        return class_probabilities(log_odds, len(self.classes_))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Give the likeliest class of each row."""
        log_odds = self.decision_function(X)
        places = (log_odds > 0).astype(int) if log_odds.ndim == 1 else log_odds.argmax(axis=1)
        likeliest: NDArray[Any] = self.classes_[places]
        return likeliest
