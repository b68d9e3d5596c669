"""The messages of the protocols, and their codec, beside those of all secure sums."""

from __future__ import annotations

from msgspec import Struct

from cloister.aggregation.messages import (
    Answered,
    Attempt,
    Conclude,
    MeetPeers,
    Opened,
    OpenTotal,
    Restored,
    RestoreMasks,
    RoundNumber,
    Settle,
    Total,
    Voted,
)
from cloister.aggregation.seed_agreement import (
    OpenSession,
    Ready,
    SealedSeeds,
    SessionOpened,
    ShareSeed,
    TakeSeed,
)
from cloister.wire import Array, Codec


class NaiveRound(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """5.2.1 (c) of the last round and (a) of this one: the centres to assign to."""

    round: RoundNumber
    centres: Array


class MaskedRound(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """5.3.1 (c): the masked sums a party has not seen yet, then assign and update for this attempt.

    ``news`` holds one total as a rule; more for a party that was away. ``start`` is there in the first request to a
    party if the coordinator draws the first centres.
    """

    attempt: Attempt
    news: tuple[Total, ...]
    start: Array | None = None


class NaiveFinish(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """The last centres."""

    centres: Array


class LocalUpdate(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """5.2.1 (b): a party's sums and counts in the clear, k rows of d fixed-point sums and one count."""

    update: Array


CODEC = Codec(
    "lloyd",
    requests=OpenSession
    | ShareSeed
    | TakeSeed
    | MeetPeers
    | NaiveRound
    | MaskedRound
    | OpenTotal
    | RestoreMasks
    | NaiveFinish
    | Settle
    | Conclude,
    replies=SessionOpened | SealedSeeds | Ready | LocalUpdate | Answered | Opened | Restored | Voted,
)
