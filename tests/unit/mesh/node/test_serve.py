"""A node run from its folder; how it lives and dies as a process is in tests/mesh."""

import asyncio

import pytest
from mesh_node import DEADLINE, mesh_config

from domkl.errors import MeshError
from domkl.mesh.config.folder import init_mesh
from domkl.mesh.node.serve import Options, serve
from domkl.mesh.transports.base import Address
from domkl.mesh.transports.zenoh import ZenohTransport


def test_the_agreed_transport_is_used_by_library_callers_too(tmp_path, monkeypatch):
    """It was TLS, whatever the mesh file said, unless the command line had chosen."""
    init_mesh(tmp_path / "mesh", mesh_config(("a", "b"), (("a", "b"),), transport="zenoh"))

    async def started(transport, *_):
        raise MeshError("zenoh was started")

    async def story():
        async with asyncio.timeout(DEADLINE):
            await serve(tmp_path / "mesh" / "a", Options(http=Address("127.0.0.1", 0)))

    monkeypatch.setattr(ZenohTransport, "start", started)
    with pytest.raises(MeshError, match="zenoh was started"):
        asyncio.run(story())
