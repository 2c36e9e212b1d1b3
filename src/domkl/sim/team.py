"""The threads that share the learners, or the kernels, of one network."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self


class Team:
    """Call a function for many parts at once, on some threads, and wait for all."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def each(self, function: Callable[..., None], parts: Iterable[tuple[Any, ...]]) -> None:
        """Call function(*part) for every part; an error in one of them is raised here."""
        if self._pool is None:
            for part in parts:
                function(*part)
        else:
            for job in [self._pool.submit(function, *part) for part in parts]:
                job.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
