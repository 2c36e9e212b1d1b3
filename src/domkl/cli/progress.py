"""Progress bars on standard error; each update also checks for Ctrl-C."""

import sys
from typing import Any


class Bar:
    """A progress bar, shown from the first update on; of bytes, or with the time that is left."""

    def __init__(self, interrupts: Any, *, of_bytes: bool = False) -> None:
        self._interrupts = interrupts
        self._of_bytes = of_bytes
        self._bar: Any = None

    def update(self, name: str, done: float, total: float | None) -> None:
        """Show what is being done, how much of it, and the total; raise if interrupted."""
        self._interrupts.check()
        if self._bar is None:
            self._bar = self._new_bar(done, total)
        self._bar.set_description(name, refresh=False)
        self._bar.update(max(done - self._bar.n, 0))

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def _new_bar(self, done: float, total: float | None) -> Any:
        from tqdm import tqdm

        time_left = "{desc}{percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
        style = {"unit": "B", "unit_scale": True} if self._of_bytes else {"bar_format": time_left}
        return tqdm(
            initial=done if self._of_bytes else 0,  # resumed downloads do not start at 0
            total=total,
            mininterval=0.2 if sys.stderr.isatty() else 5.0,
            file=sys.stderr,
            leave=False,
            dynamic_ncols=True,
            **style,
        )
