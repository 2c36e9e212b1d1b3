"""Many requests, one sync; a known id keeps its number; a full queue accepts nothing."""

import asyncio
import threading

import numpy as np
import pytest

from domkl.mesh.node.intake import Intake, QueueFullError
from domkl.mesh.node.journal import Journal, JournalFullError
from domkl.mesh.node.samples import Prepared
from domkl.mesh.node.segment import Entry


def item(k, name=""):
    return Prepared(Entry(np.array([float(k)]), name), np.array([0.5]), 0)


class Held:
    """A journal whose appends wait until they are let go."""

    def __init__(self, journal):
        self.journal, self.sizes = journal, []
        self.gate = threading.Semaphore(0)
        self._append, journal.append = journal.append, self.append

    def append(self, entries):
        assert self.gate.acquire(timeout=20)
        self.sizes.append(len(entries))
        return self._append(entries)


@pytest.fixture
def journal(tmp_path):
    made = Journal(tmp_path, 1)
    yield made
    made.close()


def made(journal, room=100):
    heard = []
    intake = Intake(journal, lambda: room, lambda n, items: heard.append((n, len(items))))
    return intake, heard


def test_requests_share_a_sync(journal):
    async def story():
        held = Held(journal)
        intake, heard = made(journal)
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
        assert heard == [(1, 1), (2, 10)]

    asyncio.run(story())


def test_a_known_id_keeps_its_number_and_is_written_once(journal):
    async def story():
        intake, heard = made(journal)
        assert await intake.accept([item(1, "a"), item(2), item(3, "a")]) == [1, 2, 1]
        assert await intake.accept([item(1, "a")]) == [1]
        together = [intake.accept([item(4, "b")]) for _ in range(3)]
        assert await asyncio.gather(*together) == [[3], [3], [3]]
        assert (journal.last, intake.n_repeated) == (3, 4)
        assert heard == [(1, 2), (3, 1)]

    asyncio.run(story())


def test_a_full_queue_accepts_nothing(journal):
    async def story():
        intake, heard = made(journal, room=3)
        with pytest.raises(QueueFullError, match="room for 4 samples, got 3"):
            await intake.accept([item(k, f"i{k}") for k in range(4)])
        assert (journal.last, heard) == (0, [])
        # the ids were not taken, and what is being written counts
        first = asyncio.create_task(intake.accept([item(0, "i0"), item(1, "i1")]))
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError, match="got 1"):
            await intake.accept([item(2), item(3)])
        assert await first == [1, 2]

    asyncio.run(story())


def test_a_full_disk_is_told_to_all_who_wait_and_takes_no_id(journal):
    async def story():
        intake, heard = made(journal)
        journal.reserve = 2**62
        asked = [intake.accept([item(k, "same")]) for k in range(2)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each) for each in found] == [JournalFullError] * 2
        journal.reserve = 0
        assert await intake.accept([item(0, "same")]) == [1]
        assert heard == [(1, 1)]

    asyncio.run(story())


def test_a_client_that_goes_away_cancels_nobody_else(journal):
    async def story():
        held = Held(journal)
        intake, heard = made(journal)
        gone = asyncio.create_task(intake.accept([item(0, "a")]))
        stays = asyncio.create_task(intake.accept([item(0, "a")]))
        await asyncio.sleep(0)
        gone.cancel()
        held.gate.release()
        assert await stays == [1]
        assert heard == [(1, 1)]
        await intake.close()

    asyncio.run(story())
