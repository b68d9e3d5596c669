"""The hub of one session over pipes: it carries frames, keeps deadlines and faults, and knows who is silent or gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from cloister.errors import AbsentError, CloisterError, LocalProtocolError
from cloister.roles import COORDINATOR
from cloister.runtime import pipe_messages as messages
from cloister.runtime.faults import Fault, FaultKind, FaultPlan
from cloister.runtime.local import Rejected
from cloister.runtime.pipe_link import Link

Waited = TypeVar("Waited")


@dataclass(frozen=True, kw_only=True)
class PipedRun:
    """A session that is over.

    Attributes
    ----------
    steps
        How many were closed.
    found
        What each party that the session reached at its end has found, as its process wrote it.
    failures
        What is known of why other roles have nothing, by number; the coordinator is 0.
    missed
        How many steps each party was asked in and did not answer.
    rejected
        Frames that an endpoint refused.
    """

    steps: int
    found: Mapping[int, bytes] = field(repr=False)
    failures: Mapping[int, CloisterError]
    missed: Mapping[int, int]
    rejected: tuple[Rejected, ...]


def _name(number: int) -> str:
    return f"party {number}" if number else "the coordinator"


class _LostError(Exception):
    """The coordinator will not go on."""


class _Heard(Enum):
    """What is known of a party in the open step."""

    NOTHING_YET = "it may still answer"
    REPLY = "it has answered"
    SILENCE = "it will not answer"


async def _gather_all(waits: Iterable[Awaitable[Waited]]) -> list[Waited]:
    """Wait for all, whatever becomes of some; then raise the first error."""
    done = await asyncio.gather(*waits, return_exceptions=True)
    for one in done:
        if isinstance(one, BaseException):
            raise one
    return [one for one in done if not isinstance(one, BaseException)]


class Hub:
    """One session."""

    def __init__(
        self,
        links: Mapping[int, Link],
        start: Callable[[int], Awaitable[Link]],
        tasks: Sequence[bytes],
        *,
        deadline_s: float,
        start_deadline_s: float,
        faults: Sequence[Fault],
    ) -> None:
        self._links, self._start, self._tasks = links, start, tasks
        self._deadline_s, self._start_deadline_s = deadline_s, start_deadline_s
        self._plan = FaultPlan(faults)
        self._identities: tuple[bytes, ...] = ()
        self._steps = 0
        self._found: dict[int, bytes] = {}
        self._failures: dict[int, CloisterError] = {}
        self._missed = dict.fromkeys(range(1, len(tasks)), 0)
        self._rejected: list[Rejected] = []
        self._struck: set[tuple[FaultKind, int, int]] = set()

    async def run(self) -> PipedRun:
        """Run it to its end."""
        numbers = range(len(self._tasks))
        hellos = await _gather_all(self._greet(number) for number in numbers)
        self._identities = tuple(hello.identity for hello in hellos[1:])
        await _gather_all(self._seat(number) for number in numbers)
        try:
            ended = await self._run_steps()
        except _LostError:
            self._failures.setdefault(COORDINATOR, AbsentError(_name(COORDINATOR)))
            await self._tell_all(
                messages.Abandon("the coordinator must stay to the end; it did not. Run the job again.")
            )
        else:
            await self._tell_all(messages.Finish(ended.outcome))
        return PipedRun(
            steps=self._steps,
            found=self._found,
            failures=self._failures,
            missed=self._missed,
            rejected=tuple(self._rejected),
        )

    # --- seats ----------------------------------------------------------------------------------------------------

    async def _greet(self, number: int) -> messages.Hello:
        """Hand a role its task."""
        link = self._links.get(number)
        if link is not None and not link.alive:
            await link.kill()
        if link is None or not link.alive:
            link = await self._start(number)
        link.send(messages.Task(self._tasks[number]))
        answer = await self._expect(number, messages.Hello)
        assert isinstance(answer, messages.Hello)
        return answer

    async def _seat(self, number: int) -> None:
        self._links[number].send(messages.Directory(self._identities))
        await self._expect(number, messages.Seated)

    async def _expect(
        self, number: int, kind: type[messages.Hello | messages.Seated | messages.Found]
    ) -> messages.PipeMessage:
        """Wait for one kind of message; what is left over from an earlier session, or came too late, is passed over."""
        link = self._links[number]
        while True:
            message = await link.receive(self._start_deadline_s)
            if isinstance(message, kind):
                return message
            if message is None:
                await link.kill()
                raise AbsentError(_name(number))  # as if it had said that it cannot: others need not know which it is
            if isinstance(message, messages.Failed):
                raise message.to_error(_name(number))

    async def _restart(self, number: int) -> None:
        """Start a role anew; it has the memory that its task names, or none."""
        await self._links[number].kill()
        try:
            await self._greet(number)
            await self._seat(number)
        except CloisterError as error:
            self._failures[number] = error

    # --- steps ----------------------------------------------------------------------------------------------------

    async def _run_steps(self) -> messages.Ended:
        """Carry frames until the coordinator has finished."""
        while True:
            opened = await self._hear_step()
            if isinstance(opened, messages.Ended):
                return opened
            step, frames = opened
            if self._strikes(FaultKind.RESTART, COORDINATOR, step):
                frames = await self._restart_coordinator()
            silent = await self._run_step(step, frames)
            if self._strikes(FaultKind.RESTART_AFTER, COORDINATOR, step):
                silent = await self._run_step(step, await self._restart_coordinator())
            for party in silent:
                self._missed[party] += 1
            self._links[COORDINATOR].send(messages.Close())
            self._steps += 1

    async def _hear_step(self) -> tuple[int, dict[int, messages.Frame]] | messages.Ended:
        """Hear which step the coordinator opens, and its requests."""
        message = await self._hear_coordinator()
        if isinstance(message, messages.Ended):
            return message
        if not isinstance(message, messages.Opened):
            raise LocalProtocolError(f"a coordinator must open a step; got {type(message).__name__}: this is a bug.")
        frames = {}
        for party in message.parties:
            frame = await self._hear_coordinator()
            assert isinstance(frame, messages.Frame)
            frames[party] = frame
        return message.step, frames

    async def _restart_coordinator(self) -> dict[int, messages.Frame]:
        """Start the coordinator anew; return the requests of the step that it opens again."""
        await self._restart(COORDINATOR)
        opened = await self._hear_step()
        assert not isinstance(opened, messages.Ended)
        return opened[1]

    def _strikes(self, kind: FaultKind, party: int, step: int) -> bool:
        """Whether a fault is planned that has not struck yet."""
        planned = (kind, party, step)
        if planned in self._struck or not self._plan.hits(*planned):
            return False
        self._struck.add(planned)
        return True

    async def _hear_coordinator(self) -> messages.PipeMessage:
        message = await self._links[COORDINATOR].receive()
        if isinstance(message, messages.Failed):
            self._failures[COORDINATOR] = message.to_error(_name(COORDINATOR))
        if message is None or isinstance(message, messages.Failed):
            raise _LostError
        return message

    async def _run_step(self, step: int, frames: Mapping[int, messages.Frame]) -> set[int]:
        """Deliver one step's requests; offer the coordinator what comes back until all have answered or time is up.

        Returns who was silent.
        """
        if self._plan.crashed(COORDINATOR, step):
            await self._links[COORDINATOR].kill()
        silent = set(frames)
        waiting = {party for party, frame in frames.items() if await self._deliver(party, frame, step)}
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._deadline_s
        while waiting and loop.time() < until_s:
            heard = {self._links[party].listen(): party for party in waiting}
            done, _ = await asyncio.wait(heard, timeout=until_s - loop.time(), return_when=asyncio.FIRST_COMPLETED)
            for party in sorted(heard[one] for one in done):
                heard_of = await self._hear(party, self._links[party].take(), frames[party], step)
                if heard_of is not _Heard.NOTHING_YET:
                    waiting.discard(party)
                if heard_of is _Heard.REPLY:
                    silent.discard(party)
        return silent

    async def _deliver(self, party: int, frame: messages.Frame, step: int) -> bool:
        """Deliver a request; False: nothing will come back."""
        if self._plan.crashed(party, step):
            await self._links[party].kill()
        elif self._strikes(FaultKind.RESTART, party, step):
            await self._restart(party)
        if not self._links[party].alive:
            self._failures.setdefault(party, AbsentError(_name(party)))
        if party in self._failures or self._plan.hits(FaultKind.DROP_REQUEST, party, step):
            return False
        self._links[party].send(frame)
        return True

    async def _hear(self, party: int, message: messages.PipeMessage | None, asked: messages.Frame, step: int) -> _Heard:
        """Take what a party says."""
        if message is None:
            self._failures[party] = AbsentError(_name(party))
        elif isinstance(message, messages.Failed):
            self._failures[party] = message.to_error(_name(party))
        elif isinstance(message, messages.Refused):
            self._rejected.append(Rejected(step=step, receiver=party, reason=message.reason))
        elif isinstance(message, messages.Frame) and self._strikes(FaultKind.RESTART_AFTER, party, step):
            await self._restart(party)
            self._links[party].send(asked)
            return _Heard.NOTHING_YET
        elif isinstance(message, messages.Frame):
            return await self._offer(party, message, step)
        return _Heard.SILENCE

    async def _offer(self, party: int, reply: messages.Frame, step: int) -> _Heard:
        """Offer the coordinator a reply, unless it is lost on its way."""
        if self._plan.hits(FaultKind.CRASH_AFTER, party, step):
            await self._links[party].kill()
            return _Heard.SILENCE
        if self._plan.hits(FaultKind.DROP_REPLY, party, step):
            return _Heard.SILENCE
        self._links[COORDINATOR].send(messages.Frame(party, reply.data))
        verdict = await self._hear_coordinator()
        if isinstance(verdict, messages.Taken):
            return _Heard.REPLY
        assert isinstance(verdict, messages.Refused)
        self._rejected.append(Rejected(step=step, receiver=COORDINATOR, reason=verdict.reason))
        return _Heard.NOTHING_YET  # it may have been the reply to an earlier step, that came too late

    # --- the end --------------------------------------------------------------------------------------------------

    async def _tell_all(self, message: messages.Finish | messages.Abandon) -> None:
        """Tell all parties that are left how it ended, and keep what they have found."""
        left = [number for number in self._missed if number not in self._failures]
        await asyncio.gather(*(self._tell(number, message) for number in left))

    async def _tell(self, number: int, message: messages.Finish | messages.Abandon) -> None:
        self._links[number].send(message)
        try:
            found = await self._expect(number, messages.Found)
        except CloisterError as error:
            self._failures[number] = error
            return
        assert isinstance(found, messages.Found)
        self._found[number] = found.body
