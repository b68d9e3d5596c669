"""Roles without I/O: what every protocol is made of, and all that a runtime needs to know.

A **coordinator** is a generator. It yields an :class:`Ask`, one request per party, and is sent back a mapping with a
reply or :class:`Dropped` for every party that was asked. What it returns is its result.

A **party** is an object with ``handle(request) -> reply``. It holds that party's private state.

Neither knows of sockets, threads, clocks or files. Party 0 is the coordinator itself; the parties are numbered from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from msgspec import Struct

from cloister.crypto import Entropy, Identity

COORDINATOR = 0

Message = Struct
"""Every message is a frozen msgspec struct; which ones a protocol knows is its codec's business."""


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
    """How many steps the protocol expects to take in all; for progress only."""


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

    ``handle`` raises :class:`~cloister.errors.RemoteProtocolError` on a request that breaks the protocol, and then has
    changed no state; any other :class:`~cloister.errors.CloisterError` is this party's own trouble.
    """

    def handle(self, request: Message) -> Message:
        """Answer one request."""
