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
from cloister.wire import Array, Codec

TAG_BYTES = 16

RoundNumber = Annotated[int, Meta(ge=1, lt=2**20)]
Tag = Annotated[bytes, Meta(min_length=TAG_BYTES, max_length=TAG_BYTES)]


class Round(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """The masked sum of the round before (none in the first), and the question for this one's vector."""

    round: RoundNumber
    news: Aggregate | None


class Finish(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """The masked sum of the last round."""

    news: Aggregate


class MaskedUpdate(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """A party's masked vector, as long as the round's slot, whatever of it is used.

    ``tag`` is a keyed hash of the question that the vector answers, under a key that the parties share: whoever has no
    key can see whether two parties answer the same question, and nothing else.
    """

    masked: Array
    tag: Tag


CODEC = Codec(
    "synopsis",
    requests=OpenSession | ShareSeed | TakeSeed | Round | Finish,
    replies=SessionOpened | SealedSeeds | Ready | MaskedUpdate,
)
