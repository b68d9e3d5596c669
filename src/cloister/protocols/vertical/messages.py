"""The stages of a vertical session, and its messages with their codec. Tags 1-3 belong to the seed agreement.

All that parties send each other is in boxes that the coordinator relays and cannot read: posts, for all
parties, and letters, for one. The stages, in order, are public and the same for every role:

::

    prepare                all           codebooks that had to be paid for; commitments to coins
    reveal                 key holders   the coins (collective keys only)
    keys                   key holders   public keys, or shares of one; shares of shares where a threshold was agreed
    relinearise, combine   key holders   keys for products of ciphertexts (joint cells under a collective key only)
    upload 1, 2, ...       holders       their encrypted cells, to the computing party
    for each query:
        compute            Alice         what she asks, and the encrypted statistics, to the key holders;
                                         the last totals, to all
        attend             key holders   who is there (with a threshold only)
        decrypt            key holders   the noisy statistics, or shares of them, to Alice
    finish                 Alice         the last totals and the result, to all
    close                  the others    everyone has the result
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta, Struct

from cloister.aggregation.seed_agreement import OpenSession, Ready, SealedSeeds, SessionOpened, ShareSeed, TakeSeed
from cloister.crypto import SignedSessionKey
from cloister.protocols.vertical.settings import VERTICAL
from cloister.roles import PartyNumber
from cloister.wire import Codec

LIMIT_BYTES = 2**30
"""Of one message: a histogram under a collective key goes to several holders at once."""
StageNumber = Annotated[int, Meta(ge=0, lt=2**20)]
Kind = Literal[
    "prepare",
    "reveal",
    "keys",
    "relinearise",
    "combine",
    "upload",
    "mask",  # of a session for labels
    "compute",
    "attend",
    "decrypt",
    "finish",
    "close",
]


class Post(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What one party sends to all others, sealed under the parties' common seed."""

    author: PartyNumber
    stage: StageNumber
    box: bytes


class Letter(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What one party sends to one other, sealed under the secret that the two share."""

    sender: PartyNumber
    recipient: PartyNumber
    stage: StageNumber
    box: bytes


class ExchangeKeys(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
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
    requests=OpenSession | ShareSeed | TakeSeed | ExchangeKeys | Turn,
    replies=SessionOpened | SealedSeeds | Ready | Done,
    limit_bytes=LIMIT_BYTES + 2**20,
)


# --- stages -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step of the session.

    Attributes
    ----------
    kind, index
        What is done, and which of its kind this is, from 0.
    members
        Who has a turn.
    label
        In words, for progress and errors.
    posting
        Whether every member posts something.
    writers, readers
        Which members write letters, one to each reader but themselves.
    """

    kind: Kind
    index: int
    members: tuple[int, ...]
    label: str
    posting: bool = False
    writers: tuple[int, ...] = ()
    readers: tuple[int, ...] = ()

    def readers_of(self, writer: int) -> frozenset[int]:
        """Return whom one party writes to."""
        return frozenset(self.readers) - {writer} if writer in self.writers else frozenset()


def list_stages(
    *,
    parties: int,
    computing: int,
    key_holders: tuple[int, ...],
    encrypted: tuple[int, ...],
    uploads: int,
    queries: tuple[str, ...],
    collective: bool,
    threshold: bool,
    joint: bool,
) -> tuple[Stage, ...]:
    """List all stages of a session.

    Parameters
    ----------
    parties, computing, key_holders, encrypted
        How many there are; who computes, who holds keys, whose columns are encrypted.
    uploads
        How many messages each holder of encrypted columns sends.
    queries
        The name of each.
    collective, threshold, joint
        Whether the key is shared, whether some of its holders may be absent, whether cells are joint ones.
    """
    everyone, alice = tuple(range(1, parties + 1)), (computing,)
    stages = [Stage(kind="prepare", index=0, members=everyone, label="preparing", posting=True)]

    def add_posting(kind: Kind, label: str, writers: tuple[int, ...] = ()) -> None:
        stages.append(
            Stage(kind=kind, index=0, members=key_holders, label=label, posting=True, writers=writers, readers=writers)
        )

    if collective:
        add_posting("reveal", "tossing coins")
    add_posting("keys", "making keys", writers=key_holders if threshold else ())
    if collective and joint:
        add_posting("relinearise", "making keys for products")
        add_posting("combine", "joining keys for products")
    senders = tuple(sorted({*encrypted, computing}))
    stages += [
        Stage(
            kind="upload",
            index=i,
            members=senders,
            label=f"encrypting columns ({i + 1} of {uploads})",
            writers=encrypted,
            readers=alice,
        )
        for i in range(uploads)
    ]
    for i, name in enumerate(queries):
        label = f"{name}: computing on ciphertexts"
        stages.append(
            Stage(
                kind="compute",
                index=i,
                members=alice,
                label=label,
                posting=i > 0,
                writers=alice,
                readers=key_holders,
            )
        )
        if threshold:
            stages.append(Stage(kind="attend", index=i, members=key_holders, label=f"{name}: attendance"))
        label = f"{name}: decrypting"
        stages.append(
            Stage(kind="decrypt", index=i, members=key_holders, label=label, writers=key_holders, readers=alice)
        )
    stages.append(Stage(kind="finish", index=0, members=alice, label="reading the last totals", posting=True))
    others = tuple(party for party in everyone if party != computing)
    stages.append(Stage(kind="close", index=0, members=others, label="distributing the result"))
    return tuple(stages)
