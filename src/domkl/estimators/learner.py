"""One learner outside a network; the estimators for scikit-learn and River wrap it.

`Learner` adds scaling, named inputs, files, and ways into and out of a network to the learner
without neighbors that learner/local.py runs.
"""

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks, storage
from domkl.algorithms.base import Algorithm
from domkl.algorithms.least_squares import DOMKRLS
from domkl.core.features import RandomFeatures
from domkl.core.jit import noted_compilation
from domkl.core.kernels import Dictionary, gaussian_bank
from domkl.core.losses import Logistic
from domkl.errors import DataError, ParameterError
from domkl.estimators import serialize
from domkl.estimators.columns import Columns, Level, widened
from domkl.estimators.scaling import (
    INPUT_WIDTH,
    LEVEL_WIDTH,
    TARGET_WIDTH,
    FirstSamples,
    Statistics,
)
from domkl.graphs.graph import Graph
from domkl.learner.late import AskedRow, AskedRows
from domkl.learner.local import LocalLearner
from domkl.learner.restore import is_old, of_now
from domkl.sim.cells import Cell
from domkl.sim.result import Run
from domkl.sim.simulate import simulate
from domkl.typing import Floats, Ints

N_REPLAYED = 64  # samples that are stored at first, to be learned again
MAX_WEIGHT = 1e6  # of a sample
MAX_SIZE = 1e100  # of a value, so that squares and sums of squares are finite
SHORT = 40  # samples; a call of `simulate` takes as long as this many interpreted rounds
NEAR = 0.1 * INPUT_WIDTH  # inputs that differ by less are one sample, scaled twice


@contextlib.contextmanager
def unchanged_on_error(*objects: Any) -> Iterator[None]:
    """Restore the attributes of these objects if the block raises."""
    before = [dict(each.__dict__) for each in objects]
    try:
        yield
    except BaseException:
        for each, attributes in zip(objects, before, strict=True):
            each.__dict__.clear()
            each.__dict__.update(attributes)
        raise


def copied(state: Any) -> Any:
    """Copy a state with its arrays."""
    return type(state)(*(np.array(values) for values in state))


class Learner:
    """One learner that learns from samples one after the other, with the scaling that it needs.

    The feature map is drawn when the first samples arrive. Inputs and targets are scaled by running
    means and deviations, which include the sample at hand; labels of the logistic loss are not
    scaled. A label is compared with the prediction that was made for it: what `predict` gives for a
    single row waits until the row is learned, many predictions later perhaps (learner/late.py).
    Because means and deviations are inaccurate at first, the first 64 samples are stored and
    replayed: after 2, 4, 8, … and 64 samples, all of them are learned again from the start with the
    scaling known by then.

    Parameters
    ----------
    algorithm : Algorithm, optional
        Any that runs in `simulate`; `DOMKRLS` by default.
    bank : kernels, optional
        The dictionary; the linear kernel, if it is used, must be the last. By default that of the
        algorithm.
    n_frequencies : int, optional
        M, the number of frequencies of each kernel; it then has 2M features. By default 20 for each
        input, at least 50 and at most 200.
    is_scaled : bool
        Whether to scale. If not, samples are learned as they are, as `simulate` does.
    seed : int
        Seed of the frequencies.
    features : RandomFeatures, optional
        A map to use instead of one drawn from ``bank``, ``n_frequencies`` and ``seed``.
    n_outputs : int, optional
        Number of targets of each sample; y and predictions are then (n, n_outputs).

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
        n_frequencies: int | None = None,
        is_scaled: bool = True,
        seed: int = 0,
        features: RandomFeatures | None = None,
        n_outputs: int | None = None,
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
        self.n_outputs = None if n_outputs is None else checks.whole("n_outputs", n_outputs, 1)
        if self.lag is not None and self.n_rows > 1:
            raise ParameterError(f"newest_lag must be None for several outputs, got {self.lag}")
        self.names: tuple[Hashable, ...] = ()
        self.features: RandomFeatures | None = None
        self.state: Any = None
        self.n_seen = 0
        self.x_seen, self.y_seen = Statistics.empty(0), Statistics.empty(self.n_rows)
        self.first_samples = FirstSamples.empty(self.n_rows) if is_scaled else None
        self.asked = AskedRows()
        self._host: LocalLearner | None = None
        self._level_columns: Ints = np.empty(0, dtype=np.intp)
        self.is_map_given = features is not None
        if features is not None:
            self.start(range(features.n_inputs), features)

    @property
    def scales_targets(self) -> bool:
        """Whether targets are scaled like inputs; labels −1 and 1 are not."""
        return self.is_scaled and not isinstance(self.algorithm.loss, Logistic)

    @property
    def n_rows(self) -> int:
        """K, the rows of the state: one for each output."""
        return self.n_outputs or 1

    @property
    def lag(self) -> int | None:
        """Column of the input that holds the newest value of the target, where it is known.

        It is scaled as targets are, because they are compared.
        """
        found: int | None = getattr(self.algorithm, "newest_lag", None)
        return found

    @property
    def n_inputs(self) -> int:
        """d, the number of inputs; 0 before the first sample."""
        return len(self.names)

    def learn(self, X: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Learn samples X (n, d), y (n,) one after the other; an error changes nothing.

        A weight w counts as w equal samples do; a sample of weight 0 is left out. With
        ``n_outputs`` y is (n, n_outputs).
        """
        axes = "n" if self.n_outputs is None else "n K"
        rows, targets = self.checked(X), _bounded("y", checks.samples("y", y, axes))
        if targets.shape[1:] != ((self.n_outputs,) if self.n_outputs else ()):
            raise DataError(f"y must have {self.n_outputs} columns, got {targets.shape[1]}")
        if len(targets) != len(rows):
            raise DataError(f"y must have {len(rows)} values as X has rows, got {len(targets)}")
        if self.algorithm.loss is not None:
            self.algorithm.loss.check_labels(targets)
        given = None if weights is None else checks.samples("weights", weights, "n")
        self.learn_rows(range(rows.shape[1]), rows, targets, given)
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Predict y for X (n, d), each row by itself; 0 before the first sample."""
        return self.predict_rows(self.checked(X))

    def deviation(self, X: ArrayLike) -> Floats:
        """Give the standard deviation of each prediction for X (n, d).

        It is infinite before the first sample.
        """
        return self.predict_with_deviation(self.checked(X))[1]

    def quantiles(self, X: ArrayLike, levels: ArrayLike) -> Floats:
        """Give where the label of each row of X (n, d) is expected: (n, J) for J levels in (0, 1).

        Before the first sample they are infinite, except for the median.
        """
        return self.predict_quantiles(self.checked(X), levels)

    def checked(self, X: ArrayLike) -> Floats:
        """Accept finite inputs (n, d) with the same number of columns as before."""
        rows = _bounded("X", checks.samples("X", X, "n d"))
        if self.names and rows.shape[1] != self.n_inputs:
            raise DataError(f"X must have {self.n_inputs} columns as before, got {rows.shape[1]}")
        return np.require(rows, requirements=["C", "W"])

    def learn_rows(
        self, names: Sequence[Hashable], rows: Floats, y: Floats, weights: Floats | None = None
    ) -> None:
        """Learn checked rows (n, d) of these inputs; NaN stands for a missing value."""
        targets, counted = y.reshape(len(y), self.n_rows), np.ones(len(y))
        if weights is not None:
            counted = self._checked_weights(weights, len(y))
            is_used = counted > 0
            rows, targets, counted = rows[is_used], targets[is_used], counted[is_used]
        with unchanged_on_error(self):
            self._know(names)
            while self.first_samples is not None and len(targets):
                n = self._until_replay()
                self._take(rows[:n], targets[:n], counted[:n])
                rows, targets, counted = rows[n:], targets[n:], counted[n:]
            if len(targets):
                self._take(rows, targets, counted)

    def _checked_weights(self, weights: Floats, n: int) -> Floats:
        """Accept a finite weight of at least 0 for each sample."""
        if weights.shape != (n,):
            raise DataError(f"weights must be of shape ({n},) as y is, got {weights.shape}")
        is_bad = ~((weights >= 0) & (weights <= MAX_WEIGHT))
        if is_bad.any():
            raise DataError(
                f"weights must be in 0..{MAX_WEIGHT:g}, got {weights[is_bad][0]}; scale them"
            )
        is_plain = bool(np.isin(weights, (0.0, 1.0)).all())
        if not is_plain and not isinstance(self.algorithm, DOMKRLS):
            raise ParameterError(
                f"weights must be 0 or 1 for {type(self.algorithm).__name__}; DOMKRLS takes others"
            )
        return weights

    def _until_replay(self) -> int:
        """The number of samples until the next power of 2."""
        return (1 << self.n_seen.bit_length()) - self.n_seen

    def _take(self, rows: Floats, y: Floats, weights: Floats) -> None:
        """Learn samples up to the next replay, and replay all if it is reached."""
        is_replay = self.first_samples is not None and len(y) == self._until_replay()
        asked = self._asked(rows) if len(y) == 1 else None
        if self.first_samples is not None:
            self.first_samples = self.first_samples.with_more(rows, y, weights)
        x, targets = self._counted(rows, y, weights)
        if is_replay and self.n_seen > 0:
            self._replay()
        else:
            self.state = self._learned(self.state, x, targets, weights, asked)
        if len(y) == 1:
            self.asked.learned(rows, self.n_seen, asked)
        self.n_seen += len(y)
        if self.n_seen >= N_REPLAYED:
            self.first_samples = None

    def _learned(
        self, state: Any, x: Floats, y: Floats, weights: Floats, asked: AskedRow | None = None
    ) -> Any:
        """Learn x (n, d), y (n, K) in this order, with weights (n,); return the next state.

        Long batches go through `simulate` with its compiled rounds; the results are the same to the
        bit. A single sample updates the state in place, and is compared with what was predicted
        when it was asked. Several update a copy, so that the state given is unchanged if one fails;
        each is predicted as many labels before its own as labels have been late.
        """
        host, delay = self.host, 0 if len(y) == 1 else self.asked.delay
        with noted_compilation():
            if len(y) > SHORT and not delay and (weights == 1).all():
                all_x, alone = np.repeat(x[:, None], self.n_rows, axis=1), Graph.empty(self.n_rows)
                samples = (host.algorithm, all_x, y, alone, host.features)
                return simulate(*samples, cv="off", keep_predictions=False, state=state).state
            host.state, host.delay = state if len(y) == 1 else copied(state), delay
            for row, label, weight in zip(x, y, weights, strict=True):
                inputs = host.inputs(row)
                then = asked.prediction if asked else host.algorithm.predict(host.state, inputs)
                if weight != 1:
                    then.notes[:, -1] = weight  # where DOMKRLS notes the weight
                host.learn_due(host.due(inputs, then, label))
            while delay and host.learn_due(host.still_due()):
                pass
        return host.state

    def _asked(self, row: Floats) -> AskedRow | None:
        """Give what was predicted for this row (1, d), if it waits for its label."""

        def distance(others: Floats) -> Floats:
            apart = self._scaled_by_now(others) - self._scaled_by_now(row)
            farthest: Floats = np.abs(apart).max(axis=1)
            return farthest / NEAR

        return self.asked.find(row, self.n_seen, distance)

    def _replay(self) -> None:
        """Learn the first samples again from the start, with the scaling known by now."""
        assert self.first_samples is not None
        x, y, weights = self.first_samples
        samples = self._scaled_by_now(x), self._targets_by_now(y)
        self.state = self._learned(self.host.first_state(), *samples, weights)

    def _counted(self, rows: Floats, y: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Count samples in the statistics in order; give each scaled by those up to it."""
        if not self.is_scaled:
            return _missing_as_zero(rows), y
        self.x_seen = self.x_seen.copy()
        x = self.x_seen.take(rows, weights, INPUT_WIDTH)
        if not self.scales_targets:
            return self._finished(x, rows), y
        self.y_seen, targets = self.y_seen.copy(), np.empty_like(y)
        step = len(y) if self.lag is None else 1  # a lag is scaled by the targets up to its own
        for start in range(0, len(y), step):
            some = slice(start, start + step)
            targets[some] = self.y_seen.take(y[some], weights[some], TARGET_WIDTH)
            self._finished(x[some], rows[some])
        return x, np.where(np.isnan(y), np.nan, targets)

    def _finished(self, x: Floats, rows: Floats) -> Floats:
        """Write the newest lag scaled as targets are, and levels of categories as they are."""
        if self.lag is not None and self.scales_targets:
            lag = self.y_seen.scaled(rows[..., [self.lag]], TARGET_WIDTH)
            x[..., self.lag] = lag[..., 0]
        levels = self._level_columns
        if levels.size:
            x[..., levels] = LEVEL_WIDTH * np.nan_to_num(rows[..., levels])
        return x

    def _know(self, names: Sequence[Hashable]) -> None:
        """Add the inputs of these names that are not known yet.

        A new input is treated as if it had always been there, with its mean as its value. While
        the first samples are stored, more inputs may bring more frequencies: then all are drawn
        anew, and the samples are learned again.
        """
        if len(names) == self.n_inputs:
            return
        linear, old = self.columns.is_linear, self.features
        n = self.columns.count(names)
        if old is not None and (self.first_samples is None or self.is_map_given):
            n = old.n_frequencies
        if old is not None and n == old.n_frequencies:
            drawn = self.columns.draw(names[self.n_inputs :], n)
            if old.frequencies.shape[:2] != drawn.shape[:2] or linear != old.linear:
                raise DataError(f"inputs must be those of the map given, got also {names[-1]!r}")
            drawn = np.concatenate([old.frequencies, drawn], axis=2)
            self.start(names, RandomFeatures(drawn, linear=linear))
            return
        drawn = self.columns.draw(names, n)
        if self.is_scaled and self.lag is not None and self.lag < len(names):
            drawn[:, :, self.lag] *= INPUT_WIDTH / TARGET_WIDTH  # it is scaled as targets are
        self.features = None
        self.start(names, RandomFeatures(drawn, linear=linear))
        if self.first_samples is not None and self.n_seen:
            self.first_samples = self.first_samples.widened(len(names))
            self._replay()

    def start(self, names: Sequence[Hashable], features: RandomFeatures) -> None:
        """Use this map from now on; the state so far, if there is one, is moved to it."""
        if self.algorithm.single_kernel and features.n_kernels != 1:
            name = type(self.algorithm).__name__
            raise ParameterError(f"{name} takes features of one kernel, got {features.n_kernels}")
        host = LocalLearner(self.algorithm, features, n_rows=self.n_rows)
        state = host.state
        if self.features is not None:
            state = widened(self.algorithm, self.state, state, self.features, features)
        self.x_seen = self.x_seen.widened(features.n_inputs)
        self.names, self.features = tuple(names), features
        self.asked.clear()
        self._level_columns = np.flatnonzero([isinstance(name, Level) for name in names])
        self.state, self._host = state, host

    def add_output(self, label: float = np.nan) -> None:
        """Add an output that knows nothing yet; in the first samples it had this label."""
        first = self._set_outputs(
            self.n_rows + 1, lambda y: np.column_stack([y, np.full(len(y), label)])
        )
        if first is not None:
            self.state = _joined(self.state, first)

    def split(self) -> None:
        """Make two outputs of one for labels −1 and 1: one that says −1 for 1, then the one."""
        first = self._set_outputs(2, lambda y: np.column_stack([-y, y]))
        if first is not None:
            self.state = _joined(self._mirrored(self.state) or first, self.state)

    def _mirrored(self, state: Any) -> Any | None:
        """The state as if every label had had the other sign: fields odd in the labels negated.

        Known for DOMKRLS with the logistic loss only.
        """
        if not isinstance(self.algorithm, DOMKRLS) or not isinstance(self.algorithm.loss, Logistic):
            return None
        return state._replace(sums=-state.sums, own=-state.own, last=-state.last)

    def _set_outputs(self, n_outputs: int, labels: Callable[[Floats], Floats]) -> Any | None:
        """Change the number of outputs, and the labels of the first samples.

        Returns the state of an output that knows nothing; None where there is no state yet.
        """
        self.n_outputs, self._host = n_outputs, None
        self.asked.clear()
        self.y_seen = self.y_seen.widened(n_outputs)
        if self.first_samples is not None:
            self.first_samples = self.first_samples._replace(y=labels(self.first_samples.y))
        return None if self.features is None else LocalLearner(self.algorithm, self.features).state

    def predict_rows(self, rows: Floats) -> Floats:
        """Predict for checked rows; NaN stands for a missing value."""
        return self.predict_with_deviation(rows, is_wanted=False)[0]

    def predict_with_deviation(self, rows: Floats, is_wanted: bool = True) -> tuple[Floats, Floats]:
        """Predict for checked rows; give the standard deviations too, if they are wanted."""
        shape = (len(rows), self.n_rows)
        y_hat, deviation = np.zeros(shape), np.full(shape, np.inf)
        if self.n_seen > 0:
            host = self.host
            with noted_compilation():
                for i, (inputs, prediction) in enumerate(host.look_at_all(self._scaled(rows))):
                    y_hat[i] = prediction.y_hat
                    if is_wanted:
                        found = self.algorithm.deviation(self.state, inputs, prediction)
                        deviation[i] = self._known(found)
            if len(rows) == 1:
                self.asked.ask(rows, self.n_seen, prediction)
        if self.scales_targets:
            y_hat = y_hat * self.y_seen.deviation + self.y_seen.mean
            deviation = deviation * self.y_seen.deviation
            if self.n_seen < 2:  # a single target has no deviation
                deviation[:] = np.inf
        return (y_hat, deviation) if self.n_outputs else (y_hat[:, 0], deviation[:, 0])

    def predict_quantiles(self, rows: Floats, levels: ArrayLike) -> Floats:
        """Give quantiles for checked rows, (n, J), or (n, K, J) of several outputs."""
        wanted = checks.levels("levels", levels)
        unknown = np.where(wanted == 0.5, 0.0, np.copysign(np.inf, wanted - 0.5))
        found = np.tile(unknown, (len(rows), self.n_rows, 1))
        if self.n_seen > self.scales_targets:  # a single target has no deviation
            with noted_compilation():
                for i, seen in enumerate(self.host.look_at_all(self._scaled(rows))):
                    found[i] = self._known(self.algorithm.quantiles(self.state, *seen, wanted))
        if self.scales_targets:
            found = found * self.y_seen.deviation[:, None] + self.y_seen.mean[:, None]
        return found if self.n_outputs else found[:, 0]

    def _known(self, found: Floats | None) -> Floats:
        if found is None:
            name = type(self.algorithm).__name__
            raise ParameterError(f"algorithm must be one that gives deviations, got {name}")
        return found

    @property
    def host(self) -> LocalLearner:
        """What runs the algorithm; made when it is needed, as it is not pickled."""
        if self._host is None:
            assert self.features is not None, "there is nothing to run before the first sample"
            self._host = LocalLearner(self.algorithm, self.features, n_rows=self.n_rows)
        self._host.algorithm = self.algorithm.delayed(self.asked.delay)
        self._host.state = self.state
        return self._host

    def _scaled(self, rows: Floats) -> Floats:
        """Rows scaled as if each were the next one."""
        if not self.is_scaled:
            return _missing_as_zero(rows)
        return self._finished(self.x_seen.look(rows, INPUT_WIDTH), rows)

    def _scaled_by_now(self, rows: Floats) -> Floats:
        """Rows (…, d) scaled by the present statistics."""
        if not self.is_scaled:
            return rows
        return self._finished(self.x_seen.scaled(rows, INPUT_WIDTH), rows)

    def _targets_by_now(self, y: Floats) -> Floats:
        """Targets (…, K) scaled by the present statistics."""
        if not self.scales_targets:
            return y
        return np.where(np.isnan(y), np.nan, self.y_seen.scaled(y, TARGET_WIDTH))

    def copy(self) -> Self:
        """An independent copy of this learner."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__getstate__())
        made.state = None if self.state is None else copied(self.state)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_host": None, "asked": self.asked.copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `__getstate__` gave, or that of version 0.2 or 0.3."""
        now = {"early": "first_samples", "_levels": "_level_columns", "_runner": "_host"}
        given = {now.get(name, name): value for name, value in state.items() if name != "_told"}
        self.__dict__.update({"asked": AskedRows()} | given)
        if is_old(self.state):  # and so are predictions that wait: they are made again
            self.state = of_now(self.algorithm, self.state, self.host.first_state())
            self.asked = AskedRows(self.asked.delay)

    def __deepcopy__(self, memo: Any) -> Self:
        return self.copy()

    def state_for(self, graph: Graph) -> Any:
        """Give the state of a network in which every learner starts from this one's state.

        For ``simulate(learner.algorithm, …, graph, learner.features, state=…)``, with samples that
        were scaled by `scaled`.
        """
        features = self._fitted_once()
        first = Cell([graph], [features], self.algorithm).first_state()
        fields = [  # fields with one row per edge start from the first state
            np.repeat(own, graph.n_learners, axis=0) if len(own) == 1 else empty
            for own, empty in zip(self.state, first, strict=True)
        ]
        return type(self.state)(*fields)

    def scaled(self, X: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
        """Scale samples X (…, d), y (…) of a network by the present statistics of this learner."""
        inputs, targets = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        self._fitted_once()
        return self._scaled_by_now(inputs), self._targets_by_now(targets[..., None])[..., 0]

    def joined(self, run: Run, k: int) -> Self:
        """Give a learner with the state of learner k of a run, and the scaling of this one."""
        made = self.copy()
        made.first_samples = None
        made.state = _state_of(run, k, self.algorithm, self._fitted_once())
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
        storage.write(path, storage.pack("learner", serialize.parts_of(self)))

    @classmethod
    def load(cls, path: str | Path, algorithm: Algorithm | None = None) -> Self:
        """Read what `save` wrote; an algorithm that is not part of domkl must be given."""
        with serialize.opened("learner", path) as parts:
            return serialize.learner_of(cls, parts, algorithm)

    def _fitted_once(self) -> RandomFeatures:
        """The map of a learner with one output, which is what a network has for each learner."""
        if self.features is None:
            raise DataError("learner must have learned at least one sample, got none")
        if self.n_rows > 1:
            raise ParameterError(f"learner must have one output, got {self.n_rows}")
        return self.features


def _joined(*states: Any) -> Any:
    """The rows of these states in one."""
    return type(states[0])(*(np.concatenate(fields) for fields in zip(*states, strict=True)))


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
    first = LocalLearner(algorithm, features).state
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
