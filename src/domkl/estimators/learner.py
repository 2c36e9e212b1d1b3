"""One learner outside a network; the estimators for scikit-learn and River wrap it.

`Runner` runs an algorithm on the samples of one learner, `Learner` adds scaling, named inputs,
saving, and ways into and out of a network.
"""

from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks
from domkl.algorithms.base import Algorithm, Inputs
from domkl.algorithms.least_squares import DOMKRLS
from domkl.core.features import FeatureStack, RandomFeatures
from domkl.core.kernels import Dictionary, gaussian_bank
from domkl.core.losses import Logistic, Loss
from domkl.errors import DataError, ParameterError
from domkl.estimators import serialize
from domkl.estimators.columns import Columns, widened
from domkl.estimators.scaling import INPUT_WIDTH, TARGET_WIDTH, FirstSamples, Statistics
from domkl.graphs.graph import Graph
from domkl.sim.cells import Cell, Network, first_state
from domkl.sim.inputs import as_trials, check_algorithm
from domkl.sim.interpreted import learn
from domkl.sim.result import Run
from domkl.sim.simulate import simulate
from domkl.typing import Floats

N_FREQUENCIES = 50  # of each kernel, by default
N_REPLAYED = 64  # samples that are stored at first, to be learned again
MAX_SIZE = 1e100  # of a value, so that squares and sums of squares are finite
SHORT = 40  # samples; a call of `simulate` takes as long as this many interpreted rounds
CHUNK = 256  # rows whose features are computed at once


def algorithm_for(loss: Loss, given: Algorithm | None) -> Algorithm:
    """The user's algorithm or the default one; a classifier's must use the logistic loss."""
    if given is None:
        return DOMKRLS(loss=loss)
    if isinstance(getattr(given, "loss", None), Logistic) != isinstance(loss, Logistic):
        raise ParameterError(f"algorithm must learn by a loss such as {loss}, got {given!r}")
    return given


class Runner:
    """Runs an algorithm on the samples of one learner; the state is an argument of each method.

    Short batches are interpreted, long ones go through `simulate` with its compiled rounds. Both
    give the same results to the bit.
    """

    def __init__(self, algorithm: Algorithm, features: RandomFeatures) -> None:
        self.algorithm, self.features = algorithm, features
        self._alone = Graph.empty(1)
        self._network = Network([self._alone], is_alone=algorithm.is_alone)
        self._stack = FeatureStack([features])
        self._buffer = features.empty(1, 1, np.float64)

    def first_state(self) -> Any:
        """The state before the first sample."""
        return first_state(Cell([self._alone], [self.features]), self.algorithm, np.float64)

    def predict(self, state: Any, x: Floats) -> Floats:
        """Predict for inputs x (n, d), each row by itself."""
        return np.array([self.algorithm.predict(state, row).y_hat[0] for row in self._inputs(x)])

    def deviation(self, state: Any, x: Floats) -> Floats | None:
        """Standard deviation of each prediction; None if the algorithm has none."""
        found = [self.algorithm.deviation(state, row) for row in self._inputs(x)]
        known = [float(each[0]) for each in found if each is not None]
        return np.array(known) if known else None

    def learn(self, state: Any, x: Floats, y: Floats) -> Any:
        """Learn x (n, d), y (n,) in this order; return the next state.

        A single sample updates the state in place. Several samples update a copy, so that the
        state given is unchanged if one of them fails.
        """
        if len(y) > SHORT:
            samples = (self.algorithm, x[:, None], y[:, None], self._alone, self.features)
            return simulate(*samples, cv="off", keep_predictions=False, state=state).state
        if len(y) > 1:
            state = copied(state)
        for t, row in enumerate(self._inputs(x)):
            prediction = self.algorithm.predict(state, row)
            label = y[t : t + 1]
            state = learn(self.algorithm, state, row, label, prediction, self._network)
        return state

    def _inputs(self, x: Floats) -> Iterator[Inputs]:
        """The inputs of each row, for one learner; valid until the next is made."""
        for start in range(0, len(x), CHUNK):
            part = x[start : start + CHUNK]
            is_one = len(x) == 1
            z, energy = self._buffer if is_one else self.features.empty(1, len(part), np.float64)
            if self.algorithm.uses_features:
                self._stack.write(part, z, energy)
            for i in range(len(part)):
                yield Inputs(part[i : i + 1], z[0, i : i + 1], energy[0, i : i + 1])


def copied(state: Any) -> Any:
    """Copy a state with its arrays."""
    return type(state)(*(np.array(values) for values in state))


class Learner:
    """One learner that learns from samples one after the other, with the scaling that it needs.

    The feature map is drawn when the first samples arrive. Inputs and targets are scaled by running
    means and deviations, which include the sample at hand; labels of the logistic loss are not
    scaled. Because means and deviations are inaccurate at first, the first 64 samples are stored
    and replayed: after 2, 4, 8, … and 64 samples, all of them are learned again from the start with
    the scaling known by then.

    Parameters
    ----------
    algorithm : Algorithm, optional
        Any that runs in `simulate`; `DOMKRLS` by default.
    bank : kernels, optional
        The dictionary; the linear kernel, if it is used, must be the last. By default that of the
        algorithm.
    n_frequencies : int
        M, the number of frequencies of each kernel; it then has 2M features.
    is_scaled : bool
        Whether to scale. If not, samples are learned as they are, as `simulate` does.
    seed : int
        Seed of the frequencies.
    features : RandomFeatures, optional
        A map to use instead of one drawn from ``bank``, ``n_frequencies`` and ``seed``.

    Attributes
    ----------
    features : RandomFeatures or None
        The feature map; None before the first sample.
    state
        The state of the algorithm, as in a run of one learner.
    names : tuple
        Names of the inputs in the order of the columns; the frequencies of an input are drawn from
        its name.
    n_seen : int
        Number of samples learned.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(500, 2))
    >>> y = 1e3 * np.sin(6 * X[:, 0])
    >>> learner = Learner().learn(X[:400], y[:400])
    >>> bool(np.mean((learner.predict(X[400:]) - y[400:]) ** 2) < 0.1 * y.var())
    True
    """

    def __init__(
        self,
        algorithm: Algorithm | None = None,
        *,
        bank: Dictionary | None = None,
        n_frequencies: int = N_FREQUENCIES,
        is_scaled: bool = True,
        seed: int = 0,
        features: RandomFeatures | None = None,
    ) -> None:
        self.algorithm = DOMKRLS() if algorithm is None else algorithm
        if not isinstance(self.algorithm, Algorithm):
            raise ParameterError(f"algorithm must be an Algorithm, got {algorithm!r}")
        self.bank = bank
        if bank is None:
            single = self.algorithm.single_kernel
            bank = gaussian_bank([1.0]) if single else self.algorithm.bank()
        self.columns = Columns(bank, n_frequencies, seed)
        self.is_scaled = bool(is_scaled)
        self.names: tuple[Hashable, ...] = ()
        self.features: RandomFeatures | None = None
        self.state: Any = None
        self.n_seen = 0
        self.x_seen, self.y_seen = Statistics.empty(0), Statistics.empty(1)
        self.early = FirstSamples.empty() if is_scaled else None
        self._runner: Runner | None = None
        if features is not None:
            self.start(range(features.n_inputs), features)

    @property
    def scales_targets(self) -> bool:
        """Whether targets are scaled like inputs; labels −1 and 1 are not."""
        return self.is_scaled and not isinstance(self.algorithm.loss, Logistic)

    @property
    def n_inputs(self) -> int:
        """d, the number of inputs; 0 before the first sample."""
        return len(self.names)

    def learn(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn samples X (n, d), y (n,) one after the other; an error changes nothing."""
        rows, targets = self.checked(X), _bounded("y", checks.samples("y", y, "n"))
        if len(targets) != len(rows):
            raise DataError(f"y must have {len(rows)} values as X has rows, got {len(targets)}")
        if self.algorithm.loss is not None:
            self.algorithm.loss.check_labels(targets)
        self.learn_rows(range(rows.shape[1]), rows, targets)
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Predict y for X (n, d), each row by itself; 0 before the first sample."""
        return self.predict_rows(self.checked(X))

    def deviation(self, X: ArrayLike) -> Floats:
        """Give the standard deviation of each prediction for X (n, d).

        It is infinite before the first sample.
        """
        return self.deviation_of_rows(self.checked(X))

    def checked(self, X: ArrayLike) -> Floats:
        """Accept finite inputs (n, d) with the same number of columns as before."""
        rows = _bounded("X", checks.samples("X", X, "n d"))
        if self.names and rows.shape[1] != self.n_inputs:
            raise DataError(f"X must have {self.n_inputs} columns as before, got {rows.shape[1]}")
        return np.require(rows, requirements=["C", "W"])

    def learn_rows(self, names: Sequence[Hashable], rows: Floats, y: Floats) -> None:
        """Learn checked rows (n, d) of these inputs; NaN stands for a missing value."""
        before = dict(self.__dict__)
        try:
            self._know(names)
            while self.early is not None and len(y):
                n = self._until_replay()
                self._take(rows[:n], y[:n])
                rows, y = rows[n:], y[n:]
            if len(y):
                self._take(rows, y)
        except BaseException:
            self.__dict__.update(before)
            raise

    def _until_replay(self) -> int:
        """The number of samples until the next power of 2."""
        return int(2 ** self.n_seen.bit_length()) - self.n_seen if self.n_seen else 1

    def _take(self, rows: Floats, y: Floats) -> None:
        """Learn samples up to the next replay, and replay all if it is reached."""
        is_replay = self.early is not None and len(y) == self._until_replay()
        if self.early is not None:
            self.early = self.early.with_more(rows, y)
        x, targets = rows, y
        if self.is_scaled:
            self.x_seen = self.x_seen.copy()
            x = self.x_seen.take(rows, INPUT_WIDTH)
        if self.scales_targets:
            self.y_seen = self.y_seen.copy()
            targets = self.y_seen.take(y[:, None], TARGET_WIDTH)[:, 0]
        if self.early is not None and is_replay:
            samples = self.scaled(*self.early)
            self.state = self.runner.learn(self.runner.first_state(), *samples)
            self.early = self.early if len(self.early.y) < N_REPLAYED else None
        else:
            self.state = self.runner.learn(self.state, _missing_as_zero(x), targets)
        self.n_seen += len(y)

    def _know(self, names: Sequence[Hashable]) -> None:
        """Add the inputs of these names that are not known yet.

        A new input is treated as if it had always been there, with its mean as its value.
        """
        if len(names) == self.n_inputs:
            return
        drawn, linear = self.columns.draw(names[self.n_inputs :]), self.columns.is_linear
        if self.features is not None:
            before = self.features.frequencies
            if before.shape[:2] != drawn.shape[:2] or linear != self.features.linear:
                raise DataError(f"inputs must be those of the map given, got also {names[-1]!r}")
            drawn = np.concatenate([before, drawn], axis=2)
        self.start(names, RandomFeatures(drawn, linear=linear))

    def start(self, names: Sequence[Hashable], features: RandomFeatures) -> None:
        """Use this map from now on; the state so far, if there is one, is moved to it."""
        runner = Runner(self.algorithm, features)
        check_algorithm(self.algorithm, as_trials(Graph.empty(1), features), "float64")
        state = runner.first_state()
        if self.features is not None:
            state = widened(self.algorithm, self.state, state, self.features, features)
        self.x_seen = self.x_seen.widened(features.n_inputs)
        self.names, self.features = tuple(names), features
        self.state, self._runner = state, runner

    def predict_rows(self, rows: Floats) -> Floats:
        """Predict for checked rows; NaN stands for a missing value."""
        if self.n_seen == 0:
            return np.zeros(len(rows))
        y_hat = self.runner.predict(self.state, self._scaled(rows))
        if not self.scales_targets:
            return y_hat
        return y_hat * self.y_seen.deviation + self.y_seen.mean

    def deviation_of_rows(self, rows: Floats) -> Floats:
        """The standard deviations of the predictions for checked rows."""
        if self.n_seen < (2 if self.scales_targets else 1):  # a single target has no deviation
            return np.full(len(rows), np.inf)
        found = self.runner.deviation(self.state, self._scaled(rows))
        if found is None:
            name = type(self.algorithm).__name__
            raise ParameterError(f"algorithm must be one that gives deviations, got {name}")
        return found * self.y_seen.deviation if self.scales_targets else found

    @property
    def runner(self) -> Runner:
        """What runs the algorithm; made when it is needed, as it is not pickled."""
        if self._runner is None:
            assert self.features is not None, "there is nothing to run before the first sample"
            self._runner = Runner(self.algorithm, self.features)
        return self._runner

    def _scaled(self, rows: Floats) -> Floats:
        return self.x_seen.look(rows, INPUT_WIDTH) if self.is_scaled else _missing_as_zero(rows)

    def copy(self) -> Self:
        """An independent copy of this learner."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__getstate__())
        made.state = None if self.state is None else copied(self.state)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_runner": None}

    def __deepcopy__(self, memo: Any) -> Self:
        return self.copy()

    def state_for(self, graph: Graph) -> Any:
        """Give the state of a network in which every learner starts from this one's state.

        For ``simulate(learner.algorithm, …, graph, learner.features, state=…)``, with samples that
        were scaled by `scaled`.
        """
        first = first_state(Cell([graph], [self._fitted()]), self.algorithm, np.float64)
        fields = [  # fields with one row per edge start from the first state
            np.repeat(own, graph.n_learners, axis=0) if len(own) == 1 else empty
            for own, empty in zip(self.state, first, strict=True)
        ]
        return type(self.state)(*fields)

    def scaled(self, X: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
        """Scale samples X (…, d), y (…) of a network by the present statistics of this learner."""
        inputs, targets = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if self.is_scaled:
            inputs = self.x_seen.scaled(inputs, INPUT_WIDTH)
        if self.scales_targets:
            targets = self.y_seen.scaled(targets[..., None], TARGET_WIDTH)[..., 0]
        return inputs, targets

    def joined(self, run: Run, k: int) -> Self:
        """Give a learner with the state of learner k of a run, and the scaling of this one."""
        made = self.copy()
        made.early = None
        made.state = _state_of(run, k, self.algorithm, self._fitted())
        return made

    @classmethod
    def from_run(cls, run: Run, k: int, algorithm: Algorithm, features: RandomFeatures) -> Self:
        """Take learner k out of a network, to continue by itself and without scaling."""
        made = cls(algorithm, features=features, is_scaled=False)
        made.state = _state_of(run, k, algorithm, features)
        made.n_seen = len(run.mse)
        return made

    def save(self, path: str | Path) -> None:
        """Write the learner to a file without pickle; loaded, it continues to the bit."""
        serialize.save_learner(self, path)

    @classmethod
    def load(cls, path: str | Path, algorithm: Algorithm | None = None) -> Self:
        """Read what `save` wrote; an algorithm that is not part of domkl must be given."""
        return serialize.load_learner(cls, path, algorithm)

    def _fitted(self) -> RandomFeatures:
        if self.features is None:
            raise DataError("learner must have learned at least one sample, got none")
        return self.features


def _missing_as_zero(rows: Floats) -> Floats:
    return np.nan_to_num(rows, copy=False) if np.isnan(rows).any() else rows


def _bounded(name: str, values: Floats) -> Floats:
    """Accept numbers whose squares are finite."""
    largest = np.abs(values).max()
    if largest > MAX_SIZE:
        raise DataError(f"{name} must be within ±{MAX_SIZE:g}, got {largest}")
    return values


def _state_of(run: Run, k: int, algorithm: Algorithm, features: RandomFeatures) -> Any:
    """The state of a network's k-th learner, without what ties it to its neighbors."""
    if run.component.ndim != 1:
        raise ParameterError("run must be of one trial, got a batch; simulate one graph alone")
    n_learners = len(run.component)
    if not 0 <= k < n_learners:
        raise ParameterError(f"k must be in 0..{n_learners - 1}, got {k!r}")
    first = Runner(algorithm, features).first_state()
    if type(first) is not type(run.state):
        raise ParameterError(
            f"run must be one of {type(algorithm).__name__}, got {run.state!r:.60}"
        )
    fields = []
    for name, empty, values in zip(first._fields, first, run.state, strict=True):
        own = values[k : k + 1].astype(empty.dtype) if len(empty) else empty
        if own.shape != empty.shape:
            raise ParameterError(
                f"state.{name} must have shape {empty.shape} for these features, got {own.shape}"
            )
        fields.append(own)
    return algorithm.leave(type(first)(*fields))
