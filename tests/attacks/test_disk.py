"""Damage on a node's disk: no acknowledged sample is lost without a line that counts it.

On 0.1 a flipped bit in the last frame of the log lost a sample without a word; an emptied file
or a deleted log started from the checkpoint, with 770 acknowledged samples gone; a node that
lived for 4 s at a time never wrote a checkpoint; each sample cost 12 kB of writing; a disk without
a free byte did not let it start; and deleting data/lock let a second process in.
"""

import asyncio
import contextlib
import errno
import logging
import os
import random
import shutil
import struct
import subprocess
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mesh_node import made, prepared, sample, solo_folder, until

from domkl.errors import DataError, MeshError
from domkl.mesh.node import node as node_module
from domkl.mesh.node.telemetry import state_of
from domkl.mesh.process_log import logger
from domkl.mesh.store import wal
from domkl.mesh.store.backlog import Backlog
from domkl.mesh.store.checkpoint import Checkpoints, Saved, next_epoch
from domkl.mesh.store.folder import Lock
from domkl.mesh.store.wal import Entry
from domkl.storage import Parts

N, SAVED = 12, 5


class Lines(logging.Handler):
    """What the node's log says."""

    def __init__(self):
        super().__init__()
        self.found = []

    def emit(self, record):
        self.found.append((record.getMessage(), record.facts))

    def lost(self):
        counted = ("samples lost", "refused to start")
        return [facts["lost"] for what, facts in self.found if what in counted]


@pytest.fixture
def lines():
    handler = Lines()
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def entry(k):
    return Entry(np.array([k, -k], dtype=float), f"id-{k}")


def filled(folder, checkpoints=(SAVED,)):
    """A data folder as a kill leaves it: 12 samples acknowledged one by one, 5 of them saved."""
    backlog = Backlog(folder, 2)
    for k in range(1, N + 1):
        backlog.log.append([entry(k)])
        if k in checkpoints:
            state = Parts({"learned": k}, {"theta": np.full(3, float(k))})
            backlog.checkpoints.save(Saved(k, state, np.empty(0), {}, {"accepted": k}))
    backlog.log.close()
    return folder


def reopened(folder, **options):
    """Numbers and values that wait to be learned, and how many samples are known to be lost."""
    backlog = Backlog(folder, 2, **options)
    found = [(n, values.tolist()) for n, values in backlog.log.after(backlog.position)]
    backlog.log.close()
    return found, backlog.n_lost


def log(folder):
    return sorted((folder / "journal").glob("*.log"))


def test_an_undamaged_folder_goes_on(tmp_path, lines):
    found, n_lost = reopened(filled(tmp_path))
    assert [n for n, _ in found] == list(range(SAVED + 1, N + 1))
    assert (n_lost, lines.found) == (0, [])


@settings(max_examples=60)
@given(st.data())
def test_a_flipped_bit_in_the_last_frame(tmp_path_factory, data):
    """0.1: the sample is cut off as if it had never been acknowledged, and nothing is said."""
    folder = filled(tmp_path_factory.mktemp("data"))
    (path,) = log(folder)
    spoiled = bytearray(path.read_bytes())
    place = data.draw(st.integers(spoiled.rindex(wal.MARK), len(spoiled) - 1))
    spoiled[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(spoiled)
    with pytest.raises(DataError, match=r"1 are lost \(numbers 12\).*--accept-loss"):
        reopened(folder)
    assert path.read_bytes() == spoiled
    found, n_lost = reopened(folder, accept_loss=True)
    assert [n for n, _ in found] == list(range(SAVED + 1, N))
    assert n_lost == 1
    shutil.rmtree(folder)


@settings(max_examples=60)
@given(st.data())
def test_a_flipped_bit_anywhere_in_the_log(tmp_path_factory, data):
    """What can be read is kept; what cannot is counted, or was learned already."""
    folder = filled(tmp_path_factory.mktemp("data"))
    (path,) = log(folder)
    spoiled = bytearray(path.read_bytes())
    spoiled[data.draw(st.integers(0, len(spoiled) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(spoiled)
    try:
        found, n_lost = reopened(folder)
        assert n_lost == 0
    except DataError:
        found, n_lost = reopened(folder, accept_loss=True)
        assert n_lost > 0
    values = [value for _, (value, _) in found]
    assert values == sorted(set(values))
    assert set(values) <= set(range(SAVED + 1, N + 1))
    assert len(found) + n_lost == N - SAVED
    assert [n for n, _ in found] == list(range(SAVED + 1, SAVED + 1 + len(found)))
    assert reopened(folder) == (found, 0)
    shutil.rmtree(folder)


def framed(path):
    """The head of a file of the log, and its frames."""
    head, *frames = path.read_bytes().split(wal.MARK)
    return head, [wal.MARK + each for each in frames]


def test_swapped_frames_are_put_in_order(tmp_path, lines):
    """0.2: code 3 at every start, also with --accept-loss, and no file was named."""
    folder = filled(tmp_path / "data")
    (path,) = log(folder)
    head, frames = framed(path)
    frames[7], frames[9] = frames[9], frames[7]
    path.write_bytes(head + b"".join(frames))
    assert reopened(folder) == ([(k, [k, -k]) for k in range(SAVED + 1, N + 1)], 0)
    place = len(head + b"".join(frames[:7]))
    (_, facts), *_ = lines.found
    assert f"{path} is damaged, or not in order, at byte {place}" in facts["text"]
    assert "no acknowledged sample is lost" in facts["text"]


def test_a_frame_that_was_copied_over_another(tmp_path, lines):
    folder = filled(tmp_path / "data")
    (path,) = log(folder)
    head, frames = framed(path)
    frames[9] = frames[8]
    path.write_bytes(head + b"".join(frames))
    with pytest.raises(DataError, match=rf"{path} is damaged, .*1 are lost \(numbers 10\)"):
        reopened(folder)
    found, n_lost = reopened(folder, accept_loss=True)
    assert [value for _, (value, _) in found] == [6, 7, 8, 9, 11, 12]
    assert (n_lost, lines.lost()) == (1, [1, 1])


@pytest.mark.parametrize(
    "body",
    [b"", b"\0\1\0" + bytes(16), b"\0\1\0\xff" + bytes(16), b"\1\3\0a:b" + bytes(16), bytes(20)],
    ids=["empty", "short", "no text", "no row", "long"],
)
def test_a_frame_with_a_checksum_and_without_sense(tmp_path, body):
    """0.2: struct.error and the like; whoever can write there can compute checksums."""
    folder = filled(tmp_path / "data")
    (path,) = log(folder)
    head, frames = framed(path)
    salt = wal._HEAD.unpack(head)[2]
    tail = struct.pack("<QI", N, 1)
    checksum = zlib.crc32(tail + body, salt)
    frames[-1] = wal._FRAME.pack(wal.MARK, checksum, len(body), N, 1) + body
    path.write_bytes(head + b"".join(frames))
    with pytest.raises(DataError, match=r"1 are lost \(numbers 12\)"):
        reopened(folder)
    assert reopened(folder, accept_loss=True)[1] == 1


@pytest.mark.parametrize("damage", ["emptied", "deleted", "folder", "zeros", "cut"])
def test_an_emptied_file_or_a_deleted_folder(tmp_path, lines, damage):
    """0.1: starts from the checkpoint, and nothing is said."""
    folder = filled(tmp_path / "data")
    (path,) = log(folder)
    if damage == "folder":
        shutil.rmtree(folder / "journal")
    elif damage == "deleted":
        path.unlink()
    else:
        size = path.stat().st_size
        path.write_bytes({"emptied": b"", "zeros": bytes(size)}.get(damage, path.read_bytes()[:40]))
    with pytest.raises(DataError, match=r"7 are lost \(numbers 6 to 12\)"):
        reopened(folder)
    assert reopened(folder, accept_loss=True) == ([], 7)
    assert lines.lost() == [7, 7]
    backlog = Backlog(folder, 2)
    assert backlog.log.append([entry(13)]) == SAVED + 1
    backlog.log.close()


def test_without_the_number_of_acknowledged_samples_it_says_so(tmp_path, lines):
    folder = filled(tmp_path / "data")
    (folder / "acknowledged").unlink()
    found, _ = reopened(folder)
    assert len(found) == N - SAVED
    assert "acknowledged is missing or damaged" in lines.found[0][1]["text"]
    (folder / "acknowledged").unlink()
    shutil.rmtree(folder / "journal")
    with pytest.raises(DataError, match="--accept-loss"):
        reopened(folder)


def test_an_accepted_loss_is_not_refused_again(tmp_path):
    """Though the older checkpoint was written when there were more samples than there are now."""
    folder = filled(tmp_path / "data", checkpoints=())
    checkpoints = Checkpoints(folder)
    state = Parts({"learned": SAVED}, {"theta": np.ones(3)})
    for accepted in (SAVED, N):
        checkpoints.save(Saved(SAVED, state, np.empty(0), {}, {"accepted": accepted}))
    shutil.rmtree(folder / "journal")
    assert reopened(folder, accept_loss=True) == ([], N - SAVED)
    assert reopened(folder) == ([], 0)


def test_a_repair_that_is_killed_is_completed(tmp_path, monkeypatch):
    folder = filled(tmp_path / "data")
    (path,) = log(folder)
    path.write_bytes(path.read_bytes()[:-3])
    real, n_calls = os.rename, []

    def killed(*names):
        n_calls.append(names)
        if len(n_calls) == 2:
            raise KeyboardInterrupt
        return real(*names)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            reopened(folder, accept_loss=True)
    assert not (folder / "journal").exists()
    found, _ = reopened(folder, accept_loss=True)
    assert [n for n, _ in found] == list(range(SAVED + 1, N))


def spoil(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)


def test_checkpoints_that_are_damaged_fall_back_to_the_log(tmp_path, lines):
    """The older one first; then a new learner with what the log has, and a line that counts."""
    folder = filled(tmp_path / "data", checkpoints=(5, 9))
    spoil(folder / "checkpoint-b.npz")
    found, n_lost = reopened(folder)
    assert ([n for n, _ in found], n_lost) == (list(range(6, N + 1)), 0)
    spoil(folder / "checkpoint-a.npz")
    found, n_lost = reopened(folder)
    assert ([n for n, _ in found], n_lost) == (list(range(1, N + 1)), 0)
    assert lines.lost() == []


def test_what_a_new_learner_forgets_is_counted(tmp_path, lines, monkeypatch):
    monkeypatch.setattr(wal, "SEGMENT", 100)
    monkeypatch.setattr(wal, "REMEMBERED", 0)
    folder = filled(tmp_path / "data", checkpoints=(5, 9))
    backlog = Backlog(folder, 2)
    backlog.log.drop(5)
    backlog.log.close()
    first = int(log(folder)[0].stem)
    assert first > 1
    for name in ("a", "b"):
        spoil(folder / f"checkpoint-{name}.npz")
    backlog = Backlog(folder, 2)
    assert (backlog.position, backlog.n_lost, lines.lost()) == (first - 1, first - 1, [first - 1])
    backlog.add(first, np.array([0.5, 0.5]), 0)
    assert backlog.waiting[0][0] == 1
    backlog.learned(1)
    assert backlog.position == first
    backlog.log.close()


def test_a_state_that_is_not_finite_is_neither_written_nor_read(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    good = Saved(3, Parts({"learned": 3}, {"theta": np.ones(3)}), np.empty(0))
    bad = Saved(9, Parts({"learned": 9}, {"theta": np.array([1.0, np.nan])}), np.empty(0))
    checkpoints.save(good)
    with pytest.raises(DataError, match="state must be finite to be saved"):
        checkpoints.save(bad)
    with pytest.raises(DataError):
        checkpoints.save(Saved(9, Parts({"mse": float("nan")}, {}), np.empty(0)))
    assert Checkpoints(tmp_path).load().position == 3


def test_a_checkpoint_of_0_1_that_is_not_finite_is_passed_over(tmp_path, lines, monkeypatch):
    """0.1 wrote such a state, and ended with code 3 at each start from then on."""
    folder = filled(tmp_path / "data", checkpoints=(5,))
    state = Parts({"learned": 9}, {"theta": np.array([1.0, np.nan])})
    with monkeypatch.context() as patch:
        patch.setattr("domkl.mesh.store.checkpoint._check_finite", lambda saved: None)
        checkpoints = Checkpoints(folder)
        checkpoints.load()
        checkpoints.save(Saved(9, state, np.empty(0)))
    assert [n for n, _ in reopened(folder)[0]] == list(range(6, N + 1))


def test_a_whole_checkpoint_of_another_form_is_one_line(tmp_path):
    """0.2: KeyError; whoever can write there can write any."""
    folder = solo_folder(tmp_path)
    (folder / "data").mkdir()
    Checkpoints(folder / "data").save(Saved(0, Parts({"learned": 0}, {}), np.empty(0)))

    async def story():
        node = made(folder)
        try:
            await node.start()
        finally:
            node.backlog.log.close()

    with pytest.raises(DataError, match="checkpoint must be one that a node wrote, got KeyError"):
        asyncio.run(story())


async def _life(folder, numbers):
    """Start, accept, learn; end without a word, as by SIGKILL. The position of its checkpoint."""
    node = made(folder)
    await node.start()
    await node.intake.accept(prepared(node, numbers))
    await until(lambda: node.is_idle)
    node._started -= node_module.FIRST_SAVE  # a second has passed
    await until(lambda: node.saver.position == node.backlog.position)
    position = node.saver.position
    node._ticker.cancel()
    await node.saver.wait()
    node.backlog.log.close()
    return position


def test_short_lives_write_checkpoints(tmp_path):
    """0.1: no checkpoint in the first 5 s of a life, nor before 100 samples of it."""
    folder = solo_folder(tmp_path, checkpoint_every=1000)
    assert [asyncio.run(_life(folder, [2 * k, 2 * k + 1])) for k in range(3)] == [2, 4, 6]


def test_checkpoints_cost_few_bytes_a_sample(tmp_path):
    """0.1: one every 100 samples, whatever its size: 8.6 kB a sample for the default model."""

    async def story():
        node = made(solo_folder(tmp_path, checkpoint_every=1))
        sizes, real = [], node.backlog.checkpoints.save
        node.backlog.checkpoints.save = lambda saved: (real(saved), sizes.append(saved.position))
        await node.start()
        for k in range(150):
            await node.intake.accept(prepared(node, [k]))
        await until(lambda: node.is_idle)
        await node.saver.wait()
        size = node.backlog.checkpoints.size
        await node.close()
        return size, sizes[:-1]  # the last is written at the end

    size, positions = asyncio.run(story())
    assert len(positions) >= 2
    assert all(np.diff(positions) * node_module.SAVE_BYTES >= size)


def test_the_lock_is_on_the_folder(tmp_path):
    """0.1: deleting data/lock lets a second process in."""
    lock = Lock(tmp_path)
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(MeshError, match="one node at a time"):
        Lock(tmp_path)
    lock.release()


@pytest.mark.parametrize("number", [2**44, 2**63, 10**30])
def test_an_epoch_beyond_what_a_frame_can_hold(tmp_path, number):
    """0.1: struct.error at the first frame. Such a number was never used, so the clock is right."""
    path = tmp_path / "epoch"
    path.write_text(f"{number}\n")
    assert next_epoch(path, 1000) == 1000
    path.write_text(f"{2**44 - 1}\n")
    with pytest.raises(DataError, match="must hold a number below"):
        next_epoch(path, 1000)


def test_an_epoch_on_a_full_disk(tmp_path, monkeypatch):
    path = tmp_path / "epoch"
    path.write_text("1000\n")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("domkl.mesh.store.checkpoint.write", full)
    assert next_epoch(path, 2000) == 2000
    assert path.read_text() == "2000\n"
    path.unlink()
    assert next_epoch(path, 3000) == 3000


@contextlib.contextmanager
def _small_disk(folder, size):
    """A file system of so many bytes, where this user may mount one."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("is_new", [True, False])
def test_a_disk_without_a_free_byte_lets_it_start(tmp_path, is_new):
    """0.1: ends with "No space left on device"."""
    folder = solo_folder(tmp_path)

    async def story(numbers):
        node = made(folder)
        await node.start()
        if numbers:
            await node.intake.accept(prepared(node, numbers))
            await until(lambda: node.is_idle)
        state = state_of(node, with_digest=True)
        prediction = node.predict(np.array([0.5, 0.5]))
        await node.close()
        return state["digest"], prediction

    with _small_disk(folder / "data", 400_000) as disk:
        before = None if is_new else asyncio.run(story(range(10)))
        with (disk / "ballast").open("wb") as file, contextlib.suppress(OSError):
            while os.write(file.fileno(), bytes(512)):
                pass
        Lock(disk).release()
        after = asyncio.run(story(()))
        assert before in (None, after)
        (disk / "ballast").unlink()
        assert asyncio.run(story(range(10, 12)))


def test_many_kinds_of_damage_at_once(tmp_path, lines):
    """Kept, learned and counted samples are all there are, whatever was damaged."""
    rng = random.Random(7)
    for trial in range(40):
        folder = filled(tmp_path / str(trial), checkpoints=(3, 7))
        files = [*log(folder), *folder.glob("*.npz"), folder / "acknowledged"]
        for path in rng.sample(files, rng.randint(1, 2)):
            data = path.read_bytes()
            kind = rng.choice(("flip", "cut", "empty", "delete"))
            if kind == "delete":
                path.unlink()
            elif kind == "flip":
                spoil(path)
            else:
                path.write_bytes(data[: rng.randrange(len(data))] if kind == "cut" else b"")
        lines.found.clear()
        try:
            backlog = Backlog(folder, 2)
        except DataError:
            assert lines.lost()
            backlog = Backlog(folder, 2, accept_loss=True)
        here = len(list(backlog.log.after(backlog.position)))
        was_unmarked = any("missing or damaged" in facts["text"] for _, facts in lines.found)
        learned = 0 if backlog.state is None else backlog.position
        assert learned + here + backlog.n_lost == N or was_unmarked, (trial, lines.found)
        backlog.log.close()


def test_samples_go_on_being_the_same(tmp_path):
    """After a repair the node learns what is left, and accepts more."""
    folder = solo_folder(tmp_path)

    async def story(numbers, **options):
        node = made(folder, **options)
        await node.start()
        await node.intake.accept(prepared(node, numbers))
        await until(lambda: node.is_idle)
        copy = state_of(node, with_digest=True)
        node._ticker.cancel()
        await node.saver.wait()
        node.backlog.log.close()
        return copy

    asyncio.run(story(range(10)))
    (path,) = log(folder / "data")
    path.write_bytes(path.read_bytes()[:-1])
    for checkpoint in (folder / "data").glob("*.npz"):
        checkpoint.unlink()
    with pytest.raises(DataError, match="10 are lost"):
        made(folder)
    after = asyncio.run(story(range(10, 15), accept_loss=True))
    assert (after["n_learned"], after["n_accepted"], sample(0)["y"]) == (5, 5, 0.0)
