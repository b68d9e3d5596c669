"""The public plan of one joint sample: which binary digits are drawn, how precisely, and what it costs.

Everything follows from the scale, the number of entries, of parties, and the ring, which all parties know.

Let P[G = g] = (1 - p) p^g with p = exp(-1 / scale). With g = sum_i g_i 2^i the weight p^g is the product of the
p^(2^i g_i), so the binary digits of a geometric variable are independent, each with a public bias:

    P[digit i = 1] = q_i = p^(2^i) / (1 + p^(2^i)).

Digits from L on are left out, which changes G with probability p^(2^L). Digit i is [U < theta_i] for B uniform bits U
and theta_i = round(2^B q_i). Both errors are bounded here, in decimal arithmetic of 100 digits: a double would be off
by 2^-54 in q_i already. What they mean for a whole vector is proved in docs/proofs/joint-noise.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction
from functools import cached_property

import numpy as np

from cloister.crypto import KEY_BYTES
from cloister.errors import ConfigError, PrecisionError
from cloister.joint_noise import comparison
from cloister.joint_noise.comparison import Words
from cloister.numeric import Ring

# What is below 10^-999 becomes 0. Every operation names this context: Python's own may be any caller's.
_CONTEXT = Context(
    prec=100, rounding=ROUND_HALF_EVEN, Emin=-999, Emax=999, traps=[DivisionByZero, InvalidOperation, Overflow]
)
ROUNDING_ERROR = Fraction(1, 10**98)
"""Bounds the error of a computed p^(2^i) or q_i: at most five relative roundings of 5e-100, as a exp(-a) < 1."""


def bound_tail(scale: float, digits: int) -> Fraction:
    """Return an upper bound on p^(2^digits), the probability that a geometric variable has more digits."""
    return Fraction(_power(scale, digits)) + ROUNDING_ERROR


def count_digits(scale: float, tail_max: Fraction) -> int:
    """Return the least L >= 1 with p^(2^L) <= ``tail_max``."""
    digits = 1
    while bound_tail(scale, digits) > tail_max:
        digits += 1
    return digits


def bound_bias_error(precision_bits: int) -> Fraction:
    """Return an upper bound on |theta_i / 2^B - q_i|."""
    return Fraction(1, 1 << (precision_bits + 1)) + ROUNDING_ERROR


def compute_threshold(scale: float, digit: int, precision_bits: int) -> int:
    """Return theta_i = round(2^B q_i)."""
    power = _power(scale, digit)
    bias = _CONTEXT.divide(power, _CONTEXT.add(1, power))
    return int(_CONTEXT.to_integral_value(_CONTEXT.multiply(bias, 1 << precision_bits)))


def _power(scale: float, digit: int) -> Decimal:
    """Return p^(2^digit) = exp(-2^digit / scale); the scale is the rational number that the double holds."""
    return _CONTEXT.exp(_CONTEXT.minus(_CONTEXT.divide(1 << digit, Decimal(scale))))


DISTANCE_MAX = Fraction(1, 1 << 80)
"""Of the whole vector from exact independent discrete Laplace noise, in total variation."""

PLANES_BYTES_MAX = 1 << 26
"""Of the shared bits of one sample; the dealer holds about fourteen times as much at its peak, a party eleven times."""

ENTRIES_MAX = 1 << 22
"""Coarse, so that what follows from the number of entries is small; the limit in bytes is reached before."""


@dataclass(frozen=True, kw_only=True)
class JointLaplace:
    """A vector of discrete Laplace noise, P[x] proportional to exp(-|x| / scale), to be sampled jointly.

    Parameters
    ----------
    scale
        Finite and greater than 0; means exactly the rational number that the double holds.
    entries
        Length of the vector, at least 1; about 100,000 are possible at a scale of 2^18, more at smaller ones.
    parties
        How many sample together, at least 2.
    ring
        Where the shares live. Every sample fits it: its magnitude is below 2^digits.

    Raises
    ------
    PrecisionError
        If a sample might not fit the ring.
    """

    scale: float
    entries: int
    parties: int
    ring: Ring

    def __post_init__(self) -> None:
        if not 0 < self.scale < math.inf:
            raise ConfigError(f"scale must be finite and greater than 0; got {self.scale}.")
        if not 1 <= self.entries <= ENTRIES_MAX:
            raise ConfigError(
                f"joint noise must have from 1 to {ENTRIES_MAX} entries; got {self.entries}. Sample a longer vector in "
                "parts."
            )
        if self.parties < 2:
            raise ConfigError(f"joint noise needs at least 2 parties; got {self.parties}. Alone, draw it locally.")
        if self.digits >= self.ring.bits:
            raise PrecisionError(
                f"noise of a scale of {self.scale:.6g} needs {self.digits} digits and a sign, which must fit the ring; "
                f"got {self.ring.bits} bits. Use the 64-bit ring, fewer fractional bits or a larger epsilon."
            )
        planes_bytes = self.precision_bits * self.words * comparison.WORD_BYTES
        if planes_bytes > PLANES_BYTES_MAX:
            raise ConfigError(
                f"the shared bits of one sample must stay within {PLANES_BYTES_MAX >> 20} MiB; {self.entries} entries "
                f"need {planes_bytes >> 20} MiB. Sample a longer vector in parts."
            )

    @cached_property
    def digits(self) -> int:
        """L: binary digits of each geometric variable; cutting the rest off takes at most half of the distance."""
        return count_digits(self.scale, DISTANCE_MAX / (4 * self.entries))

    @cached_property
    def precision_bits(self) -> int:
        """B: the uniform bits behind each digit; the least multiple of 4 that keeps to the distance."""
        bits = comparison.BLOCK_BITS
        while self._bound_distance(bits) > DISTANCE_MAX:
            bits += comparison.BLOCK_BITS
        return bits

    @cached_property
    def distance(self) -> float:
        """An upper bound on the total variation distance of the vector from exact noise; at most 2^-80."""
        rounded_up = math.nextafter(float(self._bound_distance(self.precision_bits)), math.inf)
        return min(rounded_up, float(DISTANCE_MAX))

    @property
    def lanes(self) -> int:
        """Comparisons: one for each digit of each of two geometric variables in each entry."""
        return 2 * self.digits * self.entries

    @property
    def words(self) -> int:
        """Words in a plane that has one bit for each lane."""
        return -(-self.lanes // comparison.WORD_BITS)

    @property
    def blocks(self) -> int:
        """Blocks of four bits in each comparison."""
        return self.precision_bits // comparison.BLOCK_BITS

    @cached_property
    def layers(self) -> tuple[comparison.Layer, ...]:
        """The layers of the comparison tree above the blocks."""
        return comparison.shape_tree(self.blocks)

    @property
    def steps(self) -> int:
        """Openings: the leaves, one for each layer of the tree, and the conversion to the ring."""
        return len(self.layers) + 2

    @property
    def opening_bytes(self) -> tuple[int, ...]:
        """Bytes that each party sends to all others, step by step: a key, then masked planes."""
        plane_bytes = self.words * comparison.WORD_BYTES
        return (KEY_BYTES, *(layer.operands * plane_bytes for layer in self.layers), plane_bytes)

    @property
    def gates(self) -> int:
        """ANDs of the circuit, 5 B / 4 - 2 - layers in each lane; lanes that only fill up a word are not counted."""
        return self.lanes * (comparison.BLOCK_GATES * self.blocks + sum(layer.products for layer in self.layers))

    @property
    def corrections_bytes(self) -> int:
        """Bytes that make the last party's shares correlate with the others'."""
        planes = comparison.BLOCK_PRODUCTS * self.blocks + sum(layer.products for layer in self.layers)
        return planes * self.words * comparison.WORD_BYTES + self.words * comparison.WORD_BITS * self.ring.bits // 8

    @property
    def dealt_bytes(self) -> int:
        """Bytes dealt to the last party; every other party gets a key alone."""
        return KEY_BYTES + self.corrections_bytes

    @cached_property
    def thresholds(self) -> Words:
        """The bits of theta_i of every lane, lowest plane first; lanes are ordered by digit, sign and entry."""
        thresholds = [compute_threshold(self.scale, digit, self.precision_bits) for digit in range(self.digits)]
        planes = np.empty((self.precision_bits, self.words), dtype=np.uint64)
        lanes = np.zeros(self.words * comparison.WORD_BITS, dtype=np.uint8)
        for plane in range(self.precision_bits):
            bits = np.array([threshold >> plane & 1 for threshold in thresholds], dtype=np.uint8)
            lanes[: self.lanes] = np.repeat(bits, 2 * self.entries)
            planes[plane] = comparison.pack_bits(lanes)
        return planes

    def _bound_distance(self, precision_bits: int) -> Fraction:
        """Bound 2 entries (p^(2^L) + L max_i |theta_i / 2^B - q_i|)."""
        one = bound_tail(self.scale, self.digits) + self.digits * bound_bias_error(precision_bits)
        return 2 * self.entries * one
