"""Whom the coordinator lets in, and what it hears from them and tells them, connection by connection.

A connection comes and goes; a `Member` stays. Whatever the other end does, nothing but its own connection is harmed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from cloister.crypto import Context, Entropy, is_signed
from cloister.errors import CloisterError, RemoteProtocolError
from cloister.runtime.remote import events, greeting, messages
from cloister.runtime.remote.channel import Channel, LostError, Stream
from cloister.runtime.remote.connection import State
from cloister.runtime.remote.events import Observe
from cloister.runtime.remote.greeting import Agreed, OwnEnd, RefusedError
from cloister.runtime.remote.member import Member, Roster
from cloister.runtime.remote.messages import Refusal

_GREETING_S = 15.0
STRANGERS_MOST = 16  # connections with one certificate that have not said who they are
_CONNECTIONS_MOST, _CONNECTIONS_IN_S = 30, 10.0  # of one party
_FAREWELL_S = 5.0
Confirmations = Sequence[tuple[str, messages.Done]]
"""Who confirms the end of a session, and how."""


class Admission:
    """Serves connections of one run.

    Parameters
    ----------
    own, agreed, run, entropy
        Who we are, what all hold, the run's ID, and where nonces come from.
    roster
        The parties.
    write_down
        Told who confirms the end of a session, before anything follows from it: all at once that came meanwhile.
    observe
        Told who comes and goes, who is refused, and what passes.
    """

    def __init__(
        self,
        own: OwnEnd,
        agreed: Agreed,
        *,
        run: bytes,
        entropy: Entropy,
        roster: Roster,
        write_down: Callable[[Confirmations], Awaitable[None]],
        observe: Observe = events.ignore,
    ) -> None:
        self._own, self._agreed, self._run, self._entropy = own, agreed, run, entropy
        self._roster, self._write_down, self._observe = roster, write_down, observe
        self._confirmed: list[tuple[Member, messages.Done]] = []
        self._writing: asyncio.Task[None] | None = None
        self._strangers: Counter[bytes] = Counter()
        self._connected: dict[str, deque[float]] = {name: deque() for name in agreed.parties}

    async def serve(self, stream: Stream) -> None:
        """Serve one connection until it ends. Whatever its other end does, nothing but this connection is harmed."""
        channel = Channel(stream, is_coordinator=True, observe=self._observe)
        member: Member | None = None
        try:
            member = await self._let_in(channel)
            if member is not None:
                await self._talk(member, channel)
        except RemoteProtocolError:
            self._observe(events.Refused(channel.peer, events.BROKEN))
        except TimeoutError:
            self._observe(events.Refused(channel.peer, events.SILENT))
        except LostError:
            pass
        finally:
            if member is not None and member.channel is channel:
                member.channel = None
                self._observe(events.Disconnected(member.name))
                self._roster.note(member)
            with suppress(LostError):
                await channel.close()

    async def _let_in(self, channel: Channel) -> Member | None:
        """Find out who calls; None for someone who is not let in.

        Each certificate has its own share of connections that say nothing: nobody can take that of others.
        """
        certificate = channel.stream.peer
        if self._strangers[certificate] >= STRANGERS_MOST:
            self._observe(events.Refused("", events.CROWDED))
            return None
        self._strangers[certificate] += 1
        try:
            async with asyncio.timeout(_GREETING_S):
                return await self._greet(channel)
        finally:
            self._strangers[certificate] -= 1
            if not self._strangers[certificate]:
                del self._strangers[certificate]

    async def _greet(self, channel: Channel) -> Member | None:
        challenge = messages.Challenge(messages.MAJOR, messages.MINOR, self._entropy.bytes(32))
        await channel.send(challenge)
        hello = await channel.receive()
        assert isinstance(hello, messages.Hello)  # nothing else may come now
        try:
            greeting.check_hello(hello, self._own, self._agreed, challenge, peer=channel.stream.peer)
            member = self._roster.members[hello.party]
            self._check_admission(member, hello)
        except RefusedError as refused:
            known = hello.party if hello.party in self._agreed.parties else ""
            self._observe(events.Refused(known, refused.reason.name))
            await channel.send(messages.Refused(refused.reason))
            return None
        earlier, member.channel, member.program = member.channel, channel, hello.program
        channel.peer = member.name
        member.is_away = False
        if earlier is not None:  # this one proved the same identity
            earlier.replaced.set()
        self._observe(events.Connected(member.name, hello.program))
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
            member.is_away = False
            self._take(member, message)
            if not isinstance(message, messages.Reply | messages.Declined):  # nothing is due because of these
                member.wake.set()
            self._roster.note(member)

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
                self._roster.replies.append((member, message))
        elif isinstance(message, messages.Done):
            self._confirm(member, message)
        elif isinstance(message, messages.Rejected):
            self._observe(events.Refused(member.name, message.reason.name, by_peer=True))
            raise LostError
        elif isinstance(message, messages.Withdraw):
            self._observe(events.Left(member.name))
            member.consent, member.request, member.has_left = None, None, self._roster.is_started
            self._roster.note(member)
            raise LostError

    def _confirm(self, member: Member, done: messages.Done) -> None:
        assert member.finish is not None
        digest = hashlib.sha256(member.finish.outcome).digest()
        statement = greeting.done_statement(self._agreed, self._run, member.finish.session, digest)
        self._check_signature(member, done.signature, statement)
        if done.session != member.finish.session:
            raise RemoteProtocolError("the end of a session must be confirmed for that session; it was for another.")
        member.done = done
        self._confirmed.append((member, done))
        if self._writing is None:
            self._writing = asyncio.ensure_future(self._write_confirmations())

    async def _write_confirmations(self) -> None:
        """Write down who has confirmed, then go on with them: a thousand parties share a few writes to the disk."""
        try:
            while self._confirmed:
                batch, self._confirmed = self._confirmed, []
                await self._write_down([(member.name, done) for member, done in batch])
                for member, done in batch:
                    member.facts, member.has_confirmed = done.facts, True
                    member.wake.set()
                    self._roster.note(member)
        except CloisterError as error:
            self._roster.fail(error)
        finally:
            self._writing = None

    def _check_signature(self, member: Member, signature: bytes, statement: tuple[Context, ...]) -> None:
        if not is_signed(signature, self._agreed.parties[member.name], *statement):
            raise RemoteProtocolError("what a party agrees to must be signed by its identity; it is not.")
