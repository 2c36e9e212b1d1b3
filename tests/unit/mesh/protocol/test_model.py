"""The model: what learners must have in common, and how a difference is reported."""

from dataclasses import replace

import numpy as np
import pytest

import domkl
from domkl.errors import ParameterError
from domkl.mesh.protocol.model import Model, Range

OTHER = {
    "rho": lambda m: replace(m, algorithm=domkl.DOMKL(rho=3.0)),
    "loss": lambda m: replace(m, algorithm=domkl.DOMKL(loss=domkl.Huber(0.1))),
    "weights": lambda m: replace(m, algorithm=domkl.DOMKL(weights="message-passing")),
    "target": lambda m: replace(m, target=Range("y", 0, 2)),
    "inputs": lambda m: replace(m, inputs=(Range("a", 0, 1), Range("b", 0, 1.5))),
    "numbers": lambda m: replace(m, dtype="float32"),
}


def test_equal_models_have_equal_fingerprints(model_of):
    assert model_of().fingerprint == model_of().fingerprint
    assert len(model_of().fingerprint) == 16
    assert model_of().difference(model_of().parts) == ""


@pytest.mark.parametrize("name", OTHER)
def test_the_difference_names_what_differs_and_nothing_else(model_of, name):
    here = model_of()
    there = OTHER[name](here)
    assert here.fingerprint != there.fingerprint
    told = here.difference(there.parts)
    assert told == f"{name} is {there.parts[name]} there and {here.parts[name]} here"


def test_other_features_are_told_apart(model_of):
    here = model_of()
    assert here.difference(model_of(seed=2).parts).startswith("features is ")
    told = here.difference(model_of(kernels=(0.01, 1.0, 2.0)).parts)
    assert "kernels is 3 there and 2 here" in told
    assert "frequencies is 4 there" in here.difference(model_of(n_frequencies=4).parts)


def test_other_algorithms_are_told_apart(model_of):
    told = model_of().difference(model_of(domkl.DOMKRLS()).parts)
    assert told.startswith("algorithm is DOMKRLS there and DOMKL here")
    assert "rho is absent there and 2.0 here" in told
    assert "is absent here" not in model_of().difference(model_of().parts)


def test_the_order_of_inputs_matters_and_their_policy_does_not(model_of):
    turned = model_of(inputs=(Range("b", 0, 1), Range("a", 0, 1)))
    assert "inputs" in model_of().difference(turned.parts)
    assert model_of(outside="refuse").fingerprint == model_of().fingerprint


@pytest.mark.parametrize(
    ("low", "high"), [(1, 1), (2, 1), (0, np.inf), (np.nan, 1), (-np.inf, np.inf)]
)
def test_a_range_is_finite_and_the_right_way_up(low, high):
    with pytest.raises(ParameterError, match="range of a must be finite with low < high"):
        Range("a", low, high)


def test_predictions_are_in_the_units_of_the_target(model_of):
    model = model_of(target=Range("y", 0, 4))
    assert model.target_of(0.25) == 1.0
    assert model.error_of(0.5) == 8.0


def test_what_needs_a_server_is_refused(model_of):
    with pytest.raises(ParameterError, match="exchange messages with neighbors only, got COMKL"):
        model_of(domkl.COMKL())


def test_what_does_not_fit_is_refused(model_of):
    features = model_of().features
    with pytest.raises(ParameterError, match="DOKL takes one kernel, got 2"):
        Model(domkl.DOKL(), features, model_of().inputs, model_of().target)
    with pytest.raises(ParameterError, match="inputs must be 2"):
        model_of(inputs=(Range("a", 0, 1),))
    for changes in ({"dtype": "float16"}, {"outside": "ignore"}):
        with pytest.raises(ParameterError):
            model_of(**changes)
