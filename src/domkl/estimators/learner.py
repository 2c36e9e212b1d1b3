"""One learner outside a network: what the faces in scikit-learn and River share."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks, storage
from domkl.algorithms.base import Algorithm
from domkl.algorithms.least_squares import DOMKRLS
from domkl.core.features import RandomFeatures
from domkl.core.kernels import Dictionary
from domkl.core.losses import Logistic
from domkl.errors import DataError, ParameterError
from domkl.estimators import network, parts
from domkl.estimators.columns import Columns
from domkl.estimators.defaults import N_FREQUENCIES, default_bank
from domkl.estimators.growth import widened
from domkl.estimators.host import Host, copied
from domkl.estimators.rows import bounded
from domkl.estimators.scaling import INPUT_WIDTH, TARGET_WIDTH, Early, Statistics
from domkl.graphs.graph import Graph
from domkl.sim.inputs import as_trials, check_algorithm
from domkl.sim.result import Run
from domkl.typing import Floats

REHEARSED = 64  # samples that are kept at first


class Learner:
    """An algorithm that learns from samples as they come, with the scaling that it needs.

    The feature map is drawn when the first samples come. Inputs and targets are scaled by running
    means and deviations, up to and with the sample at hand; labels of the logistic loss are not. As
    those are hardly known at first, the first 64 samples are kept for a while, and learned anew
    after 2, 4, 8, … and 64 of them, scaled by what is known by then.

    Parameters
    ----------
    algorithm : Algorithm, optional
        Any that runs in `simulate`; `DOMKRLS` by default.
    bank : kernels, optional
        Ends with the linear kernel where that shall take part.
    n_frequencies : int
        M, of each kernel; there are 2M features.
    is_scaled : bool
        Without, samples are learned as they are, as `simulate` does.
    seed : int
        Of the frequencies.
    features : RandomFeatures, optional
        A map to use instead of one drawn by ``bank``, ``n_frequencies`` and ``seed``.

    Attributes
    ----------
    features : RandomFeatures or None
    state
        As of a run of one learner.
    names : tuple
        Of the inputs, in the order of the columns; each one's frequencies are drawn by its name.
    n_seen : int
        Samples learned.

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
        bank = default_bank(self.algorithm) if bank is None else bank
        self.columns = Columns(bank, n_frequencies, seed)
        self.is_scaled = bool(is_scaled)
        self.names: tuple[Hashable, ...] = ()
        self.features: RandomFeatures | None = None
        self.state: Any = None
        self.n_seen = 0
        self.x_seen, self.y_seen = Statistics.empty(0), Statistics.empty(1)
        self.early = Early.empty() if is_scaled else None
        self._host: Host | None = None
        if features is not None:
            self.start(range(features.n_inputs), features)

    @property
    def scales_targets(self) -> bool:
        """Whether y is scaled, as x is; labels −1 and 1 are not."""
        return self.is_scaled and not isinstance(self.algorithm.loss, Logistic)

    @property
    def n_inputs(self) -> int:
        """d, 0 before the first sample."""
        return len(self.names)

    def learn(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn samples X (n, d), y (n,) one after the other. What is refused changes nothing."""
        rows, targets = self.checked(X), bounded("y", checks.samples("y", y, "n"))
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

        Before the first sample nothing is known: it is infinite.
        """
        return self.deviation_of_rows(self.checked(X))

    def checked(self, X: ArrayLike) -> Floats:
        """Accept finite inputs (n, d) with as many columns as there were before."""
        rows = bounded("X", checks.samples("X", X, "n d"))
        if self.names and rows.shape[1] != self.n_inputs:
            raise DataError(f"X must have {self.n_inputs} columns as before, got {rows.shape[1]}")
        return np.require(rows, requirements=["C", "W"])

    def learn_rows(self, names: Sequence[Hashable], rows: Floats, y: Floats) -> None:
        """Learn what was checked: rows (n, d) of these inputs; NaN stands for an absent value."""
        before = dict(self.__dict__)
        try:
            self._know(names)
            while self.early is not None and len(y):
                n = self._until_rehearsal()
                self._take(rows[:n], y[:n])
                rows, y = rows[n:], y[n:]
            if len(y):
                self._take(rows, y)
        except BaseException:
            self.__dict__.update(before)
            raise

    def _until_rehearsal(self) -> int:
        """How many samples there are to the next power of 2."""
        return int(2 ** self.n_seen.bit_length()) - self.n_seen if self.n_seen else 1

    def _take(self, rows: Floats, y: Floats) -> None:
        """Learn samples up to the next rehearsal, and there all anew."""
        is_rehearsal = self.early is not None and len(y) == self._until_rehearsal()
        if self.early is not None:
            self.early = self.early.with_more(rows, y)
        x, targets = rows, y
        if self.is_scaled:
            self.x_seen = self.x_seen.copy()
            x = self.x_seen.take(rows, INPUT_WIDTH)
        if self.scales_targets:
            self.y_seen = self.y_seen.copy()
            targets = self.y_seen.take(y[:, None], TARGET_WIDTH)[:, 0]
        if self.early is not None and is_rehearsal:
            samples = self.scaled(*self.early)
            self.state = self.host.learn(self.host.first_state(), *samples)
            self.early = self.early if len(self.early.y) < REHEARSED else None
        else:
            self.state = self.host.learn(self.state, _present(x), targets)
        self.n_seen += len(y)

    def _know(self, names: Sequence[Hashable]) -> None:
        """Make room for inputs of these names, after those known already.

        A new input counts as one that has been there all along, at its mean.
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
        """Use this map, with the state so far, or that before the first sample."""
        host = Host(self.algorithm, features)
        check_algorithm(self.algorithm, as_trials(Graph.empty(1), features), "float64")
        state = host.first_state()
        if self.features is not None:
            state = widened(self.algorithm, self.state, state, self.features, features)
        self.x_seen = self.x_seen.widened(features.n_inputs)
        self.names, self.features = tuple(names), features
        self.state, self._host = state, host

    def predict_rows(self, rows: Floats) -> Floats:
        """Predict for what was checked; NaN stands for an input that is absent."""
        if self.n_seen == 0:
            return np.zeros(len(rows))
        y_hat = self.host.predict(self.state, self._scaled(rows))
        if not self.scales_targets:
            return y_hat
        return y_hat * self.y_seen.deviation + self.y_seen.mean

    def deviation_of_rows(self, rows: Floats) -> Floats:
        """The standard deviations for what was checked."""
        if self.n_seen < (2 if self.scales_targets else 1):  # one target has no scale
            return np.full(len(rows), np.inf)
        found = self.host.deviation(self.state, self._scaled(rows))
        if found is None:
            name = type(self.algorithm).__name__
            raise ParameterError(f"algorithm must be one that gives deviations, got {name}")
        return found * self.y_seen.deviation if self.scales_targets else found

    @property
    def host(self) -> Host:
        """What runs the algorithm; made anew where it was left behind, as by pickle."""
        if self._host is None:
            assert self.features is not None, "there is nothing to host before the first sample"
            self._host = Host(self.algorithm, self.features)
        return self._host

    def _scaled(self, rows: Floats) -> Floats:
        return self.x_seen.look(rows, INPUT_WIDTH) if self.is_scaled else _present(rows)

    def copy(self) -> Self:
        """A learner that goes its own way from here."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__getstate__())
        made.state = None if self.state is None else copied(self.state)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_host": None}

    def __deepcopy__(self, memo: Any) -> Self:
        return self.copy()

    def state_for(self, graph: Graph) -> Any:
        """Give the state of a network whose learners all know what this one knows.

        For ``simulate(learner.algorithm, …, graph, learner.features, state=…)``, with samples as
        `scaled` gives them.
        """
        return network.spread(self.algorithm, self._fitted(), self.state, graph)

    def scaled(self, X: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
        """Scale samples X (…, d), y (…) of a network by what this learner has seen, and no more."""
        inputs, targets = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if self.is_scaled:
            inputs = self.x_seen.scaled(inputs, INPUT_WIDTH)
        if self.scales_targets:
            targets = self.y_seen.scaled(targets[..., None], TARGET_WIDTH)[..., 0]
        return inputs, targets

    def joined(self, run: Run, k: int) -> Self:
        """Give a learner that knows what learner k of a run knows, and scales as this one does."""
        made = self.copy()
        made.early = None
        made.state = network.taken_out(self.algorithm, self._fitted(), run, k)
        return made

    @classmethod
    def from_run(cls, run: Run, k: int, algorithm: Algorithm, features: RandomFeatures) -> Self:
        """Take learner k out of a network, to go on by itself, without any scaling."""
        made = cls(algorithm, features=features, is_scaled=False)
        made.state = network.taken_out(algorithm, features, run, k)
        made.n_seen = len(run.mse)
        return made

    def save(self, path: str | Path) -> None:
        """Write the learner to a file, to go on from there to the bit; no pickle."""
        storage.write(path, storage.pack("learner", parts.of_learner(self)))

    @classmethod
    def load(cls, path: str | Path, algorithm: Algorithm | None = None) -> Self:
        """Read what `save` wrote; an algorithm that is not domkl's own must be given."""
        return parts.from_file("learner", path, lambda held: parts.as_learner(cls, held, algorithm))

    def _fitted(self) -> RandomFeatures:
        if self.features is None:
            raise DataError("learner must have learned at least one sample, got none")
        return self.features


def _present(rows: Floats) -> Floats:
    return np.nan_to_num(rows, copy=False) if np.isnan(rows).any() else rows
