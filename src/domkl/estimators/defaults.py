"""What an estimator learns by where its user names nothing. Nothing else here chooses."""

from domkl.algorithms.base import Algorithm
from domkl.algorithms.least_squares import DOMKRLS
from domkl.core.kernels import Dictionary, gaussian_bank
from domkl.core.losses import Logistic, Loss
from domkl.errors import ParameterError

N_FREQUENCIES = 50


def algorithm_for(loss: Loss, given: Algorithm | None) -> Algorithm:
    """The user's algorithm, or the default one; a classifier's must learn by the logistic loss."""
    if given is None:
        return DOMKRLS(loss=loss)
    if isinstance(getattr(given, "loss", None), Logistic) != isinstance(loss, Logistic):
        raise ParameterError(f"algorithm must learn by a loss such as {loss}, got {given!r}")
    return given


def default_bank(algorithm: Algorithm) -> Dictionary:
    """The dictionary for this algorithm."""
    return gaussian_bank([1.0]) if algorithm.single_kernel else algorithm.bank()
