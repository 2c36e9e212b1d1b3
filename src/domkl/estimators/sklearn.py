"""A regressor and a binary classifier for scikit-learn; both wrap a `Learner`.

`fit` learns the rows once, in their order; `partial_fit` continues with more rows. A call that
fails leaves the estimator as it was.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from domkl.algorithms.base import Algorithm
from domkl.core.kernels import Dictionary
from domkl.core.losses import Logistic, Loss, Squared
from domkl.errors import DataError
from domkl.estimators.learner import N_FREQUENCIES, Learner, algorithm_for
from domkl.estimators.serialize import Saving, decode, encode
from domkl.sim.result import Run
from domkl.typing import Floats

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as missing:
    raise ImportError("scikit-learn is missing: pip install 'domkl[sklearn]'") from missing


class _Online(Saving, BaseEstimator):  # type: ignore[misc]
    """What regressor and classifier share: parameters, and a `Learner` in ``learner_``."""

    learner_: Learner
    _loss: Loss
    _library = "scikit-learn"
    _learner_name, _learner_class = "learner_", Learner

    def __init__(
        self,
        algorithm: Algorithm | None = None,
        *,
        bank: Dictionary | None = None,
        n_frequencies: int = N_FREQUENCIES,
        scale: bool = True,
        random_state: Any = 0,
    ) -> None:
        self.algorithm = algorithm
        self.bank = bank
        self.n_frequencies = n_frequencies
        self.scale = scale
        self.random_state = random_state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def _new_learner(self) -> Learner:
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(2**31)
        return Learner(
            algorithm_for(self._loss, self.algorithm),
            bank=self.bank,
            n_frequencies=self.n_frequencies,
            is_scaled=self.scale,
            seed=int(seed),
        )

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


class OnlineKernelRegressor(RegressorMixin, _Online):  # type: ignore[misc]
    """Online regression with multiple kernels: one pass over the rows, constant memory.

    Parameters
    ----------
    algorithm : Algorithm, optional
        The algorithm that learns; `DOMKRLS` by default.
    bank : kernels, optional
        The dictionary; by default that of the algorithm.
    n_frequencies : int
        M, the number of frequencies of each kernel; it then has 2M features.
    scale : bool
        Whether to scale inputs and targets by running means and deviations.
    random_state : int, RandomState or None
        Seed of the random features.

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

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget everything, then learn these rows."""
        with self._atomic():
            self.__dict__.pop("learner_", None)
            return self.partial_fit(X, y)

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Continue with these rows, in their order."""
        with self._atomic():
            is_first = not hasattr(self, "learner_")
            rows, targets = validate_data(
                self, X, y, reset=is_first, dtype=np.float64, y_numeric=True
            )
            learner = self._new_learner() if is_first else self.learner_
            self.learner_ = learner.learn(rows, targets)
        return self

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predict; with ``return_std``, return the standard deviations too."""
        rows = self._rows(X)
        y_hat = self.learner_.predict_rows(rows)
        return (y_hat, self.learner_.deviation_of_rows(rows)) if return_std else y_hat


class OnlineKernelClassifier(ClassifierMixin, _Online):  # type: ignore[misc]
    """Online classification into two classes, by the logistic loss and multiple kernels.

    Parameters and attributes are those of `OnlineKernelRegressor`, and ``classes_``.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> y = np.where(np.hypot(*X.T) < 1, "in", "out")
    >>> bool(OnlineKernelClassifier().fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.8)
    True
    """

    _loss = Logistic()
    classes_: NDArray[Any]

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget everything, then learn these rows."""
        with self._atomic():
            for name in ("learner_", "classes_"):
                self.__dict__.pop(name, None)
            return self._learn(X, y, None)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Continue with these rows; the first call must name the two classes."""
        if classes is None and not hasattr(self, "learner_"):
            raise DataError("classes must be passed on the first call to partial_fit")
        with self._atomic():
            return self._learn(X, y, classes)

    def _learn(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None) -> Self:
        is_first = not hasattr(self, "learner_")
        rows, labels = validate_data(self, X, y, reset=is_first, dtype=np.float64)
        check_classification_targets(labels)
        self._set_classes(labels, classes)
        is_known = np.isin(labels, self.classes_)
        if not is_known.all():
            raise DataError(f"y must be one of the classes, got {labels[~is_known][0]!r}")
        learner = self._new_learner() if is_first else self.learner_
        self.learner_ = learner.learn(rows, np.where(labels == self.classes_[1], 1.0, -1.0))
        return self

    def _set_classes(self, labels: NDArray[Any], classes: ArrayLike | None) -> None:
        found = np.unique(labels if classes is None else np.asarray(classes))
        if hasattr(self, "classes_"):
            if classes is not None and not np.array_equal(found, self.classes_):
                raise DataError(f"classes must be {self.classes_} as before, got {found}")
            return
        if len(found) > 2:
            raise DataError(
                "Only binary classification is supported. The type of the target is"
                f" {type_of_target(found)}."
            )
        if len(found) < 2:
            raise DataError(f"y must hold two classes, got one class {found[0]!r}")
        self.classes_ = found

    def decision_function(self, X: ArrayLike) -> Floats:
        """Give the log-odds of the second class."""
        rows = self._rows(X)
        return self.learner_.predict_rows(rows)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Give the probabilities (n, 2) of the classes, in the order of ``classes_``."""
        chance = expit(self.decision_function(X))
        return np.column_stack([1 - chance, chance])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Give the likelier class of each row."""
        is_second = self.decision_function(X) > 0
        likelier: NDArray[Any] = self.classes_[is_second.astype(int)]
        return likelier

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
