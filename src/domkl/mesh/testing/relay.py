"""A relay of TCP connections that can be cut, as when a network cable is pulled.

While it is cut, the relay neither closes nor refuses connections: each end gets no data. Data that
were under way arrive when it is healed.
"""

import socket
import threading
from contextlib import suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

from domkl.mesh.transports.base import Address

CHUNK = 2**16  # bytes


class Relay(ThreadingTCPServer):
    """Relays connections to ``target`` in threads, while the context lasts."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, listen: Address, target: Address) -> None:
        super().__init__(listen, BaseRequestHandler)
        self._target, self._is_whole = target, threading.Event()
        self._is_whole.set()

    def __enter__(self) -> "Relay":
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()
        self.shutdown()
        self.server_close()

    def cut(self) -> None:
        """Stop relaying."""
        self._is_whole.clear()

    def heal(self) -> None:
        """Relay again."""
        self._is_whole.set()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Connect to the target, and copy bytes both ways until an end closes."""
        self._is_whole.wait()
        with suppress(OSError), socket.create_connection(self._target) as far:
            back = threading.Thread(target=self._carry, args=(far, request), daemon=True)
            back.start()
            self._carry(request, far)
            back.join()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                self._is_whole.wait()
                sink.sendall(data)
        self._is_whole.wait()
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
