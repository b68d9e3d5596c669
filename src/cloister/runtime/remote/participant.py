"""A party's side of a run: it calls the coordinator, answers, and calls again when it is cut off.

While a role works in its thread, the connection is still read: the party learns at once that the run has ended, and
that the link is gone. What was worked out by then is kept, and the same request gets the same answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any, Protocol

from cloister.crypto import Entropy, Stream
from cloister.errors import CloisterError, ConfigError, RemoteProtocolError, TooFewPartiesError
from cloister.runtime.local import OnProgress, Progress
from cloister.runtime.remote import events, greeting, messages
from cloister.runtime.remote.admission import STRANGERS_MOST
from cloister.runtime.remote.channel import Channel, LostError
from cloister.runtime.remote.channel import Stream as ChunkStream
from cloister.runtime.remote.events import Observe
from cloister.runtime.remote.greeting import Agreed, OwnEnd, RefusedError
from cloister.runtime.remote.hub import Deadlines
from cloister.runtime.remote.messages import Ending, Refusal
from cloister.runtime.remote.worker import Worker

_CONNECT_S = 20.0
_BACKOFF_FIRST_S, _BACKOFF_MOST_S = 0.2, 20.0
_FAREWELL_S = 3.0
_CALLS_WHEN_DONE = 4
Connect = Callable[[], Awaitable[ChunkStream]]


class Script(Protocol):
    """What ONE party does in a run. All calls come from one thread; each may come again after a cut connection."""

    @property
    def run(self) -> bytes:
        """The run to go on with; empty for a new one."""

    @property
    def is_complete(self) -> bool:
        """Whether the party has all it will get."""

    def consent(self, run: bytes) -> messages.Consent:
        """Open what is our own, and agree to this run."""

    def start(self, start: messages.Start) -> int:
        """Take our seat in a session; returns how long its frames are at most."""

    def answer(self, frame: bytes) -> bytes:
        """Answer a request; raises `RemoteProtocolError` if it breaks the protocol."""

    def finish(self, finish: messages.Finish) -> messages.Done:
        """Take note of a session's end."""


class Together:
    """What the parties of one process share: a thread for their roles, and turns to greet.

    They have one certificate, and the coordinator hears only a few strangers with the same one at once.
    """

    def __init__(self) -> None:
        self.worker = Worker("parties")
        self.gate = asyncio.Semaphore(STRANGERS_MOST // 2)


class Participant:
    """One party of one run.

    Parameters
    ----------
    connect
        Opens a stream to the coordinator; a `LostError` if that cannot be done now.
    own, agreed, party
        Who we are, what all hold, and what the job calls us.
    script
        What we do.
    entropy
        For nonces, and for the jitter of waits.
    deadlines
        How long it waits for the coordinator.
    on_progress
        Told what the coordinator says of the run.
    together
        What it shares with the other parties of its process, if there are any.
    observe
        Told of that, too, of connections, and of what passes.
    """

    def __init__(
        self,
        connect: Connect,
        own: OwnEnd,
        agreed: Agreed,
        *,
        party: str,
        script: Script,
        entropy: Entropy,
        deadlines: Deadlines,
        on_progress: OnProgress | None = None,
        together: Together | None = None,
        observe: Observe = events.ignore,
    ) -> None:
        self._connect, self._own, self._agreed, self._party = connect, own, agreed, party
        self._script, self._entropy, self._deadlines = script, entropy, deadlines
        self._on_progress, self._observe = on_progress, observe
        self._jitter = Stream(entropy.bytes(32))
        self._worker = Worker(f"party {party}") if together is None else together.worker
        self._gate: AbstractAsyncContextManager[Any] = nullcontext() if together is None else together.gate
        self._is_alone = together is None
        self._heard_s = 0.0
        self._why: dict[str, None] = {}  # what kept us from it, in order

    async def take_part(self) -> None:
        """Take part to the end.

        Raises
        ------
        RefusedError
            If the coordinator does not let us in.
        TooFewPartiesError
            If the coordinator cannot be reached before the deadline, or ends the run.
        CloisterError
            Whatever is wrong on our own side: the coordinator is told that we leave, and no more.
        """
        loop = asyncio.get_running_loop()
        self._heard_s, calls = loop.time(), 0
        while True:
            before_s = self._heard_s
            try:
                await self._call()
                return
            except (LostError, TimeoutError) as error:
                self._why[str(error)] = None
                self._observe(events.Unreachable(events.COORDINATOR, str(error)))
            calls = 1 if self._heard_s > before_s else calls + 1
            if self._script.is_complete and calls >= _CALLS_WHEN_DONE:
                return
            self._check_patience(loop.time() - self._heard_s)
            await asyncio.sleep(self._draw_wait_s(calls))

    async def work(self, call: Callable[..., Any], *args: Any) -> Any:
        """Do work of the script's in its thread."""
        return await self._worker.run(call, *args)

    async def close(self, call: Callable[[], None]) -> None:
        """Do a last piece of work, unless the thread is busy with what nobody waits for; end the thread.

        Whoever is stopped meanwhile does it all the same.
        """
        closing = asyncio.ensure_future(self._worker.run(call))
        try:
            await asyncio.wait({closing}, timeout=_FAREWELL_S)
        except asyncio.CancelledError:
            await asyncio.wait({closing}, timeout=_FAREWELL_S)
            raise
        finally:
            if self._is_alone:
                self._worker.stop()
        if closing.done():
            closing.result()
        else:
            closing.cancel()

    def _check_patience(self, silent_s: float) -> None:
        if silent_s > self._deadlines.step_s:
            raise UnreachableError(
                f"the coordinator must be reachable; nothing was heard of it for {silent_s:.0f} s. Check the address, "
                "the firewall and whether it runs. What was charged stays charged; started again, this party goes on."
                + "".join(f" {why}" for why in self._why if why)
            )

    def _draw_wait_s(self, calls: int) -> float:
        """Return how long to wait before the next call: longer each time, and at random, so that calls are spread."""
        most_s = min(_BACKOFF_MOST_S, _BACKOFF_FIRST_S * 2.0 ** min(calls - 1, 10))
        return most_s * (0.5 + 0.5 * float(self._jitter.uniform(1)[0]))

    # --- one connection -----------------------------------------------------------------------------------------------

    async def _call(self) -> None:
        """Connect, and take part until the run is over; a `LostError` if the connection ends before."""
        patience_s = min(_CONNECT_S, self._deadlines.step_s)
        channel: Channel | None = None
        try:
            async with self._gate:
                async with asyncio.timeout(patience_s):
                    channel = Channel(await self._connect(), is_coordinator=False, observe=self._observe)
                async with asyncio.timeout(patience_s):
                    welcome = await self._greet(channel)
            self._heard_s = asyncio.get_running_loop().time()
            await self._talk(channel, welcome)
        finally:
            if channel is not None:
                if channel.peer:
                    self._observe(events.Disconnected(channel.peer))
                with suppress(LostError):
                    await channel.close()

    async def _greet(self, channel: Channel) -> messages.Welcome:
        challenge = await channel.receive()
        assert isinstance(challenge, messages.Challenge)  # nothing else may come now
        if challenge.major != messages.MAJOR:
            self._observe(events.Refused(events.COORDINATOR, Refusal.VERSION.name))
            raise RefusedError(Refusal.VERSION)
        peer = channel.stream.peer
        hello = greeting.make_hello(
            self._own,
            self._agreed,
            challenge,
            party=self._party,
            nonce=self._entropy.bytes(32),
            run=self._script.run,
            peer=peer,
        )
        await channel.send(hello)
        answer = await channel.receive()
        if isinstance(answer, messages.Refused):
            self._observe(events.Refused(events.COORDINATOR, answer.reason.name, by_peer=True))
            if answer.reason is Refusal.RATE:
                raise LostError
            raise RefusedError(answer.reason)
        assert isinstance(answer, messages.Welcome)
        try:
            greeting.check_welcome(answer, self._agreed, challenge, hello, peer=peer)
            if self._script.run not in (b"", answer.run):
                raise RefusedError(Refusal.RUN)
        except RefusedError as refused:
            self._observe(events.Refused(events.COORDINATOR, refused.reason.name))
            await channel.send(messages.Rejected(refused.reason))
            raise
        channel.peer = events.COORDINATOR
        self._observe(events.Connected(events.COORDINATOR, answer.program))
        return answer

    async def _talk(self, channel: Channel, welcome: messages.Welcome) -> None:
        inbox: asyncio.Queue[messages.LinkMessage] = asyncio.Queue()
        reading = asyncio.ensure_future(self._read(channel, inbox))
        working = asyncio.ensure_future(self._work(channel, inbox, welcome))
        try:
            await asyncio.wait((reading, working), return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                reading.result()
            await working
        except (LostError, TimeoutError, _EndedError):
            raise
        except BaseException:  # of our own, or we are stopped: said before the connection ends with its tasks
            with suppress(LostError, TimeoutError):
                async with asyncio.timeout(_FAREWELL_S):
                    await channel.send(messages.Withdraw())
            raise
        finally:
            for task in (reading, working):
                task.cancel()
            await asyncio.gather(reading, working, return_exceptions=True)

    async def _read(self, channel: Channel, inbox: asyncio.Queue[messages.LinkMessage]) -> None:
        """Read what comes, up to the last word."""
        while True:
            async with asyncio.timeout(self._deadlines.step_s):
                message = await channel.receive()
            self._heard_s = asyncio.get_running_loop().time()
            self._check_words(message)
            if isinstance(message, messages.Status):
                self._report(message)
            elif isinstance(message, messages.Abandon):
                raise make_ending(message)
            else:
                inbox.put_nowait(message)
            if isinstance(message, messages.Over):
                return

    async def _work(
        self, channel: Channel, inbox: asyncio.Queue[messages.LinkMessage], welcome: messages.Welcome
    ) -> None:
        """Do what is asked, in order, until the run is over."""
        await channel.send(await self._worker.run(self._script.consent, welcome.run))
        while True:
            message = await inbox.get()
            if isinstance(message, messages.Over):
                return
            if isinstance(message, messages.Start):
                channel.connection.allow_frames(await self._worker.run(self._script.start, message))
                self._observe(events.Opened(message.kind))
                await channel.send(messages.Seated())
            elif isinstance(message, messages.Request):
                await channel.send(await self._answer(message))
            elif isinstance(message, messages.Finish):
                await channel.send(await self._worker.run(self._script.finish, message))

    async def _answer(self, request: messages.Request) -> messages.Reply | messages.Declined:
        try:
            return messages.Reply(request.number, await self._worker.run(self._script.answer, request.frame))
        except RemoteProtocolError:  # why stays here
            return messages.Declined(request.number)

    def _check_words(self, message: messages.LinkMessage) -> None:
        """Refuse text that may not be shown: whoever coordinates must not write to our screen, log or result."""
        names, label = _find_words(message)
        if not (self._agreed.parties.keys() >= set(names) and label.isprintable()):
            raise RemoteProtocolError(
                "a coordinator must name parties of the job alone, and steps in printable text; it does not."
            )

    def _report(self, status: messages.Status) -> None:
        progress = Progress(step=status.step, steps=status.steps, label=status.label, waiting_for=status.waiting)
        self._observe(progress)
        if self._on_progress is not None:
            self._on_progress(progress)


class UnreachableError(TooFewPartiesError):
    """The coordinator cannot be reached; the run may still go on."""


class _EndedError(CloisterError):
    """The coordinator has ended the run: it need not be told that we leave."""

    exit_code = TooFewPartiesError.exit_code


class AbandonedError(_EndedError, TooFewPartiesError):
    """The coordinator has ended the run, because somebody is missing or it cannot go on."""

    exit_code = TooFewPartiesError.exit_code


class DisagreementError(_EndedError, ConfigError):
    """The coordinator has ended the run, because the parties do not hold the same records."""

    exit_code = ConfigError.exit_code


def _find_words(message: messages.LinkMessage) -> tuple[tuple[str, ...], str]:
    """Return the names and the label that a message of the coordinator's would have us show or keep."""
    match message:
        case messages.Status():
            return message.waiting, message.label
        case messages.Abandon():
            return message.missing, ""
        case messages.Finish():
            return message.left, ""
        case _:
            return (), ""


def make_ending(message: messages.Abandon) -> _EndedError:
    """Return the error that tells a party why the run has ended."""
    names = ", ".join(message.missing)
    text = message.reason.text + (f" Missing: {names}." if names else "")
    return DisagreementError(text) if message.reason in (Ending.DISAGREE, Ending.REPEATED) else AbandonedError(text)
