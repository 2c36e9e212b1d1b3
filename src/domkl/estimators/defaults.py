"""What an estimator learns by where its user names nothing. Nothing else here chooses."""

from typing import Any

import domkl
from domkl.algorithms.base import Algorithm
from domkl.algorithms.domkl import DOMKL
from domkl.core.kernels import Dictionary, gaussian_bank
from domkl.core.losses import Logistic, Loss
from domkl.errors import ParameterError

N_FREQUENCIES = 50


class _Linear:
    """Stands for the linear kernel: it has no spectrum."""


def default_algorithm(loss: Loss) -> Algorithm:
    """The algorithm for this loss."""
    second_order: Any = getattr(domkl, "DOMKRLS", DOMKL)
    made: Algorithm = second_order(loss=loss)
    return made


def algorithm_for(loss: Loss, given: Algorithm | None) -> Algorithm:
    """The user's algorithm, or the default one; a classifier's must learn by the logistic loss."""
    if given is None:
        return default_algorithm(loss)
    if isinstance(getattr(given, "loss", None), Logistic) != isinstance(loss, Logistic):
        raise ParameterError(f"algorithm must learn by a loss such as {loss}, got {given!r}")
    return given


def default_bank(algorithm: Algorithm) -> Dictionary:
    """The dictionary for this algorithm."""
    if algorithm.single_kernel:
        return gaussian_bank([1.0])
    own: Any = getattr(algorithm, "bank", lambda: (*gaussian_bank([0.1, 1.0, 10.0]), _Linear()))
    made: Dictionary = own()
    return made
