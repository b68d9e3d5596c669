"""The coordinator's side of a run: it waits for parties, asks them step by step, and tells them how things stand.

Every wait has a deadline, and whoever is waited for is named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from cloister.crypto import Entropy
from cloister.errors import CloisterError, TooFewPartiesError
from cloister.runtime.local import OnProgress, Progress
from cloister.runtime.remote import events, greeting, messages
from cloister.runtime.remote.admission import Admission, Confirmations
from cloister.runtime.remote.events import Observe
from cloister.runtime.remote.greeting import Agreed, OwnEnd
from cloister.runtime.remote.member import Member, Roster
from cloister.runtime.remote.steps import RemoteRun, Steps
from cloister.runtime.remote.waiting import Waiting
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
        Told, in the role's thread, who confirms the end of a session, before anything follows from it.
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
        on_done: Callable[[Confirmations], None] = lambda confirmations: None,
        observe: Observe = events.ignore,
    ) -> None:
        self._agreed, self._deadlines = agreed, deadlines
        self._on_progress, self._observe = on_progress, observe
        self._roster = Roster(agreed.parties)
        admission = Admission(
            own,
            agreed,
            run=run,
            entropy=entropy,
            roster=self._roster,
            write_down=lambda confirmations: self.work(on_done, confirmations),
            observe=observe,
        )
        self.serve = admission.serve
        """Serves one connection until it ends."""
        self.members = self._roster.members
        self._waiting = Waiting(tuple(self.members.values()), self._report)
        self._worker = Worker("coordinator")

    async def gather(self) -> tuple[messages.Consented, ...]:
        """Wait until all parties have consented; of very many, those who have not by the deadline have left.

        Raises
        ------
        TooFewPartiesError
            If some have not when the deadline has passed; names them.
        """
        missing = await self._wait(
            lambda member: member.consent is None, self.members.values(), self._deadlines.start_s, label="joining"
        )
        if missing and greeting.shows_all_consents(self._agreed):
            raise MissingPartiesError([member.name for member in missing], self._deadlines.start_s)
        for member in missing:
            member.has_left = True
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
        consents = greeting.share_consents(start.consents, self._agreed)
        for member in members.values():
            member.begin(replace(start, consents=consents.get(member.name, ())), frame_bytes)
            if member.name in done:
                member.is_seated, member.has_confirmed = True, True
                member.done, member.facts = done[member.name], done[member.name].facts
        unseated = await self._wait(
            lambda member: member.is_expected and not member.is_seated,
            members.values(),
            self._deadlines.step_s,
            label="taking seats",
        )
        for member in unseated:
            member.is_away = True
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
        unconfirmed = await self._wait(
            lambda member: not (member.has_confirmed or member.has_left),
            [self.members[name] for name in finish],
            self._deadlines.step_s,
            label="confirming",
        )
        for member in unconfirmed:
            member.has_left = True

    async def close(self, ending: messages.Over | messages.Abandon) -> None:
        """Tell everyone the end of the run, and wait a little until they have gone."""
        for member in self.members.values():
            member.end(ending)
        with suppress(CloisterError):  # the end of a run that has failed
            await self._wait(
                lambda member: member.channel is not None, self.members.values(), _FAREWELL_S, label="ending"
            )
        self._worker.stop()

    async def keep_alive(self) -> None:
        """Tell parties from time to time what the run is doing; never returns."""
        told: messages.Status | None = None
        quiet_s = 0.0
        alive_every_s = min(_ALIVE_EVERY_S, self._deadlines.step_s / 3)  # parties wait as long for a sign of life
        while True:
            await asyncio.sleep(_STATUS_EVERY_S)
            now, quiet_s = self._waiting.look(), quiet_s + _STATUS_EVERY_S
            self._observe(now)
            status = messages.Status(now.step, now.steps, now.label[:200], now.waiting_for[:_NAMES_TOLD])
            if status == told and quiet_s < alive_every_s:
                continue
            told, quiet_s = status, 0.0
            for member in self.members.values():
                if member.channel is not None:
                    member.tell(status)

    async def work(self, call: Callable[..., Any], *args: Any) -> Any:
        """Do the role's work in its thread."""
        return await self._worker.run(call, *args)

    async def _wait(
        self, is_missing: Callable[[Member], bool], members: Iterable[Member], deadline_s: float, *, label: str
    ) -> list[Member]:
        """Wait until nobody is missing, or the deadline has passed; returns who is.

        Only those to whom something has happened are looked at again.
        """
        all_of_them = {member.name: member for member in members}
        missing = [member for member in all_of_them.values() if is_missing(member)]
        awaited = self._waiting.begin(missing, label=label)
        with suppress(TimeoutError):
            async with asyncio.timeout(deadline_s):
                while awaited:
                    self._waiting.report()
                    for member in await self._roster.wait():
                        if member.name in all_of_them and is_missing(member):
                            awaited[member.name] = member
                        else:
                            awaited.pop(member.name, None)
        return [member for member in all_of_them.values() if is_missing(member)]

    def _report(self, progress: Progress) -> None:
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
            if session.members[party].request is not None:
                session.members[party].ask(None)
        await self.work(session.close_step, frames)

    async def _collect(self, session: Steps, waiting: dict[str, int]) -> None:
        """Take answers until all have come that are expected; takes who has answered off ``waiting``."""
        ask, step = session.endpoint.ask, session.endpoint.step
        expected = [self.members[name] for name in waiting if self.members[name].is_expected]
        awaited = self._waiting.begin(expected, label=ask.label, step=step, steps=max(ask.steps, step + 1))
        while awaited:
            self._waiting.report()
            changed = await self._roster.wait()
            answers = [
                (waiting.pop(member.name), message)
                for member, message in self._roster.take_replies()
                if member.name in waiting and message.number == step
            ]
            for member in changed:
                if member.name in waiting and member.is_expected:
                    awaited[member.name] = member
                else:
                    awaited.pop(member.name, None)
            if answers:
                await self.work(session.offer, [one for one in answers if isinstance(one[1], messages.Reply)])
