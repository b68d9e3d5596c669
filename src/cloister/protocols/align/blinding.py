"""Blinding: multiply points by a secret number, with X25519 of the ``cryptography`` package (OpenSSL).

X25519(k, P) takes and gives x-coordinates, so it works in G/±, where G has prime order l and P and -P are one. It
multiplies by k = 8 j with 2^251 <= j < 2^252 (RFC 7748's clamping). Three things follow:

- It commutes: X25519(a, X25519(b, P)) = X25519(b, X25519(a, P)).
- Multiples of 8 send every point into the subgroup of order l (the twist's cofactor is 4): what is blinded has no
  component of small order to recognise it by.
- 8 j mod l and its negative, over all keys, hit every element of (Z/l)*/± once, but for fewer than 2^126 of 2^251: a
  random key is a uniform exponent up to 2^-125, and every exponent has a key (:meth:`BlindingKey.from_exponent`), also
  the inverse of a product of exponents.

An encoding with the top bit set or not below p would be a second name of a point; those are refused, and so are the
five points of small order on curve and twist. Other points of the twist, which no honest party makes, are multiplied
like any: the twist of Curve25519 is as hard as the curve.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from cloister.crypto import Entropy
from cloister.errors import RemoteProtocolError

POINT_BYTES = 32
EXPONENT_BYTES = 32
ORDER = 2**252 + 27742317777372353535851937790883648493
"""l, the prime order of the subgroup."""

_EIGHTH = pow(8, -1, ORDER)
_ORDER_EIGHT = (  # the x-coordinates of the points of order 8
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
SMALL_ORDER = tuple(x.to_bytes(POINT_BYTES, "little") for x in (0, 1, 2**255 - 20, *_ORDER_EIGHT))
_LAST_WORDS = np.array([2**64 - 19, 2**64 - 1, 2**64 - 1, 2**63 - 1], dtype=np.uint64)  # p


class BlindingKey:
    """A secret exponent in (Z/l)*/±."""

    __slots__ = ("_key", "exponent")

    def __init__(self, clamped: int) -> None:
        self._key = X25519PrivateKey.from_private_bytes(clamped.to_bytes(32, "little"))
        self.exponent = clamped % ORDER

    @classmethod
    def draw(cls, entropy: Entropy) -> BlindingKey:
        """Draw a uniform key: 251 random bits of j, then 8 j."""
        return cls((1 << 254) | (int.from_bytes(entropy.bytes(32), "little") % (1 << 251)) << 3)

    @classmethod
    def from_exponent(cls, exponent: int) -> BlindingKey:
        """The key that multiplies by an exponent, or by its negative.

        Raises
        ------
        RemoteProtocolError
            For the one in 2^125 exponents that has no key; only a peer that cheats finds one.
        """
        j = exponent * _EIGHTH % ORDER
        j = max(j, ORDER - j)
        if not 1 << 251 <= j < 1 << 252:
            raise RemoteProtocolError("exponents must be random; their product is one that has no X25519 key.")
        return cls(j << 3)

    def blind(self, points: bytes) -> bytes:
        """Multiply each point; they must have passed :func:`check_points`."""
        exchange, load = self._key.exchange, X25519PublicKey.from_public_bytes
        return b"".join([exchange(load(points[at : at + POINT_BYTES])) for at in range(0, len(points), POINT_BYTES)])


def check_points(points: bytes) -> None:
    """Refuse what is not a row of points of large order in their only encoding: below p, in 32 bytes each."""
    if len(points) % POINT_BYTES:
        raise RemoteProtocolError(f"points must have {POINT_BYTES} bytes each; got {len(points)} bytes in all.")
    words = np.frombuffer(points, dtype="<u8").reshape(-1, 4)
    above = (words[:, 0] >= _LAST_WORDS[0]) & (words[:, 1:] == _LAST_WORDS[1:]).all(axis=1)
    if (above | (words[:, 3] > _LAST_WORDS[3])).any():
        raise RemoteProtocolError("a point must be encoded as a number below 2^255 - 19; some are not.")
    if np.isin(np.frombuffer(points, dtype=f"S{POINT_BYTES}"), np.array(SMALL_ORDER)).any():
        raise RemoteProtocolError("blinded IDs must be points of large order; some are not.")


def encode_exponent(exponent: int) -> bytes:
    """An exponent as it travels, in 32 little-endian bytes: the smaller of it and its negative.

    Which of the two a ratio of keys is would tell something of the keys, whose halves of Z/l are known.
    """
    exponent %= ORDER
    return min(exponent, ORDER - exponent).to_bytes(EXPONENT_BYTES, "little")


def decode_exponent(raw: bytes) -> int:
    """Undo :func:`encode_exponent`."""
    exponent = int.from_bytes(raw, "little")
    if len(raw) != EXPONENT_BYTES or not 1 <= exponent <= ORDER // 2:
        raise RemoteProtocolError("an exponent must be 32 bytes of a number from 1 to half the group's order.")
    return exponent
