"""The session rules around a role: one state machine for each side, bytes in and bytes out, no I/O.

::

    party:        idle ──request step s > last──▶ handle ──▶ answered(s)
                  answered(s) ──same frame again──▶ the same reply, byte for byte (a retry is never a second answer)
                  answered(s) ──another frame for s, or step < s──▶ RemoteProtocolError, nothing changes

    coordinator:  asking(s) ──valid reply of a party that was asked──▶ recorded
                  asking(s) ──the same frame again──▶ ignored
                  asking(s) ──anything else──▶ RemoteProtocolError, nothing changes
                  asking(s) ──close_step()──▶ whoever is missing is Dropped; asking(s+1) or finished

Steps only grow. A party may miss some, so gaps are allowed; going back is not.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Generic

from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.roles import COORDINATOR, Ask, Coordinator, Dropped, Message, Party, Result
from cloister.wire.codec import Codec


class PartyEndpoint:
    """Guards one :class:`~cloister.roles.Party` in one session."""

    def __init__(self, party: Party, *, number: int, codec: Codec, session: bytes) -> None:
        self.number = number
        self._party = party
        self._codec = codec
        self._session = session
        self._last_step = -1
        self._last_frame = b""  # its hash: frames may be long, and a process may hold thousands of parties
        self._last_reply = b""
        self.answered = self.bytes_taken = self.bytes_answered = 0
        """What passed: requests that were answered, and the lengths of their frames and replies, each once."""

    def has_answered(self, frame: bytes) -> bool:
        """Whether this is the last frame again; it gets the same reply."""
        return bool(self._last_reply) and _hash(frame) == self._last_frame

    def receive(self, frame: bytes) -> bytes:
        """Answer one frame from the coordinator.

        Raises
        ------
        RemoteProtocolError
            If the frame breaks the rules; the party's state is then unchanged.
        """
        if self.has_answered(frame):
            return self._last_reply
        step, request = self.read(frame)
        reply = self._party.handle(request)
        self._last_reply = self._codec.encode(reply, session=self._session, step=step, sender=self.number)
        self._last_step, self._last_frame = step, _hash(frame)
        self.answered += 1
        self.bytes_taken += len(frame)
        self.bytes_answered += len(self._last_reply)
        return self._last_reply

    def read(self, frame: bytes) -> tuple[int, Message]:
        """Return the step and the request of a frame that may come now; nothing changes.

        Raises
        ------
        RemoteProtocolError
            If it may not.
        """
        envelope = self._codec.open(frame, session=self._session, sender=COORDINATOR)
        if envelope.step <= self._last_step:
            raise RemoteProtocolError(
                f"the step must be greater than {self._last_step}, the last one answered; got {envelope.step}."
            )
        return envelope.step, self._codec.request(envelope.body)


def _hash(frame: bytes) -> bytes:
    return hashlib.sha256(frame).digest()


class CoordinatorEndpoint(Generic[Result]):
    """Drives one coordinator through its session."""

    def __init__(self, coordinator: Coordinator[Result], *, codec: Codec, session: bytes) -> None:
        self._coordinator = coordinator
        self._codec = codec
        self._session = session
        self._step = -1
        self.missed: Counter[int] = Counter()
        """How many requests to each party had no answer when their step was closed."""
        self._result: list[Result] = []
        self._requests: Mapping[int, bytes] | None = None
        self._ask: Ask | None = None
        self._advance(None)

    @property
    def finished(self) -> bool:
        """Whether the coordinator has returned."""
        return self._ask is None

    @property
    def step(self) -> int:
        """The number of the open step."""
        return self._step

    @property
    def ask(self) -> Ask:
        """What the coordinator asks for in the open step."""
        if self._ask is None:
            raise LocalProtocolError("a session must be open to have a step; it is finished. Check `finished` first.")
        return self._ask

    @property
    def taken(self) -> Mapping[int, bytes]:
        """The frames of the replies that were taken in the open step."""
        return self._frames

    @property
    def result(self) -> Result:
        """What the coordinator returned."""
        if not self._result:
            raise LocalProtocolError("a session must be finished to have a result; it is not. Close its steps first.")
        return self._result[0]

    def frames(self) -> Mapping[int, bytes]:
        """Return the bytes to send to each party in the open step; they are made once.

        Equal requests in a row, the usual case, are encoded once: thousands of parties share one frame.
        """
        if self._requests is None:
            self._requests = self._encode_requests()
        return self._requests

    def _encode_requests(self) -> Mapping[int, bytes]:
        frames: dict[int, bytes] = {}
        last: Message | None = None
        frame = b""
        for party, request in self.ask.requests.items():
            if request != last:
                frame = self._codec.encode(request, session=self._session, step=self._step, sender=COORDINATOR)
                last = request
            frames[party] = frame
        return frames

    def receive(self, party: int, frame: bytes) -> None:
        """Take one reply from ``party``, whom the transport has authenticated.

        Raises
        ------
        RemoteProtocolError
            If the frame breaks the rules; the party then counts as not having answered.
        """
        ask = self.ask
        if self._frames.get(party) == frame:
            return
        if party not in ask.requests:
            raise RemoteProtocolError(f"party {party} must be asked before it answers; it was not in this step.")
        if party in self._frames:
            raise RemoteProtocolError(f"party {party} must answer a step once; it sent a second, different answer.")
        envelope = self._codec.open(frame, session=self._session, sender=party)
        if envelope.step != self._step:
            raise RemoteProtocolError(f"an answer must be for step {self._step}; got step {envelope.step}.")
        reply = self._codec.reply(envelope.body)
        ask.check(party, reply)
        self._frames[party] = frame
        self._replies[party] = reply

    def waiting_for(self) -> tuple[int, ...]:
        """Return the parties that have not answered validly yet."""
        return tuple(party for party in self.ask.requests if party not in self._replies)

    def close_step(self) -> None:
        """Count the missing parties as dropped and go on to the next step."""
        answers = {p: self._replies.get(p, Dropped()) for p in self.ask.requests}
        self.missed.update(self.waiting_for())
        self._advance(answers)

    def _advance(self, answers: Mapping[int, Message | Dropped] | None) -> None:
        self._frames: dict[int, bytes] = {}
        self._replies: dict[int, Message] = {}
        self._requests = None
        try:
            self._ask = next(self._coordinator) if answers is None else self._coordinator.send(answers)
            self._step += 1
        except StopIteration as stop:
            self._ask = None
            self._result.append(stop.value)
