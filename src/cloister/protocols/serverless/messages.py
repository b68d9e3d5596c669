"""The messages of the serverless sum, and their codec, beside those of all secure sums.

Every ``box`` is sealed under a secret that the relay does not know (:mod:`cloister.crypto.sealing`); all it can check
is a box's length. Only dealt randomness comes from the relay itself.
"""

from __future__ import annotations

from msgspec import Struct

from cloister.aggregation.messages import (
    Attempt,
    Conclude,
    MeetPeers,
    Opened,
    OpenTotal,
    PartyBox,
    Restored,
    RestoreMasks,
    RoundNumber,
    Settle,
    Total,
    Voted,
)
from cloister.aggregation.seed_agreement import OpenSession, Ready, SealedSeeds, SessionOpened, ShareSeed, TakeSeed
from cloister.wire import Codec


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


class Opening(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """Our opening to the group in one step of drawing noise."""

    box: bytes


class Passed(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """The sum so far with ours in it, and shares of our mask's secret, where masks can be restored."""

    box: bytes
    shares: tuple[PartyBox, ...] = ()


CODEC = Codec(
    "serverless",
    requests=OpenSession
    | ShareSeed
    | TakeSeed
    | MeetPeers
    | BeginRound
    | DrawNoise
    | TakeOpenings
    | AddVector
    | OpenTotal
    | RestoreMasks
    | Settle
    | Conclude,
    replies=SessionOpened | SealedSeeds | Ready | Opening | Passed | Opened | Restored | Voted,
)
