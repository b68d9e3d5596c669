"""The coordinator's side of a run: it lets parties in, asks them step by step, and waits for those who are cut off.

A connection comes and goes; a `Member` stays. Every wait has a deadline, and whoever is waited for is named.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from cloister.crypto import Entropy, is_signed
from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.roles import COORDINATOR
from cloister.runtime.local import OnProgress, Progress, Traffic
from cloister.runtime.remote import greeting, messages
from cloister.runtime.remote.channel import Channel, LostError, Stream
from cloister.runtime.remote.connection import State
from cloister.runtime.remote.greeting import Agreed, OwnEnd, RefusedError
from cloister.runtime.remote.member import Member
from cloister.runtime.remote.messages import Refusal
from cloister.runtime.remote.worker import Worker
from cloister.wire import CoordinatorEndpoint

_GREETING_S = 15.0
_STRANGERS_MOST = 64  # connections that have not said who they are
_CONNECTIONS_MOST, _CONNECTIONS_IN_S = 30, 10.0  # of one party
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


@dataclass(frozen=True, kw_only=True)
class RemoteRun:
    """A session that is over.

    Attributes
    ----------
    result
        What the coordinator's role returned.
    steps
        How many there were.
    traffic
        Of each party, by its number in the session: frames, as the coordinator saw them.
    transcript_sha256
        Of all frames in order; it leaves the process in no file (`cloister.report.result.Result.transcript_sha256`).
    """

    result: Any
    steps: int
    traffic: Mapping[int, Traffic]
    transcript_sha256: str = field(repr=False)


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
    ) -> None:
        self._own, self._agreed, self._run, self._entropy = own, agreed, run, entropy
        self._deadlines, self._on_progress, self._on_done = deadlines, on_progress, on_done
        self.members = {name: Member(name=name) for name in agreed.parties}
        self._strangers, self._is_started = 0, False
        self._connected: dict[str, deque[float]] = {name: deque() for name in agreed.parties}
        self._changed = asyncio.Event()
        self._replies: asyncio.Queue[tuple[Member, messages.Reply | messages.Declined]] = asyncio.Queue()
        self._progress = Progress(step=0, steps=0, label="joining", waiting_for=tuple(self.members))
        self._worker = Worker("coordinator")

    # --- connections --------------------------------------------------------------------------------------------------

    async def serve(self, stream: Stream) -> None:
        """Serve one connection until it ends. Whatever its other end does, nothing but this connection is harmed."""
        channel = Channel(stream, is_coordinator=True)
        member: Member | None = None
        try:
            member = await self._let_in(channel)
            if member is not None:
                await self._talk(member, channel)
        except (LostError, RemoteProtocolError, TimeoutError):
            pass
        finally:
            if member is not None and member.channel is channel:
                member.channel = None
                self._changed.set()
            with suppress(LostError):
                await channel.close()

    async def _let_in(self, channel: Channel) -> Member | None:
        """Find out who calls; None for someone who is not let in."""
        if self._strangers >= _STRANGERS_MOST:
            return None
        self._strangers += 1
        try:
            async with asyncio.timeout(_GREETING_S):
                return await self._greet(channel)
        finally:
            self._strangers -= 1

    async def _greet(self, channel: Channel) -> Member | None:
        challenge = messages.Challenge(messages.MAJOR, messages.MINOR, self._entropy.bytes(32))
        await channel.send(challenge)
        hello = await channel.receive()
        assert isinstance(hello, messages.Hello)  # nothing else may come now
        try:
            greeting.check_hello(hello, self._own, self._agreed, challenge, peer=channel.stream.peer)
            member = self.members[hello.party]
            self._check_admission(member, hello)
        except RefusedError as refused:
            await channel.send(messages.Refused(refused.reason))
            return None
        earlier, member.channel, member.program = member.channel, channel, hello.program
        if earlier is not None:  # this one proved the same identity
            earlier.replaced.set()
        await channel.send(greeting.make_welcome(self._own, self._agreed, challenge, hello, run=self._run))
        return member

    def _check_admission(self, member: Member, hello: messages.Hello) -> None:
        """Refuse a party that is who it says and may still not come in."""
        now, times = asyncio.get_running_loop().time(), self._connected[member.name]
        while times and times[0] < now - _CONNECTIONS_IN_S:
            times.popleft()
        if len(times) >= _CONNECTIONS_MOST:
            raise RefusedError(Refusal.RATE)
        times.append(now)
        if member.has_left:
            raise RefusedError(Refusal.LEFT)
        if hello.run not in (b"", self._run):
            raise RefusedError(Refusal.RUN)

    async def _talk(self, member: Member, channel: Channel) -> None:
        tasks = {
            asyncio.ensure_future(self._read(member, channel)),
            asyncio.ensure_future(self._write(member, channel)),
            asyncio.ensure_future(channel.replaced.wait()),
        }
        try:
            done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if channel.state is State.CLOSED:  # the other end hears the last word, and goes
                await asyncio.wait(pending, timeout=_FAREWELL_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(self, member: Member, channel: Channel) -> None:
        """Tell a party what it is due, for as long as this is its connection."""
        while channel.state is not State.CLOSED and member.channel is channel:
            member.wake.clear()
            message = member.find_due(channel)
            if message is None:
                await member.wake.wait()
            else:
                await channel.send(message)

    async def _read(self, member: Member, channel: Channel) -> None:
        while True:
            message = await channel.receive()
            if member.channel is not channel:
                raise LostError
            self._take(member, message)
            member.wake.set()
            self._changed.set()

    def _take(self, member: Member, message: messages.LinkMessage) -> None:
        """Take what a party says; the connection has checked that it may say it now."""
        if isinstance(message, messages.Consent):
            self._check_signature(member, message.signature, greeting.consent_statement(self._agreed, self._run))
            member.consent = message.signature
            if member.start is None:
                member.facts = message.facts
        elif isinstance(message, messages.Seated):
            member.is_seated = True
        elif isinstance(message, messages.Reply | messages.Declined):
            if member.request is not None and message.number == member.request.number:
                member.request = None
                self._replies.put_nowait((member, message))
        elif isinstance(message, messages.Done):
            self._confirm(member, message)
        elif isinstance(message, messages.Withdraw):
            member.consent, member.request, member.has_left = None, None, self._is_started
            self._changed.set()
            raise LostError

    def _confirm(self, member: Member, done: messages.Done) -> None:
        assert member.finish is not None
        digest = hashlib.sha256(member.finish.outcome).digest()
        statement = greeting.done_statement(self._agreed, self._run, member.finish.session, digest)
        self._check_signature(member, done.signature, statement)
        if done.session != member.finish.session:
            raise RemoteProtocolError("the end of a session must be confirmed for that session; it was for another.")
        self._on_done(member.name, done)
        member.facts, member.has_confirmed = done.facts, True

    def _check_signature(self, member: Member, signature: bytes, statement: tuple[Any, ...]) -> None:
        if not is_signed(signature, self._agreed.parties[member.name], *statement):
            raise RemoteProtocolError("what a party agrees to must be signed by its identity; it is not.")

    # --- the run ------------------------------------------------------------------------------------------------------

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
        self._is_started = True
        return tuple(
            messages.Consented(name, member.program, member.consent)
            for name, member in self.members.items()
            if member.consent is not None
        )

    def go_on(self, consents: Sequence[messages.Consented]) -> None:
        """Go on with a run that had started before a kill; whoever does not come back is silent."""
        self._is_started = True
        for one in consents:
            self.members[one.party].consent = one.signature

    @property
    def left(self) -> tuple[str, ...]:
        """Who has left the run."""
        return tuple(name for name, member in self.members.items() if member.has_left)

    async def run_session(
        self,
        start: messages.Start,
        endpoint: CoordinatorEndpoint[Any],
        names: Sequence[str],
        *,
        frame_bytes: int,
        done: Mapping[str, messages.Done],
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
        """
        members = {number: self.members[name] for number, name in enumerate(names, start=1)}
        for member in members.values():
            member.begin(start, frame_bytes)
            if member.name in done:
                member.is_seated, member.has_confirmed, member.facts = True, True, done[member.name].facts

        def unseated() -> list[str]:
            return [member.name for member in members.values() if not (member.is_seated or member.has_left)]

        await self._wait(unseated, self._deadlines.step_s, label="taking seats")
        session = _Steps(endpoint, members)
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
        while True:
            await asyncio.sleep(_STATUS_EVERY_S)
            now, quiet_s = self._progress, quiet_s + _STATUS_EVERY_S
            if now is told and quiet_s < _ALIVE_EVERY_S:
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
                    self._changed.clear()
                    await self._changed.wait()

    def _report(self, progress: Progress) -> None:
        if progress != self._progress:
            self._progress = progress
            if self._on_progress is not None:
                self._on_progress(progress)

    # --- steps --------------------------------------------------------------------------------------------------------

    async def _run_step(self, session: _Steps) -> None:
        """Ask, take what comes back until nobody is waited for or time is up, close the step."""
        frames = await self.work(session.endpoint.frames)
        number = session.endpoint.step
        waiting = {}
        for party, frame in frames.items():
            member = session.members[party]
            member.ask(messages.Request(number, frame))
            waiting[member.name] = party
        with suppress(TimeoutError):
            async with asyncio.timeout(self._deadlines.step_s):
                await self._collect(session, waiting)
        for party in frames:
            session.members[party].ask(None)
        await self.work(session.close_step, frames)

    async def _collect(self, session: _Steps, waiting: dict[str, int]) -> None:
        while left := [name for name in waiting if not self.members[name].has_left]:
            ask = session.endpoint.ask
            step = session.endpoint.step
            self._report(Progress(step=step, steps=max(ask.steps, step + 1), label=ask.label, waiting_for=tuple(left)))
            batch = await self._take_replies()
            offered = [
                (waiting.pop(member.name), message)
                for member, message in batch
                if member.name in waiting and message.number == session.endpoint.step
            ]
            await self.work(session.offer, [one for one in offered if isinstance(one[1], messages.Reply)])

    async def _take_replies(self) -> list[tuple[Member, messages.Reply | messages.Declined]]:
        """Wait until something has changed; returns all replies there are."""
        if self._replies.empty():
            self._changed.clear()
            await self._changed.wait()
        batch = []
        while not self._replies.empty():
            batch.append(self._replies.get_nowait())
        return batch


class MissingPartiesError(TooFewPartiesError):
    """Some parties have not joined."""

    def __init__(self, missing: Sequence[str], deadline_s: float) -> None:
        shown = ", ".join(missing[:_NAMES_TOLD]) + (" and more" if len(missing) > _NAMES_TOLD else "")
        super().__init__(
            f"all parties must join before the deadline, {deadline_s:g} s; missing: {shown}. "
            "Start them, or give more time with --start-deadline."
        )
        self.missing = tuple(missing[:_NAMES_TOLD])


class _Steps:
    """The steps of one session: its endpoint, and what passed."""

    def __init__(self, endpoint: CoordinatorEndpoint[Any], members: Mapping[int, Member]) -> None:
        self.endpoint, self.members = endpoint, members
        self._hash = hashlib.sha256()
        self._traffic = {number: Traffic() for number in members}

    def offer(self, replies: Sequence[tuple[int, messages.Reply]]) -> None:
        """Offer replies to the role; who sent one that it refuses has not answered."""
        for party, reply in replies:
            with suppress(RemoteProtocolError):
                self.endpoint.receive(party, reply.frame)

    def close_step(self, frames: Mapping[int, bytes]) -> None:
        """Count what passed, in the order of the parties, and close the step."""
        taken = self.endpoint.taken
        for party, frame in frames.items():
            self._record(COORDINATOR, party, frame)
            reply = taken.get(party)
            if reply is not None:
                self._record(party, COORDINATOR, reply)
            before = self._traffic[party]
            self._traffic[party] = Traffic(
                bytes_sent=before.bytes_sent + len(reply or b""),
                bytes_received=before.bytes_received + len(frame),
                messages_sent=before.messages_sent + (reply is not None),
                messages_received=before.messages_received + 1,
            )
        self.endpoint.close_step()

    def summarise(self) -> RemoteRun:
        """Return what the session produced."""
        missed = self.endpoint.missed
        return RemoteRun(
            result=self.endpoint.result,
            steps=self.endpoint.step + 1,
            traffic={number: replace(one, steps_missed=missed[number]) for number, one in self._traffic.items()},
            transcript_sha256=self._hash.hexdigest(),
        )

    def _record(self, sender: int, receiver: int, frame: bytes) -> None:
        self._hash.update(b"".join(number.to_bytes(4, "little") for number in (sender, receiver, len(frame))))
        self._hash.update(frame)
