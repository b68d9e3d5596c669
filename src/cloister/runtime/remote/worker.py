"""One thread for a role's work: the event loop goes on meanwhile, and a role is never in two threads at once."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
Value = TypeVar("Value")


class Worker:
    """Does one piece of work after the other.

    Its thread is a daemon: a process that is told to stop does not wait for work that nobody will use.
    """

    def __init__(self, name: str) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def run(self, call: Callable[P, Value], *args: P.args, **kwargs: P.kwargs) -> Value:
        """Do a piece of work; whoever stops waiting for it does not stop it."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Value] = loop.create_future()

        def settle(set_it: Callable[[Any], None], value: Any) -> None:
            if not done.done():
                set_it(value)

        def work() -> None:
            try:
                value = call(*args, **kwargs)
            except BaseException as error:
                _tell(loop, settle, done.set_exception, error)
            else:
                _tell(loop, settle, done.set_result, value)

        self._work.put(work)
        return await done

    def stop(self) -> None:
        """End the thread when it has done what it was given."""
        self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()


def _tell(loop: asyncio.AbstractEventLoop, *call: Any) -> None:
    try:
        loop.call_soon_threadsafe(*call)
    except RuntimeError:  # the loop is closed: nobody waits
        return
