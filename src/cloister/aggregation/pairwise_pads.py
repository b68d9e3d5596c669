"""Pads between pairs: keystreams that cancel in a sum over all members of one statement.

Two parties add the same keystream, one with + and one with -, so that a sum over both is free of it. For the members S
of a statement party i adds

    pad_i = sum over j in S, j > i of F(k_ij)  -  sum over j in S, j < i of F(k_ij),     sum over i in S of pad_i = 0,

F being ChaCha20 under a key derived from k_ij, the X25519 secret of the two parties' session keys, and from the
statement. To whoever knows none of the secrets of two members, what both send is uniform given its sum. Parties with
different statements add pads that do not cancel: the total is then uniform.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Stream, derive_key
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
    ring
        Where the vectors live.
    """

    __slots__ = ("_number", "_ring", "_secrets")

    def __init__(self, *, number: int, secrets: Mapping[int, bytes], ring: Ring) -> None:
        self._number = number
        self._secrets = dict(secrets)
        self._ring = ring

    def pad(self, members: Iterable[int], length: int, statement: bytes) -> NDArray[Any]:
        """Return pad_i for one statement, which must never be used again with another vector."""
        listed = sorted(members)
        if self._number not in listed or not {*listed} - {self._number} <= self._secrets.keys():
            raise LocalProtocolError("pads must be between us and parties we share a secret with; some are not")
        total = np.zeros(length, dtype=self._ring.dtype)
        for other in listed:
            if other > self._number:
                total += self._keystream(other, length, statement)
            elif other < self._number:
                total -= self._keystream(other, length, statement)
        return total

    def _keystream(self, other: int, length: int, statement: bytes) -> NDArray[Any]:
        """Return F(k_ij), the same at both ends."""
        key = derive_key(self._secrets[other], "pairwise pad", self._ring.bits, statement)
        return Stream(key).words(length, self._ring.dtype)
