"""Between the event loop and threads that block: bounded both ways."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

ROOM = 2**16  # bytes that may wait for a neighbor, or two frames if that is more


class Inbox:
    """Brings what happens in other threads to the loop's thread, in order.

    One wake-up serves all that has come since the last. When the loop is too busy and more than
    `max_bytes` wait, what has a size is dropped; other news never is.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, max_bytes: int) -> None:
        self._loop, self._max_bytes = loop, max_bytes
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Callable[[str, Any], None], str, Any]] = deque()
        self._bytes = 0
        self._is_woken = self._is_closed = False

    def put(self, call: Callable[[str, Any], None], name: str, value: Any, size: int = 0) -> None:
        """Have it called in the loop's thread; from any thread."""
        with self._lock:
            if self._is_closed or (size and self._bytes + size > self._max_bytes):
                return
            self._waiting.append((call, name, value))
            self._bytes += size
            if self._is_woken:
                return
            self._is_woken = True
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._drain)

    def close(self) -> None:
        """Forget what waits; nothing is handled any more."""
        with self._lock:
            self._is_closed = True
            self._waiting.clear()

    def _drain(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
            self._bytes, self._is_woken = 0, False
        for call, name, value in waiting:
            if self._is_closed:
                return
            call(name, value)


class Outbox:
    """Hands frames to a call that may block, in a thread of its own."""

    def __init__(self, call: Callable[[bytes], object], name: str) -> None:
        self._call = call
        self._ready = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, frame: bytes) -> bool:
        """Leave a frame, at once; False: too much waits already."""
        with self._ready:
            is_full = self._waiting and self._bytes + len(frame) > max(ROOM, 2 * len(frame))
            if is_full or self._is_closed:
                return False
            self._waiting.append(frame)
            self._bytes += len(frame)
            self._ready.notify()
        return True

    def close(self) -> None:
        """Take no more; what waits is still handed over."""
        with self._ready:
            self._is_closed = True
            self._ready.notify()

    def join(self, seconds: float) -> None:
        """Wait until it has handed over everything, for so long."""
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            with self._ready:
                while not self._waiting:
                    if self._is_closed:
                        return
                    self._ready.wait()
                frame = self._waiting.popleft()
                self._bytes -= len(frame)
            with contextlib.suppress(Exception):  # of a session that closes meanwhile
                self._call(frame)
