"""The messages of SecFC, and their codec. Tags 1-3 belong to the seed agreement.

Every ``box`` is sealed under a secret that the coordinator does not know (:mod:`cloister.crypto.sealing`): shares of
records under the secret of two clients, shares of sums under the seed of all.
"""

from __future__ import annotations

from math import prod
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from cloister.aggregation.seed_agreement import OpenSession, Ready, SealedSeeds, SessionOpened, ShareSeed, TakeSeed
from cloister.crypto import SignedSessionKey
from cloister.errors import RemoteProtocolError
from cloister.field import Field, Words
from cloister.roles import PartyNumber
from cloister.wire import Array, Codec

SECFC = "secfc"
RecordCount = Annotated[int, Meta(ge=0, lt=2**32)]
Version = Annotated[int, Meta(ge=1, lt=2**20)]
_WORD = np.dtype("<u8")


class Holding(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How many rows a client shares."""

    party: PartyNumber
    records: RecordCount


class AddressedBox(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A box and the client it goes to or comes from."""

    party: PartyNumber
    box: bytes


class LabelNews(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A labelling of all records: whole (``base`` 0), or what changed since another version."""

    version: Version
    base: Annotated[int, Meta(ge=0, lt=2**20)]
    places: Array
    """Which records changed, rising; none where the labelling is whole."""
    codes: Array
    """Their clusters, counted from 1; 0 means none."""


class MeetPeers(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """The signed session keys of all who hold the seed; asks how many rows we will share.

    The answers settle how many records there are, and with that the grid and the field.
    """

    keys: tuple[SignedSessionKey, ...]


class ExchangeShares(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """The others' shares of the previous chunk; asks for ours of this one (Algorithm 1, line 3)."""

    owners: tuple[Holding, ...]
    digest: Annotated[bytes, Meta(min_length=32, max_length=32)]
    """Of what was agreed and of what follows from the owners' rows: `Layout.digest`."""
    chunk: Annotated[int, Meta(ge=0, lt=2**32)]
    boxes: tuple[AddressedBox, ...]


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
    sums: tuple[AddressedBox, ...]


class HeldRecords(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """How many rows we will share."""

    records: RecordCount


class SealedShares(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """Our shares of a chunk for each other client; none if we have no rows in it."""

    boxes: tuple[AddressedBox, ...]


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


# --- field elements inside boxes --------------------------------------------------------------------------------------


def write_words(words: Words) -> bytes:
    """Return elements as little-endian bytes, of a shape that both ends know."""
    return words.astype(_WORD, copy=False).tobytes()


def read_words(plain: bytes, field: Field, shape: tuple[int, ...], *, what: str) -> Words:
    """Return the elements (residues, *shape); wrong lengths, and words that are not elements, are refused."""
    wanted = prod(shape) * field.residues * _WORD.itemsize
    if len(plain) != wanted:
        raise RemoteProtocolError(f"{what} of shape {shape} must have {wanted} bytes; got {len(plain)}.")
    words = np.frombuffer(plain, dtype=_WORD).reshape(field.residues, *shape).astype(np.uint64, copy=False)
    return field.check_received(words, shape, what=what)
