"""A sample is accepted as it was meant, or refused with a line that says why."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from domkl.errors import DataError
from domkl.mesh.node.samples import MAX_SAMPLES, Batch, Desk, Given, parse


def prepared(desk, text):
    return [desk.sample(each) for each in parse(text)]


def test_by_order_and_by_name(model):
    desk = Desk(model, None)
    by_order, by_name = prepared(
        desk, '[{"x": [5, 0.5], "y": 25, "id": "k1"}, {"x": {"b": 0.5, "a": 5}, "y": 25}]'
    )
    assert by_order.entry.id == "k1"
    np.testing.assert_array_equal(by_order.entry.values, [5, 0.5, 25])
    np.testing.assert_array_equal(by_order.entry.values, by_name.entry.values)
    np.testing.assert_array_equal(by_order.scaled, [0.5, 0.75, 0.25])
    assert desk.width == 3


def test_outside_is_clipped_and_counted(model):
    (found,) = prepared(Desk(model, None), '{"x": [11, 0], "y": -3}')
    assert found.n_outside == 2
    np.testing.assert_array_equal(found.scaled, [1.0, 0.5, 0.0])
    np.testing.assert_array_equal(found.entry.values, [11, 0, -3])


def test_outside_is_refused(refusing):
    with pytest.raises(DataError, match=r"a must be in 0\.0 \.\. 10\.0, got 11\.0"):
        prepared(Desk(refusing, None), '{"x": [11, 0], "y": 3}')


def test_a_series_takes_single_values(model):
    desk = Desk(model, 2)
    (found,) = prepared(desk, '{"value": 50}')
    np.testing.assert_array_equal(found.scaled, [0.5])
    assert desk.width == 1
    with pytest.raises(DataError, match="must have value, and neither x nor y"):
        prepared(desk, '{"x": [1, 2], "y": 3}')


WRONG = {
    '{"x": [1], "y": 1}': "must have 2 inputs, got 1",
    '{"x": {"a": 1}, "y": 1}': "lacks 'b'; inputs are a, b",
    '{"x": {"a": 1, "b": 1, "c": 1}, "y": 1}': "has no place for 'c'",
    '{"x": [1, 2]}': "must have x and y",
    '{"value": 2}': "must have x and y, and no value",
    '{"x": [1, NaN], "y": 1}': "finite",
    '{"x": [1, 1e999], "y": 1}': "finite",
    '{"x": [1, "2"], "y": 1}': "valid number",
    '{"x": [1, true], "y": 1}': "valid number",
    '{"x": [1, null], "y": 1}': "valid number",
    '{"x": [1, 2], "y": 1, "id": "with space"}': "id",
    '{"x": [1, 2], "y": 1, "id": ""}': "id",
    '{"x": [1, 2], "y": 1, "z": 1}': "z",
    '{"x": [1, 2], "y": 1': "JSON",
    "": "JSON",
    "[[]]": "JSON",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_samples_say_why(text, model):
    with pytest.raises(DataError, match=WRONG[text]):
        prepared(Desk(model, None), text)


@given(st.one_of(st.binary(max_size=60), st.text('{}[]":,xyid0123456789.e-NaInf ', max_size=60)))
def test_any_text_is_a_sample_or_refused(text):
    try:
        found = parse(text)
    except DataError:
        return
    assert all(isinstance(each, Given) for each in found)


def test_inputs_to_predict_for(model):
    scaled, n_outside = Desk(model, None).inputs({"a": 20.0, "b": 0.0})
    np.testing.assert_array_equal(scaled, [1.0, 0.5])
    assert n_outside == 1


@pytest.mark.parametrize("wrong", [[1] * 1000, [{"x": [""] * 1000, "y": 1}], {"x": [""] * 1000}])
def test_many_mistakes_cost_no_more_than_one(wrong):
    """To tell of each of a million would hold up a node for minutes."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Given | Batch).validate_python(wrong)
    assert caught.value.error_count() < 10


def test_what_comes_at_once_is_limited():
    one = b'{"value": 1}'
    assert len(parse(b"[" + b",".join([one] * MAX_SAMPLES) + b"]")) == MAX_SAMPLES
    with pytest.raises(DataError, match=f"at most {MAX_SAMPLES} items"):
        parse(b"[" + b",".join([one] * (MAX_SAMPLES + 1)) + b"]")
    with pytest.raises(DataError, match="at most 1048576 bytes"):
        parse(b" " * 2**20 + one)
