"""Convex losses: value, derivative, and the scalar prox that solves eq. (11) exactly.

(11) sees the sample through s = θᵀz alone. With b₀/c its minimiser without the sample (see
core/admm.py), v = zᵀb₀/c and τ = ‖z‖²/c, all that remains is one scalar equation,

    s = argmin ℓ(s, y) + (s − v)²/2τ,   and then   θ⁺ = b₀/c − g/c · z,   g = (v − s)/τ ∈ ∂ℓ(s, y).

`pull` gives g. It, not s, is what the step needs: at a kink it is the one subgradient that the
minimum picks, and it stays finite as τ → 0.

Convention at a kink: the derivative of a loss there is 0.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks
from domkl.core.jit import scalar, sweep
from domkl.errors import DataError, ParameterError
from domkl.typing import Floats

SQUARED, HUBER, ABSOLUTE, PINBALL, LOGISTIC = range(5)


@scalar
def sigmoid(a: float) -> float:
    """1/(1 + exp(−a)), for any a."""
    if a >= 0:
        return 1 / (1 + math.exp(-a))
    e = math.exp(a)
    return e / (1 + e)


@scalar
def loss_value(kind: int, shape: float, f: float, y: float) -> float:
    """ℓ(f, y)."""
    r = f - y
    if kind == SQUARED:
        return r * r
    if kind == HUBER:
        size = abs(r)
        return 0.5 * r * r if size <= shape else shape * (size - 0.5 * shape)
    if kind in (ABSOLUTE, PINBALL):
        low, high = _slopes(kind, shape)
        return high * r if r > 0 else low * r
    margin = y * f
    return math.log1p(math.exp(-abs(margin))) + max(-margin, 0.0)


@scalar
def loss_derivative(kind: int, shape: float, f: float, y: float) -> float:
    """∂ℓ/∂f, and 0 at a kink."""
    r = f - y
    if kind == SQUARED:
        return 2 * r
    if kind == HUBER:
        return min(max(r, -shape), shape)
    if kind in (ABSOLUTE, PINBALL):
        low, high = _slopes(kind, shape)
        return 0.0 if r == 0 else high if r > 0 else low
    return -y * sigmoid(-y * f)


@scalar
def pull(kind: int, shape: float, v: float, y: float, tau: float) -> float:
    """g = (v − s)/τ at s = argmin ℓ(s, y) + (s − v)²/2τ, for τ ≥ 0."""
    if kind == SQUARED:
        return 2 * (v - y) / (1 + 2 * tau)
    if kind == HUBER:
        return min(max((v - y) / (1 + tau), -shape), shape)
    if kind in (ABSOLUTE, PINBALL):
        low, high = _slopes(kind, shape)
        r = v - y
        if r > tau * high:
            return high
        if r < tau * low:
            return low
        return r / tau if tau > 0 else 0.0
    return -y * _logistic_pull(y * v, tau)


@scalar
def _slopes(kind: int, shape: float) -> tuple[float, float]:
    """The two slopes of a loss with a kink, below and above the label."""
    return (-1.0, 1.0) if kind == ABSOLUTE else (-shape, 1 - shape)


@scalar
def _logistic_pull(margin: float, tau: float) -> float:
    """The root a of a = σ(−margin − τa): Newton's method, and bisection where it gains too little.

    Newton's method alone can swing between two points for ever, where τ is large.
    """
    low, high = 0.0, sigmoid(-margin)
    a = high / (1 + tau * high * (1 - high))
    reach = high
    for _ in range(200):
        sigma = sigmoid(-margin - tau * a)
        gap = a - sigma
        if gap > 0:
            high = a
        else:
            low = a
        step = gap / (1 + tau * sigma * (1 - sigma))
        after = a - step
        if abs(step) > 0.5 * reach or not low <= after <= high:
            after = 0.5 * (low + high)
        reach = abs(after - a)
        a = after
        if reach <= 2e-16 * a:
            break
    return a


@scalar
def robust_square(r: float, variance: float) -> float:
    """r² up to (5s)², and beyond growing like the logarithm only, s² the variance; r² if it is 0.

    One sample, however far out, then counts no more than a few hundred others.
    """
    limit = 5 * math.sqrt(variance)
    size = abs(r)
    if size <= limit or limit == 0:
        return r * r
    return limit * limit * (1 + 2 * math.log(size / limit))


@sweep
def accumulate_loss(loss: Floats, f: Floats, y: Floats, kind: int, shape: float) -> None:
    """Add each kernel's loss to its account: loss, f (K, P), y (K,); what eq. (15) sums."""
    n_learners, n_kernels = f.shape
    for k in range(n_learners):
        for p in range(n_kernels):
            loss[k, p] += loss_value(kind, shape, f[k, p], y[k])


class Loss(Protocol):
    """A convex loss of a prediction and a label: one of the classes below.

    Losses are branches of compiled functions, so a user's own cannot be passed.
    """

    @property
    def kind(self) -> int:
        """Which branch of the compiled functions it is."""

    @property
    def shape(self) -> float:
        """Its one parameter, 0 where it has none."""

    def value(self, f: ArrayLike, y: ArrayLike) -> Floats:
        """ℓ(f, y)."""

    def derivative(self, f: ArrayLike, y: ArrayLike) -> Floats:
        """∂ℓ/∂f, and 0 at a kink."""

    def prox(self, v: ArrayLike, y: ArrayLike, tau: float) -> Floats:
        """Argmin over s of ℓ(s, y) + (s − v)²/2τ."""

    def check_labels(self, y: Floats) -> None:
        """Raise DataError where a label is none this loss is for."""


class _Compiled:
    kind: ClassVar[int]
    shape: float = 0.0

    def value(self, f: ArrayLike, y: ArrayLike) -> Floats:
        return np.asarray(_VALUE(self.kind, self.shape, f, y), dtype=np.float64)

    def derivative(self, f: ArrayLike, y: ArrayLike) -> Floats:
        return np.asarray(_DERIVATIVE(self.kind, self.shape, f, y), dtype=np.float64)

    def prox(self, v: ArrayLike, y: ArrayLike, tau: float) -> Floats:
        checks.positive("tau", tau)
        v = np.asarray(v, dtype=np.float64)
        return np.asarray(v - tau * _PULL(self.kind, self.shape, v, y, tau), dtype=np.float64)

    def check_labels(self, y: Floats) -> None:
        pass


def check_loss(loss: Any) -> None:
    """Raise where this is no loss of this file."""
    if not isinstance(loss, _Compiled):
        raise ParameterError(
            f"loss must be Squared(), Huber(), Absolute(), Pinball() or Logistic(), got {loss!r}"
        )


_VALUE = np.vectorize(loss_value, otypes=[np.float64])
_DERIVATIVE = np.vectorize(loss_derivative, otypes=[np.float64])
_PULL = np.vectorize(pull, otypes=[np.float64])


@dataclass(frozen=True)
class Squared(_Compiled):
    """(f − y)², eq. (13) and (40)."""

    kind: ClassVar[int] = SQUARED


@dataclass(frozen=True)
class Huber(_Compiled):
    """½r² for |r| ≤ δ, and δ(|r| − ½δ) beyond, r = f − y.

    Examples
    --------
    >>> Huber(delta=1.0).value([0.5, 3.0], 0.0)
    array([0.125, 2.5  ])
    """

    delta: float = 1.0
    kind: ClassVar[int] = HUBER

    def __post_init__(self) -> None:
        checks.positive("delta", self.delta)

    @property
    def shape(self) -> float:  # type: ignore[override]
        """δ."""
        return float(self.delta)


@dataclass(frozen=True)
class Absolute(_Compiled):
    """|f − y|; its minimiser is the median."""

    kind: ClassVar[int] = ABSOLUTE


@dataclass(frozen=True)
class Pinball(_Compiled):
    """a(y − f) below the label and (1 − a)(f − y) above it; its minimiser is the a-quantile.

    Examples
    --------
    >>> Pinball(level=0.9).value([0.0, 2.0], 1.0)
    array([0.9, 0.1])
    """

    level: float = 0.5
    kind: ClassVar[int] = PINBALL

    def __post_init__(self) -> None:
        checks.between("level", self.level, 0, 1)

    @property
    def shape(self) -> float:  # type: ignore[override]
        """The level a."""
        return float(self.level)


@dataclass(frozen=True)
class Logistic(_Compiled):
    """log(1 + exp(−yf)) for labels −1 and 1.

    Examples
    --------
    >>> Logistic().derivative(0.0, 1.0)
    array(-0.5)
    """

    kind: ClassVar[int] = LOGISTIC

    def check_labels(self, y: Floats) -> None:
        """Labels are −1 or 1."""
        wrong = y[np.abs(y) != 1]
        if wrong.size:
            raise DataError(f"y must be -1 or 1 for the logistic loss, got {wrong.flat[0]}")
