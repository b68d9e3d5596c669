"""Pairwise pads: two parties add the same keystream, one with + and one with -, so that a sum over both is free of it.

For the members S of one attempt to sum, party i adds

    pad_i = sum over j in S, j > i of F(k_ij)  -  sum over j in S, j < i of F(k_ij),     sum over i in S of pad_i = 0,

F being ChaCha20 under a key derived from k_ij, the X25519 secret of the two parties' session keys, and from (session,
round, attempt, S). To whoever knows none of the secrets of two members, what both send is uniform given its sum.
Parties that were told different members or another attempt add pads that do not cancel: the total is then uniform.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Stream, derive_key
from cloister.crypto.stream import Context
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
        """Return pad_i for one attempt; ``context`` (round, attempt) must never come again with another vector."""
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
        """F(k_ij): the same at both ends."""
        pair = sorted((self._number, other))
        key = derive_key(self._secrets[other], "pairwise pad", self._session, self._ring.bits, *pair, *context)
        return Stream(key).words(length, self._ring.dtype)
