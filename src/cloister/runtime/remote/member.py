"""The parties as the coordinator sees them: what each has said, and what it is due to be told."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from cloister.runtime.remote import messages
from cloister.runtime.remote.channel import Channel
from cloister.runtime.remote.connection import State
from cloister.runtime.remote.messages import FromCoordinator

_TALKING = (State.WELCOMED, State.IDLE, State.STARTED, State.RUNNING, State.FINISHED)


@dataclass(kw_only=True, eq=False)
class Member:
    """One party of the run.

    What it is due follows from where the run is and from where its connection is. So a party that was cut off comes to
    the same place on a new connection, whatever it had been told on the old one.

    Attributes
    ----------
    name
        In the job.
    channel
        Its connection, if it has one.
    program, consent, facts
        Its version; the signature of its consent; what it has said of the records.
    start, request, finish
        The session that it is in, the request that it has not answered, and the end of the session.
    is_seated, done, has_confirmed
        Whether it has its seat in that session; how it has taken note of the end, and whether that is written down.
    ending
        What ends the run.
    has_left
        Whether it has withdrawn, or missed the end of a session.
    is_away
        Whether it has let a whole deadline pass and not been heard since: it is asked, and not waited for.
    frame_bytes
        How long frames are at most in that session.
    """

    name: str
    channel: Channel | None = None
    program: str = ""
    consent: bytes | None = None
    facts: messages.Facts = field(default_factory=messages.Facts)
    start: messages.Start | None = None
    request: messages.Request | None = None
    finish: messages.Finish | None = None
    is_seated: bool = False
    done: messages.Done | None = None
    has_confirmed: bool = False
    ending: messages.Over | messages.Abandon | None = None
    has_left: bool = False
    is_away: bool = False
    status: messages.Status | None = None
    frame_bytes: int = 0
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_expected(self) -> bool:
        """Whether it may still answer, as far as we know."""
        return not (self.has_left or self.is_away)

    def begin(self, start: messages.Start, frame_bytes: int) -> None:
        """Put it into a session."""
        self.start, self.request, self.finish = start, None, None
        self.is_seated, self.done, self.has_confirmed = False, None, False
        self.frame_bytes = frame_bytes
        self.wake.set()

    def ask(self, request: messages.Request | None) -> None:
        """Ask it, or ask it no more."""
        self.request = request
        self.wake.set()

    def end_session(self, finish: messages.Finish) -> None:
        """Tell it the end of its session."""
        self.request, self.finish = None, finish
        self.wake.set()

    def end(self, ending: messages.Over | messages.Abandon) -> None:
        """Tell it the end of the run."""
        self.ending = ending
        self.wake.set()

    def tell(self, status: messages.Status) -> None:
        """Tell it what the run is doing."""
        self.status = status
        self.wake.set()

    def find_due(self, channel: Channel) -> FromCoordinator | None:
        """Return what it should be told next on this connection; None if it must speak, or nothing has happened."""
        state = channel.state
        if state not in _TALKING:
            return None
        if isinstance(self.ending, messages.Abandon):
            return self.ending
        due = self._find_step(channel, state)
        if due is None and self.status is not None:
            due, self.status = self.status, None
        return due

    def _find_step(self, channel: Channel, state: State) -> FromCoordinator | None:
        if state is State.IDLE and self.ending is not None:
            return self.ending
        if state is State.IDLE and self.start is not None and self.done is None:
            channel.connection.allow_frames(self.frame_bytes)
            return self.start
        if state is not State.RUNNING:
            return None
        is_open = self.request is not None and self.request.number > channel.connection.number
        return self.finish or (self.request if is_open else None)


class Roster:
    """All parties of a run, and what has happened that somebody waits for.

    Attributes
    ----------
    members
        By name, in the job's order.
    is_started
        Whether the run has begun: who leaves now has left for good.
    replies
        What has come and was not taken yet.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.members = {name: Member(name=name) for name in names}
        self.is_started = False
        self.replies: deque[tuple[Member, messages.Reply | messages.Declined]] = deque()
        self._changed, self._happened = dict[Member, None](), asyncio.Event()
        self._failure: Exception | None = None

    @property
    def left(self) -> tuple[str, ...]:
        """Who has left the run."""
        return tuple(name for name, member in self.members.items() if member.has_left)

    def note(self, member: Member) -> None:
        """Note that a party was heard, came or went."""
        self._changed[member] = None
        self._happened.set()

    def fail(self, error: Exception) -> None:
        """End the run: whoever waits for something gets this error."""
        self._failure = error
        self._happened.set()

    async def wait(self) -> list[Member]:
        """Wait until something has happened; returns the parties that it happened to, so that nobody asks all."""
        await self._happened.wait()
        self._happened.clear()
        if self._failure is not None:
            raise self._failure
        changed = list(self._changed)
        self._changed.clear()
        return changed

    def take_replies(self) -> list[tuple[Member, messages.Reply | messages.Declined]]:
        """Return what has come."""
        taken = list(self.replies)
        self.replies.clear()
        return taken
