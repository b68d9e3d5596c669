"""The messages of SecFC, and their codec. Tags 1-3 belong to the seed agreement.

Every ``box`` is sealed under a secret that the coordinator does not know (:mod:`cloister.crypto.sealing`): shares of
records under the secret of two clients, shares of sums under the seed of all.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from cloister.aggregation.seed_agreement import OpenSession, Ready, SealedSeeds, SessionOpened, ShareSeed, TakeSeed
from cloister.crypto import SignedSessionKey
from cloister.roles import PartyNumber
from cloister.wire import Array, Codec

SECFC = "secfc"
RecordCount = Annotated[int, Meta(ge=0, lt=2**32)]
Version = Annotated[int, Meta(ge=1, lt=2**20)]


class Holding(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How many rows a client shares."""

    party: PartyNumber
    records: RecordCount


class Parcel(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A box and the client it goes to or comes from."""

    party: PartyNumber
    box: bytes


class LabelNews(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One labelling of all records: whole (``base`` 0), or what changed since another version."""

    version: Version
    base: Annotated[int, Meta(ge=0, lt=2**20)]
    places: Array
    """Which records changed, rising; none where the labelling is whole."""
    codes: Array
    """Their clusters counted from 1; 0 is none."""


class MeetPeers(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """The signed session keys of all who hold the seed; asks how many rows we will share."""

    keys: tuple[SignedSessionKey, ...]


class ExchangeShares(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """The others' shares of the chunk before; asks for ours of this one (Algorithm 1, line 3)."""

    owners: tuple[Holding, ...]
    chunk: Annotated[int, Meta(ge=0, lt=2**32)]
    parcels: tuple[Parcel, ...]


class BeginRounds(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """Whose records are clustered, as a bitmap: of all clients that shared all of theirs."""

    owners: bytes


class Measure(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=7):
    """Algorithm 1, lines 8-13: asks for coded distances to these clusters' centres, weighted and masked for a set."""

    news: LabelNews
    attempt: Annotated[int, Meta(ge=1, lt=2**20)]
    """Rises within a version."""
    responders: bytes
    """Who is decoded together, as a bitmap."""
    columns: tuple[Annotated[int, Meta(ge=0, lt=2**16)], ...]


class RevealSums(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=8):
    """Section 7: asks for our share of the final clusters' sums, for the clients."""

    news: LabelNews
    noise: Array | None
    """Our share of the coordinator's noise, to be added; none where centres are revealed exactly."""


class Finish(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=9):
    """The final labels and, where centres are revealed, l + t clients' shares of the sums."""

    owners: bytes
    news: LabelNews
    sums: tuple[Parcel, ...]


class HeldRecords(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """How many rows we will share."""

    records: RecordCount


class SealedShares(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """Our shares of a chunk for each other client; none if we have no rows in it."""

    parcels: tuple[Parcel, ...]


class Measured(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """w_j phi(alpha_j) + pad_j for every record and asked cluster."""

    values: Array


class SumShares(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=7):
    """Our share of the sums, sealed to the clients."""

    box: bytes


CODEC = Codec(
    SECFC,
    requests=OpenSession
    | ShareSeed
    | TakeSeed
    | MeetPeers
    | ExchangeShares
    | BeginRounds
    | Measure
    | RevealSums
    | Finish,
    replies=SessionOpened | SealedSeeds | Ready | HeldRecords | SealedShares | Measured | SumShares,
)
