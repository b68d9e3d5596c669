"""One party as the coordinator sees it: what it has said, and what it is due to be told."""

from __future__ import annotations

import asyncio
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
    is_seated, has_confirmed
        Whether it has its seat in that session, and has taken note of the end.
    ending
        What ends the run.
    has_left
        Whether it has withdrawn, or missed the end of a session.
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
    has_confirmed: bool = False
    ending: messages.Over | messages.Abandon | None = None
    has_left: bool = False
    status: messages.Status | None = None
    frame_bytes: int = 0
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self, start: messages.Start, frame_bytes: int) -> None:
        """Put it into a session."""
        self.start, self.request, self.finish = start, None, None
        self.is_seated = self.has_confirmed = False
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
        if state is State.IDLE and self.start is not None and not self.has_confirmed:
            channel.connection.allow_frames(self.frame_bytes)
            return self.start
        if state is not State.RUNNING:
            return None
        is_open = self.request is not None and self.request.number > channel.connection.number
        return self.finish or (self.request if is_open else None)
