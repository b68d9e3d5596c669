"""A joint coin toss: 32 bytes that no party chose, for the common random polynomial of a collective key.

Each party draws 32 bytes, sends a hash of them, waits for everyone's hash, and only then opens. The seed is a hash of
everything opened, so one honest party makes it unpredictable when the others committed. The hash binds the session
and the party's number: a copied commitment cannot be opened by the one who copied it. A party that refuses to open
can make the toss fail, and so choose among as many outcomes as the others are willing to restart for: c attempts
multiply the advantage of an attack by at most c. Proof: docs/proofs/collective-keys.md.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from cloister.crypto import Entropy
from cloister.crypto.stream import encode_context
from cloister.errors import LocalProtocolError, RemoteProtocolError

TOSS_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class Toss:
    """One party's toss: what it sends first, and what it opens when it has everyone's commitment."""

    commitment: bytes
    opening: bytes = field(repr=False)


def draw_toss(session: bytes, number: int, entropy: Entropy) -> Toss:
    """Draw a party's 32 bytes and commit to them under its number in the session."""
    opening = entropy.bytes(TOSS_BYTES)
    return Toss(commitment=_commit(session, number, opening), opening=opening)


def combine_tosses(session: bytes, commitments: Sequence[bytes], openings: Sequence[bytes]) -> bytes:
    """Check every opening against its commitment and return the joint seed, 32 bytes.

    Parameters
    ----------
    session
        The session's identifier, the same that every party committed under.
    commitments, openings
        In the order of the parties' numbers, from 0.

    Raises
    ------
    RemoteProtocolError
        If an opening is not what its party committed to; names the party's number.
    """
    if not commitments or len(commitments) != len(openings):
        raise LocalProtocolError(
            f"a coin toss needs one opening for each commitment, and at least one; "
            f"got {len(openings)} openings for {len(commitments)} commitments. Wait for every party."
        )
    for number, (commitment, opening) in enumerate(zip(commitments, openings, strict=True)):
        if len(opening) != TOSS_BYTES or not hmac.compare_digest(commitment, _commit(session, number, opening)):
            raise RemoteProtocolError(
                f"the opening of a coin toss must be the {TOSS_BYTES} bytes committed to; that of party {number} "
                f"is not. End the session."
            )
    return sha256(encode_context("coin toss", session, len(openings), *openings)).digest()


def _commit(session: bytes, number: int, opening: bytes) -> bytes:
    return sha256(encode_context("coin toss commitment", session, number, opening)).digest()
