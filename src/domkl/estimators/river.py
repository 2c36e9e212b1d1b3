"""Regressors and a classifier for River, by sample or by mini-batch; they wrap a `Learner`.

Inputs are identified by their names. An input that is new is treated as if it had always been there
with its mean as its value; an input that is missing in a sample, absent or None or NaN, counts as
its mean. Strings are levels of a category, see estimators/columns.py. A call that fails leaves the
model as it was.
"""

import contextlib
import math
import numbers
import secrets
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from domkl.algorithms.base import Algorithm
from domkl.core.kernels import Dictionary
from domkl.core.losses import Logistic, Loss, Squared
from domkl.errors import DataError
from domkl.estimators.columns import MAX_LEVELS, Level
from domkl.estimators.learner import MAX_SIZE, Learner, algorithm_for
from domkl.estimators.probabilities import class_probabilities
from domkl.estimators.serialize import Saving, decode, encode
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
    """What all models share: parameters, and a `Learner` in ``learner``."""

    _loss: Loss
    _library = "River"
    _learner_name, _learner_class = "learner", Learner
    #: arguments of the constructor
    _params: ClassVar[tuple[str, ...]]
    #: input that holds the newest value of the target, where there is one
    newest_lag: Hashable | None = None
    #: what is known beside the learner: classes, targets
    _known: ClassVar[str | None] = None
    _n_outputs: ClassVar[int | None] = None
    learner: Learner

    def _begin(self, given: dict[str, Any]) -> None:
        """Keep the parameters, and make the learner."""
        for name in self._params:
            setattr(self, name, given[name])
        tuned = {name: given[name] for name in ("forget", "ridge", "steps_ahead")}
        if self.newest_lag is not None:
            tuned["newest_lag"] = 0  # it is the first column, see `_all_names`
        seed = given["seed"]
        self.learner = Learner(
            algorithm_for(self._loss, given["algorithm"], **tuned),
            bank=given["bank"],
            n_frequencies=given["n_frequencies"],
            is_scaled=given["scale"],
            seed=secrets.randbits(31) if seed is None else seed,
            n_outputs=self._n_outputs,
        )

    def _row(self, x: Sample) -> tuple[Names, Floats]:
        """A sample with the names of its inputs, known ones first."""
        known = self.learner.names
        if known and len(x) == len(known):
            row = _plain_row(x, known)
            if row is not None:
                return known, row
        values = _values(x, known)
        names = _all_names(known, values, self.newest_lag)
        return names, np.array([[values.get(name, np.nan) for name in names]])

    def _known_row(self, x: Sample) -> Floats:
        """A sample as (1, d), of the inputs that are known."""
        known = self.learner.names
        row = _plain_row(x, known) if len(x) >= len(known) else None
        if row is not None:
            return row
        values = _values(x, known)
        return np.array([[values.get(name, np.nan) for name in known]])

    def _learn_row(self, x: Sample, y: Floats, w: Any) -> None:
        """Learn a sample with labels (1, K)."""
        names, row = self._row(x)
        weights = None if w is None else np.array([_number("w", w)])
        self.learner.learn_rows(names, row, y, weights)

    def _predict(self, x: Sample) -> Floats:
        return self.learner.predict_rows(self._known_row(x))[0]  # type: ignore[no-any-return]

    def _frame_rows(self, X: Any) -> tuple[Names, Floats] | None:
        """The rows of a frame of numbers; None if it must be read sample by sample."""
        columns = _columns_of(X)
        if not all(values.dtype.kind in "fiub" for values in columns.values()):
            return None
        rows = {name: values.astype(np.float64) for name, values in columns.items()}
        for name, values in rows.items():
            is_bad = np.abs(values) > MAX_SIZE
            if is_bad.any():
                i = int(np.flatnonzero(is_bad)[0])
                _number(f"X[{name!r}][{i}]", values[i])
            if len(values) and np.isnan(values[0]) and name not in self.learner.names:
                return None
        names = _all_names(self.learner.names, rows, self.newest_lag)
        missing = np.full(len(X), np.nan)
        return names, np.column_stack([rows.get(name, missing) for name in names])

    def _predict_frame(self, X: Any) -> Floats:
        """Predictions (n, …) for the rows of a frame."""
        known = self.learner.names
        found = self._frame_rows(X)
        if found is not None:
            return self.learner.predict_rows(np.ascontiguousarray(found[1][:, : len(known)]))
        rows = np.full((len(X), len(known)), np.nan)
        for i, x in enumerate(_samples_of(X)):
            with _naming_row(i):
                rows[i] = self._known_row(x)[0]
        return self.learner.predict_rows(rows)

    def _learn_frame(self, X: Any, labels: Sequence[Any], w: Any) -> None:
        """Learn the rows of a frame one by one."""
        if len(X) != len(labels):
            raise DataError(f"y must have {len(X)} values as X has rows, got {len(labels)}")
        weights = [w] * len(X) if w is None or isinstance(w, numbers.Real) else list(w)
        if len(weights) != len(X):
            raise DataError(f"w must have {len(X)} values as X has rows, got {len(weights)}")
        before = self.learner.copy()
        with self._atomic(before):
            for i, (x, y) in enumerate(zip(_samples_of(X), labels, strict=True)):
                with _naming_row(i):
                    self.learn_one(x, y, w=weights[i])  # type: ignore[attr-defined]

    @contextlib.contextmanager
    def _atomic(self, before: Learner | None = None) -> Iterator[None]:
        """Undo all changes to the model if the block raises."""
        learner, known = before or self.learner, getattr(self, self._known or "", None)
        try:
            with learner.atomic():
                yield
        except BaseException:
            self.learner = learner
            if self._known is not None:
                setattr(self, self._known, known)
            raise

    def _saved_params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._params}

    def _saved_more(self) -> dict[str, Any]:
        return {} if self._known is None else {self._known: encode(getattr(self, self._known))}

    def _restore_more(self, header: dict[str, Any]) -> None:
        if self._known is not None and self._known in header:
            setattr(self, self._known, decode(header[self._known]))

    def from_run(self, run: Run, k: int) -> Self:
        """Give a model with the state of learner k of a run, and the scaling of this one."""
        made = type(self)(**self._saved_params())
        made.learner = self.learner.joined(run, k)
        if self._known is not None:
            setattr(made, self._known, getattr(self, self._known))
        return made


class OnlineKernelRegressor(_Online, base.MiniBatchRegressor):
    """Online regression with multiple kernels, in memory that does not grow with the samples.

    It follows the level and the last label where that helps, without any setting.

    Parameters
    ----------
    algorithm
        The algorithm that learns; `DOMKRLS` by default.
    bank
        The dictionary of kernels; by default that of the algorithm.
    n_frequencies
        M, the number of frequencies of each kernel; it then has 2M features. By default 20 for each
        input, at least 50 and at most 200.
    scale
        Whether to scale inputs and targets by running means and deviations.
    seed
        Seed of the random features.
    forget
        Of `DOMKRLS`: the first of its two memories, 1 by default.
    ridge
        Of `DOMKRLS`: weight of ‖φ‖² beside the squared errors, 0.001 by default.
    newest_lag
        Of `DOMKRLS`: name of the input that holds the newest value of the target, if there is one.
    steps_ahead
        Of `DOMKRLS`: how many steps ahead it predicts, 1 by default.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> model = OnlineKernelRegressor()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0...
    """

    _loss = Squared()
    _params = (
        "algorithm",
        "bank",
        "n_frequencies",
        "scale",
        "seed",
        "forget",
        "ridge",
        "newest_lag",
        "steps_ahead",
    )

    def __init__(
        self,
        algorithm: Algorithm | None = None,
        bank: Dictionary | None = None,
        n_frequencies: int | None = None,
        scale: bool = True,
        seed: int | None = 0,
        forget: float | None = None,
        ridge: float | None = None,
        newest_lag: Hashable | None = None,
        steps_ahead: int | None = None,
    ) -> None:
        self.newest_lag = newest_lag
        self._begin(locals())

    def learn_one(self, x: Sample, y: float, w: float | None = None) -> None:
        """Learn a sample; a weight w counts as w equal samples do."""
        self._learn_row(x, np.array([[_number("y", y)]]), w)

    def predict_one(self, x: Sample, with_dist: bool = False) -> Any:
        """Predict; with ``with_dist``, return a normal distribution, as River's Bayesian models."""
        if not with_dist:
            return float(self._predict(x))
        deviation = float(self.learner.deviation_of_rows(self._known_row(x))[0])
        normal: Any = proba.Gaussian
        return normal._from_state(n=1, m=float(self._predict(x)), var=deviation**2, ddof=0)

    def learn_many(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn the rows of a frame in their order; the result is the same as one by one."""
        targets = [_number(f"y[{i}]", value) for i, value in enumerate(_listed(y))]
        found = self._frame_rows(X) if w is None and len(X) == len(targets) else None
        if found is None:
            self._learn_frame(X, targets, w)
        elif targets:
            self.learner.learn_rows(*found, np.array(targets))

    def predict_many(self, X: Any) -> Any:
        """Predict for the rows of a frame."""
        return _series(X, self._predict_frame(X), "float64")


class OnlineKernelMultiTargetRegressor(_Online, base.MultiTargetRegressor):
    """Online regression of several targets; all have the same features, each has its own fits.

    Targets are identified by their names. One that is missing in a sample, absent or None or NaN,
    is not learned from it; one that is new begins to learn then. Parameters are those of
    `OnlineKernelRegressor`, without ``newest_lag``.

    Examples
    --------
    >>> model = OnlineKernelMultiTargetRegressor()
    >>> model.learn_one({"sun": 1.0}, {"warm": 20.0, "bright": 1.0})
    >>> model.predict_one({"sun": 1.0})
    {'warm': 20.0, 'bright': 1.0}
    """

    _loss = Squared()
    _known = "targets"
    _n_outputs = 1
    _params = (*OnlineKernelRegressor._params[:7], "steps_ahead")

    def __init__(
        self,
        algorithm: Algorithm | None = None,
        bank: Dictionary | None = None,
        n_frequencies: int | None = None,
        scale: bool = True,
        seed: int | None = 0,
        forget: float | None = None,
        ridge: float | None = None,
        steps_ahead: int | None = None,
    ) -> None:
        self._begin(locals())
        self.targets: Names = ()

    def learn_one(self, x: Sample, y: Any, w: float | None = None, **kwargs: Any) -> None:
        """Learn a sample; a weight w counts as w equal samples do."""
        found = {name: _number_or_nan(f"y[{name!r}]", value) for name, value in y.items()}
        if all(math.isnan(value) for value in found.values()):
            raise DataError(f"y must have at least one target, got {y!r}")
        with self._atomic():
            new = tuple(name for name in found if name not in self.targets)
            for _ in new if self.targets else new[1:]:
                self.learner.add_output()
            self.targets += new
            labels = np.array([[found.get(name, np.nan) for name in self.targets]])
            if np.isnan(labels).any() and not self.learner.algorithm.takes_missing:
                raise DataError(f"y must have all of {self.targets}, got {y!r}")
            self._learn_row(x, labels, w)

    def predict_one(self, x: Sample) -> Any:
        """Predict each target; nothing before the first sample."""
        return dict(zip(self.targets, self._predict(x).tolist(), strict=False))


class OnlineKernelClassifier(_Online, base.MiniBatchClassifier):
    """Online classification by the logistic loss and multiple kernels, each class against the rest.

    Classes are those of the labels that were learned; True and False are known together. Two of
    them share one learner. Parameters are those of `OnlineKernelRegressor`, without ``newest_lag``.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> model = OnlineKernelClassifier()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: ...
    """

    _loss = Logistic()
    _known = "classes"
    _params = OnlineKernelMultiTargetRegressor._params

    def __init__(
        self,
        algorithm: Algorithm | None = None,
        bank: Dictionary | None = None,
        n_frequencies: int | None = None,
        scale: bool = True,
        seed: int | None = 0,
        forget: float | None = None,
        ridge: float | None = None,
        steps_ahead: int | None = None,
    ) -> None:
        self._begin(locals())
        self.classes: tuple[Any, ...] = ()

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Sample, y: Any, w: float | None = None) -> None:
        """Learn a sample; a weight w counts as w equal samples do."""
        label = _label(y)
        if label in self.classes:
            self._learn_row(x, self._signs([label]), w)
            return
        with self._atomic():
            self._add_class(label)
            self._learn_row(x, self._signs([label]), w)

    def _add_class(self, label: Any) -> None:
        """Make room for a class; the first two share a learner, by the sign of its label."""
        n = len(self.classes)
        if n == 0 and isinstance(label, bool):
            self.classes = (False, True)
            return
        if n == 2:
            self.learner.split()
        if n >= 2:
            self.learner.add_output(-1.0)
        self.classes += (label,)

    def _restore_more(self, header: dict[str, Any]) -> None:
        self.classes = (False, True)  # of version 0.1, which knew no others
        super()._restore_more(header)

    def _saved_more(self) -> dict[str, Any]:
        return {} if self.classes == (False, True) else super()._saved_more()

    def _signs(self, labels: Sequence[Any]) -> Floats:
        """The labels of each output, (n, K): 1 for the class, −1 for the others."""
        places = np.array([self.classes.index(label) for label in labels])
        if len(self.classes) <= 2:
            return np.where(places == 1, 1.0, -1.0)[:, None]
        return np.where(places[:, None] == np.arange(len(self.classes)), 1.0, -1.0)

    def predict_proba_one(self, x: Sample, **kwargs: Any) -> dict[Any, float]:
        """Give the probability of each class; nothing before the first label."""
        if not self.classes:
            self._known_row(x)
            return {}
        log_odds = self._predict(x).reshape(1, -1)
        chances = class_probabilities(log_odds, len(self.classes))[0]
        return dict(zip(self.classes, chances.tolist(), strict=True))

    def learn_many(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn the rows of a frame in their order; the result is the same as one by one."""
        labels = [_label(value) for value in _listed(y)]
        is_known = all(label in self.classes for label in labels)
        found = self._frame_rows(X) if w is None and is_known and len(X) == len(labels) else None
        if found is None:
            self._learn_frame(X, labels, w)
        elif labels:
            self.learner.learn_rows(*found, self._signs(labels))

    def predict_proba_many(self, X: Any) -> Any:
        """Give the probability of each class for the rows of a frame."""
        chances = np.zeros((len(X), 0))
        if self.classes:
            log_odds = self._predict_frame(X).reshape(len(X), -1)
            chances = class_probabilities(log_odds, len(self.classes))
        if hasattr(X, "index"):
            import pandas as pd

            return pd.DataFrame(chances, columns=list(self.classes), index=X.index)
        import polars as pl

        columns = zip(self.classes, chances.T, strict=True)
        return pl.DataFrame({str(label): values for label, values in columns})

    def predict_many(self, X: Any) -> Any:
        """Give the likeliest class of the rows of a frame."""
        chances = np.asarray(self.predict_proba_many(X))
        best = chances.argmax(axis=1) if self.classes else np.zeros(len(X), dtype=int)
        labels = [self.classes[place] if self.classes else None for place in best.tolist()]
        return _series(X, labels)


def _label(value: Any) -> Any:
    """Accept a truth value, a whole number or a string."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, (bool, int, str)):
        return plain
    if isinstance(plain, float) and plain.is_integer():
        return int(plain)
    raise DataError(f"y must be a truth value, a whole number or a string, got {value!r}")


def _all_names(known: Names, given: Iterable[Hashable], first: Hashable | None) -> Names:
    """Known names, then the new ones, sorted so that the caller's order does not matter.

    The newest lag is the first of all.
    """
    old = set(known)
    new = sorted((name for name in given if name not in old), key=lambda n: (str(type(n)), repr(n)))
    if not known and first is not None:
        new = [first, *(name for name in new if name != first)]
    return (*known, *new) or NO_INPUTS


def _plain_row(x: Sample, names: Names) -> Floats | None:
    """A sample of numbers as (1, d); None where one of these inputs is missing or no number."""
    try:
        row = np.array([[x[name] for name in names]])
    except (KeyError, ValueError):  # an input is missing, or a value is a sequence
        return None
    if row.ndim != 2 or row.dtype.kind not in "fiub" or not (np.abs(row) <= MAX_SIZE).all():
        return None
    return row.astype(np.float64, copy=False)


def _values(x: Sample, known: Names) -> dict[Hashable, float]:
    """The numbers of a sample by name: strings as levels of a category, what is missing left out.

    A category that has some level has none of the others. A level that is new when there are many
    counts as the level None.
    """
    made: dict[Hashable, float] = {}
    levels: dict[Hashable, set[str | None]] = {}
    for name in known:
        if isinstance(name, Level):
            levels.setdefault(name.input, set()).add(name.value)
    for name, value in x.items():
        if isinstance(value, str):
            others = levels.get(name, set())
            made |= {Level(name, other): 0.0 for other in others}
            is_rare = value not in others and len(others) >= MAX_LEVELS
            made[Level(name, None if is_rare else str(value))] = 1.0
        else:
            number = _number_or_nan(f"x[{name!r}]", value)
            if not math.isnan(number):
                made[name] = number
    return made


def _number_or_nan(name: str, value: Any) -> float:
    """Accept a finite number, or NaN for what is missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return math.nan
    if isinstance(value, numbers.Real) and value != value:
        return math.nan
    return _number(name, value)


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


def _listed(column: Any) -> list[Any]:
    """A column of a frame, a series or an array as a list."""
    return column.tolist() if hasattr(column, "tolist") else list(column)


def _columns_of(X: Any) -> dict[Hashable, Any]:
    """The columns of a frame of pandas or polars, by name."""
    names = list(X.columns)
    if len(set(names)) != len(names):
        raise DataError(f"X must have columns of different names, got {names}")
    return {name: np.asarray(X[name]) for name in names}


def _samples_of(X: Any) -> Iterator[dict[Hashable, Any]]:
    """The rows of a frame as samples."""
    columns = {name: _listed(values) for name, values in _columns_of(X).items()}
    for row in zip(*columns.values(), strict=True) if columns else [()] * len(X):
        yield dict(zip(columns, row, strict=True))


@contextlib.contextmanager
def _naming_row(i: int) -> Iterator[None]:
    """Say in errors which row of the frame is meant."""
    try:
        yield
    except DataError as error:
        raise DataError(f"row {i} of X: {error}") from error


def _series(X: Any, values: Any, dtype: str | None = None) -> Any:
    """A series of the same library as the frame, with its index."""
    if hasattr(X, "index"):
        import pandas as pd

        return pd.Series(values, index=X.index, dtype=dtype)
    import polars as pl

    return pl.Series(values)
