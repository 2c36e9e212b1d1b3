"""What a node reports of itself, and the page that documents its metrics."""

import asyncio
import re
from pathlib import Path

from mesh_node import made, mesh_config, prepared, until
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from domkl.mesh.config.folder import init_mesh
from domkl.mesh.node.metrics import registry_of
from domkl.mesh.node.telemetry import state_of

PAGE = Path(__file__).parents[4] / "docs/reference/node.md"


def test_two_nodes_learn_together_and_tell_of_it(tmp_path):
    init_mesh(tmp_path / "mesh", mesh_config(("north", "south"), (("north", "south"),)))

    async def story():
        nodes = [made(tmp_path / "mesh" / name, True) for name in ("north", "south")]
        for node in nodes:
            await node.start()
        for k in range(30):
            for i, node in enumerate(nodes):
                await node.intake.accept(prepared(node, [2 * k + i]))
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
    node.intake.rejected["invalid"] += 1
    text = generate_latest(registry_of(node)).decode()
    found = text_string_to_metric_families(text)
    return {f.name for f in found if f.name.startswith("domkl_")}


def documented():
    rows = re.findall(r"^\| `(domkl_\w+)", PAGE.read_text(), re.M)
    assert len(rows) == len(set(rows))
    return {name.removesuffix("_total") for name in rows}
