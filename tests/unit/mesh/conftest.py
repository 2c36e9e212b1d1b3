"""A small agreed model, as a function of what shall differ."""

import pytest

from domkl.algorithms.domkl import DOMKL
from domkl.core.features import RandomFeatures
from domkl.core.kernels import Gaussian
from domkl.mesh.model import Model, Range


def small_model(algorithm=None, *, seed=1, kernels=(0.01, 1.0), n_frequencies=3, **changes):
    algorithm = DOMKL() if algorithm is None else algorithm
    if algorithm.single_kernel:
        kernels = kernels[:1]
    features = RandomFeatures.draw([Gaussian(v) for v in kernels], 2, n_frequencies, seed=seed)
    given = {"inputs": (Range("a", 0, 1), Range("b", 0, 1)), "target": Range("y", 0, 1)}
    return Model(algorithm, features, **(given | changes))


@pytest.fixture(scope="session")
def model_of():
    return small_model
