"""The kernel's threads: a few workers per process that help whoever calls.

Callers may come from many threads at once. Each works on its own call and takes what help there is: a helper that has
not begun when the caller is through is dismissed, so busy workers slow a call down and never block it. No task waits
for another. An executor would do the same; its futures cost as much as a small call's work.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

# Pieces smaller than this would show the cost of passing the interpreter lock from thread to thread.
_PIECE_CHUNKS = 4


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_in_threads(work: Callable[[int, int], None], chunks: int, threads: int) -> None:
    """Call ``work(first, last)`` until all chunks are done; the calling thread takes its share."""
    threads = min(threads, chunks)
    if threads == 1:
        work(0, chunks)
        return
    # Four pieces per thread, taken as they come, so that a thread held up elsewhere does not hold up the rest.
    share = -(-chunks // threads)
    step = max(-(-share // 4), min(share, _PIECE_CHUNKS))
    pieces: Iterator[int] = iter(range(0, chunks, step))  # next() on it is atomic

    def drain() -> None:
        for first in pieces:
            work(first, min(first + step, chunks))

    tasks = _start_workers()
    helpers = [_Helper(drain) for _ in range(threads - 1)]
    for helper in helpers:
        tasks.put(helper)
    try:
        drain()
    finally:
        for helper in helpers:
            helper.finish()


class _Helper:
    """One worker's part in a call, or nobody's: whoever takes the ticket first decides."""

    __slots__ = ("_done", "_drain", "_error", "_ticket")

    def __init__(self, drain: Callable[[], None]) -> None:
        self._drain = drain
        self._error: BaseException | None = None
        self._ticket = threading.Lock()
        self._done = threading.Lock()
        self._done.acquire()

    def run(self) -> None:
        """Help, unless the caller was faster; called by a worker."""
        if self._ticket.acquire(blocking=False):
            try:
                self._drain()
            except BaseException as error:
                self._error = error
            finally:
                self._done.release()

    def finish(self) -> None:
        """Dismiss the helper, or wait until it is through; called by the caller."""
        if not self._ticket.acquire(blocking=False):
            self._done.acquire()
            if self._error is not None:
                raise self._error


_tasks: SimpleQueue[_Helper] | None = None
_start_lock = threading.Lock()


def _start_workers() -> SimpleQueue[_Helper]:
    """Return the queue that the workers of this process read; start them the first time."""
    global _tasks  # noqa: PLW0603
    with _start_lock:
        if _tasks is None:
            _tasks = SimpleQueue()
            for number in range(max(2, available_cores())):
                threading.Thread(target=_serve, args=(_tasks,), name=f"kmeans-{number}", daemon=True).start()
        return _tasks


def _serve(tasks: SimpleQueue[_Helper]) -> None:
    """Help one caller after another, for as long as the process lives."""
    while True:
        tasks.get().run()


def _forget_workers() -> None:
    """Start afresh in a forked child, which has the queue but not the threads."""
    global _tasks, _start_lock
    _tasks, _start_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)
