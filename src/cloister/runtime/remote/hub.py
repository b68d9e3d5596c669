"""The coordinator's side of a run: it waits for parties, asks them step by step, and tells them how things stand.

Every wait has a deadline, and whoever is waited for is named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cloister.crypto import Entropy
from cloister.errors import TooFewPartiesError
from cloister.runtime.local import OnProgress, Progress
from cloister.runtime.remote import events, messages
from cloister.runtime.remote.admission import Admission
from cloister.runtime.remote.events import Observe
from cloister.runtime.remote.greeting import Agreed, OwnEnd
from cloister.runtime.remote.member import Roster
from cloister.runtime.remote.steps import RemoteRun, Steps
from cloister.runtime.remote.worker import Worker
from cloister.wire import CoordinatorEndpoint

_STATUS_EVERY_S, _ALIVE_EVERY_S = 1.0, 5.0
_FAREWELL_S = 5.0
_NAMES_TOLD = 20


@dataclass(frozen=True, kw_only=True)
class Deadlines:
    """How long the coordinator and the parties wait.

    Attributes
    ----------
    start_s
        For all parties to join.
    step_s
        For a party that was asked, for one that was cut off, and for the coordinator.
    """

    start_s: float = 86400.0
    step_s: float = 600.0


class MissingPartiesError(TooFewPartiesError):
    """Some parties have not joined, or, where there is no deadline, have not taken their seats."""

    def __init__(self, missing: Sequence[str], deadline_s: float = 0.0) -> None:
        shown = ", ".join(missing[:_NAMES_TOLD]) + (" and more" if len(missing) > _NAMES_TOLD else "")
        super().__init__(
            f"all parties must join before the deadline, {deadline_s:g} s; missing: {shown}. "
            "Start them, or give more time with --start-deadline."
            if deadline_s
            else f"enough parties must take their seats; {shown} did not. Nothing was asked. Ask their owners why."
        )
        self.missing = tuple(missing[:_NAMES_TOLD])


class Hub:
    """One run.

    Parameters
    ----------
    own, agreed
        Who we are, and what all hold.
    run
        The run's ID.
    entropy
        For nonces.
    deadlines
        How long it waits.
    on_progress
        Told about each step.
    on_done
        Told when a party confirms the end of a session, before anything follows from it.
    observe
        Told of steps, too, of who comes and goes, and of what passes.
    """

    def __init__(
        self,
        own: OwnEnd,
        agreed: Agreed,
        *,
        run: bytes,
        entropy: Entropy,
        deadlines: Deadlines,
        on_progress: OnProgress | None = None,
        on_done: Callable[[str, messages.Done], None] = lambda party, done: None,
        observe: Observe = events.ignore,
    ) -> None:
        self._deadlines, self._on_progress, self._observe = deadlines, on_progress, observe
        self._roster = Roster(agreed.parties)
        admission = Admission(
            own, agreed, run=run, entropy=entropy, roster=self._roster, on_done=on_done, observe=observe
        )
        self.serve = admission.serve
        """Serves one connection until it ends."""
        self.members = self._roster.members
        self._progress = Progress(step=0, steps=0, label="joining", waiting_for=tuple(self.members))
        self._worker = Worker("coordinator")

    async def gather(self) -> tuple[messages.Consented, ...]:
        """Wait until all parties have consented.

        Raises
        ------
        TooFewPartiesError
            If some have not when the deadline has passed; names them.
        """

        def missing() -> list[str]:
            return [name for name, member in self.members.items() if member.consent is None]

        await self._wait(missing, self._deadlines.start_s, label="joining")
        if missing():
            raise MissingPartiesError(missing(), self._deadlines.start_s)
        self._roster.is_started = True
        return tuple(
            messages.Consented(name, member.program, member.consent)
            for name, member in self.members.items()
            if member.consent is not None
        )

    def go_on(self, consents: Sequence[messages.Consented]) -> None:
        """Go on with a run that had started before a kill; whoever does not come back is silent."""
        self._roster.is_started = True
        for one in consents:
            self.members[one.party].consent = one.signature

    @property
    def left(self) -> tuple[str, ...]:
        """Who has left the run."""
        return self._roster.left

    async def run_session(
        self,
        start: messages.Start,
        endpoint: CoordinatorEndpoint[Any],
        names: Sequence[str],
        *,
        frame_bytes: int,
        done: Mapping[str, messages.Done],
        members_min: int = 1,
    ) -> RemoteRun:
        """Run one session to the end of its steps.

        Parameters
        ----------
        start
            What its members are told.
        endpoint
            The coordinator's role.
        names
            Its members, in the order of their numbers in it.
        frame_bytes
            How long a frame is at most.
        done
            Who had confirmed its end before a kill.
        members_min
            So many must have taken their seats before the first request, which parties pay for.

        Raises
        ------
        TooFewPartiesError
            If they have not; names who is missing.
        """
        self._observe(events.Opened(start.kind))
        members = {number: self.members[name] for number, name in enumerate(names, start=1)}
        for member in members.values():
            member.begin(start, frame_bytes)
            if member.name in done:
                member.is_seated, member.has_confirmed, member.facts = True, True, done[member.name].facts

        def unseated() -> list[str]:
            return [member.name for member in members.values() if member.is_expected and not member.is_seated]

        await self._wait(unseated, self._deadlines.step_s, label="taking seats")
        for name in unseated():
            self.members[name].is_away = True
        missing = [member.name for member in members.values() if member.has_left or not member.is_seated]
        if endpoint.step == 0 and len(members) - len(missing) < members_min:
            raise MissingPartiesError(missing)
        session = Steps(endpoint, members)
        while not endpoint.finished:
            await self._run_step(session)
        return session.summarise()

    async def finish_session(self, finish: Mapping[str, messages.Finish]) -> None:
        """Tell the members of a session its end, and wait until they have confirmed it; who does not has left."""
        for name, told in finish.items():
            self.members[name].end_session(told)

        def unconfirmed() -> list[str]:
            members = (self.members[name] for name in finish)
            return [member.name for member in members if not (member.has_confirmed or member.has_left)]

        await self._wait(unconfirmed, self._deadlines.step_s, label="confirming")
        for name in unconfirmed():
            self.members[name].has_left = True

    async def close(self, ending: messages.Over | messages.Abandon) -> None:
        """Tell everyone the end of the run, and wait a little until they have gone."""
        for member in self.members.values():
            member.end(ending)

        def connected() -> list[str]:
            return [name for name, member in self.members.items() if member.channel is not None]

        await self._wait(connected, _FAREWELL_S, label="ending")
        self._worker.stop()

    async def keep_alive(self) -> None:
        """Tell parties from time to time what the run is doing; never returns."""
        told, quiet_s = None, 0.0
        alive_every_s = min(_ALIVE_EVERY_S, self._deadlines.step_s / 3)  # parties wait as long for a sign of life
        while True:
            await asyncio.sleep(_STATUS_EVERY_S)
            now, quiet_s = self._progress, quiet_s + _STATUS_EVERY_S
            self._observe(now)
            if now is told and quiet_s < alive_every_s:
                continue
            told, quiet_s = now, 0.0
            status = messages.Status(now.step, now.steps, now.label[:200], now.waiting_for[:_NAMES_TOLD])
            for member in self.members.values():
                if member.channel is not None:
                    member.tell(status)

    async def work(self, call: Callable[..., Any], *args: Any) -> Any:
        """Do the role's work in its thread."""
        return await self._worker.run(call, *args)

    async def _wait(self, missing: Callable[[], list[str]], deadline_s: float, *, label: str) -> None:
        """Wait until nobody is missing, or the deadline has passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(deadline_s):
                while names := missing():
                    self._report(Progress(step=0, steps=0, label=label, waiting_for=tuple(names)))
                    await self._roster.wait()

    def _report(self, progress: Progress) -> None:
        if progress != self._progress:
            self._progress = progress
            self._observe(progress)
            if self._on_progress is not None:
                self._on_progress(progress)

    # --- steps --------------------------------------------------------------------------------------------------------

    async def _run_step(self, session: Steps) -> None:
        """Ask, take what comes back until nobody is waited for or time is up, close the step."""
        frames = await self.work(session.endpoint.frames)
        number = session.endpoint.step
        waiting = {}
        for party, frame in frames.items():
            member = session.members[party]
            member.ask(messages.Request(number, frame))
            waiting[member.name] = party
        try:
            async with asyncio.timeout(self._deadlines.step_s):
                await self._collect(session, waiting)
        except TimeoutError:
            for name in waiting:
                self.members[name].is_away = True
        for party in frames:
            session.members[party].ask(None)
        await self.work(session.close_step, frames)

    async def _collect(self, session: Steps, waiting: dict[str, int]) -> None:
        while left := [name for name in waiting if self.members[name].is_expected]:
            ask = session.endpoint.ask
            step = session.endpoint.step
            self._report(Progress(step=step, steps=max(ask.steps, step + 1), label=ask.label, waiting_for=tuple(left)))
            batch = await self._roster.take_replies()
            offered = [
                (waiting.pop(member.name), message)
                for member, message in batch
                if member.name in waiting and message.number == session.endpoint.step
            ]
            await self.work(session.offer, [one for one in offered if isinstance(one[1], messages.Reply)])
