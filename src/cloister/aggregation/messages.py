"""The messages of secure sums. Tags 1-3 belong to the seed agreement, tags 32-36 to these.

A ``box`` is sealed under a secret that the coordinator does not know (:mod:`cloister.crypto.sealing`): all that it can
check is a box's length.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from cloister.crypto import SignedSessionKey
from cloister.roles import PartyNumber

RoundNumber = Annotated[int, Meta(ge=1, lt=2**31)]


class Attempt(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One try at the sum of a round: its number within the round, and who is in it, as a bitmap."""

    round: RoundNumber
    number: Annotated[int, Meta(ge=1, lt=2**16)]
    members: bytes


class PartyBox(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A box and the party it goes to or comes from."""

    party: PartyNumber
    box: bytes


class Total(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The masked sum of one round, who is in it, and what opens it: nothing where masks come from the common seed."""

    attempt: Attempt
    body: bytes
    """Little-endian words of the ring; in a ring of parties a box with them."""
    openings: tuple[PartyBox, ...] = ()
    """From each member that opened: the key of its own mask, for the parties."""
    restored: tuple[PartyBox, ...] = ()
    """If some did not, from enough others: shares of the missing secrets, for the parties."""


class MeetPeers(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=32):
    """The signed session keys of all who hold the seed."""

    keys: tuple[SignedSessionKey, ...]


class OpenTotal(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=33):
    """All members have answered this attempt, and this is the digest of the sum; asks for the key of our own mask."""

    attempt: Attempt
    digest: bytes


class RestoreMasks(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=34):
    """Some members answered and did not open: asks for our shares of their secrets, which come with it."""

    attempt: Attempt
    silent: bytes
    votes: tuple[PartyBox, ...]
    shares: tuple[PartyBox, ...]


class Settle(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=35):
    """The last totals; asks for our vote on what was found."""

    news: tuple[Total, ...]


class Conclude(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=36):
    """All votes, and the last totals for whoever was away."""

    news: tuple[Total, ...]
    votes: tuple[PartyBox, ...]


class Answered(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=32):
    """Our masked vector, and a share of our mask's secret for each other member, where masks can be restored."""

    vector: bytes
    shares: tuple[PartyBox, ...] = ()


class Opened(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=33):
    """The key of our own mask, for the parties; and our signature that we opened, where masks can be restored."""

    box: bytes
    vote: bytes = b""


class Restored(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=34):
    """Our shares of the silent members' secrets, for the parties."""

    box: bytes


class Voted(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=35):
    """Our signature on what was found, for the parties."""

    box: bytes


SumRequest = MeetPeers | OpenTotal | RestoreMasks | Settle | Conclude
SumReply = Answered | Opened | Restored | Voted
