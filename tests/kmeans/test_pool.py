"""The kernel's workers: each chunk once, errors to the caller, no deadlock, a life after fork."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from cloister.kmeans.pool import run_in_threads


@pytest.mark.parametrize("chunks", [1, 2, 3, 7, 8, 33, 500])
@pytest.mark.parametrize("threads", [1, 2, 3, 9])
def test_each_chunk_is_worked_on_once(chunks: int, threads: int) -> None:
    done: list[int] = []
    run_in_threads(lambda first, last: done.extend(range(first, last)), chunks, threads)
    assert sorted(done) == list(range(chunks))


def test_two_threads_work_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=20)
    run_in_threads(lambda first, last: meeting.wait() and None, 8, 2)  # two pieces: each waits for the other


def test_an_error_in_any_thread_reaches_the_caller() -> None:
    caller = threading.current_thread()
    for in_caller in (True, False):
        meeting = threading.Barrier(2, timeout=20)

        def work(first: int, last: int, in_caller: bool = in_caller, meeting: threading.Barrier = meeting) -> None:
            meeting.wait()
            if (threading.current_thread() is caller) == in_caller:
                raise ArithmeticError("broken")

        with pytest.raises(ArithmeticError, match="broken"):
            run_in_threads(work, 8, 2)


def test_busy_workers_block_nobody() -> None:
    release, entered = threading.Event(), threading.Semaphore(0)

    def hold(first: int, last: int) -> None:
        entered.release()
        release.wait(20)

    holders = [threading.Thread(target=run_in_threads, args=(hold, 40, 10)) for _ in range(3)]
    for holder in holders:
        holder.start()
    for _ in range(5):  # three callers and at least two workers are held
        assert entered.acquire(timeout=20)
    done: list[int] = []
    run_in_threads(lambda first, last: done.extend(range(first, last)), 40, 4)
    assert sorted(done) == list(range(40))
    release.set()
    for holder in holders:
        holder.join(20)
        assert not holder.is_alive()


FORK = """
import os, threading
from cloister.kmeans.pool import run_in_threads

def meet():
    meeting = threading.Barrier(2, timeout=20)
    run_in_threads(lambda first, last: meeting.wait() and None, 8, 2)

meet()
child = os.fork()
if child == 0:
    meet()
    os._exit(0)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_forked_child_has_workers_of_its_own() -> None:
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=60)
