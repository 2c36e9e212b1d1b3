"""A relay of TCP connections that can be cut, as when a network cable is pulled.

While it is cut the relay neither closes nor refuses connections: each end gets no data. What was
under way arrives when it is healed.
"""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from domkl.mesh.transports.base import Address

CHUNK = 2**16  # bytes


class Cable(NamedTuple):
    """Where the relay listens, and where it connects to."""

    listen: Address
    target: Address


class Relay:
    """Relays connections in a thread of its own, while the context lasts."""

    def __init__(self, cables: Sequence[Cable]) -> None:
        self.cables = tuple(cables)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay", daemon=True)
        self._is_whole: asyncio.Event
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> "Relay":
        self._thread.start()
        try:
            self._do(self._open())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Stop relaying."""
        self._loop.call_soon_threadsafe(self._is_whole.clear)

    def heal(self) -> None:
        """Relay again."""
        self._loop.call_soon_threadsafe(self._is_whole.set)

    def _do(self, coroutine: Any) -> None:
        done: Future[None] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        done.result(timeout=10)

    async def _open(self) -> None:
        self._is_whole = asyncio.Event()
        self._is_whole.set()
        for cable in self.cables:
            self._servers.append(await self._listen(cable))

    async def _listen(self, cable: Cable) -> asyncio.Server:
        async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await self._join(reader, writer, cable.target)
            except (OSError, asyncio.CancelledError):
                pass
            finally:
                writer.close()
                self._tasks.discard(task)

        return await asyncio.start_server(on_connection, *cable.listen)

    async def _join(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: Address
    ) -> None:
        """Copy bytes both ways until one end closes; then close the other."""
        await self._is_whole.wait()
        there, back = await asyncio.open_connection(*target)
        ways = [
            asyncio.ensure_future(self._carry(reader, back)),
            asyncio.ensure_future(self._carry(there, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            back.close()  # before anything is awaited, where this task may be cancelled
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            await self._is_whole.wait()
            writer.write(data)
            await writer.drain()
        await self._is_whole.wait()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
