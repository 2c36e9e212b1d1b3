"""Streams made to show one thing: here, learners that disagree about the best kernel."""

import numpy as np

from domkl.typing import Floats


def two_neighbors(n_rounds: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """One learner's labels are a fast sine, its neighbor's are 0: X (T, 2, 1), y (T, 2).

    A narrow kernel serves the first, a wide one the second.
    """
    X = generator.random((n_rounds, 2, 1))
    return X, np.stack([np.sin(40 * X[:, 0, 0]), np.zeros(n_rounds)], axis=1)


def star(n_rounds: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Eight leaves with sin 40x around a hub, learner 0, with −sin 40x: X (T, 9, 1), y (T, 9).

    The function that all learners share in a narrow kernel helps every leaf and hurts the hub by
    more; a wide kernel can do little but 0. A leaf of `Graph.star` hears itself and the hub, and
    drops the narrow kernel, though it is the better one for the network.
    """
    X = generator.random((n_rounds, 9, 1))
    return X, np.r_[-1.0, np.ones(8)] * np.sin(40 * X[..., 0])
