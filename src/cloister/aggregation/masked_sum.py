"""Masked secure aggregation (thesis 2.2, table 2.1; FastLloyd 5.2.4, figure 2).

All parties hold one seed. In round t party l sends v_l + m_{t,l} in the ring; the coordinator adds what arrives and
returns the sum with the list of who is in it; every party subtracts the masks of exactly those. So a party that drops
out is simply not in the sum and not in the mask sum.

The masks telescope: with f_t(0), ..., f_t(M) independent uniform vectors,

    m_{t,l} = f_t(l) - f_t(l-1),        sum over l = a..b of m_{t,l} = f_t(b) - f_t(a-1).

Adding the masks of a set A of parties up thus costs two vectors for each gapless run of numbers in A, two in all when
nobody is missing, whatever M is. And the masks are as good as separate ones: (f(0), ..., f(M)) -> (f(0), m_1, ..., m_M)
is a bijection (f(l) = f(0) + m_1 + ... + m_l), so m_1, ..., m_M are independent and uniform
(docs/proofs/secure-sum.md).

Who sees what: to the coordinator every vector is a one-time pad over the whole ring. A party sees the sum. A party that
also sees the coordinator's view can remove every mask, since all know the seed: **the coordinator together with any one
party learns every term**. With two parties in a sum, each can subtract itself and has the other's term.

f_t(i) is ChaCha20 under a key derived from (seed, session), with nonce (round, i). A key is never used for two sessions
and a round of one party never for two vectors; a repeated request gets the first answer again, byte for byte
(wire.endpoint). Rounds may have vectors of different lengths.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Stream, derive_key
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.numeric import Ring


def pack_members(members: Iterable[int], parties: int) -> bytes:
    """Write a set of party numbers 1..parties as a bitmap."""
    bits = 0
    for member in members:
        bits |= 1 << (member - 1)
    return bits.to_bytes((parties + 7) // 8, "little")


def unpack_members(bitmap: bytes, parties: int) -> tuple[int, ...]:
    """Read a bitmap; refuses a wrong length and bits beyond the last party."""
    return tuple(np.flatnonzero(_read_bitmap(bitmap, parties)).tolist())


def _read_bitmap(bitmap: bytes, parties: int) -> NDArray[np.int8]:
    """Return 0s and 1s with a 1 at each member's number; places 0 and parties + 1 are there, and 0."""
    bits = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), bitorder="little")
    beyond = bool(bits[parties:].any())
    if len(bitmap) != (parties + 7) // 8 or beyond:
        raise RemoteProtocolError(
            f"a member list must be a bitmap of {parties} parties; got {len(bitmap)} bytes"
            f"{' with bits beyond the last party' if beyond else ''}."
        )
    inside = np.zeros(parties + 2, dtype=np.int8)
    inside[1:-1] = bits[:parties]
    return inside


class MaskSchedule:
    """One party's view of the common masks of one session."""

    __slots__ = ("_key", "_parties", "_ring")

    def __init__(self, seed: bytes, *, session: bytes, ring: Ring, parties: int) -> None:
        self._key = derive_key(seed, "mask", session, ring.bits)
        self._ring = ring
        self._parties = parties

    def mask_of(self, round_: int, party: int, length: int) -> NDArray[Any]:
        """The mask m_{t,l} = f_t(l) - f_t(l-1): uniform over the ring, independent of every other party's."""
        mask: NDArray[Any] = self._potential(round_, party, length) - self._potential(round_, party - 1, length)
        return mask

    def mask(self, values: NDArray[Any], round_: int, party: int) -> NDArray[Any]:
        """Enc_l(v) = v + m_{t,l} (thesis 2.2.1, step 2); ``values`` are ring elements, one vector for each round."""
        if values.dtype != self._ring.dtype or values.ndim != 1:  # a wider word would not wrap, and show the carry
            raise LocalProtocolError(
                f"what is masked must be a vector of the ring's {np.dtype(self._ring.dtype).name} words; "
                f"got {values.dtype.name} in {values.ndim} dimensions."
            )
        masked: NDArray[Any] = values + self.mask_of(round_, party, len(values))
        return masked

    def sum_masks(self, round_: int, members: bytes, length: int) -> NDArray[Any]:
        """Return the masks of exactly these members, added up."""
        inside = _read_bitmap(members, self._parties)
        total = np.zeros(length, dtype=self._ring.dtype)
        # f(i) is in m_i with + and in m_{i+1} with -: it is left over where just one of the two is a member's.
        signs = inside[:-1] - inside[1:]
        for index in np.flatnonzero(signs).tolist():
            potential = self._potential(round_, index, length)
            total = total + potential if signs[index] > 0 else total - potential
        return total

    def _potential(self, round_: int, index: int, length: int) -> NDArray[Any]:
        """f_t(i), i = 0..M: one stream for each (session, round, index)."""
        nonce = round_.to_bytes(8, "little") + index.to_bytes(4, "little")
        return Stream(self._key, nonce).words(length, self._ring.dtype)
