"""Running means, and what of the measures survives a restart."""

import json
import math

import numpy as np
import pytest

from domkl.mesh.protocol.measures import EdgeMeasures, Mean, Measures


def test_a_mean_has_no_value_before_the_first():
    mean = Mean()
    assert mean.value is None
    for value in (1.0, 4.0):
        mean.add(value)
    assert (mean.n, mean.value) == (2, 2.5)


def test_predictions_are_compared_with_labels_with_the_last_label_and_with_neighbors():
    measures = Measures()
    assert measures.mse is measures.mse_last_value is measures.neighbor_gap is None
    measures.judge(1.0, 0.5, None)
    measures.see(1.0)
    measures.judge(3.0, 2.0, 0.25)
    measures.judge(np.nan, 9.0, 0.5)  # no label, nothing to record
    measures.see(np.nan)
    assert measures.last_label == 1.0  # that of 3.0 is not known yet
    assert measures.n_learned == 2
    assert measures.mse == pytest.approx((0.25 + 1.0) / 2)
    assert measures.mse_last_value == pytest.approx((1.0 + 4.0) / 2)
    assert measures.neighbor_gap == 0.25  # of the one sample with neighbors
    assert measures.mse_alone is None


def test_a_checkpoint_keeps_all_but_edges_and_refusals():
    measures = Measures(n_rounds=7, n_waited=2, n_idle=3)
    measures.judge(1.0, 0.5, 0.25)
    measures.see(1.0)
    measures.judge_alone(1.0, 1.0 - 0.5**0.5)
    measures.refused["b", "epoch"] += 1
    measures.edges["b"] = EdgeMeasures(is_open=True)
    saved = json.loads(json.dumps(measures.saved()))
    again = Measures()
    again.restore(saved)
    assert again.saved() == measures.saved()
    assert (again.mse, again.last_label) == (0.25, 1.0)
    assert again.mse_alone == pytest.approx(0.5)
    assert (again.n_rounds, again.n_waited, again.n_idle) == (7, 2, 3)
    assert not again.refused
    assert again.edges == {}


def test_quantiles_are_judged_where_there_is_a_label_and_they_are_known():
    measures = Measures()
    for y, quantiles in (
        (1.0, None), (math.nan, [0.0] * 7), (1.0, [-math.inf] * 3 + [0.0] + [math.inf] * 3),
    ):  # fmt: skip
        measures.judge_quantiles(y, quantiles)
    assert measures.pinball is None
    measures.judge_quantiles(1.0, [0.0] * 7)  # mean of the levels
    assert measures.pinball == pytest.approx(0.5)
    again = Measures()
    again.restore(measures.saved())
    assert again.pinball == measures.pinball
