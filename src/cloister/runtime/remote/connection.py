"""What may be said when, on one connection: a state machine for both ends, without I/O.

::

    OPEN --Challenge--> CHALLENGED --Hello--> GREETED --Welcome--> WELCOMED --Consent--> IDLE
    IDLE --Start--> STARTED --Seated--> RUNNING --Finish--> FINISHED --Done--> IDLE --Over--> CLOSED
    GREETED --Refused--> CLOSED; WELCOMED --Rejected--> CLOSED
    RUNNING: Request, Reply, Declined; FINISHED: Reply and Declined that were on their way
    from WELCOMED on: Status changes nothing; Abandon and Withdraw close

Both ends keep the same state, whoever spoke. Requests have growing numbers, and a reply has that of a request which was
made on this connection, each once and in order. Whatever else comes is a :class:`RemoteProtocolError`, and the
connection is closed: there is nothing that a peer which follows the protocol can cause it with.

A connection knows nothing of the run: a party that was cut off makes a new one and is asked the open request again.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.runtime.remote import messages
from cloister.runtime.remote.messages import LinkMessage, Packed


class State(Enum):
    """Where a connection is."""

    OPEN = "nothing has been said"
    CHALLENGED = "the party must say who it is"
    GREETED = "the coordinator must answer"
    WELCOMED = "the party must consent"
    IDLE = "no session is open"
    STARTED = "the party must take its seat"
    RUNNING = "requests and replies"
    FINISHED = "the party must confirm the end"
    CLOSED = "nothing more may be said"


_RECOGNISED = (State.WELCOMED, State.IDLE, State.STARTED, State.RUNNING, State.FINISHED)
Table = Mapping[tuple[State, type[LinkMessage]], State]

COORDINATOR_SAYS: Table = {
    (State.OPEN, messages.Challenge): State.CHALLENGED,
    (State.GREETED, messages.Welcome): State.WELCOMED,
    (State.GREETED, messages.Refused): State.CLOSED,
    (State.IDLE, messages.Start): State.STARTED,
    (State.RUNNING, messages.Request): State.RUNNING,
    (State.RUNNING, messages.Finish): State.FINISHED,
    (State.IDLE, messages.Over): State.CLOSED,
    **{(state, messages.Status): state for state in _RECOGNISED},
    **{(state, messages.Abandon): State.CLOSED for state in _RECOGNISED},
}
PARTY_SAYS: Table = {
    (State.CHALLENGED, messages.Hello): State.GREETED,
    (State.WELCOMED, messages.Consent): State.IDLE,
    (State.WELCOMED, messages.Rejected): State.CLOSED,
    (State.STARTED, messages.Seated): State.RUNNING,
    (State.RUNNING, messages.Reply): State.RUNNING,
    (State.RUNNING, messages.Declined): State.RUNNING,
    (State.FINISHED, messages.Reply): State.FINISHED,
    (State.FINISHED, messages.Declined): State.FINISHED,
    (State.FINISHED, messages.Done): State.IDLE,
    **{(state, messages.Withdraw): State.CLOSED for state in _RECOGNISED},
}


class Connection:
    """One end of one connection.

    Parameters
    ----------
    is_coordinator
        Which end.
    """

    def __init__(self, *, is_coordinator: bool) -> None:
        self._is_coordinator = is_coordinator
        self.state = State.OPEN
        self._frame_bytes = 0
        self._asked: list[int] = []  # numbers of requests that have no reply yet
        self.number = -1
        """Of the last request."""

    def allow_frames(self, limit_bytes: int) -> None:
        """Say how long the frames of the session are at most that is about to start."""
        self._frame_bytes = limit_bytes

    @property
    def limit_bytes(self) -> int:
        """How long a message may be now."""
        if self.state not in _RECOGNISED:
            return messages.GREETING_BYTES
        return max(messages.CONTROL_BYTES, self._frame_bytes + messages.FRAME_OVERHEAD_BYTES)

    def send(self, message: LinkMessage) -> Packed:
        """Return a message of ours, packed.

        Raises
        ------
        LocalProtocolError
            If it may not be said now.
        """
        following = self._follow(message, ours=True)
        if following is None:
            raise LocalProtocolError(
                f"{type(message).__name__} must not be sent while {self.state.value}: this is a bug."
            )
        packed = messages.pack(message)
        limit = max(self.limit_bytes, messages.CONTROL_BYTES)
        if sum(map(len, packed)) > limit:
            raise LocalProtocolError(f"a message must have at most {limit} bytes; this one has more: this is a bug.")
        self._take(message, following)
        return packed

    def receive(self, packed: Packed) -> LinkMessage:
        """Return the peer's message.

        Raises
        ------
        RemoteProtocolError
            If it is none, or may not be said now; the connection is closed.
        """
        try:
            if sum(map(len, packed)) > self.limit_bytes:
                raise RemoteProtocolError(f"a message must have at most {self.limit_bytes} bytes here; it has more.")
            unpack = messages.unpack_from_party if self._is_coordinator else messages.unpack_from_coordinator
            message: LinkMessage = unpack(packed)
            following = self._follow(message, ours=False)
            if following is None:
                raise RemoteProtocolError(f"{type(message).__name__} must not come while {self.state.value}; it did.")
        except RemoteProtocolError:
            self.state = State.CLOSED
            raise
        self._take(message, following)
        return message

    def _follow(self, message: LinkMessage, *, ours: bool) -> State | None:
        """Return the state after a message; None if it may not be said."""
        table = COORDINATOR_SAYS if ours == self._is_coordinator else PARTY_SAYS
        following = table.get((self.state, type(message)))
        if isinstance(message, messages.Request) and message.number <= self.number:
            return None
        if isinstance(message, messages.Reply | messages.Declined) and message.number not in self._asked:
            return None
        return following

    def _take(self, message: LinkMessage, following: State) -> None:
        if isinstance(message, messages.Request):
            self.number = message.number
            self._asked.append(message.number)
        elif isinstance(message, messages.Reply | messages.Declined):
            self._asked = [number for number in self._asked if number > message.number]
        elif isinstance(message, messages.Start):
            self.number, self._asked = -1, []
        self.state = following
