"""What a node records: by second, resumed after a restart, each sample once, whatever the disk."""

import asyncio
import json
import math

import pytest

from domkl.mesh.protocol.events import Predicted
from domkl.mesh.protocol.model import Range
from domkl.mesh.store.history_json import history_of, samples_of, windows_of
from domkl.mesh.store.recorder import N_EVENTS, Gauges, Recorder

START = 1_700_000_000
TARGET = Range("load", 100.0, 300.0)


class World:
    """A clock that is set by hand, gauges, and what was complained of."""

    def __init__(self, folder):
        self.folder, self.now, self.complaints = folder, float(START), []
        self.gauges = Gauges(2, 1, 3, 0.0, 0.0, (0.25, 0.75), {"network": 0.9, "own": 0.1})

    def recorder(self, **options):
        return Recorder(
            self.folder,
            lambda: self.gauges,
            lambda *what: self.complaints.append(what),
            n_weights=2,
            clock=lambda: self.now,
            **options,
        )


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def predicted(number, horizon=1):
    """Errs by 0.1, alone by 0.2, the last value by 0.3, on a scale of [0, 1]."""
    return Predicted(number, 0.6, 0.5, 0.1 if number % 4 else 0.01, 0.7, 0.8, 0.04, horizon)


async def pass_second(world, recorder, seconds=1):
    for _ in range(seconds):
        world.now += 1
        recorder.tick()
        while recorder._task is not None:
            await asyncio.sleep(0)


def test_errors_are_recorded_by_second_in_the_units_of_the_target(world):
    async def story():
        recorder = world.recorder()
        for number in range(1, 9):
            recorder.predicted(predicted(number))
            if number == 4:
                world.gauges = world.gauges._replace(sent=500.0, received=900.0)
                await pass_second(world, recorder)
        found = history_of(recorder.rows(START, 1), (1,), TARGET)
        assert found["step"] == 1
        assert found["start"] == [START, START + 1]
        assert found["horizons"]["1"] == {
            "n": [4, 4], "rmse": [20.0, 20.0], "rmse_alone": [40.0, 40.0],
            "rmse_last_value": [60.0, 60.0], "coverage": [0.75, 0.75],
            "deviation": pytest.approx([200 * math.sqrt((3 * 0.01 + 1e-4) / 4)] * 2, rel=1e-5),
        }  # fmt: skip
        assert found["disagreement"] == [40.0, 40.0]
        assert (found["queued"], found["n_open"], found["n_listed"]) == ([2, 2], [1, 1], [3, 3])
        assert (found["sent_bytes"], found["received_bytes"]) == ([500.0, 0.0], [900.0, 0.0])
        assert found["weights"] == [[0.25, 0.75]] * 2
        assert found["trust"]["network"] == [0.9, 0.9]
        assert found["trust"]["last value"] == [None, None]
        assert len(json.dumps(found, allow_nan=False)) > 100
        windows = windows_of(recorder, TARGET)["1"]
        assert list(windows) == ["hour", "day", "week", "last 100", "last 1000"]
        assert {each["n"] for each in windows.values()} == {8}
        assert {each["rmse"] for each in windows.values()} == {20.0}
        (first, *_) = samples_of(recorder.samples(1, after=3), TARGET)
        assert first == [4, START, 200.0, 220.0, 2.0, 240.0, 260.0]
        assert int(recorder.scored(1)["n"]) == 8
        await recorder.close()

    asyncio.run(story())


def test_after_a_kill_nothing_is_counted_twice_and_a_second_is_lost_at_most(world):
    async def story():
        killed = world.recorder()
        for number in range(1, 41):
            killed.predicted(predicted(number))
            killed.note("down", "b", f"event {number}") if number == 10 else None
            if number % 10 == 0 and number < 40:
                await pass_second(world, killed)
        # a kill: numbers 31 to 40 were not written yet
        again = world.recorder()
        again.begin(40)
        assert again.history.last_number == 30
        assert [each.text for each in again.events] == ["event 10"]
        for number in range(21, 51):  # what the checkpoint lacks is learned again
            again.predicted(predicted(number))
        await pass_second(world, again)
        rows = again.rows(0, 1).records
        assert int(rows["by"]["n"].sum()) == 50
        assert again.samples(1)["index"].tolist() == list(range(1, 51))
        assert int(again.windows()[1]["hour"]["n"]) == 50
        assert int(again.scored(1)["n"]) == 20  # of this process
        await again.close()
        killed.history.close()

    asyncio.run(story())


def test_a_node_that_begins_anew_is_recorded_again(world):
    async def story():
        first = world.recorder()
        first.predicted(predicted(500))
        await first.close()
        second = world.recorder()
        second.begin(3)
        second.predicted(predicted(4))
        assert second.samples(1)["index"].tolist() == [500, 4]
        await second.close()

    asyncio.run(story())


def test_two_processes_in_one_second_share_its_record(world):
    async def story():
        for number in (1, 2):
            recorder = world.recorder()
            recorder.predicted(predicted(number))
            await recorder.close()
        last = world.recorder()
        assert last.rows(0, 1).records["by"]["n"].ravel().tolist() == [2]
        assert last.last_time == START
        await last.close()

    asyncio.run(story())


def test_infinite_deviations_and_missing_twins_are_left_out(world):
    async def story():
        recorder = world.recorder()
        recorder.predicted(Predicted(1, 0.5, 0.4, math.inf, None, 0.3, None))
        found = history_of(recorder.rows(0, 1), (1,), TARGET)["horizons"]["1"]
        assert (found["coverage"], found["deviation"], found["rmse_alone"]) == (
            [None], [None], [None],
        )  # fmt: skip
        assert samples_of(recorder.samples(1), TARGET)[0][4:6] == [None, None]
        await recorder.close()

    asyncio.run(story())


def test_horizons_are_kept_apart(world):
    async def story():
        recorder = world.recorder(horizons=(1, 6))
        for number in (1, 2, 3):
            recorder.predicted(predicted(number, 1))
            recorder.predicted(predicted(number, 6))
        recorder.predicted(predicted(4, 24))  # nobody asked for it
        found = history_of(recorder.rows(0, 1), (1, 6), TARGET)["horizons"]
        assert {h: by["n"] for h, by in found.items()} == {"1": [3], "6": [3]}
        assert list(windows_of(recorder, TARGET)) == ["1", "6"]
        await recorder.close()
        again = world.recorder(horizons=(1, 6))
        again.begin(10)
        for number in (3, 4):
            again.predicted(predicted(number, 6))
            again.predicted(predicted(number, 1))
        for h in (1, 6):
            assert again.samples(h)["index"].tolist() == [1, 2, 3, 4]
        await again.close()

    asyncio.run(story())


def test_events_are_bounded_and_torn_lines_left_out(world, tmp_path):
    async def story():
        recorder = world.recorder()
        for k in range(3 * N_EVENTS):
            recorder.note("up", "b", f"event {k}")
            if k % 100 == 99:
                await pass_second(world, recorder)
        await recorder.close()
        path = tmp_path / "history" / "events.jsonl"
        assert len(path.read_text().splitlines()) <= 2 * N_EVENTS
        with path.open("a") as file:
            file.write('[1501, 17, "up", "b"')
        again = world.recorder()
        assert len(again.events) == N_EVENTS
        assert again.events[-1].text == f"event {3 * N_EVENTS - 1}"
        again.note("up", "b", "next")
        assert again.events[-1].number == 3 * N_EVENTS + 1
        await again.close()

    asyncio.run(story())


def test_room_for_checkpoints_is_left_on_the_disk(world):
    async def story():
        recorder = world.recorder(reserve=lambda: 2**62)
        recorder.predicted(predicted(1))
        await pass_second(world, recorder)
        ((_, _, text),) = world.complaints
        assert "disk must keep 4611686018427387904 bytes free for checkpoints" in text
        recorder._reserve = lambda: 1
        await pass_second(world, recorder)
        assert len(world.complaints) == 1
        await recorder.close()

    asyncio.run(story())


def test_a_disk_that_refuses_stops_nothing(world, monkeypatch):
    async def story():
        recorder = world.recorder()
        monkeypatch.setattr(
            "os.pwrite", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
        )
        recorder.predicted(predicted(1))
        await pass_second(world, recorder)
        ((kind, _, text),) = world.complaints
        assert kind == "history"
        assert "No space left on device; the node goes on without" in text
        monkeypatch.undo()
        recorder.predicted(predicted(2))
        await pass_second(world, recorder)
        assert int(recorder.windows()[1]["last 100"]["n"]) == 2
        assert int(recorder.rows(0, 1).records["by"]["n"].sum()) == 1  # that second is lost
        await recorder.close()

    asyncio.run(story())
