"""Nodes of a mesh in the loop of another thread, each with its HTTP server: no process to start."""

import asyncio
import threading
from contextlib import contextmanager

from mesh_node import DEADLINE, Client

from domkl.mesh.config.folder import init_mesh
from domkl.mesh.node.http import HttpServer, create_app, rules_for
from domkl.mesh.node.node import Node
from domkl.mesh.store.folder import open_folder
from domkl.mesh.transports import registry


class Served:
    """Running nodes by name, and a client of each."""

    def __init__(self, folder, config):
        self.folder, self.config = folder, config
        self.nodes, self.loop = {}, asyncio.new_event_loop()
        self._is_over, self._is_up = None, threading.Event()
        self._thread = threading.Thread(target=self._main)

    def client(self, name, **options):
        return Client(self.config.member(name).http, **options)

    def do(self, coroutine):
        """Have something done in the loop of the nodes."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(DEADLINE)

    def call(self, function, *given):
        async def called():
            return function(*given)

        return self.do(called())

    def _main(self):
        try:
            self.loop.run_until_complete(self._run())
        finally:
            self.loop.close()
            self._is_up.set()

    async def _run(self):
        self._is_over = asyncio.Event()
        servers = []
        try:
            for name in self.config.names:
                folder = open_folder(self.folder / name)
                node = Node(folder, registry.make("tls", folder.endpoint), save_pause=0.0)
                self.nodes[name] = node
                server = HttpServer(folder.member.http, None)
                rules = rules_for(folder.member.http, folder.path / "token", self.with_token)
                await server.start(create_app(node, rules))
                servers.append(server)
                await node.start()
            self._is_up.set()
            await self._is_over.wait()
        finally:
            for node in self.nodes.values():
                node.stop()
            for server in servers:
                await server.stop()
            for node in self.nodes.values():
                await node.close()

    @contextmanager
    def running(self, with_token=False):
        self.with_token = with_token
        self._thread.start()
        try:
            assert self._is_up.wait(DEADLINE)
            yield self
        finally:
            if not self.loop.is_closed():
                self.loop.call_soon_threadsafe(self._is_over.set)
            self._thread.join(DEADLINE)


def served(folder, config, with_token=False):
    """Make the mesh, and run its nodes while the context lasts."""
    init_mesh(folder, config)
    return Served(folder, config).running(with_token)
