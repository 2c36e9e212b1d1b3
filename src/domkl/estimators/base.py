"""What the estimators for scikit-learn and River share: parameters, a learner, files, classes."""

from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from domkl import storage
from domkl.algorithms.base import Algorithm
from domkl.algorithms.least_squares import DOMKRLS
from domkl.core.kernels import Dictionary
from domkl.core.losses import Logistic, Loss
from domkl.errors import ParameterError
from domkl.estimators.learner import Learner
from domkl.estimators.serialize import decode, encode, learner_of, opened, parts_of
from domkl.sim.result import Run
from domkl.storage import Parts
from domkl.typing import Floats, Ints

#: parameters of the default algorithm that estimators have too, where they take them
TUNED = tuple(field.name for field in fields(DOMKRLS) if field.name != "loss")


class Estimator:
    """An estimator that wraps a learner; its parameters are the fields of a dataclass."""

    _loss: ClassVar[Loss]
    #: the library that the estimator is made for, as files name it
    _library: ClassVar[str]
    #: the attribute that holds the learner
    _learner_name: ClassVar[str]
    algorithm: Algorithm | None
    bank: Dictionary | None
    n_frequencies: int | None
    scale: bool

    def _params(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _fitted(self) -> Learner:
        """The learner, if there is one."""
        found: Learner = getattr(self, self._learner_name)
        return found

    def _new_learner(self, seed: int, lag: int | None, n_outputs: int | None) -> Learner:
        """A learner with these parameters; ``lag`` is the column of the newest lag."""
        tuned = {name: getattr(self, name, None) for name in TUNED} | {"newest_lag": lag}
        return Learner(
            _algorithm(self._loss, self.algorithm, tuned),
            bank=self.bank,
            n_frequencies=self.n_frequencies,
            is_scaled=self.scale,
            seed=seed,
            n_outputs=n_outputs,
        )

    def save(self, path: str | Path) -> None:
        """Write the parameters and everything that was learned to a file, without pickle."""
        params = {
            name: encode(value)
            for name, value in self._params().items()
            if value is not None or name not in TUNED
        }
        header, arrays = parts_of(self._fitted())
        header = {"params": params, "learner": header, **self._known()}
        storage.write(path, storage.pack(self._kind(), Parts(header, arrays)))

    @classmethod
    def load(cls, path: str | Path, algorithm: Algorithm | None = None) -> Self:
        """Read what `save` wrote; an algorithm that is not part of domkl must be given."""
        given: dict[str, Any] = {} if algorithm is None else {"algorithm": algorithm}
        with opened(cls._kind(), path) as (header, arrays):
            params = {n: decode(v) for n, v in header["params"].items() if n not in given}
            made = cls(**given, **params)
            learner = learner_of(Learner, Parts(header["learner"], arrays), algorithm)
            setattr(made, cls._learner_name, learner)
            made._restore_known(header)
            return made

    @classmethod
    def _kind(cls) -> str:
        return f"{cls._library} {cls.__name__}"

    def _known(self) -> dict[str, Any]:
        """What the header of a file has beside parameters and learner."""
        return {}

    def _restore_known(self, header: dict[str, Any]) -> None:
        """Restore what `_known` returned."""

    def from_run(self, run: Run, k: int) -> Self:
        """Give an estimator with the state of learner k of a run, and the scaling of this one."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        setattr(made, self._learner_name, self._fitted().joined(run, k))
        return made


def _algorithm(loss: Loss, given: Algorithm | None, tuned: dict[str, Any]) -> Algorithm:
    """The user's algorithm, or the default one with what the user tunes of it, None being unset.

    A classifier's must use the logistic loss.
    """
    chosen = {name: value for name, value in tuned.items() if value is not None}
    if given is None:
        return DOMKRLS(loss=loss, **chosen)
    if chosen:
        name, value = next(iter(chosen.items()))
        raise ParameterError(
            f"{name} must be None where algorithm is given, got {value!r}; set it in the algorithm"
        )
    if isinstance(getattr(given, "loss", None), Logistic) != isinstance(loss, Logistic):
        raise ParameterError(f"algorithm must learn by a loss such as {loss}, got {given!r}")
    return given


def class_signs(places: Ints, n_classes: int) -> Floats:
    """Labels ±1 of each output, (n, K), for the indices of classes.

    One or two classes share one output, whose label is 1 for the second; more have one each.

    Examples
    --------
    >>> class_signs(np.array([1, 0]), 2).tolist(), class_signs(np.array([2]), 3).tolist()
    ([[1.0], [-1.0]], [[-1.0, -1.0, 1.0]])
    """
    outputs = np.arange(n_classes) if n_classes > 2 else np.array([1])
    return np.where(places[:, None] == outputs, 1.0, -1.0)


def class_probabilities(log_odds: Floats, n_classes: int) -> Floats:
    """Give the probabilities (n, C) of the classes; each row adds up to 1.

    One or two classes share one output, (n, 1): its log-odds are those of the second. Of more,
    each has an output, (n, C), that separates it from the rest; p_c = σ(f_c)/Σσ(f), computed by
    logarithms, so that classes that are all unlikely still differ.

    Examples
    --------
    >>> class_probabilities(np.array([[0.0]]), 2)
    array([[0.5, 0.5]])
    >>> class_probabilities(np.array([[0.0, 0.0, -800.0, -800.0]]), 4)
    array([[0.5, 0.5, 0. , 0. ]])
    """
    if n_classes == 1:
        return np.ones((len(log_odds), 1))
    if n_classes == 2:
        log_odds = np.column_stack([-log_odds, log_odds])
    logs = -np.logaddexp(0.0, -log_odds)
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    made: Floats = chances / chances.sum(axis=1, keepdims=True)
    return made
