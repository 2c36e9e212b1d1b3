"""A node with its HTTP server in a thread of its own, for tests over real sockets."""

import asyncio
import threading
from contextlib import contextmanager

from domkl.mesh.node.http import HttpServer, create_app, rules_for
from domkl.mesh.node.node import Node
from domkl.mesh.store.folder import NodeFolder
from domkl.mesh.transports.base import Address

LOOPBACK = Address("127.0.0.1", 0)


@contextmanager
def served(folder, config, *, rules=None, tls=None, is_started=True, **limits):
    """A node and a client of it; the node lives in another thread's loop."""
    made, loop, is_up = {}, asyncio.new_event_loop(), threading.Event()

    async def run():
        read = NodeFolder(folder, folder / "mesh.toml", config.names[0], config)
        node, server = Node(read, None), HttpServer(LOOPBACK, tls, **limits)
        made["node"] = node
        await server.start(create_app(node, rules or rules_for(LOOPBACK, folder / "token")))
        made["address"] = server.address
        if is_started:
            await node.start()
        is_up.set()
        try:
            await node.wait()
        finally:
            await server.stop()
            await node.close()

    def main():
        try:
            loop.run_until_complete(run())
        finally:
            loop.close()
            is_up.set()

    thread = threading.Thread(target=main)
    thread.start()
    try:
        assert is_up.wait(120)
        yield made["node"], made["address"]
    finally:
        loop.call_soon_threadsafe(made["node"].stop)
        thread.join()
