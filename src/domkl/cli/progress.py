"""Progress on standard error, with an estimate; where Ctrl-C is noticed."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def note_after(seconds: float, note: str) -> Iterator[None]:
    """Print a note on standard error if what follows takes longer than this."""
    timer = threading.Timer(seconds, lambda: print(note, file=sys.stderr))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Bar:
    """A bar that is told what is being done, how much is done, and how much there is in all."""

    def __init__(self, interrupts: Any) -> None:
        self._interrupts = interrupts
        self._bar: Any = None

    def update(self, name: str, done: float, total: float) -> None:
        """Show it, or raise KeyboardInterrupt if there was one."""
        self._interrupts.check()
        if self._bar is None:
            self._bar = self._made(total)
        self._bar.set_description(name, refresh=False)
        self._bar.update(max(done - self._bar.n, 0))

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def _made(self, total: float) -> Any:
        from tqdm import tqdm

        return tqdm(
            total=total,
            mininterval=0.2 if sys.stderr.isatty() else 5.0,
            file=sys.stderr,
            leave=False,
            dynamic_ncols=True,
            bar_format="{desc}{percentage:3.0f}%|{bar}| {elapsed}<{remaining}",
        )
