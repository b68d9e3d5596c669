"""Run sessions with every role in an operating-system process of its own, each with its own environment.

The hub carries frames between the coordinator's process and the parties', as a network would: it knows deadlines, who
is silent and who is gone, and reads nothing. Processes are started once and serve session after session; one that was
killed is started anew for the next. It is for tests of what one process cannot show (other processors, kills, roles
that go on from their journals); there is no encryption between hub and processes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from cloister.errors import ConfigError
from cloister.runtime import pipe_messages as messages
from cloister.runtime.faults import Fault, FaultKind
from cloister.runtime.pipe_hub import Hub, PipedRun
from cloister.runtime.pipe_link import Link

_OF_COORDINATOR = (FaultKind.CRASH, FaultKind.RESTART, FaultKind.RESTART_AFTER)
_OF_PARTIES = (*_OF_COORDINATOR, FaultKind.CRASH_AFTER, FaultKind.DROP_REQUEST, FaultKind.DROP_REPLY)


class Processes:
    """A process for each role; a context manager that leaves none behind.

    Parameters
    ----------
    environments
        What is set in each process besides our own environment: the coordinator's, then the parties'.
    module
        What each runs (``python -m``); it calls :func:`~cloister.runtime.piped_role.serve`.
    limit_bytes
        A process that announces a longer message is killed.
    """

    def __init__(
        self, environments: Sequence[Mapping[str, str]], *, module: str, limit_bytes: int = messages.LIMIT_BYTES
    ) -> None:
        self._environments, self._module, self._limit_bytes = environments, module, limit_bytes
        self._runner = asyncio.Runner()
        self._links: dict[int, Link] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._runner.run(self._end_all())
        self._runner.close()

    @property
    def pids(self) -> Mapping[int, int]:
        """The processes that were started last, by role."""
        return {number: link.process.pid for number, link in self._links.items()}

    def run(
        self,
        tasks: Sequence[bytes],
        *,
        deadline_s: float = 60.0,
        start_deadline_s: float = 120.0,
        faults: Iterable[Fault] = (),
    ) -> PipedRun:
        """Run one session.

        Parameters
        ----------
        tasks
            The coordinator's, then the parties'.
        deadline_s
            How long a step waits for replies; who has not answered by then is silent in it.
        start_deadline_s
            How long each role may take to read its task, and to take its seat.
        faults
            CRASH, CRASH_AFTER, RESTART, RESTART_AFTER, DROP_REQUEST and DROP_REPLY. A crash kills the process, a
            restart starts another in its place. Party 0 is the coordinator, which crashes or is started anew only.

        Raises
        ------
        CloisterError
            If a role did not take its seat. Later a role's error is in the run's ``failures``. Why is told to its owner
            alone, unless it concerns all (:data:`~cloister.errors.TOLD_TO_ALL`).
        """
        if len(tasks) != len(self._environments):
            raise ConfigError(f"there must be one task for each of {len(self._environments)} roles; got {len(tasks)}.")
        faults = tuple(faults)
        if any(one.kind not in (_OF_PARTIES if one.party else _OF_COORDINATOR) for one in faults):
            raise ConfigError("processes are killed or started anew, and parties not heard; got more.")
        session = Hub(
            self._links, self._start, tasks, deadline_s=deadline_s, start_deadline_s=start_deadline_s, faults=faults
        )
        return self._runner.run(session.run())

    async def _start(self, number: int) -> Link:
        """Start a role's process, in place of one that is gone."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            self._module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **self._environments[number]},
        )
        self._links[number] = Link(process, self._limit_bytes)
        return self._links[number]

    async def _end_all(self) -> None:
        await asyncio.gather(*(link.end() for link in self._links.values()))
