"""Roles without I/O: the parts of every protocol, and all that a runtime needs to know.

A **coordinator** is a generator. It yields an :class:`Ask`, one request per party, and is sent back a mapping with a
reply or :class:`Dropped` for every party that was asked. What it returns is its result.

A **party** is an object with ``handle(request) -> reply``. It holds that party's private state.

Neither uses sockets, threads, clocks or files. Number 0 is the coordinator; the parties are numbered from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Annotated, Protocol, TypeVar

from msgspec import Meta, Struct

from cloister.crypto import Entropy, Identity
from cloister.errors import RemoteProtocolError, TooFewPartiesError

COORDINATOR = 0
PartyNumber = Annotated[int, Meta(ge=1, lt=2**16)]

Message = Struct
"""Every message is a frozen msgspec struct; a protocol's codec defines which ones exist."""


@dataclass(frozen=True)
class Dropped:
    """Stands in for the reply of a party that did not answer validly in time."""

    reason: str = "no answer"


Replies = Mapping[int, Message | Dropped]
Check = Callable[[int, Message], None]
"""Raises :class:`~cloister.errors.RemoteProtocolError` if a party's reply does not fit the request."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One step of a coordinator: a request to each party, and what a valid reply is."""

    label: str
    requests: Mapping[int, Message]
    check: Check
    steps: int
    """How many steps the protocol expects to take in total; for progress only."""


Result = TypeVar("Result")
Coordinator = Generator[Ask, Replies, Result]


@dataclass(frozen=True, kw_only=True)
class Seat:
    """One party's place in a session: its number, its keys, and where its randomness comes from."""

    number: int
    identity: Identity
    entropy: Entropy
    session: bytes


class Party(Protocol):
    """One participant.

    ``handle`` raises :class:`~cloister.errors.RemoteProtocolError` for a request that breaks the protocol and changes
    no state; any other :class:`~cloister.errors.CloisterError` is a fault on this party's own side.
    """

    def handle(self, request: Message) -> Message:
        """Answer one request."""


def expect(kind: type[Message]) -> Check:
    """Return a check that a reply is of one kind."""

    def check(party: int, reply: Message) -> None:
        if not isinstance(reply, kind):
            raise RemoteProtocolError(f"party {party} must answer with {kind.__name__}; got {type(reply).__name__}.")

    return check


def require_members(count: int, members_min: int, parties: int) -> None:
    """Abort when fewer parties are left than was agreed."""
    if count < members_min:
        raise TooFewPartiesError(
            f"at least {members_min} of {parties} parties must take part; {count} did. "
            "Wait until they are reachable and run the job again, or agree on a smaller min_parties."
        )
