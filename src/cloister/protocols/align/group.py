"""The group of an alignment: hash IDs to points of Curve25519, and multiply points by secret numbers.

**Hashing** is the suite curve25519_XMD:SHA-512_ELL2_NU_ of RFC 9380, x-coordinates only. Every output is a point of the
curve. Using a hash as an x-coordinate would be simpler, but half of all numbers are x-coordinates of the twist, and
blinding does not change which: anyone could read one bit of each ID off its blinded point. Hashing does not clear the
cofactor: whatever blinds a point multiplies it by a multiple of 8.

With x1 = -A / (1 + 2 u^2), Elligator 2 returns x1 if g(x1) = x1^3 + A x1^2 + x1 is a square, else -A - x1. With d =
1 + 2 u^2, g(x1) = -A (A^2 - A^2 d + d^2) / d^3, so the test needs no division; the divisions of a batch share one
inversion (Montgomery's trick). d is never 0: -1/2 is not a square modulo p.

**Blinding** is X25519 of the ``cryptography`` package (OpenSSL). X25519(k, P) takes and gives x-coordinates, so it
works in G/±, where G has prime order l and P and -P are identified. It multiplies by k = 8 j, 2^251 <= j < 2^252 (RFC
7748's clamping). Three things follow:

- It commutes: X25519(a, X25519(b, P)) = X25519(b, X25519(a, P)).
- Multiples of 8 map every point into the subgroup of order l (the twist's cofactor is 4): a blinded point has no
  component of small order to recognise it by.
- 8 j mod l and its negative, over all keys, hit every element of (Z/l)*/± once, except fewer than 2^126 of 2^251: a
  random key is a uniform exponent up to 2^-125, and every exponent has a key (:meth:`BlindingKey.from_exponent`), even
  the inverse of a product of exponents.

An encoding with the top bit set, or not below p, would be a second name for a point. Those are refused, and so are the
five points of small order on curve and twist. Other points of the twist, which no honest party sends, are multiplied
like any other: the twist of Curve25519 is as secure as the curve.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from numpy.typing import NDArray

from cloister.compiled import compile_loop
from cloister.crypto import Entropy
from cloister.errors import RemoteProtocolError

POINT_BYTES = 32
EXPONENT_BYTES = 32
PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
"""l, the prime order of the subgroup."""

DOMAIN = b"cloister-align-V01-CS01-with-curve25519_XMD:SHA-512_ELL2_NU_"
_A = 486662
_FIELD_BYTES = 48  # ceil((255 + 128) / 8): the bias of the reduction modulo p is below 2^-128
_BLOCK_BYTES = 128  # of SHA-512

_EIGHTH = pow(8, -1, ORDER)
_ORDER_EIGHT = (  # the x-coordinates of the points of order 8
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
SMALL_ORDER = tuple(x.to_bytes(POINT_BYTES, "little") for x in (0, 1, 2**255 - 20, *_ORDER_EIGHT))
_LAST_WORDS = np.array([2**64 - 19, 2**64 - 1, 2**64 - 1, 2**63 - 1], dtype=np.uint64)  # p

_ONE, _THREE, _SEVEN, _ZERO = np.uint64(1), np.uint64(3), np.uint64(7), np.uint64(0)
_SHIFT = np.uint64(63)
_LOW, _MIDDLE, _HIGH = np.uint64(2**64 - 19), np.uint64(2**64 - 1), np.uint64(2**63 - 1)  # the words of p


# --- hashing ----------------------------------------------------------------------------------------------------------


def hash_to_points(messages: Sequence[bytes], domain: bytes = DOMAIN) -> bytes:
    """Return the x-coordinates of the messages' points, 32 bytes each."""
    return b"".join(x.to_bytes(32, "little") for x in map_to_curve(hash_to_field(messages, domain)))


def hash_to_field(messages: Sequence[bytes], domain: bytes = DOMAIN) -> list[int]:
    """RFC 9380 5.2 with expand_message_xmd: one element modulo p for each message."""
    suffix = domain + bytes([len(domain)])
    start = hashlib.sha512(bytes(_BLOCK_BYTES))
    tail = _FIELD_BYTES.to_bytes(2, "big") + b"\0" + suffix
    elements = []
    for message in messages:
        state = start.copy()
        state.update(message)
        state.update(tail)
        expanded = hashlib.sha512(state.digest() + b"\1" + suffix).digest()
        elements.append(int.from_bytes(expanded[:_FIELD_BYTES], "big") % PRIME)
    return elements


def map_to_curve(elements: Sequence[int]) -> list[int]:
    """Elligator 2 (RFC 9380 6.7.1, Z = 2), x-coordinates."""
    if not elements:
        return []
    denominators = [(1 + 2 * u * u) % PRIME for u in elements]
    squares = are_squares([-_A * (_A * _A * (1 - d) + d * d) * d % PRIME for d in denominators])
    firsts = [-_A * inverse % PRIME for inverse in _invert_all(denominators)]
    return [x if square else (-_A - x) % PRIME for x, square in zip(firsts, squares, strict=True)]


def _invert_all(numbers: list[int]) -> list[int]:
    """Invert modulo p: one inversion, and three products per number."""
    products = [1]
    for number in numbers:
        products.append(products[-1] * number % PRIME)
    inverse = pow(products.pop(), -1, PRIME)
    inverses = []
    for number, before in zip(reversed(numbers), reversed(products), strict=True):
        inverses.append(inverse * before % PRIME)
        inverse = inverse * number % PRIME
    return inverses[::-1]


# Squareness modulo p is the only arithmetic of the hash that is too slow in plain Python. Euler's criterion costs 150
# microseconds per number with pow(), three times a scalar multiplication; the binary algorithm for the Jacobi symbol on
# four 64-bit words costs three. Its time depends on the number, but that comes from a party's own ID and is tested on
# that party's own machine.


def are_squares(numbers: list[int]) -> NDArray[np.bool_]:
    """Return for each number from 1 to p - 1 whether it is a square modulo p."""
    words = np.frombuffer(b"".join(number.to_bytes(32, "little") for number in numbers), dtype="<u8")
    found = np.empty(len(numbers), dtype=np.bool_)
    _fill_squares(words.astype(np.uint64, copy=False).reshape(-1, 4), found)
    return found


@compile_loop
def _fill_squares(words: Any, found: Any) -> None:
    """Jacobi symbol (a / p): strip twos, (2/b) = -1 iff b = 3, 5 mod 8; swap, reciprocity; subtract."""
    for at in range(len(words)):
        a0, a1, a2, a3 = words[at, 0], words[at, 1], words[at, 2], words[at, 3]
        b0, b1, b2, b3 = _LOW, _MIDDLE, _MIDDLE, _HIGH
        square = True
        while a0 | a1 | a2 | a3:
            while not a0 & _ONE:
                a0 = (a0 >> _ONE) | (a1 << _SHIFT)
                a1 = (a1 >> _ONE) | (a2 << _SHIFT)
                a2 = (a2 >> _ONE) | (a3 << _SHIFT)
                a3 = a3 >> _ONE
                if (b0 & _SEVEN) in (3, 5):
                    square = not square
            less = a3 < b3 or (
                a3 == b3 and (a2 < b2 or (a2 == b2 and (a1 < b1 or (a1 == b1 and a0 < b0))))
            )  # both odd now
            if less:
                a0, b0, a1, b1, a2, b2, a3, b3 = b0, a0, b1, a1, b2, a2, b3, a3
                if a0 & b0 & _THREE == _THREE:
                    square = not square
            borrow0 = _ONE if a0 < b0 else _ZERO
            borrow1 = _ONE if a1 < b1 or (a1 == b1 and borrow0) else _ZERO
            borrow2 = _ONE if a2 < b2 or (a2 == b2 and borrow1) else _ZERO
            a0 = a0 - b0
            a1 = a1 - b1 - borrow0
            a2 = a2 - b2 - borrow1
            a3 = a3 - b3 - borrow2
        found[at] = square


# --- blinding ---------------------------------------------------------------------------------------------------------


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
        """Return the key that multiplies by an exponent, or by its negative.

        Raises
        ------
        RemoteProtocolError
            For the one in 2^125 exponents that has no key; only a cheating peer finds one.
        """
        j = exponent * _EIGHTH % ORDER
        j = max(j, ORDER - j)
        if not 1 << 251 <= j < 1 << 252:
            raise RemoteProtocolError("exponents must be random; the product of these has no X25519 key.")
        return cls(j << 3)

    def blind(self, points: bytes) -> bytes:
        """Multiply each point; they must have passed :func:`check_points`."""
        exchange, load = self._key.exchange, X25519PublicKey.from_public_bytes
        return b"".join([exchange(load(points[at : at + POINT_BYTES])) for at in range(0, len(points), POINT_BYTES)])


def check_points(points: bytes) -> None:
    """Refuse what is not a sequence of points of large order in canonical encoding: below p, in 32 bytes each."""
    if len(points) % POINT_BYTES:
        raise RemoteProtocolError(f"points must have {POINT_BYTES} bytes each; got {len(points)} bytes in all.")
    words = np.frombuffer(points, dtype="<u8").reshape(-1, 4)
    above = (words[:, 0] >= _LAST_WORDS[0]) & (words[:, 1:] == _LAST_WORDS[1:]).all(axis=1)
    if (above | (words[:, 3] > _LAST_WORDS[3])).any():
        raise RemoteProtocolError("a point must be encoded as a number below 2^255 - 19; some are not.")
    if np.isin(np.frombuffer(points, dtype=f"S{POINT_BYTES}"), np.array(SMALL_ORDER)).any():
        raise RemoteProtocolError("blinded IDs must be points of large order; some are not.")


def encode_exponent(exponent: int) -> bytes:
    """Encode an exponent in 32 little-endian bytes: the smaller of it and its negative.

    Which of the two a ratio of keys is would reveal something about the keys, whose halves of Z/l are known.
    """
    exponent %= ORDER
    return min(exponent, ORDER - exponent).to_bytes(EXPONENT_BYTES, "little")


def decode_exponent(raw: bytes) -> int:
    """Undo :func:`encode_exponent`."""
    exponent = int.from_bytes(raw, "little")
    if len(raw) != EXPONENT_BYTES or not 1 <= exponent <= ORDER // 2:
        raise RemoteProtocolError("an exponent must be 32 bytes of a number from 1 to half the group's order.")
    return exponent
