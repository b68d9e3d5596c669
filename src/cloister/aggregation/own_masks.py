"""Own masks: they keep a sum closed until all its members have agreed to open it.

Pads cancel as soon as all members' vectors are added up. If an attempt fails because a reply came late, whoever reads
that reply has the sum over all, and after the next attempt the sum without the late party: the difference is that
party's vector. So each party also adds a mask of its own, from a secret that is drawn fresh for every attempt, and
gives the mask's key for one statement of a round only. Shares of the secret, sealed to the other members, travel with
the vector: the mask of a member that answered and vanished can be restored by more members than may collude.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from cloister.aggregation.messages import Attempt, PartyBox
from cloister.crypto import Entropy, Stream, derive_key
from cloister.crypto.sealing import open_keyed, seal_keyed
from cloister.crypto.secret_sharing import SECRET_BYTES, SHARE_BYTES, split_secret
from cloister.crypto.stream import Context
from cloister.errors import RemoteProtocolError
from cloister.numeric import Ring


def draw_secret(entropy: Entropy) -> bytes:
    """Draw the secret of one attempt's mask: a secret of several attempts, once restored, would open them all."""
    return entropy.bytes(SECRET_BYTES)


def derive_mask_key(secret: bytes, statement: bytes) -> bytes:
    """Return the key of the mask for one statement; it tells nothing of the secret."""
    return derive_key(secret, "own mask", statement)


def expand_mask(mask_key: bytes, length: int, ring: Ring) -> NDArray[Any]:
    """Return the mask itself, uniform over the ring."""
    return Stream(mask_key).words(length, ring.dtype)


class ShareBoxes:
    """Seals and opens shares between the members of an attempt, each pair under its own secret."""

    def __init__(self, *, number: int, session: bytes, pair_secrets: Mapping[int, bytes], threshold: int) -> None:
        self._number = number
        self._session = session
        self._pair_secrets = pair_secrets
        self._threshold = threshold

    def seal(self, secret: bytes, attempt: Attempt, members: tuple[int, ...], entropy: Entropy) -> tuple[PartyBox, ...]:
        """Return a share of our secret for each other member."""
        shares = split_secret(secret, threshold=self._threshold, holders=members, entropy=entropy)
        return tuple(
            PartyBox(other, seal_keyed(shares[other], self._pair_secrets[other], *self._context(attempt, own=True)))
            for other in members
            if other != self._number
        )

    def open(self, box: PartyBox, attempt: Attempt) -> bytes:
        """Open a share that another member sealed to us."""
        share = open_keyed(box.box, self._pair_secrets[box.party], *self._context(attempt, own=False, other=box.party))
        if len(share) != SHARE_BYTES:
            raise RemoteProtocolError(f"a share must have {SHARE_BYTES} bytes; got {len(share)}.")
        return share

    def _context(self, attempt: Attempt, *, own: bool, other: int = 0) -> tuple[Context, ...]:
        sender = self._number if own else other
        return (self._session, "mask share", attempt.round, attempt.number, attempt.members, sender)
