"""The messages of the four protocols, and their codec. Tags 1-3 belong to the seed agreement."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from cloister.aggregation import Aggregate
from cloister.aggregation.seed_agreement import (
    OpenSession,
    Ready,
    SealedSeeds,
    SessionOpened,
    ShareSeed,
    TakeSeed,
)
from cloister.wire import Array, Codec

RoundNumber = Annotated[int, Meta(ge=1, lt=2**20)]


class NaiveRound(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """5.2.1 (c) of the last round and (a) of this one: the centres to assign to."""

    round: RoundNumber
    centres: Array


class MaskedRound(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """5.3.1 (c): the masked sums that a party has not seen yet; asks for the update of this round.

    ``news`` usually holds one aggregate; more for a party that was away. ``start`` comes with the first request to a
    party if the coordinator draws the first centres.
    """

    round: RoundNumber
    news: tuple[Aggregate, ...]
    start: Array | None = None


class NaiveFinish(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """The last centres."""

    centres: Array


class MaskedFinish(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=7):
    """The last masked sums."""

    news: tuple[Aggregate, ...]


class LocalUpdate(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """5.2.1 (b): a party's sums and counts in the clear, k rows of d fixed-point sums and one count."""

    update: Array


class MaskedUpdate(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """5.3.1 (b), 5.4.1: a party's masked vector."""

    masked: Array


CODEC = Codec(
    "lloyd",
    requests=OpenSession | ShareSeed | TakeSeed | NaiveRound | MaskedRound | NaiveFinish | MaskedFinish,
    replies=SessionOpened | SealedSeeds | Ready | LocalUpdate | MaskedUpdate,
)
