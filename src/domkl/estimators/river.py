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
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from domkl import checks
from domkl.algorithms.base import Algorithm
from domkl.core.kernels import Dictionary
from domkl.core.losses import Logistic, Squared
from domkl.errors import DataError
from domkl.estimators.base import Estimator, class_probabilities, class_signs
from domkl.estimators.columns import MAX_LEVELS, Level
from domkl.estimators.learner import MAX_SIZE, Learner, unchanged_on_error
from domkl.estimators.serialize import decode, encode
from domkl.typing import Floats

try:
    from river import base, proba
except ImportError as missing:
    raise ImportError("River is missing: pip install 'domkl[river]'") from missing

Sample = Mapping[Hashable, Any]
Names = tuple[Hashable, ...]
#: name of the only input of a learner whose first sample has no inputs
NO_INPUTS: Names = ("",)


class _Online(Estimator):
    """What all models share: a `Learner` in ``learner``, and ways from samples to rows."""

    _library = "River"
    _learner_name = "learner"
    #: the attribute with what is known beside the learner: classes, targets
    _labels_name: ClassVar[str | None] = None
    _n_outputs: ClassVar[int | None] = None
    learner: Learner
    classes: tuple[Any, ...]
    targets: Names
    seed: int | None
    #: input that holds the newest value of the target, where there is one
    newest_lag: Hashable | None = None

    def __post_init__(self) -> None:
        seed = secrets.randbits(31) if self.seed is None else self.seed
        lag = None if self.newest_lag is None else 0  # it is the first column, see `_all_names`
        self.learner = self._new_learner(seed, lag, self._n_outputs)
        if self._labels_name is not None:
            setattr(self, self._labels_name, ())

    def _row(self, x: Sample, known: Names) -> tuple[Names, Floats]:
        """A sample as a row (1, d), and the names of its inputs: known ones first."""
        row = _plain_row(x, known) if known and len(x) == len(known) else None
        if row is not None:
            return known, row
        values = _values(x, known)
        names = _all_names(known, values, self.newest_lag)
        return names, _row_of(values, names)

    def _known_row(self, x: Sample) -> Floats:
        """A sample as a row (1, d) of the inputs that are known."""
        known = self.learner.names
        row = _plain_row(x, known)
        return _row_of(_values(x, known), known) if row is None else row

    def _predict(self, x: Sample) -> Floats:
        return self.learner.predict_rows(self._known_row(x))[0]  # type: ignore[no-any-return]

    def _predict_frame(self, X: Any) -> Floats:
        """Predictions (n, …) for the rows of a frame."""
        rows = np.full((len(X), len(self.learner.names)), np.nan)
        for i, x in enumerate(_samples_of(X)):
            with _naming_row(i):
                rows[i] = self._known_row(x)[0]
        return self.learner.predict_rows(rows)

    def _learn(self, x: Sample, label: Any, w: Any) -> None:
        """Learn a sample with a checked label."""
        names, row = self._row(x, self.learner.names)
        weights = None if w is None else np.array([_number("w", w)])
        with unchanged_on_error(self, self.learner):
            self._know(label)
            self.learner.learn_rows(names, row, self._targets([label]), weights)

    def _learn_frame(self, X: Any, labels: Sequence[Any], w: Any) -> None:
        """Learn the rows of a frame; those up to a new input or a new label at once."""
        if len(X) != len(labels):
            raise DataError(f"y must have {len(X)} values as X has rows, got {len(labels)}")
        weights = [w] * len(X) if w is None or isinstance(w, numbers.Real) else list(w)
        if len(weights) != len(X):
            raise DataError(f"w must have {len(X)} values as X has rows, got {len(weights)}")
        blocks: list[tuple[Names, list[tuple[Floats, Any, Any]]]] = []
        known = self.learner.names
        for i, x in enumerate(_samples_of(X)):
            with _naming_row(i):
                names, row = self._row(x, known)
                weight = None if w is None else _number("w", weights[i])
            if not blocks or names != known or not self._is_known(labels[i]):
                blocks.append((names, []))
            known = names
            blocks[-1][1].append((row, labels[i], weight))
        with unchanged_on_error(self):
            if len(blocks) > 1:
                self.learner = self.learner.copy()
            for names, samples in blocks:
                rows, found, counted = zip(*samples, strict=True)
                self._know(found[0])
                given = None if w is None else np.array(counted)
                self.learner.learn_rows(names, np.concatenate(rows), self._targets(found), given)

    def _is_known(self, label: Any) -> bool:
        """Whether the learner has outputs for a label."""
        return True

    def _know(self, label: Any) -> None:
        """Add outputs for a label, if there are none."""

    def _targets(self, labels: Sequence[Any]) -> Floats:
        """The targets of each output, (n, K)."""
        return np.array(labels)[:, None]

    def _known(self) -> dict[str, Any]:
        name = self._labels_name
        return {} if name is None else {name: encode(getattr(self, name))}

    def _restore_known(self, header: dict[str, Any]) -> None:
        name = self._labels_name
        if name is not None and name in header:
            setattr(self, name, decode(header[name]))


@dataclass(eq=False, repr=False)
class _Parameters(_Online):
    """Parameters of all models, in the order of the constructor."""

    algorithm: Algorithm | None = None
    bank: Dictionary | None = None
    n_frequencies: int | None = None
    scale: bool = True
    seed: int | None = 0
    forget: float | None = None
    ridge: float | None = None


@dataclass(eq=False, repr=False)
class OnlineKernelRegressor(_Parameters, base.MiniBatchRegressor):
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
    period
        Of `DOMKRLS`: samples after which the series repeats itself, 0 for none; by default it is
        looked for in the labels.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> model = OnlineKernelRegressor()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0...
    """

    _loss = Squared()
    newest_lag: Hashable | None = None
    steps_ahead: int | None = None
    period: int | None = None

    def learn_one(self, x: Sample, y: float, w: float | None = None) -> None:
        """Learn a sample; a weight w counts as w equal samples do."""
        self._learn(x, _number("y", y), w)

    def predict_one(self, x: Sample, with_dist: bool = False) -> Any:
        """Predict; with ``with_dist``, return a normal distribution, as River's Bayesian models."""
        if not with_dist:
            return float(self._predict(x))
        y_hat, deviation = self.learner.predict_with_deviation(self._known_row(x))
        normal: Any = proba.Gaussian
        return normal._from_state(n=1, m=float(y_hat[0]), var=float(deviation[0]) ** 2, ddof=0)

    def predict_interval(self, x: Sample, level: float = 0.95) -> tuple[float, float]:
        """Give the ends of the interval that holds this share of the labels: low and high."""
        ends = checks.ends("level", level)
        low, high = self.learner.predict_quantiles(self._known_row(x), ends)[0]
        return float(low), float(high)

    def learn_many(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn the rows of a frame in their order; the result is the same as one by one."""
        targets = [_number(f"y[{i}]", value) for i, value in enumerate(_listed(y))]
        self._learn_frame(X, targets, w)

    def predict_many(self, X: Any) -> Any:
        """Predict for the rows of a frame."""
        return _series(X, self._predict_frame(X), "float64")


@dataclass(eq=False, repr=False)
class OnlineKernelMultiTargetRegressor(_Parameters, base.MultiTargetRegressor):
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
    _labels_name = "targets"
    _n_outputs = 1
    steps_ahead: int | None = None
    period: int | None = None

    def learn_one(self, x: Sample, y: Any, w: float | None = None, **kwargs: Any) -> None:
        """Learn a sample; a weight w counts as w equal samples do."""
        found = {name: _number_or_nan(f"y[{name!r}]", value) for name, value in y.items()}
        if all(math.isnan(value) for value in found.values()):
            raise DataError(f"y must have at least one target, got {y!r}")
        self._learn(x, found, w)

    def _is_known(self, label: Any) -> bool:
        return all(name in self.targets for name in label)

    def _know(self, label: Any) -> None:
        new = tuple(name for name in label if name not in self.targets)
        for _ in new if self.targets else new[1:]:
            self.learner.add_output()
        self.targets += new

    def _targets(self, labels: Sequence[Any]) -> Floats:
        made = np.array([[each.get(name, np.nan) for name in self.targets] for each in labels])
        if np.isnan(made).any() and not self.learner.algorithm.takes_missing:
            raise DataError(f"y must have all of {self.targets}, got {labels[0]!r}")
        return made

    def predict_one(self, x: Sample) -> Any:
        """Predict each target; nothing before the first sample."""
        return dict(zip(self.targets, self._predict(x).tolist(), strict=False))


@dataclass(eq=False, repr=False)
class OnlineKernelClassifier(_Parameters, base.MiniBatchClassifier):
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
    _labels_name = "classes"
    steps_ahead: int | None = None
    period: int | None = None

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Sample, y: Any, w: float | None = None) -> None:
        """Learn a sample; a weight w counts as w equal samples do."""
        self._learn(x, _label(y), w)

    def _is_known(self, label: Any) -> bool:
        return label in self.classes

    def _know(self, label: Any) -> None:
        """Add a class; the first two share an output, by the sign of its label."""
        n = len(self.classes)
        if label in self.classes:
            return
        if n == 0 and isinstance(label, bool):
            self.classes = (False, True)
            return
        if n == 2:
            self.learner.split()
        if n >= 2:
            self.learner.add_output(-1.0)
        self.classes += (label,)

    def _targets(self, labels: Sequence[Any]) -> Floats:
        places = np.array([self.classes.index(label) for label in labels])
        return class_signs(places, len(self.classes))

    def _known(self) -> dict[str, Any]:
        return {} if self.classes == (False, True) else super()._known()

    def _restore_known(self, header: dict[str, Any]) -> None:
        self.classes = (False, True)  # of version 0.1, which knew no others
        super()._restore_known(header)

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
        self._learn_frame(X, [_label(value) for value in _listed(y)], w)

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


def _row_of(values: Mapping[Hashable, float], names: Names) -> Floats:
    return np.array([[values.get(name, np.nan) for name in names]])


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
