"""Threads: one for each independent cell, or a team that shares the work on one network."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, Self

REPORT_EVERY = 0.1  # seconds


class _StoppedError(Exception):
    """Ends a worker thread when the others were interrupted."""


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Counter:
    """Rounds done, counted by many threads; raises in all of them once stopped."""

    def __init__(self, report: Callable[[], None] | None) -> None:
        self.done = 0
        self.is_stopped = False
        self._report = report  # where jobs run on the caller's thread
        self._next = time.monotonic() + REPORT_EVERY
        self._lock = threading.Lock()

    def add(self, rounds: int) -> None:
        if self.is_stopped:
            raise _StoppedError
        with self._lock:
            self.done += rounds
        if self._report is not None and time.monotonic() >= self._next:
            self._next = time.monotonic() + REPORT_EVERY
            self._report()


def run_all(
    job: Callable[[Any, Callable[[int], None]], None],
    cells: list[Any],
    threads: int,
    total: int | None,
    progress: Callable[[int, int | None], None] | None,
    *,
    is_inline: bool,
) -> None:
    """Call job(cell, after_rounds) for every cell, on this many threads.

    ``progress`` is called on the caller's thread. An error in a job, or Ctrl-C, ends all. Jobs run
    on the caller's thread only if ``is_inline``, as an iterator that the caller gave may demand:
    Ctrl-C in the middle of Numba's compiler breaks it for the rest of the process.
    """

    def report() -> None:
        if progress is not None:
            progress(counter.done, total)

    counter = _Counter(report if is_inline else None)
    if is_inline:
        for cell in cells:
            job(cell, counter.add)
    else:
        _run_threads(job, cells, min(threads, len(cells)), counter, report)
    report()


def _run_threads(
    job: Callable[..., None],
    cells: list[Any],
    threads: int,
    counter: _Counter,
    report: Callable[[], None],
) -> None:
    todo: SimpleQueue[Any] = SimpleQueue()
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    for cell in cells:
        todo.put(cell)

    def work() -> None:
        try:
            while True:
                job(todo.get_nowait(), counter.add)
        except Empty:
            done.put(None)
        except BaseException as error:
            done.put(error)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    n_done = 0
    try:
        while n_done < threads:
            try:
                error = done.get(timeout=REPORT_EVERY)
            except Empty:
                report()
                continue
            if error is not None:
                raise error
            n_done += 1
    finally:
        counter.is_stopped = True
    for worker in workers:
        worker.join()


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

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
