"""Exact comparisons of a uniform real number with exp(-y), y a fraction: what every exact sample rests on.

A :class:`Uniform` is a real number of which the first bits are known, and as many more as a comparison needs are drawn.
An exponential is known as an interval of integers that can be made as narrow as needed. The two are compared until
they no longer overlap. So the answer is that for the real numbers themselves, and nothing is rounded. The proofs are
claims 1 and 2 of docs/proofs/exact-noise.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

WORD_BITS = 64


class ByteSource(Protocol):
    """Uniform bytes: an :class:`~cloister.crypto.Entropy` or a :class:`~cloister.crypto.Stream`."""

    def bytes(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""


class Uniform:
    """A real number uniform on [0, 1), drawn bit by bit.

    Parameters
    ----------
    prefix
        Its first bits, as an integer.
    bits
        How many those are.
    source
        Gives the further ones.
    """

    def __init__(self, prefix: int, bits: int, source: ByteSource) -> None:
        self._prefix, self._bits, self._source = prefix, bits, source

    def is_below_exponential(self, exponent: Fraction) -> bool:
        """Return whether the number is below exp(-exponent), exactly; ``exponent`` is at least 0."""
        while True:
            low, high = enclose_exponential(exponent, self._bits)
            # The number lies in [prefix, prefix + 1) 2^-bits.
            if self._prefix < low:
                return True
            if self._prefix >= high:
                return False
            more = int.from_bytes(self._source.bytes(WORD_BITS // 8), "little")
            self._prefix, self._bits = (self._prefix << WORD_BITS) | more, self._bits + WORD_BITS


def enclose_exponential(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Return integers low <= 2^bits exp(-exponent) <= high, at most 2 apart, for exponent >= 0 and bits >= 1.

    exp(-z) for z = exponent / 2^halvings < 2^-8 is a Taylor polynomial, and squaring it takes each halving back.
    """
    if exponent == 0:
        return 1 << bits, 1 << bits
    if exponent >= bits:
        return 0, 1
    halvings = bits.bit_length() + 8
    guard = bits.bit_length() + 16
    precision = bits + halvings + guard
    one = 1 << precision
    reduced = (exponent.numerator << (precision - halvings)) // exponent.denominator
    total, term, order = 0, one, 0
    while term:
        total += -term if order % 2 else term
        order += 1
        term = term * reduced // (one * order)
    low, high = total - precision, min(one, total + precision)
    for _ in range(halvings):
        low, high = low * low >> precision, -(-high * high >> precision)
    return low >> (precision - bits), -(-high >> (precision - bits))


def floor_exponential(exponent: Fraction, bits: int) -> int:
    """Return the largest integer that is at most 2^bits exp(-exponent), for exponent > 0."""
    more = WORD_BITS
    while True:
        low, high = enclose_exponential(exponent, bits + more)
        if low >> more == high >> more:
            return low >> more
        more *= 2
