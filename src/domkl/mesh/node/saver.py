"""Writes checkpoints beside the loop, one at a time."""

import asyncio
from collections.abc import Callable

from domkl.errors import DomklError
from domkl.mesh.node.checkpoint import Saved
from domkl.mesh.node.ledger import Ledger


class Saver:
    """Saves in another thread; a failure is an alarm, and the node goes on.

    Attributes
    ----------
    position : int
        Of the newest checkpoint.
    n_failed : int
        Checkpoints that could not be written.
    """

    def __init__(self, ledger: Ledger, alarm: Callable[[str, str, str], None]) -> None:
        self.position, self.n_failed = ledger.position, 0
        self._ledger, self._alarm = ledger, alarm
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether one is being written."""
        return self._task is not None

    def begin(self, saved: Saved) -> None:
        """Write this one; none must be under way."""
        assert self._task is None
        self._task = asyncio.create_task(self._save(saved))

    async def wait(self) -> None:
        """Until none is being written."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _save(self, saved: Saved) -> None:
        try:
            await asyncio.to_thread(self._ledger.store, saved)
            self.position = saved.position
        except (DomklError, OSError) as error:
            self.n_failed += 1
            self._alarm("checkpoint", "", f"cannot be written: {error}")
        finally:
            self._task = None
