"""The messages of the serverless sum, and their codec. Tags 1-3 belong to the seed agreement.

Every ``box`` is sealed under a secret that the relay does not know (:mod:`cloister.crypto.sealing`); all it can check
is a box's length. Only dealt randomness comes from the relay itself.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from cloister.aggregation.seed_agreement import OpenSession, Ready, SealedSeeds, SessionOpened, ShareSeed, TakeSeed
from cloister.crypto import SignedSessionKey
from cloister.roles import PartyNumber
from cloister.wire import Codec

RoundNumber = Annotated[int, Meta(ge=1, lt=2**20)]


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
    """A finished sum: what the last member passed on, and the keys that open it."""

    attempt: Attempt
    box: bytes
    reveals: tuple[PartyBox, ...]
    """From each member that stayed: the key of its own mask."""
    recoveries: tuple[PartyBox, ...] = ()
    """If some left before they revealed theirs: shares of the missing secrets, from enough others."""


class MeetPeers(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """The signed session keys of all who hold the seed; asks for shares of our mask secret."""

    keys: tuple[SignedSessionKey, ...]


class KeepShares(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """The others' shares, for us to keep."""

    shares: tuple[PartyBox, ...]


class BeginRound(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """The sums that a party has not seen yet; asks it to prepare its vector of this round."""

    round: RoundNumber
    news: tuple[Total, ...]


class DrawNoise(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=7):
    """Begins an attempt with joint noise: the dealt randomness; asks for the first opening."""

    attempt: Attempt
    dealt: bytes


class TakeOpenings(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=8):
    """The other members' openings; asks for the next one."""

    attempt: Attempt
    openings: tuple[PartyBox, ...]


class AddVector(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=9):
    """Thesis 7.3.1: the sum so far (empty for the first); asks us to add to it. Without joint noise, no openings."""

    attempt: Attempt
    partial: bytes | None
    openings: tuple[PartyBox, ...] = ()


class Reveal(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=10):
    """All members have added; asks for the key of our own mask."""

    attempt: Attempt


class Recover(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=11):
    """Some members left before they revealed their masks; asks for our shares of their secrets."""

    attempt: Attempt
    missing: bytes


class Finish(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=12):
    """The last sums."""

    news: tuple[Total, ...]


class DealtShares(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """A share of our mask secret for each other party."""

    shares: tuple[PartyBox, ...]


class Opening(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """Our opening to the group in one step of drawing noise."""

    box: bytes


class Passed(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """The sum so far, including our vector."""

    box: bytes


class Revealed(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=7):
    """The key of our own mask, for the group."""

    box: bytes


class Recovered(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=8):
    """Our shares of the missing members' secrets, for the group."""

    box: bytes


CODEC = Codec(
    "serverless",
    requests=OpenSession
    | ShareSeed
    | TakeSeed
    | MeetPeers
    | KeepShares
    | BeginRound
    | DrawNoise
    | TakeOpenings
    | AddVector
    | Reveal
    | Recover
    | Finish,
    replies=SessionOpened | SealedSeeds | Ready | DealtShares | Opening | Passed | Revealed | Recovered,
)
