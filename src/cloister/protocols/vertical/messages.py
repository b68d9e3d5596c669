"""The messages of a vertical session, and their codec. Tags 1-3 belong to the seed agreement.

Whatever parties have to tell each other is in boxes that the coordinator relays and cannot read: posts, for all
parties, and letters, for one.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from cloister.aggregation.seed_agreement import OpenSession, Ready, SealedSeeds, SessionOpened, ShareSeed, TakeSeed
from cloister.crypto import SignedSessionKey
from cloister.roles import PartyNumber
from cloister.wire import Codec

VERTICAL: Final = "vertical"
"""The protocol's name, in jobs, in results and on the wire."""
LIMIT_BYTES = 2**30
"""Of one message: a histogram under a collective key goes to several holders at once."""
StageNumber = Annotated[int, Meta(ge=0, lt=2**20)]


class Post(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What one party tells all others, sealed under the parties' common seed."""

    author: PartyNumber
    stage: StageNumber
    box: bytes


class Letter(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What one party tells one other, sealed under the secret that the two share."""

    sender: PartyNumber
    recipient: PartyNumber
    stage: StageNumber
    box: bytes


class Meet(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """All parties' signed keys: each pair now has a secret."""

    keys: tuple[SignedSessionKey, ...]


class Turn(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """A party's turn: what has been posted since its last one, its letters, and who else is in this step."""

    stage: StageNumber
    members: tuple[PartyNumber, ...]
    posts: tuple[Post, ...]
    letters: tuple[Letter, ...]


class Done(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """What a party did in its turn: at most one post, at most one letter to each other party."""

    post: bytes | None
    letters: tuple[Letter, ...]


CODEC = Codec(
    VERTICAL,
    requests=OpenSession | ShareSeed | TakeSeed | Meet | Turn,
    replies=SessionOpened | SealedSeeds | Ready | Done,
    limit_bytes=LIMIT_BYTES + 2**20,
)
