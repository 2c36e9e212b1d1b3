"""A regressor and a classifier for scikit-learn; both wrap a `Learner`.

`fit` learns the rows once, in their order; `partial_fit` continues with more rows. A call that
fails leaves the estimator as it was.
"""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domkl import checks
from domkl.algorithms.base import Algorithm
from domkl.core.kernels import Dictionary
from domkl.core.losses import Logistic, Squared
from domkl.errors import DataError, ParameterError
from domkl.estimators.base import Estimator, class_probabilities, class_signs
from domkl.estimators.learner import Learner, unchanged_on_error
from domkl.estimators.serialize import decode, encode
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
QUARTILES = (0.25, 0.5, 0.75)
COLUMN = (
    "A column-vector y was passed when a 1d array was expected; "
    "y.ravel() has the shape (n_samples,)."
)


class _Online(Estimator, BaseEstimator):  # type: ignore[misc]
    """What regressor and classifier share: a `Learner` in ``learner_``."""

    learner_: Learner
    classes_: NDArray[Any]
    random_state: Any
    newest_lag: int | str | None = None
    _library = "scikit-learn"
    _learner_name = "learner_"

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything, then learn these rows; a weight w counts as w equal rows do."""
        with unchanged_on_error(self):
            for name in ("learner_", "classes_"):
                self.__dict__.pop(name, None)
            return self._learn(X, y, sample_weight)

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        """Check these rows, and continue with them."""
        raise NotImplementedError

    def _learn_rows(self, rows: Floats, targets: Floats, weights: Floats | None) -> Self:
        """Learn checked rows with targets (n,) or (n, K)."""
        n_outputs = targets.shape[1] if targets.ndim == 2 else None
        learner = self.learner_ if hasattr(self, "learner_") else self._first_learner(n_outputs)
        if n_outputs != learner.n_outputs:
            raise DataError(f"y must have {learner.n_rows} columns, got {n_outputs or 1}")
        self.learner_ = learner.learn(rows, targets, weights)
        return self

    def _first_learner(self, n_outputs: int | None) -> Learner:
        seed, lag = self.random_state, self.newest_lag
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(2**31)
        if isinstance(lag, str):
            names = list(getattr(self, "feature_names_in_", ()))
            if lag not in names:
                raise ParameterError(f"newest_lag must be one of the columns {names}, got {lag!r}")
            lag = names.index(lag)
        return self._new_learner(int(seed), lag, n_outputs)

    def _checked(self, X: Any, y: Any, sample_weight: Any, **how: Any) -> tuple[Any, Any, Any]:
        """Check rows, labels and weights; the first rows say how many inputs there are."""
        is_first = not hasattr(self, "learner_")
        rows, labels = validate_data(self, X, y, reset=is_first, dtype=np.float64, **how)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, rows, dtype=np.float64, ensure_non_negative=True
            )
        return rows, labels, sample_weight

    def _rows(self, X: Any) -> Floats:
        """Check the inputs for a fitted estimator."""
        learner = self._fitted()
        return learner.checked(validate_data(self, X, reset=False, dtype=np.float64))

    def _fitted(self) -> Learner:
        check_is_fitted(self)
        return self.learner_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def _known(self) -> dict[str, Any]:
        names = (name for name in ("feature_names_in_", "classes_") if hasattr(self, name))
        return {"known": {name: encode(getattr(self, name).tolist()) for name in names}}

    def _restore_known(self, header: dict[str, Any]) -> None:
        self.n_features_in_ = self.learner_.n_inputs
        for name, stored in header["known"].items():
            if name in ("feature_names_in_", "classes_"):
                kind = object if name == "feature_names_in_" else None
                setattr(self, name, np.array(decode(stored), dtype=kind))


@dataclass(eq=False, repr=False)
class _Parameters(_Online):
    """Parameters of regressor and classifier."""

    algorithm: Algorithm | None = None
    _: KW_ONLY
    bank: Dictionary | None = None
    n_frequencies: int | None = None
    scale: bool = True
    random_state: Any = 0
    forget: float | None = None
    ridge: float | None = None
    steps_ahead: int | None = None
    period: int | None = None


@dataclass(eq=False, repr=False)
class OnlineKernelRegressor(MultiOutputMixin, RegressorMixin, _Parameters):  # type: ignore[misc]
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
    period : int, optional
        Of `DOMKRLS`: rows after which the series repeats itself, 0 for none; by default it is
        looked for in the labels.

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
    newest_lag: int | str | None = None

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Continue with these rows, in their order."""
        with unchanged_on_error(self):
            return self._learn(X, y, sample_weight)

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        how = {"y_numeric": True, "multi_output": True}
        rows, targets, weights = self._checked(X, y, sample_weight, **how)
        if targets.ndim == 2 and targets.shape[1] == 1:
            warnings.warn(COLUMN, DataConversionWarning, stacklevel=3)
            targets = targets[:, 0]
        return self._learn_rows(rows, targets, weights)

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predict; with ``return_std``, return the standard deviations too."""
        rows = self._rows(X)
        return (
            self.learner_.predict_with_deviation(rows)
            if return_std
            else self.learner_.predict_rows(rows)
        )

    def predict_quantiles(self, X: ArrayLike, levels: ArrayLike = QUARTILES) -> Floats:
        """Give where each label is expected: (n, J) for J ascending levels in (0, 1).

        Of several targets (n, K, J).
        """
        return self.learner_.predict_quantiles(self._rows(X), levels)

    def predict_interval(self, X: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
        """Give the ends of the interval that holds this share of the labels: low and high."""
        found = self.predict_quantiles(X, checks.ends("level", level))
        return found[..., 0], found[..., 1]


@dataclass(eq=False, repr=False)
class OnlineKernelClassifier(ClassifierMixin, _Parameters):  # type: ignore[misc]
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
        with unchanged_on_error(self):
            return self._learn(X, y, sample_weight, classes)

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        rows, labels, weights = self._checked(X, y, sample_weight)
        check_classification_targets(labels)
        is_used = np.ones(len(labels), dtype=bool) if weights is None else weights > 0
        self._set_classes(labels[is_used], classes)
        is_known = np.isin(labels, self.classes_) | ~is_used
        if not is_known.all():
            raise DataError(f"y must be one of the classes, got {labels[~is_known][0]!r}")
        n = len(self.classes_)
        signs = class_signs((labels[:, None] == self.classes_).argmax(axis=1), n)
        return self._learn_rows(rows, signs[:, 0] if n == 2 else signs, weights)

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
        log_odds = self.decision_function(X)
        return class_probabilities(log_odds.reshape(len(log_odds), -1), len(self.classes_))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Give the likeliest class of each row."""
        log_odds = self.decision_function(X)
        places = (log_odds > 0).astype(int) if log_odds.ndim == 1 else log_odds.argmax(axis=1)
        likeliest: NDArray[Any] = self.classes_[places]
        return likeliest
