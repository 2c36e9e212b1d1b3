"""A relay of TCP connections that can be cut, as when a network cable is pulled.

While it is cut, the relay neither closes nor refuses connections: each end gets no data. Data that
were under way arrive when it is healed.
"""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from domkl.mesh.transports.base import Address

CHUNK = 2**16  # bytes


class Relay:
    """Relays connections to ``target`` in threads, while the context lasts."""

    def __init__(self, listen: Address, target: Address) -> None:
        self._server, self._target = socket.create_server(listen), target
        self._sockets = {self._server}
        self._is_whole = threading.Event()
        self._is_whole.set()

    def __enter__(self) -> "Relay":
        _spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_whole.set()
        for each in list(self._sockets):
            self._close(each)

    def cut(self) -> None:
        """Stop relaying."""
        self._is_whole.clear()

    def heal(self) -> None:
        """Relay again."""
        self._is_whole.set()

    def _accept(self) -> None:
        with suppress(OSError):  # the server is closed
            while True:
                _spawn(self._join, self._server.accept()[0])

    def _join(self, near: socket.socket) -> None:
        """Connect to the target, and copy bytes both ways."""
        self._sockets.add(near)
        self._is_whole.wait()
        try:
            far = socket.create_connection(self._target)
        except OSError:
            self._close(near)
            return
        self._sockets.add(far)
        _spawn(self._carry, far, near)
        self._carry(near, far)

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        """Copy bytes one way until an end closes; then close the other."""
        with suppress(OSError):
            while data := source.recv(CHUNK):
                self._is_whole.wait()
                sink.sendall(data)
        self._is_whole.wait()
        self._close(source)
        self._close(sink)

    def _close(self, each: socket.socket) -> None:
        with suppress(OSError):  # it is closed, or was never connected
            each.shutdown(socket.SHUT_RDWR)  # wakes threads that read from it
        each.close()
        self._sockets.discard(each)


def _spawn(task: Callable[..., None], *given: socket.socket) -> None:
    threading.Thread(target=task, args=given, daemon=True, name="relay").start()
