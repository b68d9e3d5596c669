"""The messages of guided sums; each protocol has its own codec. Tags 1-3 and 32-36 belong to secure sums."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from cloister.aggregation.messages import Answered, Attempt, MeetPeers, Opened, OpenTotal, Restored, RestoreMasks, Total
from cloister.aggregation.seed_agreement import (
    OpenSession,
    Ready,
    SealedSeeds,
    SessionOpened,
    ShareSeed,
    TakeSeed,
)
from cloister.protocols.guided_sums.statements import Stated
from cloister.wire import Codec

RoundNumber = Annotated[int, Meta(ge=1, lt=2**20)]


class Past(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A round that is over: what was stated in it, and the total of the answers."""

    stated: Stated
    total: Total


class Lead(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """To the leader: the rounds that it has not read yet; asks for this round's question, or for the result."""

    round: RoundNumber
    news: tuple[Past, ...]


class Answer(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """To a member: this round's question, and the link of the chain before it."""

    attempt: Attempt
    link: bytes
    stated: Stated


class Sign(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """To a member: the result, and the link of the chain before it."""

    link: bytes
    stated: Stated


class Finish(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=7):
    """To a member: who signed the result, and the signatures one behind the other."""

    members: bytes
    signatures: bytes


class Declined(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """From a party that computes other questions than those that were stated: it cannot lead."""


class Signed(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=7):
    """A member's signature on the chain's last link."""

    signature: bytes


def make_codec(protocol: str) -> Codec:
    """Return the codec of a protocol of guided sums: its name is in every frame."""
    return Codec(
        protocol,
        requests=OpenSession
        | ShareSeed
        | TakeSeed
        | MeetPeers
        | Lead
        | Answer
        | OpenTotal
        | RestoreMasks
        | Sign
        | Finish,
        replies=SessionOpened | SealedSeeds | Ready | Answered | Opened | Restored | Stated | Declined | Signed,
    )
