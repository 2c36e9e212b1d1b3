"""Nodes in one loop, over real transports: they learn together, change neighbors, and go on."""

import asyncio
import errno
import logging
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from mesh_node import (
    DEADLINE,
    made,
    mesh_config,
    prepared,
    sample,
    solo_config,
    solo_folder,
    until,
)
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

import domkl
from domkl.errors import DataError, MeshError
from domkl.mesh.config import certificates
from domkl.mesh.config.file import write_config
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.node.home import Lock, open_home
from domkl.mesh.node.ledger import Ledger
from domkl.mesh.node.report import digest, registry_of, state_of
from domkl.mesh.node.samples import Given
from domkl.mesh.node.sources import Replay, from_lines, parse_rows, until_learned

PAGE = Path(__file__).parents[4] / "docs" / "node.md"


def test_two_nodes_learn_together_and_tell_of_it(tmp_path):
    init_mesh(tmp_path / "mesh", mesh_config(("north", "south"), (("north", "south"),)))

    async def story():
        nodes = [made(tmp_path / "mesh" / name, True) for name in ("north", "south")]
        for node in nodes:
            await node.start()
        for k in range(30):
            for i, node in enumerate(nodes):
                await node.accept(prepared(node, [2 * k + i]))
        edges = [(nodes[0], "south"), (nodes[1], "north")]
        await until(
            lambda: all(n.protocol.measures.edges[peer].n_exchanged >= 30 for n, peer in edges)
        )
        assert all(node.is_idle for node in nodes)
        north, south = (state_of(node) for node in nodes)
        assert north["n_learned"] == south["n_learned"] == 30
        assert north["n_waited"] == 0
        edge = north["neighbors"]["south"]
        assert edge["is_open"]
        assert edge["n_exchanged"] >= 30
        assert edge["sent_bytes"] > 0
        assert edge["received"] > 0
        assert north["neighbor_gap"] is not None
        assert north["expires"] is not None
        names = metric_names(nodes[0])
        nodes[0].stop()
        await nodes[0].close()
        await until(lambda: not state_of(nodes[1])["neighbors"]["north"]["is_open"])
        await nodes[1].close()
        return names

    assert asyncio.run(story()) == documented()


def metric_names(node):
    node.rejected["invalid"] += 1
    text = generate_latest(registry_of(node)).decode()
    found = text_string_to_metric_families(text)
    return {f.name for f in found if f.name.startswith("domkl_")}


def documented():
    rows = re.findall(r"^\| `(domkl_\w+)", PAGE.read_text(), re.M)
    assert len(rows) == len(set(rows))
    return {name.removesuffix("_total") for name in rows}


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
        assert nodes[0].home.config == more
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
    """Without a last checkpoint, as after a kill: the rest is learned from the journal."""

    async def run(folder, numbers, is_killed):
        node = made(folder)
        await node.start()
        if numbers:
            await node.accept(prepared(node, numbers))
        await until(lambda: node.is_idle)
        found = digest(node.state_parts())
        await node.saver.wait()
        if is_killed:
            node._ticker.cancel()
            node.ledger.close()
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
            await node.accept(prepared(node, [k]))
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
            await node.accept(prepared(node, range(3)))
            await until(lambda: node.is_idle)
        finally:
            await node.close()

    asyncio.run(start())
    config = open_home(folder).config
    write_config(folder / "mesh.toml", replace(config, seed=2))
    with pytest.raises(DataError, match="same model"):
        asyncio.run(start())


def test_memory_does_not_grow_with_what_is_learned(tmp_path):
    folder = solo_folder(tmp_path, lags=3, queue=200)

    async def story():
        node = made(folder)
        await node.start()
        for _ in range(20):
            entries = [node.ledger.desk.sample(Given(value=float(k))) for k in range(100)]
            await node.accept(entries)
            await until(lambda: node.is_idle)
        await node.saver.wait()
        assert len(node.ledger.series._values) < 400
        assert not node.ledger._outside
        await node.close()

    asyncio.run(story())


def test_an_error_of_the_disk_stops_the_node(tmp_path, monkeypatch):
    folder = solo_folder(tmp_path)

    async def story():
        node = made(folder)
        await node.start()

        def broken(entries):
            raise MeshError(f"journal cannot be written: {errno.EIO}")

        monkeypatch.setattr(node.ledger.journal, "append", broken)
        with pytest.raises(MeshError):
            await node.accept(prepared(node, [0]))
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
            patch.setattr(node.ledger, "store", full)
            await node.accept(prepared(node, range(10)))
            await until(lambda: node.is_idle and not node.saver.is_busy)
        assert node.saver.n_failed >= 1
        await node.accept(prepared(node, range(10, 20)))
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


def test_a_home_knows_its_name(tmp_path):
    folder = solo_folder(tmp_path)
    assert open_home(folder).name == "solo"
    certificates.create_authority(tmp_path / "authority", "mesh")
    certificates.issue(tmp_path / "authority", "other", folder)
    with pytest.raises(DataError, match=r"must be of solo, as its folder is, got other's"):
        open_home(folder)
    with pytest.raises(DataError, match="no folder"):
        open_home(tmp_path / "nothing")
    init_mesh(tmp_path / "mesh", mesh_config(("north", "south"), (("north", "south"),)))
    moved = (tmp_path / "mesh" / "north").rename(tmp_path / "etc")
    assert open_home(moved).name == "north"
    (moved / "node.pem").unlink()
    moved = moved.rename(tmp_path / "north")
    with pytest.raises(DataError, match="cannot speak with its neighbors"):
        open_home(moved)
    (tmp_path / "mesh" / "south" / "mesh.toml").unlink()
    assert open_home(tmp_path / "mesh" / "south").mesh_file == tmp_path / "mesh" / "mesh.toml"


def test_one_process_at_a_time(tmp_path):
    lock = Lock(tmp_path)
    with pytest.raises(MeshError, match="one node at a time"):
        Lock(tmp_path)
    lock.release()
    Lock(tmp_path).release()


def test_rows_of_a_file_by_slice_and_by_policy(tmp_path):
    config = solo_config(outside="refuse")
    ledger = Ledger(tmp_path / "data", config.model(), None)
    path = tmp_path / "table.csv"
    path.write_text("b,load,a,other\n0,1,2,x\n0.5,1,99,x\n1,3,4,x\n0,7,8,x\n")
    replay = Replay(path, ledger.desk, parse_rows("1::2"))
    assert replay.values.tolist() == [[99, 0.5, 1], [8, 0, 7]]
    with pytest.raises(DataError, match="at least one, got none of 4"):
        Replay(path, ledger.desk, slice(4, None))
    for wrong in ("x", "1", "::0", "-1:", "1:2:3:4"):
        with pytest.raises(DataError, match="rows"):
            parse_rows(wrong)
    ledger.close()

    folder = solo_folder(tmp_path, outside="refuse")

    async def story():
        node = made(folder)
        await node.start()
        replay = Replay(path, node.ledger.desk)
        await replay.run(node, 0)
        await until_learned(node)
        assert (node.ledger.position, node.rejected["invalid"]) == (3, 1)
        await Replay(path, node.ledger.desk).run(node, 0)
        assert node.ledger.journal.last == 3
        await node.close()

    asyncio.run(story())


def test_lines_wait_for_room(tmp_path):
    """Also where the queue is smaller than what is read at once."""
    folder = solo_folder(tmp_path, queue=100)
    path = tmp_path / "lines"
    lines = [f'{{"x": {sample(k)["x"]}, "y": {sample(k)["y"]}}}\n' for k in range(1500)]
    path.write_text("".join(lines) + '{"x": [' + "1" * 2**21 + "\n" + lines[0])

    async def story():
        node = made(folder)
        await node.start()
        async with asyncio.timeout(DEADLINE):
            with path.open("rb") as file:
                await from_lines(node, file.fileno())
            await until_learned(node)
        assert node.ledger.position == 1501
        assert node.rejected["invalid"] == 1
        await node.close()

    asyncio.run(story())


def test_what_is_learned_does_not_depend_on_how_it_came(tmp_path):
    async def run(folder, sizes):
        node = made(folder)
        await node.start()
        k = 0
        for size in sizes:
            await node.accept(prepared(node, range(k, k + size)))
            k += size
        await until(lambda: node.is_idle)
        x = np.array([0.3, 0.4])
        found = node.predict(x)
        await node.close()
        return found

    one = asyncio.run(run(solo_folder(tmp_path, "one"), [1] * 12))
    assert asyncio.run(run(solo_folder(tmp_path, "two"), [5, 7])) == one
