"""The messages of guided sums; each protocol has its own codec. Tags 1-3 belong to the seed agreement."""

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


class Round(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """The masked sum of the previous round (none in the first); asks for the vector of this one."""

    round: RoundNumber
    news: Aggregate | None
    missed: tuple[Aggregate, ...] = ()
    """Masked sums of earlier rounds, in order, for a party that was not asked or not reached in them."""


class Confirm(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """The masked sum of the last round; asks for the check words of what was found."""

    news: Aggregate
    missed: tuple[Aggregate, ...] = ()


class Finish(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """The masked sum of the check words of what was found."""

    news: Aggregate
    missed: tuple[Aggregate, ...] = ()


class MaskedUpdate(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """A party's masked vector, as long as the round's slot however much of it is used, followed by check words."""

    masked: Array


def make_codec(protocol: str) -> Codec:
    """Return the codec of a protocol of guided sums: its name is in every frame."""
    return Codec(
        protocol,
        requests=OpenSession | ShareSeed | TakeSeed | Round | Confirm | Finish,
        replies=SessionOpened | SealedSeeds | Ready | MaskedUpdate,
    )
