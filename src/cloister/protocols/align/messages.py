"""The messages of an alignment, and their codec. Tags 1-3 belong to the seed agreement."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from cloister.aggregation.seed_agreement import OpenSession, Ready, SealedSeeds, SessionOpened, ShareSeed, TakeSeed
from cloister.crypto import SignedSessionKey
from cloister.wire import Array, Codec

Elements = Annotated[int, Meta(ge=0, lt=2**40)]
Part = Annotated[int, Meta(ge=0, lt=2**31)]
Hop = Annotated[int, Meta(ge=0, lt=2**16)]
DIGEST_BYTES = 32


class MeetRing(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """The signed session keys of all parties; asks how long our list is."""

    keys: tuple[SignedSessionKey, ...]


class BlindPart(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """One part of a list, sealed to us by our predecessor in the ring (nothing at hop 0: our own); asks to blind it."""

    hop: Hop
    part: Part
    box: bytes | None


class TakePlaces(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """Where the IDs of one part of our own list stand in the common order; -1 for those without a place."""

    part: Part
    places: Array


class Finish(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=7):
    """How many places there are, and the digest of the blinded IDs in their order."""

    count: Elements
    digest: Annotated[bytes, Meta(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES)]


class RingMet(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """How many IDs are in our list, and for each list our key for it divided by our key for the first list."""

    elements: Elements
    ratios: tuple[bytes, ...]


class Passed(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """A part blinded by us, sealed to our successor in the ring."""

    box: bytes


class Delivered(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """A part blinded by every party, by us last; for the coordinator."""

    points: bytes


Request = OpenSession | ShareSeed | TakeSeed | MeetRing | BlindPart | TakePlaces | Finish
Reply = SessionOpened | SealedSeeds | Ready | RingMet | Passed | Delivered
CODEC = Codec("align", requests=Request, replies=Reply)
