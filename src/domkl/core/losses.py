"""Convex losses: value, derivative, and the scalar prox that solves eq. (11) exactly.

(11) sees the sample through s = θᵀz alone. With b₀/c its minimiser without the sample (see
algorithms/admm.py), v = zᵀb₀/c and τ = ‖z‖²/c, all that remains is one scalar equation,

    s = argmin ℓ(s, y) + (s − v)²/2τ,   and then   θ⁺ = b₀/c − g/c · z,   g = (v − s)/τ ∈ ∂ℓ(s, y).

`pull` gives g. It, not s, is what the step needs: at a kink it is the one subgradient that the
minimum picks, and it stays finite as τ → 0.

Convention at a kink: the derivative of a loss there is 0.

To add a loss to the package, add its branch to the three functions of the built-in losses, its
class, and its name to `LOSSES`. A user's own loss is a subclass of `Loss` elsewhere.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks
from domkl.core.jit import FOREIGN, Parameters, scalar, sweep
from domkl.core.numba_internals import by_class
from domkl.errors import DataError, ParameterError
from domkl.typing import Floats

SQUARED, HUBER, ABSOLUTE, PINBALL, LOGISTIC = range(5)


class BuiltIn(NamedTuple):
    """A loss of this file, as compiled code takes it."""

    kind: int  # which branch
    shape: float  # its one parameter, 0 where it has none


@scalar
def sigmoid(a: float) -> float:
    """1/(1 + exp(−a)), for any a."""
    if a >= 0:
        return 1 / (1 + math.exp(-a))
    e = math.exp(a)
    return e / (1 + e)


@scalar
def _value(loss: BuiltIn, f: float, y: float) -> float:
    """ℓ(f, y)."""
    kind, shape, r = loss.kind, loss.shape, f - y
    if kind == SQUARED:
        return r * r
    if kind == HUBER:
        size = abs(r)
        return 0.5 * r * r if size <= shape else shape * (size - 0.5 * shape)
    if kind in (ABSOLUTE, PINBALL):
        low, high = _slopes(loss)
        return high * r if r > 0 else low * r
    margin = y * f
    return math.log1p(math.exp(-abs(margin))) + max(-margin, 0.0)


@scalar
def _derivative(loss: BuiltIn, f: float, y: float) -> float:
    """∂ℓ/∂f, and 0 at a kink."""
    kind, shape, r = loss.kind, loss.shape, f - y
    if kind == SQUARED:
        return 2 * r
    if kind == HUBER:
        return min(max(r, -shape), shape)
    if kind in (ABSOLUTE, PINBALL):
        low, high = _slopes(loss)
        return 0.0 if r == 0 else high if r > 0 else low
    return -y * sigmoid(-y * f)


@scalar
def _pull(loss: BuiltIn, v: float, y: float, tau: float) -> float:
    """g = (v − s)/τ at s = argmin ℓ(s, y) + (s − v)²/2τ, for τ ≥ 0."""
    kind, shape = loss.kind, loss.shape
    if kind == SQUARED:
        return 2 * (v - y) / (1 + 2 * tau)
    if kind == HUBER:
        return min(max((v - y) / (1 + tau), -shape), shape)
    if kind in (ABSOLUTE, PINBALL):
        low, high = _slopes(loss)
        r = v - y
        if r > tau * high:
            return high
        if r < tau * low:
            return low
        return r / tau if tau > 0 else 0.0
    return -y * _logistic_pull(y * v, tau)


@scalar
def _slopes(loss: BuiltIn) -> tuple[float, float]:
    """The two slopes of a loss with a kink, below and above the label."""
    return (-1.0, 1.0) if loss.kind == ABSOLUTE else (-loss.shape, 1 - loss.shape)


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


#: value, derivative and pull, by the class of a loss as compiled code takes it; users' are added
_FUNCTIONS: dict[type, tuple[Callable[..., float], ...]] = {BuiltIn: (_value, _derivative, _pull)}


@by_class
def loss_value(loss: Any, f: float, y: float) -> float:
    """ℓ(f, y) of a loss as compiled code takes it."""
    return _FUNCTIONS[loss][0]  # type: ignore[return-value]


@by_class
def loss_derivative(loss: Any, f: float, y: float) -> float:
    """∂ℓ/∂f, and 0 at a kink."""
    return _FUNCTIONS[loss][1]  # type: ignore[return-value]


@by_class
def pull(loss: Any, v: float, y: float, tau: float) -> float:
    """g = (v − s)/τ at s = argmin ℓ(s, y) + (s − v)²/2τ, for τ ≥ 0."""
    return _FUNCTIONS[loss][2]  # type: ignore[return-value]


@sweep
def add_losses(out: Floats, before: Floats, f: Floats, y: Floats, loss: Any) -> None:
    """Write the account ``before`` with each kernel's loss added, what eq. (15) sums.

    out, before, f (K, P); y (K,), NaN where there is no label and so no loss. ``out`` may be
    ``before``.
    """
    n_learners, n_kernels = f.shape
    for k in range(n_learners):
        if math.isnan(y[k]):
            for p in range(n_kernels):
                out[k, p] = before[k, p]
            continue
        for p in range(n_kernels):
            out[k, p] = before[k, p] + loss_value(loss, f[k, p], y[k])


class Loss(Parameters):
    """A convex loss of a prediction and a label: one of the classes below, or a user's own.

    A loss of one's own is a frozen dataclass that inherits from this class, with two static
    functions that Numba can compile, of its parameters (the fields, by name), a prediction and a
    label. The exact step of ADMM is found from the derivative by bisection; a third function,
    ``pull_at(parameters, v, y, tau)``, may give it in closed form, as `pull` says.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Expectile(Loss):
    ...     level: float = 0.5
    ...
    ...     @staticmethod
    ...     def value_at(parameters, f, y):
    ...         return (parameters.level if f < y else 1 - parameters.level) * (f - y) ** 2
    ...
    ...     @staticmethod
    ...     def derivative_at(parameters, f, y):
    ...         return 2 * (parameters.level if f < y else 1 - parameters.level) * (f - y)
    >>> Expectile(0.9).derivative([0.0, 2.0], 1.0)
    array([-1.8,  0.2])
    """

    #: which branch of the built-in functions it is; -1 for a user's own
    kind: ClassVar[int] = -1
    value_at: ClassVar[Callable[..., Any]]
    derivative_at: ClassVar[Callable[..., Any]]
    pull_at: ClassVar[Callable[..., Any] | None] = None

    @property
    def compiled(self) -> Any:
        """The loss as compiled code takes it."""
        if self.kind >= 0:
            return BuiltIn(self.kind, float(next(iter(vars(self).values()), 0.0)))
        _prepare(type(self))
        return self.as_tuple()

    def value(self, f: ArrayLike, y: ArrayLike) -> Floats:
        """ℓ(f, y)."""
        return self._vectorised(loss_value, f, y)

    def derivative(self, f: ArrayLike, y: ArrayLike) -> Floats:
        """∂ℓ/∂f, and 0 at a kink."""
        return self._vectorised(loss_derivative, f, y)

    def prox(self, v: ArrayLike, y: ArrayLike, tau: float) -> Floats:
        """Argmin over s of ℓ(s, y) + (s − v)²/2τ."""
        checks.positive("tau", tau)
        return np.asarray(v, dtype=np.float64) - tau * self._vectorised(pull, v, y, tau)

    def _vectorised(self, function: Callable[..., float], *given: ArrayLike) -> Floats:
        loss = self.compiled
        apply = np.vectorize(lambda *numbers: function(loss, *numbers), otypes=[np.float64])
        return np.asarray(apply(*given), dtype=np.float64)

    def check_labels(self, y: Floats) -> None:
        """Raise DataError where a label does not suit this loss."""


def _prepare(own: type[Loss]) -> None:
    """Compile the functions of a user's loss, once."""
    kind = own.Tuple
    if kind in _FUNCTIONS:
        return
    for name in ("value_at", "derivative_at"):
        if not callable(getattr(own, name, None)):
            raise ParameterError(f"{own.__name__} must have a static function {name}")
    pulled = _bisected if own.pull_at is None else scalar(own.pull_at)
    _FUNCTIONS[kind] = (scalar(own.value_at), scalar(own.derivative_at), pulled)
    FOREIGN[kind] = (own.value_at, own.derivative_at, own.pull_at or own.derivative_at)


@scalar
def _bisected(loss: Any, v: float, y: float, tau: float) -> float:
    """`pull` by bisection: g lies between 0 and the derivative at v, and ℓ′(v − τg) − g falls."""
    low, high = 0.0, loss_derivative(loss, v, y)
    for _ in range(100):
        g = 0.5 * (low + high)
        if abs(loss_derivative(loss, v - tau * g, y)) > abs(g):
            low = g
        else:
            high = g
    return 0.5 * (low + high)


def check_loss(loss: Any) -> None:
    """Raise where this is no loss."""
    if not isinstance(loss, Loss):
        *names, last = (f"{kind.__name__}()" for kind in LOSSES.values())
        raise ParameterError(f"loss must be {', '.join(names)} or {last}, got {loss!r}")


@dataclass(frozen=True)
class Squared(Loss):
    """(f − y)², eq. (13) and (40)."""

    kind: ClassVar[int] = SQUARED


@dataclass(frozen=True)
class Huber(Loss):
    """``½r²`` for ``|r| ≤ δ``, and ``δ(|r| − ½δ)`` beyond, r = f − y.

    Examples
    --------
    >>> Huber(delta=1.0).value([0.5, 3.0], 0.0)
    array([0.125, 2.5  ])
    """

    delta: float = 1.0
    kind: ClassVar[int] = HUBER

    def __post_init__(self) -> None:
        checks.positive("delta", self.delta)


@dataclass(frozen=True)
class Absolute(Loss):
    """``|f − y|``; its minimiser is the median."""

    kind: ClassVar[int] = ABSOLUTE


@dataclass(frozen=True)
class Pinball(Loss):
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


@dataclass(frozen=True)
class Logistic(Loss):
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


#: the table of losses: the names that files and options use
LOSSES: dict[str, type[Loss]] = {
    "squared": Squared,
    "huber": Huber,
    "absolute": Absolute,
    "pinball": Pinball,
    "logistic": Logistic,
}


def find_loss(name: str) -> type[Loss]:
    """Look a loss up by its name, or import a user's own as ``module:Name``.

    Examples
    --------
    >>> find_loss("huber")(delta=0.1)
    Huber(delta=0.1)
    """
    if name in LOSSES:
        return LOSSES[name]
    if isinstance(name, str) and ":" in name:
        module, _, attribute = name.partition(":")
        try:
            kind = getattr(import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            raise ParameterError(
                f"loss must be a class that can be imported, got {name!r}: {error}"
            ) from None
        if isinstance(kind, type) and issubclass(kind, Loss):
            return kind
    raise ParameterError(f"loss must be one of {', '.join(LOSSES)} or module:Name, got {name!r}")
