"""Double masking: pairwise pads that cancel in a sum, and own masks that keep the sum closed until it is agreed on.

*Pairwise pads.* Two parties add the same keystream, one with + and one with -, so that a sum over both is free of it.
For the members S of one attempt to sum, party i adds

    pad_i = sum over j in S, j > i of F(k_ij)  -  sum over j in S, j < i of F(k_ij),     sum over i in S of pad_i = 0,

F being ChaCha20 under a key derived from k_ij, the X25519 secret of the two parties' session keys, and from (session,
round, attempt, S). To whoever knows none of the secrets of two members, what both send is uniform given its sum.
Parties that were told different members or another attempt add pads that do not cancel: the total is then uniform.

*Own masks.* Pads cancel as soon as all members' vectors are added up. If an attempt fails because a reply came late,
whoever reads that reply has the sum over all, and after the next attempt the sum without the late party: the difference
is that party's vector. So every party also adds a mask of its own, drawn for the attempt from a secret of the session,
and reveals the mask's key only for the one attempt that all members answered. The secrets are shared among the parties
(:mod:`cloister.crypto.secret_sharing`): the mask of a party that leaves before it reveals its key can be restored.

This is the double masking of Bonawitz et al., "Practical secure aggregation for privacy-preserving machine learning"
(CCS 2017), with sums that are all or nothing, so that pads never need restoring.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Context, Stream, derive_key
from cloister.errors import LocalProtocolError
from cloister.numeric import Ring


class PairwisePads:
    """One party's pads of one session.

    Parameters
    ----------
    number
        This party's number.
    secrets
        The Diffie-Hellman secret with each other party.
    session, ring
        Which session, and where the vectors live.
    """

    __slots__ = ("_number", "_ring", "_secrets", "_session")

    def __init__(self, *, number: int, secrets: Mapping[int, bytes], session: bytes, ring: Ring) -> None:
        self._number = number
        self._secrets = dict(secrets)
        self._session = session
        self._ring = ring

    def pad(self, members: Iterable[int], length: int, *context: Context) -> NDArray[Any]:
        """Return pad_i for one attempt; ``context`` (round, attempt) must never be used again with another vector."""
        listed = sorted(members)
        if self._number not in listed or not {*listed} - {self._number} <= self._secrets.keys():
            raise LocalProtocolError("pads must be between us and parties we share a secret with; some are not")
        total = np.zeros(length, dtype=self._ring.dtype)
        for other in listed:
            if other != self._number:
                keystream = self._keystream(other, length, (*context, len(listed), *listed))
                total = total + keystream if other > self._number else total - keystream
        return total

    def _keystream(self, other: int, length: int, context: tuple[Context, ...]) -> NDArray[Any]:
        """Return F(k_ij), the same at both ends."""
        pair = sorted((self._number, other))
        key = derive_key(self._secrets[other], "pairwise pad", self._session, self._ring.bits, *pair, *context)
        return Stream(key).words(length, self._ring.dtype)


MASK_KEY_BYTES = 32


def derive_mask_key(secret: bytes, session: bytes, *context: Context) -> bytes:
    """Return the key of one attempt's mask; it tells nothing of the secret or of another attempt's key."""
    return derive_key(secret, "own mask", session, *context)


def expand_mask(mask_key: bytes, length: int, ring: Ring) -> NDArray[Any]:
    """Return the mask itself, uniform over the ring."""
    return Stream(mask_key).words(length, ring.dtype)
