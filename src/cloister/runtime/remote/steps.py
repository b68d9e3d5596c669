"""The steps of one session at the coordinator: its role, and what passed between it and each party."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from cloister.errors import RemoteProtocolError
from cloister.roles import COORDINATOR
from cloister.runtime.local import Traffic
from cloister.runtime.remote.member import Member
from cloister.runtime.remote.messages import Reply
from cloister.wire import CoordinatorEndpoint


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


class Steps:
    """The steps of one session: its endpoint, and what passed."""

    def __init__(self, endpoint: CoordinatorEndpoint[Any], members: Mapping[int, Member]) -> None:
        self.endpoint, self.members = endpoint, members
        self._hash = hashlib.sha256()
        self._traffic = {number: Traffic() for number in members}

    def offer(self, replies: Sequence[tuple[int, Reply]]) -> None:
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
