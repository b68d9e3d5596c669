"""From IDs to points: the suite curve25519_XMD:SHA-512_ELL2_NU_ of RFC 9380, x-coordinates only.

Every output is a point of the curve. Taking a hash for an x-coordinate would be simpler, but half of all numbers are
x-coordinates of the twist, and blinding does not change which: anyone could read one bit of every ID off its blinded
point. The cofactor is not cleared here: whatever blinds a point multiplies by a multiple of 8 (:mod:`.blinding`).

With x1 = -A / (1 + 2 u^2), Elligator 2 returns x1 if g(x1) = x1^3 + A x1^2 + x1 is a square, else -A - x1. With d =
1 + 2 u^2, g(x1) = -A (A^2 - A^2 d + d^2) / d^3, so the test needs no division; the divisions of a batch share one
inversion (Montgomery's trick). d is never 0: -1/2 is not a square modulo p.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from cloister.protocols.align.square_test import PRIME, are_squares

DOMAIN = b"cloister-align-V01-CS01-with-curve25519_XMD:SHA-512_ELL2_NU_"
_A = 486662
_FIELD_BYTES = 48  # ceil((255 + 128) / 8): the bias of the reduction modulo p is below 2^-128
_BLOCK_BYTES = 128  # of SHA-512


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
    """Invert modulo p: one inversion and three products a number."""
    products = [1]
    for number in numbers:
        products.append(products[-1] * number % PRIME)
    inverse = pow(products.pop(), -1, PRIME)
    inverses = []
    for number, before in zip(reversed(numbers), reversed(products), strict=True):
        inverses.append(inverse * before % PRIME)
        inverse = inverse * number % PRIME
    return inverses[::-1]
