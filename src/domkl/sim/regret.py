"""Regrets of a finished run, against the best parameters in hindsight."""

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks
from domkl.core.features import RandomFeatures
from domkl.core.hindsight import best_in_hindsight
from domkl.core.losses import Loss, Squared
from domkl.errors import DataError, ParameterError
from domkl.metrics.regret import Regret, cumulative_regret
from domkl.sim.result import Run


def regret(
    run: Run,
    X: ArrayLike,
    y: ArrayLike,
    features: RandomFeatures,
    *,
    n_rounds: int | None = None,
    loss: Loss | None = None,
) -> Regret:
    """Compute both cumulative regrets of Theorems 1 and 2 for one trial.

    The comparators θ*_p minimise the sum of all learners' losses over the first ``n_rounds``
    rounds, all by default, eq. (26); the graph is taken as connected. The run must have been made
    with ``discrepancy=True``. ``loss`` is the one that the run learned by, unless given.

    Examples
    --------
    >>> import domkl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((50, 3, 1)); y = np.sin(X[..., 0])
    >>> features = RandomFeatures.draw(domkl.gaussian_bank([1.0]), 1, 10, seed=0)
    >>> run = domkl.simulate(domkl.DOKL(), X, y, domkl.Graph.ring(3), features, discrepancy=True)
    >>> found = regret(run, X, y, features)
    >>> bool((found.accuracy > 0).all()), found.discrepancy.shape
    (True, (3,))
    """
    inputs, targets = checks.samples("X", X, "T K d"), checks.samples("y", y, "T K")
    if run.predictions is None or run.discrepancy is None or run.predictions.ndim != 2:
        raise DataError(
            "run must be of one trial, with predictions, and made with discrepancy=True"
        )
    if run.predictions.shape != targets.shape:
        shape = run.predictions.shape
        raise DataError(f"y must have shape {shape} as the run's predictions, got {targets.shape}")
    if inputs.shape != (*targets.shape, features.n_inputs):
        raise DataError(
            f"X must have shape {(*targets.shape, features.n_inputs)}, got {inputs.shape}"
        )
    n = len(targets) if n_rounds is None else checks.whole("n_rounds", n_rounds, 1)
    if n > len(targets):
        raise ParameterError(f"n_rounds must be at most {len(targets)}, got {n}")
    inputs, targets, loss = inputs[:n], targets[:n], loss or run.loss or Squared()
    z = features(inputs)  # (T, K, P, D)
    best = []
    for p in range(features.n_kernels):
        rows = z[:, :, p].reshape(targets.size, -1)
        theta = best_in_hindsight(rows, targets.ravel(), loss)
        best.append(loss.value((rows @ theta).reshape(targets.shape), targets))
    return cumulative_regret(
        loss.value(run.predictions[:n], targets), np.stack(best), run.discrepancy[:n]
    )
