"""The kernel's threads: one pool per process, in which no task ever waits for another.

Callers may come from many threads at once. Each works on its own call and takes what help the pool has to
give, so a full pool slows a call down and never blocks it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _shared_pool() -> ThreadPoolExecutor:
    """Return the one pool of this process; its tasks never wait for one another."""
    global _pool  # noqa: PLW0603
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max_workers=max(2, available_cores()), thread_name_prefix="kmeans")
        return _pool


def _forget_pool() -> None:
    """Start afresh in a forked child, which has the pool but not its threads."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def run_in_threads(work: Callable[[int, int], None], chunks: int, threads: int) -> None:
    """Call ``work(first, last)`` over all chunks; the calling thread takes its share."""
    threads = min(threads, chunks)
    if threads == 1:
        work(0, chunks)
        return
    # Four pieces per thread, taken as they come: a thread held up elsewhere does not hold up the rest.
    step = -(-chunks // (4 * threads))
    pieces: Iterator[int] = iter(range(0, chunks, step))  # next() on it is atomic

    def drain() -> None:
        for first in pieces:
            work(first, min(first + step, chunks))

    helpers = [_shared_pool().submit(drain) for _ in range(threads - 1)]
    try:
        drain()
    finally:
        for helper in helpers:
            if not helper.cancel():
                helper.result()
