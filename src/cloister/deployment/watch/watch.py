"""Everything that shows one process's run, opened and closed with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from importlib.metadata import version
from time import monotonic
from typing import Any, TypeVar

from cloister.deployment.watch.board import Board
from cloister.deployment.watch.http import Pages, read_place
from cloister.deployment.watch.log import EventLog
from cloister.deployment.watch.metrics import CONTENT_TYPE, write_health, write_metrics
from cloister.job import COORDINATOR, Job
from cloister.runtime.remote.events import Event, Observe

Value = TypeVar("Value")


class Watch:
    """Shows a run: on a board, in the log, and on a port if there is one.

    Parameters
    ----------
    board
        What is known of the run.
    listen
        ``[HOST:]PORT`` for metrics and health; None without.
    on_metrics
        Told the port.
    """

    def __init__(
        self, board: Board, *, listen: str | None = None, on_metrics: Callable[[int], None] = lambda port: None
    ) -> None:
        self.board = board
        self.log = EventLog(board.role)
        self._place = None if listen is None else read_place(listen)
        self._on_metrics = on_metrics
        self._observers: list[Observe] = []
        self._lock = threading.RLock()

    @classmethod
    def make(cls, job: Job, role: str, **options: Any) -> Watch:
        """Watch a job as the coordinator or as one of its parties; the options are those of `Watch`."""
        parties = [party.name for party in job.parties]
        peers = parties if role == COORDINATOR else [COORDINATOR]
        ours = version("cloister")
        board = Board(job=job.name, role=role, version=ours, peers=peers, parties=parties, clock=monotonic)
        return cls(board, **options)

    def add(self, observer: Observe) -> None:
        """Tell another observer, too."""
        self._observers.append(observer)

    def observe(self, event: Event) -> None:
        """Show an event, from any thread."""
        with self._lock:
            self.board.observe(event)
            self.log.observe(event, monotonic())
            for observer in self._observers:
                observer(event)

    async def around(self, run: Coroutine[Any, Any, Value]) -> Value:
        """Do a run; serve metrics meanwhile, and write down how it began and ended."""
        pages = Pages(
            {
                "/metrics": lambda: (CONTENT_TYPE, write_metrics(self.board)),
                "/health": lambda: ("application/json", write_health(self.board)),
            }
        )
        try:
            if self._place is not None:
                self._on_metrics(await pages.start(*self._place))
            self.log.write("started", job=self.board.job, version=self.board.version)
            done = await run
        except BaseException as error:
            self.log.end(error)
            raise
        finally:
            run.close()
            await pages.stop()
        self.log.end(None)
        return done
