"""What exact sampling is compared with: exp(-y) in fractions, by another way than the code's, and stated words."""

from fractions import Fraction
from functools import cache

import numpy as np


def bound_small(y, bits):
    """Integers below and above 2^bits exp(-y 2^-bits), 0 <= y <= 2^bits: alternating terms, rounded by less than 2."""
    total, term, order = 0, 1 << bits, 0
    while term:
        total += (-1) ** order * term
        order += 1
        term = term * y // (order << bits)
    return total - 2 * order - 2, total + 2 * order + 2


@cache
def bound_one_over_e(bits):
    return bound_small(1 << bits, bits)


def bound_exponential(y, bits):
    """Fractions below and above 2^bits exp(-y), some 2^-80 apart: a power of 1/e, times exp(-f) with f below 1."""
    whole = y.numerator // y.denominator
    if whole > bits:
        return Fraction(0), Fraction(1, 2)
    more = bits + 96
    step = ((y - whole).numerator << more) // y.denominator
    low, _ = bound_small(step + 1, more)
    _, high = bound_small(step, more)
    low_e, high_e = bound_one_over_e(more)
    below, above = (Fraction(e**whole * rest, 1 << (whole + 1) * more) for e, rest in ((low_e, low), (high_e, high)))
    return below * (1 << bits), min(above, 1) * (1 << bits)


class Bits:
    """A byte source that gives the stated 64-bit words and then nothing."""

    def __init__(self, *words):
        self.words = list(words)

    def bytes(self, count):
        taken, self.words = self.words[: count // 8], self.words[count // 8 :]
        assert len(taken) == count // 8, "more words were asked for than stated"
        return np.array(taken, dtype="<u8").tobytes()
