"""Rows of a file and lines of standard input become samples, once each."""

import asyncio

import pytest
from mesh_node import DEADLINE, made, sample, solo_config, solo_folder

from domkl.errors import DataError
from domkl.mesh.node.intake import Format
from domkl.mesh.node.sources import Replay, from_lines


def test_rows_of_a_file_by_slice_and_by_policy(tmp_path):
    config = solo_config(outside="refuse")
    form = Format(config.model(), None)
    path = tmp_path / "table.csv"
    path.write_text("b,load,a,other\n0,1,2,x\n0.5,1,99,x\n1,3,4,x\n0,7,8,x\n")
    replay = Replay(path, form, slice(1, None, 2))
    assert replay.values.tolist() == [[99, 0.5, 1], [8, 0, 7]]
    with pytest.raises(DataError, match="at least one, got none of 4"):
        Replay(path, form, slice(4, None))
    folder = solo_folder(tmp_path, outside="refuse")

    async def story():
        node = made(folder)
        await node.start()
        replay = Replay(path, node.format)
        await replay.run(node, 0)
        await node.until_idle()
        assert (node.backlog.position, node.intake.rejected["invalid"]) == (3, 1)
        await Replay(path, node.format).run(node, 0)
        assert node.backlog.log.last == 3
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
            await node.until_idle()
        assert node.backlog.position == 1501
        assert node.intake.rejected["invalid"] == 1
        await node.close()

    asyncio.run(story())
