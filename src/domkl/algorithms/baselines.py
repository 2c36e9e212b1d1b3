"""Baselines: the same learner without neighbors, the last value, last season's, a linear fit.

Every comparison carries them. Any kernel method over a network must beat them all.

The rules of this file: a label is used from the round on in which it is learned, and none of this
round's is known when any learner predicts, also where all learners share one fit. A round without a
label teaches nothing. With labels that come late, the error of a fit is that of θ as it is when the
label comes, not of what was predicted then: so every fit is the least-squares fit of all samples
learned so far.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from domkl import checks
from domkl.algorithms.base import Algorithm, CompiledAlgorithm, Inputs, Net, Prediction, Sizes
from domkl.algorithms.law import Law
from domkl.core.jit import sweep
from domkl.core.kernels import Dictionary, gaussian_bank
from domkl.core.lanes import dot
from domkl.core.rls import first_factors, shrink
from domkl.core.vectors import cleared, copied, scaled, shifted
from domkl.errors import ParameterError
from domkl.typing import Floats


def _inner(name: str) -> Any:
    """An attribute or method of the algorithm inside."""

    def found(self: "Alone") -> Any:
        return getattr(self.algorithm, name)

    return property(found, doc=f"As ``{name}`` of the algorithm inside.")


@dataclass(frozen=True)
class Alone(Algorithm):
    """Run an algorithm without neighbors: the host gives it a network without edges.

    So it may need a graph without cycles and still be alone on one with.
    """

    algorithm: Algorithm

    is_alone = True

    def __post_init__(self) -> None:
        if not isinstance(self.algorithm, Algorithm):
            raise ParameterError(f"algorithm must be an Algorithm, got {self.algorithm!r}")

    def replaced(self, **given: Any) -> "Alone":
        """Set parameters of the algorithm inside."""
        return Alone(self.algorithm.replaced(**given))

    def delayed(self, delay: int) -> "Alone":
        """Delay the algorithm inside."""
        return Alone(self.algorithm.delayed(delay))

    single_kernel, uses_features = _inner("single_kernel"), _inner("uses_features")
    takes_missing, takes_said = _inner("takes_missing"), _inner("takes_said")
    relative_cost, loss, parameters = _inner("relative_cost"), _inner("loss"), _inner("parameters")
    law, compiled, by_edge = _inner("law"), _inner("compiled"), _inner("by_edge")
    exchange, init, predict = _inner("exchange"), _inner("init"), _inner("predict")
    local_step, merge, bank = _inner("local_step"), _inner("merge"), _inner("bank")
    function, deviation, quantiles = _inner("function"), _inner("deviation"), _inner("quantiles")
    at = _inner("at")


class Baseline(CompiledAlgorithm):
    """What the baselines below share: they look at x alone, and take missing labels."""

    uses_features = False
    takes_missing = True

    def bank(self) -> Dictionary:
        """One kernel, which nobody looks at."""
        return gaussian_bank([1.0])


class Silence(NamedTuple):
    """What a LastValue learner says: nothing."""


class LastState(NamedTuple):
    """What a LastValue learner keeps."""

    previous: Floats  # (K,)  the newest label that is known


@sweep
def _tell(prediction: Prediction, k: int, value: float) -> None:
    """Predict this value, by every kernel."""
    prediction.y_hat[k] = value
    for p in range(prediction.by_kernel.shape[1]):
        prediction.by_kernel[k, p] = value


@sweep
def _predict_last(state: LastState, params: Any, inputs: Inputs, prediction: Prediction) -> None:
    column = int(params.newest_lag)
    for k in range(len(state.previous)):
        _tell(prediction, k, state.previous[k] if column < 0 else inputs.x[k, column])


@sweep
def _keep_last(
    state: LastState,
    params: Any,
    inputs: Inputs,
    y: Floats,
    prediction: Prediction,
    net: Net,
    message: Silence,
) -> None:
    for k in range(len(y)):
        if not math.isnan(y[k]):
            state.previous[k] = y[k]


@sweep
def _hear_nothing(state: Any, params: Any, heard: Any, net: Net) -> None:
    pass


@dataclass(frozen=True)
class LastValue(Baseline):
    """Predict the newest label that the learner knows; at first, 0.

    Parameters
    ----------
    newest_lag : int, optional
        Where the inputs are lags, the column of the newest: predict that instead.
    """

    newest_lag: int | None = None

    law = Law(LastState, Silence, _predict_last, _keep_last, _hear_nothing, exchange={})

    def __post_init__(self) -> None:
        if self.newest_lag is not None:
            checks.whole("newest_lag", self.newest_lag, 0)

    def as_tuple(self) -> Any:
        """With −1 for no lag: compiled code takes numbers."""
        kind: Any = self.Tuple
        return kind(-1.0 if self.newest_lag is None else float(self.newest_lag))

    def init(self, sizes: Sizes) -> LastState:
        """0."""
        if self.newest_lag is not None and self.newest_lag >= sizes.n_inputs:
            raise ParameterError(
                f"newest_lag must be below the {sizes.n_inputs} inputs, got {self.newest_lag}"
            )
        return LastState(np.zeros(sizes.n_learners))


class SeasonState(NamedTuple):
    """What a SeasonalNaive learner keeps."""

    season: Floats  # (K, period)  the newest label of each round of the season; NaN if unknown
    previous: Floats  # (K,)       the newest label that is known
    n_rounds: Floats  # (K,)       rounds whose labels have come, missing ones included
    late: Floats  # (K,)           rounds that labels come late, as far as was seen


class SeasonSilence(NamedTuple):
    """What a SeasonalNaive learner says: nothing."""


@sweep
def _predict_season(
    state: SeasonState, params: Any, inputs: Inputs, prediction: Prediction
) -> None:
    period = state.season.shape[1]
    for k in range(len(state.n_rounds)):
        value = state.season[k, int(state.n_rounds[k] + state.late[k]) % period]
        _tell(prediction, k, state.previous[k] if math.isnan(value) else value)
        prediction.notes[k, 0] = state.n_rounds[k]


@sweep
def _keep_season(
    state: SeasonState,
    params: Any,
    inputs: Inputs,
    y: Floats,
    prediction: Prediction,
    net: Net,
    message: SeasonSilence,
) -> None:
    """Keep the label; the rounds learned since it was predicted say how late labels come."""
    period = state.season.shape[1]
    for k in range(len(y)):
        state.late[k] = max(state.late[k], state.n_rounds[k] - prediction.notes[k, 0])
        if not math.isnan(y[k]):
            state.season[k, int(state.n_rounds[k]) % period] = y[k]
            state.previous[k] = y[k]
        state.n_rounds[k] += 1


@dataclass(frozen=True)
class SeasonalNaive(Baseline):
    """Predict the label of one period ago; where that is not known, the newest label.

    Where labels come late, or the one of a period ago is missing, it is that of as many periods ago
    as are needed. How late labels come it finds out from the first that come.

    Parameters
    ----------
    period : int
        Rounds of a season: 24 for a day of hours.
    """

    period: int = 24

    law = Law(
        SeasonState,
        SeasonSilence,
        _predict_season,
        _keep_season,
        _hear_nothing,
        exchange={},
        notes=lambda state: 1,
    )

    def __post_init__(self) -> None:
        checks.whole("period", self.period, 1)

    def init(self, sizes: Sizes) -> SeasonState:
        """Nothing is known."""
        season = np.full((sizes.n_learners, self.period), np.nan)
        return SeasonState(season, *(np.zeros(sizes.n_learners) for _ in range(3)))


class LinearState(NamedTuple):
    """What a LinearRLS learner keeps."""

    theta: Floats  # (K, d + 1)  of the inputs and a constant
    factor: Floats  # (K, d(d + 1)/2)  U of C = U D Uᵀ, core/rls.py
    diagonal: Floats  # (K, d + 1)     D


class LinearSilence(NamedTuple):
    """What a LinearRLS learner says: nothing."""


@sweep
def _predict_linear(state: Any, params: Any, inputs: Inputs, prediction: Prediction) -> None:
    """θᵀ(x, 1)."""
    n_inputs = inputs.x.shape[1]
    for k in range(len(state.theta)):
        theta = state.theta[k]
        _tell(prediction, k, dot(theta[:n_inputs], inputs.x[k]) + theta[n_inputs])


@sweep
def _fit_linear(
    state: LinearState,
    params: Any,
    inputs: Inputs,
    y: Floats,
    prediction: Prediction,
    net: Net,
    message: LinearSilence,
) -> None:
    """Take the sample into the fit."""
    n = state.theta.shape[1]
    z, gain = np.ones(n), np.empty(n)
    for k in range(len(y)):
        if math.isnan(y[k]):
            continue
        theta = state.theta[k]
        copied(z[: n - 1], inputs.x[k])
        error = y[k] - (dot(theta[: n - 1], inputs.x[k]) + theta[n - 1])
        given = (state.factor[k], state.diagonal[k], z, gain)
        spread = shrink(*given, 1.0, params.forget, params.ridge)
        shifted(theta, theta, gain, error / spread)


@dataclass(frozen=True)
class LinearRLS(Baseline):
    """Fit the inputs and a constant to the labels by recursive least squares, without neighbors.

    θ = argmin Σ_t forget^(n − t) (θᵀ(x_t, 1) − y_t)² + ridge ‖θ‖² over the learner's n samples so
    far. `PooledLinearRLS` is the fit of all learners' samples.

    Parameters
    ----------
    ridge : float
        Weight of ‖θ‖² beside the squared errors.
    forget : float
        Below 1, older samples count less.

    Deviations
    ----------
    With forget below 1 the ridge is not as above: it fades like a sample where inputs point, and
    stays where they do not (`core.rls.shrink`).
    """

    ridge: float = 1e-3
    forget: float = 1.0

    law = Law(LinearState, LinearSilence, _predict_linear, _fit_linear, _hear_nothing, exchange={})

    def __post_init__(self) -> None:
        checks.positive("ridge", self.ridge)
        checks.fraction("forget", self.forget)

    def init(self, sizes: Sizes) -> Any:
        """θ = 0, C = I/ridge."""
        n = sizes.n_inputs + 1
        factors = first_factors((n,) * sizes.n_learners, n, self.ridge)
        return LinearState(np.zeros((sizes.n_learners, n)), *factors)


class PooledState(NamedTuple):
    """What the server broadcasts, as each learner holds it."""

    theta: Floats  # (K, d + 1)  of the inputs and a constant
    gram: Floats  # (K, (d + 2)(d + 3)/2)  Σ v vᵀ of v = (x, 1, y), its lower triangle row by row


class PooledMessage(NamedTuple):
    """A learner's sample, as the server adds it up."""

    gram: Floats  # (K, (d + 2)(d + 3)/2)  v vᵀ; 0 without a label


@sweep
def _tell_sample(
    state: PooledState,
    params: Any,
    inputs: Inputs,
    y: Floats,
    prediction: Prediction,
    net: Net,
    message: PooledMessage,
) -> None:
    n = state.theta.shape[1]
    v = np.ones(n + 1)
    for k in range(len(y)):
        row = message.gram[k]
        if math.isnan(y[k]):
            cleared(row)
            continue
        copied(v[: n - 1], inputs.x[k])
        v[n] = y[k]
        for i in range(n + 1):
            scaled(row[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2], v[: i + 1], v[i])


@sweep
def _fit_all(state: PooledState, params: Any, heard: PooledMessage, net: Net) -> None:
    """Add all learners' samples of the round, and solve for θ."""
    n = state.theta.shape[1]
    root = np.empty(n * (n + 1) // 2)
    for k in range(len(state.theta)):
        gram, new = state.gram[k], heard.gram[k]
        n_samples = new[n * (n + 1) // 2 - 1]  # Σ 1 · 1
        if n_samples > 0:
            shifted(gram, new, gram, params.forget)
            moment = gram[n * (n + 1) // 2 : n * (n + 1) // 2 + n]  # Σ y z, the last row
            _solve(state.theta[k], gram, moment, root, params.ridge)


@sweep
def _solve(theta: Floats, gram: Floats, moment: Floats, root: Floats, ridge: float) -> None:
    """Write the solution of (gram + ridge I) θ = moment, by Cholesky's root of the matrix."""
    n = theta.size
    for i in range(n):
        row = root[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
        for j in range(i):
            other = root[j * (j + 1) // 2 : (j + 1) * (j + 2) // 2]
            row[j] = (gram[i * (i + 1) // 2 + j] - dot(row[:j], other[:j])) / other[j]
        row[i] = math.sqrt(gram[(i + 1) * (i + 2) // 2 - 1] + ridge - dot(row[:i], row[:i]))
        theta[i] = (moment[i] - dot(row[:i], theta[:i])) / row[i]
    for i in range(n - 1, -1, -1):
        row = root[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
        theta[i] /= row[i]
        shifted(theta[:i], theta[:i], row[:i], -theta[i])


@dataclass(frozen=True)
class PooledLinearRLS(LinearRLS):
    """Fit one linear function to all learners' samples at a server, round by round.

    Every learner predicts by the ridge fit of all samples of all learners whose labels came in
    earlier rounds; then the labels of this round are learned, all at once. So no learner's
    prediction has seen another's label of the same round.

    Parameters
    ----------
    ridge : float
        Weight of ‖θ‖² beside the squared errors.
    forget : float
        Below 1, older rounds count less; the ridge does not fade.
    """

    law = Law(
        PooledState,
        PooledMessage,
        _predict_linear,
        _tell_sample,
        _fit_all,
        exchange={"gram": "total"},
    )

    def init(self, sizes: Sizes) -> Any:
        """θ = 0, no samples."""
        k, n = sizes.n_learners, sizes.n_inputs + 1
        return PooledState(np.zeros((k, n)), np.zeros((k, (n + 1) * (n + 2) // 2)))
