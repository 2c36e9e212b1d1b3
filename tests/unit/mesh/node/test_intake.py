"""Samples are checked or refused; requests share syncs; a known id keeps its number."""

import asyncio
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mesh_node import solo_config

from domkl.errors import DataError, MeshError
from domkl.mesh.node.intake import MAX_SAMPLES, Format, Intake, Prepared, QueueFullError, parse
from domkl.mesh.protocol.model import Range
from domkl.mesh.store.backlog import Backlog
from domkl.mesh.store.wal import DiskFullError, Entry


def prepared(form, text):
    return [form.sample(each) for each in parse(text)]


def test_by_order_and_by_name(model):
    form = Format(model, None)
    by_order, by_name = prepared(
        form, '[{"x": [5, 0.5], "y": 25, "id": "k1"}, {"x": {"b": 0.5, "a": 5}, "y": 25}]'
    )
    assert by_order.entry.id == "k1"
    np.testing.assert_array_equal(by_order.entry.values, [5, 0.5, 25])
    np.testing.assert_array_equal(by_order.entry.values, by_name.entry.values)
    np.testing.assert_array_equal(by_order.values, [0.5, 0.75, 0.25])
    assert len(form.names) == 3


def test_outside_is_clipped_and_counted(model):
    (found,) = prepared(Format(model, None), '{"x": [11, 0], "y": -3}')
    assert found.n_outside == 2
    np.testing.assert_array_equal(found.values, [1.0, 0.5, 0.0])
    np.testing.assert_array_equal(found.entry.values, [11, 0, -3])


def test_outside_is_refused(refusing):
    with pytest.raises(DataError, match=r"a must be in 0\.0 \.\. 10\.0, got 11\.0"):
        prepared(Format(refusing, None), '{"x": [11, 0], "y": 3}')


@pytest.mark.parametrize("outside", ["clip", "refuse"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_always(model_of, outside, value):
    form = Format(model_of(outside=outside), None)
    with pytest.raises(DataError, match=r"b must be in 0 \.\. 1, got"):
        form.prepared(Entry(np.array([0.5, value, 0.5])))
    if not np.isnan(value):  # NaN is a label that is missing
        with pytest.raises(DataError, match=r"y must be in 0 \.\. 1, got"):
            form.prepared(Entry(np.array([0.5, 0.5, value])))


def test_a_label_may_be_missing_if_the_client_says_so(model, refusing):
    for each in (model, refusing):
        (found,) = prepared(Format(each, None), '{"x": [5, 0.5], "y": null}')
        np.testing.assert_array_equal(found.values, [0.5, 0.75, np.nan])
        assert found.n_outside == 0
    with pytest.raises(DataError, match="sample must have x and y"):
        prepared(Format(model, None), '{"x": [5, 0.5]}')
    with pytest.raises(DataError, match="sample of a series must have value"):
        prepared(Format(model, 2), '{"value": null}')


def test_values_are_scaled_by_their_ranges(model_of):
    ranges = {"inputs": (Range("a", 10, 20), Range("b", -1, 1)), "target": Range("y", 0, 4)}
    found = Format(model_of(**ranges), None).prepared(Entry(np.array([9.0, 0.5, 1.0])))
    np.testing.assert_array_equal(found.values, [0.0, 0.75, 0.25])
    assert found.n_outside == 1


def test_a_series_takes_single_values(model):
    form = Format(model, 2)
    (found,) = prepared(form, '{"value": 50}')
    np.testing.assert_array_equal(found.values, [0.5])
    assert len(form.names) == 1
    with pytest.raises(DataError, match="must have value, and neither x nor y"):
        prepared(form, '{"x": [1, 2], "y": 3}')


WRONG = {
    '{"x": [1], "y": 1}': "must have 2 inputs, got 1",
    '{"x": {"a": 1}, "y": 1}': "lacks 'b'; inputs are a, b",
    '{"x": {"a": 1, "b": 1, "c": 1}, "y": 1}': "has no place for 'c'",
    '{"x": [1, 2]}': "must have x and y",
    '{"value": 2}': "must have x and y, and no value",
    '{"x": [1, NaN], "y": 1}': "finite",
    '{"x": [1, 1e999], "y": 1}': "finite",
    '{"x": [1, "2"], "y": 1}': r"x\[1\] must be a finite number or null, got '2'",
    '{"x": [1, true], "y": 1}': "finite number or null, got True",
    '{"x": [1, null], "y": 1}': "must be a number, got null",
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
        prepared(Format(model, None), text)


@given(st.one_of(st.binary(max_size=60), st.text('{}[]":,xyid0123456789.e-NaInf ', max_size=60)))
def test_any_text_is_a_sample_or_refused(text):
    form = Format(solo_config().model())
    try:
        found = [form.sample(each) for each in parse(text)]
    except DataError:
        return
    assert all(isinstance(each, Prepared) for each in found)


def test_inputs_to_predict_for(model):
    scaled, n_outside = Format(model, None).inputs({"a": 20.0, "b": 0.0})
    np.testing.assert_array_equal(scaled, [1.0, 0.5])
    assert n_outside == 1


def test_many_mistakes_cost_no_more_than_one():
    """To tell of each of a million would hold up a node for minutes."""
    looked_at = []

    class Watched(list):
        def __iter__(self):
            for each in super().__iter__():
                looked_at.append(each)
                yield each

    with pytest.raises(DataError, match=r"x\[0\] must be a finite number or null, got ''"):
        Format(solo_config().model()).sample({"x": Watched([""] * 1000), "y": 1})
    assert len(looked_at) == 1


def test_what_comes_at_once_is_limited():
    one = b'{"value": 1}'
    assert len(parse(b"[" + b",".join([one] * MAX_SAMPLES) + b"]")) == MAX_SAMPLES
    with pytest.raises(DataError, match=f"at most {MAX_SAMPLES} items"):
        parse(b"[" + b",".join([one] * (MAX_SAMPLES + 1)) + b"]")
    with pytest.raises(DataError, match="at most 1048576 bytes"):
        parse(b" " * 2**20 + one)


def item(k, name=""):
    return Prepared(Entry(np.array([float(k)]), name), np.array([0.5]), 0)


class Held:
    """A log whose appends wait until they are released."""

    def __init__(self, log):
        self.sizes = []
        self.gate = threading.Semaphore(0)
        self._append, log.append = log.append, self.append

    def append(self, entries):
        assert self.gate.acquire(timeout=20)
        self.sizes.append(len(entries))
        return self._append(entries)


@pytest.fixture
def backlog(tmp_path):
    made = Backlog(tmp_path, 1, Format(solo_config(lags=1).model(), 1).plan)
    yield made
    made.log.close()


def made(backlog, capacity=100):
    """An intake, the size of the backlog after each sync, and the failures."""
    told = SimpleNamespace(sizes=[], failures=[])
    form = Format(solo_config(lags=1).model(), 1)
    intake = Intake(
        backlog, form, capacity, lambda: told.sizes.append(backlog.log.last), told.failures.append
    )
    return intake, told


def test_requests_share_a_sync(backlog):
    async def story():
        held = Held(backlog.log)
        intake, told = made(backlog)
        tasks = [asyncio.create_task(intake.accept([item(0)]))]
        while intake._waiting or intake._writer is None:
            await asyncio.sleep(0)
        tasks += [asyncio.create_task(intake.accept([item(k), item(k)])) for k in range(5)]
        while len(intake._waiting) < 5:
            await asyncio.sleep(0)
        held.gate.release(2)
        numbers = await asyncio.gather(*tasks)
        assert numbers == [[1], *([k, k + 1] for k in range(2, 12, 2))]
        assert held.sizes == [1, 10]
        assert told.sizes == [1, 11]

    asyncio.run(story())


def test_a_known_id_keeps_its_number_and_is_written_once(backlog):
    async def story():
        intake, told = made(backlog)
        assert await intake.accept([item(1, "a"), item(2), item(3, "a")]) == [1, 2, 1]
        assert await intake.accept([item(1, "a")]) == [1]
        together = [intake.accept([item(4, "b")]) for _ in range(3)]
        assert await asyncio.gather(*together) == [[3], [3], [3]]
        assert (backlog.log.last, intake.n_repeated) == (3, 4)
        assert told.sizes == [2, 3]

    asyncio.run(story())


def test_a_full_queue_accepts_nothing(backlog):
    async def story():
        intake, told = made(backlog, 3)
        with pytest.raises(QueueFullError, match="room for 4 samples, got 3"):
            await intake.accept([item(k, f"i{k}") for k in range(4)])
        assert (backlog.log.last, told.sizes) == (0, [])
        # the ids were not taken, and what is being written counts
        first = asyncio.create_task(intake.accept([item(0, "i0"), item(1, "i1")]))
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError, match="got 1"):
            await intake.accept([item(2), item(3)])
        assert await first == [1, 2]

    asyncio.run(story())


def test_a_full_disk_is_told_to_all_who_wait_and_takes_no_id(backlog):
    async def story():
        intake, told = made(backlog)
        backlog.log.reserve = 2**62
        asked = [intake.accept([item(k, "same")]) for k in range(2)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each) for each in found] == [DiskFullError] * 2
        backlog.log.reserve = 0
        assert await intake.accept([item(0, "same")]) == [1]
        assert intake.rejected == {"disk full": 2}
        assert told.failures == []
        assert told.sizes == [1]

    asyncio.run(story())


def test_a_client_that_goes_away_cancels_nobody_else(backlog):
    async def story():
        held = Held(backlog.log)
        intake, told = made(backlog)
        gone = asyncio.create_task(intake.accept([item(0, "a")]))
        stays = asyncio.create_task(intake.accept([item(0, "a")]))
        await asyncio.sleep(0)
        gone.cancel()
        held.gate.release()
        assert await stays == [1]
        assert told.sizes == [1]
        await intake.close()

    asyncio.run(story())


def test_a_log_that_fails_is_told(backlog):
    async def story():
        intake, told = made(backlog)

        def broken(entries):
            raise MeshError("log cannot be written")

        backlog.log.append = broken
        with pytest.raises(MeshError, match="cannot be written"):
            await intake.accept([item(0)])
        assert [str(each) for each in told.failures] == ["log cannot be written"]
        assert intake.rejected == {"failed": 1}

    asyncio.run(story())


def test_what_was_accepted_is_learned_even_if_the_file_refuses_it_now(tmp_path):
    config = solo_config(outside="clip")
    form = Format(config.model(), None)
    first = Backlog(tmp_path, len(form.names), None)
    first.log.append([form.sample({"x": [99.0, 0.0], "y": 1.0}).entry])
    first.log.close()
    again = Backlog(tmp_path, len(form.names), None)
    refusing = Format(solo_config(outside="refuse").model(), None)
    Intake(again, refusing, 10, lambda: None, lambda error: None)
    assert [values.tolist() for _, values in again.waiting] == [[1.0, 0.5, 0.01]]
    again.log.close()


def test_a_sensor_names_inputs_and_target_itself(model):
    """What it says besides is ignored, as further columns of a file are."""
    form = Format(model, None)
    flat, usual = prepared(
        form,
        '[{"b": 0.5, "a": 5, "load": 25, "battery": "low", "id": "k1"}, {"x": [5, 0.5], "y": 25}]',
    )
    np.testing.assert_array_equal(flat.entry.values, usual.entry.values)
    assert flat.entry.id == "k1"
    (unlabelled,) = prepared(form, '{"a": 5, "b": 0.5, "load": null}')
    np.testing.assert_array_equal(unlabelled.entry.values, [5, 0.5, np.nan])
    (value,) = prepared(Format(model, 2), '{"load": 7, "battery": 3}')
    np.testing.assert_array_equal(value.entry.values, [7])


@pytest.mark.parametrize("target", ["y", "value"])
def test_a_flat_sample_of_a_target_with_a_known_key(model_of, target):
    form = Format(model_of(target=Range(target, 0.0, 1.0)), None)
    (found,) = prepared(form, f'{{"a": 0.1, "b": 0.2, "{target}": 0.3}}')
    np.testing.assert_array_equal(found.entry.values, [0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 5, "b": 0.5}', r"sample lacks 'load', got \['a', 'b'\]; it has x and y, or a, b"),
        ('{"a": 5, "load": 1}', r"sample lacks 'b'"),
        ('{"a": "5", "b": 0, "load": 1}', r"a must be a finite number or null, got '5'"),
        ('{"a": true, "b": 0, "load": 1}', r"a must be a finite number or null, got True"),
        ('{"a": 1e999, "b": 0, "load": 1}', r"a must be a finite number or null, got inf"),
        ('{"a": null, "b": 0, "load": 1}', r"input 'a' must be a number, got null"),
        ('{"x": [5, 0.5], "y": 1, "\\u001b[2J": 1}', r"has no place for '\\x1b\[2J'"),
        ('{"a": [[1]], "b": 0, "load": 1}', r"a must be a finite number or null, got \[\[1\]\]"),
        ('{"' + 9999 * "h" + '": 1}', r"^.{0,200}$"),
        ('{"a": ' + 400 * "9" + ', "b": 0, "load": 1}', r"a must be a finite number.{0,100}$"),
    ],
)
def test_a_hostile_flat_sample_is_one_clear_line(model, text, said):
    with pytest.raises(DataError, match=said):
        prepared(Format(model, None), text)
