"""Ctrl-C as an exception and as a flag.

An exception alone can get lost: if it is raised inside an import lock or a callback, Python prints
it and continues. The flag stays set, and is checked before results are reported or written.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupts:
    """A context in which SIGINT sets a flag and raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.is_set = False
        self._is_held = False
        self._previous: Any = None

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def check(self) -> None:
        """Raise KeyboardInterrupt if there was an interrupt."""
        if self.is_set:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """A block that is not interrupted: SIGINT only sets the flag."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.is_set = True
        if not self._is_held:
            raise KeyboardInterrupt
