"""Nodes in one loop, over real transports: they learn together, change neighbors, and go on."""

import asyncio
import errno
import logging
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from mesh_node import (
    made,
    mesh_config,
    prepared,
    solo_folder,
    until,
)

import domkl
from domkl.errors import DataError, MeshError
from domkl.mesh.config import certificates
from domkl.mesh.config.file import write_config
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.node.telemetry import digest, state_of
from domkl.mesh.store.folder import open_folder


def test_neighbors_change_while_it_runs(tmp_path, caplog):
    names = ("north", "south", "west")
    config = mesh_config(names, (("north", "south"), ("south", "west")))
    init_mesh(tmp_path / "mesh", config)

    async def story():
        nodes = [made(tmp_path / "mesh" / name, True) for name in names]
        for node in nodes:
            await node.start()
        more = replace(config, edges=(*config.edges, ("north", "west")))
        for name in names:
            write_config(tmp_path / "mesh" / name / "mesh.toml", more)
        for node in nodes:
            await node.reload()
        await until(lambda: is_open(nodes[0], "west") and is_open(nodes[2], "north"))

        other = replace(more, algorithm=domkl.DOMKL(rho=3.0), edges=config.edges)
        write_config(tmp_path / "mesh" / "north" / "mesh.toml", other)
        await nodes[0].reload()
        assert nodes[0].folder.config == more
        (tmp_path / "mesh" / "north" / "mesh.toml").write_text("spoiled")
        await nodes[0].reload()
        assert is_open(nodes[0], "west")
        for node in nodes:
            await node.close()

    def is_open(node, peer):
        return state_of(node)["neighbors"].get(peer, {}).get("is_open", False)

    asyncio.run(story())
    refused = [r for r in caplog.records if r.getMessage() == "reload refused"]
    assert "rho is 2.0 there and 3.0 here" in refused[0].facts["text"]
    assert "TOML" in refused[1].facts["text"]


def test_alone_it_goes_on_to_the_bit_wherever_it_was_cut(tmp_path):
    """Without a last checkpoint, as after a kill: the rest is learned from the log."""

    async def run(folder, numbers, is_killed):
        node = made(folder)
        await node.start()
        if numbers:
            await node.intake.accept(prepared(node, numbers))
        await until(lambda: node.is_idle)
        found = digest(node.state_parts())
        await node.saver.wait()
        if is_killed:
            node._ticker.cancel()
            node.backlog.log.close()
        else:
            await node.close()
        return found

    whole, parts = solo_folder(tmp_path, "whole"), solo_folder(tmp_path, "parts")
    expected = asyncio.run(run(whole, range(50), False))
    for start, end in ((0, 3), (3, 21), (21, 22), (22, 50)):
        asyncio.run(run(parts, range(start, end), True))
    assert asyncio.run(run(parts, [], False)) == expected


def test_a_damaged_checkpoint_falls_back_and_ends_the_same(tmp_path, caplog):
    folder = solo_folder(tmp_path)

    async def run(numbers):
        node = made(folder)
        await node.start()
        for k in numbers:
            await node.intake.accept(prepared(node, [k]))
            await until(lambda: node.is_idle)
            await node.saver.wait()
        await until(lambda: node.is_idle)
        found = digest(node.state_parts())
        await node.close()
        return found

    expected = asyncio.run(run(range(40)))
    newest = max((folder / "data").glob("*.npz"), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:-100])
    assert asyncio.run(run([])) == expected
    assert any("is damaged" in r.facts["text"] for r in caplog.records if hasattr(r, "facts"))


def test_another_model_than_the_checkpoints_is_refused(tmp_path):
    folder = solo_folder(tmp_path)

    async def start():
        node = made(folder)
        try:
            await node.start()
            await node.intake.accept(prepared(node, range(3)))
            await until(lambda: node.is_idle)
        finally:
            await node.close()

    asyncio.run(start())
    config = open_folder(folder).config
    write_config(folder / "mesh.toml", replace(config, seed=2))
    with pytest.raises(DataError, match="same model"):
        asyncio.run(start())


def test_memory_does_not_grow_with_what_is_learned(tmp_path):
    folder = solo_folder(tmp_path, lags=3, queue=200)

    async def story():
        node = made(folder)
        await node.start()
        for _ in range(20):
            entries = [node.format.sample({"value": float(k)}) for k in range(100)]
            await node.intake.accept(entries)
            await until(lambda: node.is_idle)
        await node.saver.wait()
        assert not node.backlog.rows._before
        assert not node.backlog._outside
        await node.close()

    asyncio.run(story())


def test_an_error_of_the_disk_stops_the_node(tmp_path, monkeypatch):
    folder = solo_folder(tmp_path)

    async def story():
        node = made(folder)
        await node.start()

        def broken(entries):
            raise MeshError(f"log cannot be written: {errno.EIO}")

        monkeypatch.setattr(node.backlog.log, "append", broken)
        with pytest.raises(MeshError):
            await node.intake.accept(prepared(node, [0]))
        with pytest.raises(MeshError, match="cannot be written"):
            await node.wait()
        assert not node.is_ready
        await node.close()

    asyncio.run(story())


def test_a_checkpoint_that_cannot_be_written_is_an_alarm(tmp_path, monkeypatch, caplog):
    folder = solo_folder(tmp_path)

    async def story():
        node = made(folder)
        await node.start()

        def full(saved):
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(node.backlog.checkpoints, "save", full)
            await node.intake.accept(prepared(node, range(10)))
            await until(lambda: node.is_idle and not node.saver.is_busy)
        assert node.saver.n_failed >= 1
        await node.intake.accept(prepared(node, range(10, 20)))
        await until(lambda: node.is_idle and node.saver.position >= 14)
        await node.close()

    asyncio.run(story())
    assert any("No space left" in str(getattr(r, "facts", "")) for r in caplog.records)


def test_a_certificate_that_expires_soon_is_an_alarm(tmp_path, caplog):
    begun = datetime.now(UTC) - timedelta(days=345)
    certificates.create_authority(tmp_path / "authority", "mesh", now=begun)
    folder = solo_folder(tmp_path)
    certificates.issue(tmp_path / "authority", "solo", folder, now=begun)

    async def story():
        node = made(folder)
        await node.start()
        await until(lambda: node.certificate.expires is not None)
        await asyncio.sleep(0)
        await node.close()

    with caplog.at_level(logging.INFO, "domkl"):
        asyncio.run(story())
    warned = [r.facts for r in caplog.records if r.getMessage() == "certificate"]
    assert len(warned) == 1
    assert re.search(r"expires in (19|20) days", warned[0]["text"])


def test_what_is_learned_does_not_depend_on_how_it_came(tmp_path):
    async def run(folder, sizes):
        node = made(folder)
        await node.start()
        k = 0
        for size in sizes:
            await node.intake.accept(prepared(node, range(k, k + size)))
            k += size
        await until(lambda: node.is_idle)
        x = np.array([0.3, 0.4])
        found = node.predict(x)
        await node.close()
        return found

    one = asyncio.run(run(solo_folder(tmp_path, "one"), [1] * 12))
    assert asyncio.run(run(solo_folder(tmp_path, "two"), [5, 7])) == one


def test_what_was_learned_goes_on_with_another_memory(tmp_path):
    """Its counts are within the new memory, so that neighbors do not refuse them."""
    folder = solo_folder(tmp_path, algorithm=domkl.DOMKRLS(), kernels="default")

    async def run(numbers):
        node = made(folder)
        await node.start()
        await node.intake.accept(prepared(node, numbers))
        await until(lambda: node.is_idle)
        x = np.array([0.5, 0.5])
        found = node.protocol.look(x)[:2], node.protocol.learned, node.protocol.learner.state
        await node.close()
        return found

    before, n, state = asyncio.run(run(range(300)))
    assert (n, state.counts[0, 0]) == (300, pytest.approx(300, rel=0.05))
    path = folder / "mesh.toml"
    path.write_text(path.read_text().replace("forget = 1.0", "forget = 0.98"))
    after, n, state = asyncio.run(run([]))
    assert n == 300
    assert state.counts[0, 0] <= 100
    assert after == pytest.approx(before, abs=0.02)
    path.write_text(path.read_text().replace("seed = 1", "seed = 2"))
    with pytest.raises(DataError, match="checkpoint must be of the same model; features is"):
        asyncio.run(run([]))
