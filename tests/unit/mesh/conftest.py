"""Small agreed models."""

import pytest

import domkl
from domkl.core.features import RandomFeatures
from domkl.mesh.model import Model, Range


def small_model(n_inputs=2, outside="clip", inputs=None):
    features = RandomFeatures.draw(domkl.gaussian_bank([1.0, 10.0]), n_inputs, 5, seed=1)
    inputs = inputs or (Range("a", 0.0, 10.0), Range("b", -1.0, 1.0))[:n_inputs]
    target = Range("load", 0.0, 100.0)
    return Model(domkl.DOMKL(), features, inputs, target, outside=outside)


@pytest.fixture
def model():
    return small_model()


@pytest.fixture
def refusing():
    return small_model(outside="refuse")
