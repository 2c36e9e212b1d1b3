"""Probabilities of classes from log-odds."""

import numpy as np

from domkl.typing import Floats


def class_probabilities(log_odds: Floats, n_classes: int) -> Floats:
    """Give the probabilities (n, C) of the classes; each row adds up to 1.

    One or two classes share one learner, (n, 1): its log-odds are those of the second. Of more,
    each has a learner, (n, C), that knows it from the rest; p_c = σ(f_c)/Σσ(f), computed by
    logarithms, so that classes that are all unlikely still are told apart.

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
