"""The best parameter in hindsight, eq. (26)."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog, minimize
from scipy.sparse import csr_array, eye_array, hstack

from domkl import checks
from domkl.core.losses import ABSOLUTE, PINBALL, SQUARED, Loss, Squared
from domkl.errors import DataError
from domkl.typing import Floats


def best_in_hindsight(z: ArrayLike, y: ArrayLike, loss: Loss | None = None) -> Floats:
    """Find θ* = argmin_θ Σ ℓ(θᵀz, y) over all samples of all learners, eq. (26).

    Parameters
    ----------
    z : (N, D)
        One kernel's features of every sample.
    y : (N,)
    loss : Loss
        Squared by default: least squares, of smallest norm where several θ* exist. Absolute and
        pinball are solved as linear programs, Huber and logistic by L-BFGS.

    Notes
    -----
    The logistic loss of separable data has no minimum: the result is then a θ whose loss is
    within rounding of the infimum's neighborhood that the search reached.

    Examples
    --------
    >>> best_in_hindsight([[1.0], [1.0], [1.0]], [0.0, 0.0, 3.0]).round(6)
    array([1.])
    """
    z, y = checks.samples("z", z, "N D"), checks.samples("y", y, "N")
    if len(z) != len(y):
        raise DataError(f"z and y must have equal length, got {len(z)} and {len(y)}")
    loss = loss if loss is not None else Squared()
    if loss.kind == SQUARED:
        return np.asarray(np.linalg.lstsq(z, y, rcond=None)[0], dtype=np.float64)
    is_linear = loss.kind in (ABSOLUTE, PINBALL)
    return _linear_program(z, y, loss) if is_linear else _descend(z, y, loss)


def _linear_program(z: Floats, y: Floats, loss: Loss) -> Floats:
    """Split each residual y − θᵀz into u − w, u, w ≥ 0, and pay for both."""
    n, d = z.shape
    pay_above, pay_below = float(loss.value(1.0, 0.0)), float(loss.value(-1.0, 0.0))
    cost = np.concatenate([np.zeros(d), np.full(n, pay_below), np.full(n, pay_above)])
    residuals = hstack([csr_array(z), eye_array(n), -eye_array(n)], format="csr")
    bounds = [(None, None)] * d + [(0, None)] * (2 * n)
    found = linprog(cost, A_eq=residuals, b_eq=y, bounds=bounds, method="highs")
    return np.asarray(found.x[:d], dtype=np.float64)


def _descend(z: Floats, y: Floats, loss: Loss) -> Floats:
    def objective(theta: Floats) -> tuple[float, Floats]:
        f = z @ theta
        return float(loss.value(f, y).sum()), z.T @ loss.derivative(f, y)

    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(objective, np.zeros(z.shape[1]), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x, dtype=np.float64)
