"""The messages of a synopsis, and their codec. Tags 1-3 belong to the seed agreement."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from cloister.aggregation.masked_sum import Aggregate
from cloister.aggregation.seed_agreement import (
    OpenSession,
    Ready,
    SealedSeeds,
    SessionOpened,
    ShareSeed,
    TakeSeed,
)
from cloister.protocols.synopsis.settings import SYNOPSIS
from cloister.wire import Array, Codec

RoundNumber = Annotated[int, Meta(ge=1, lt=2**20)]


class Round(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """The masked sum of the round before (none in the first), and the question for this one's vector."""

    round: RoundNumber
    news: Aggregate | None


class Confirm(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """The masked sum of the last round; asks for the check words of what was found."""

    news: Aggregate


class Finish(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """The masked sum of the check words of what was found."""

    news: Aggregate


class MaskedUpdate(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """A party's masked vector, as long as the round's slot, whatever of it is used; and its check words behind."""

    masked: Array


CODEC = Codec(
    SYNOPSIS,
    requests=OpenSession | ShareSeed | TakeSeed | Round | Confirm | Finish,
    replies=SessionOpened | SealedSeeds | Ready | MaskedUpdate,
)
