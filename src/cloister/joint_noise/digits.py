"""The binary digits of a geometric variable: independent, each with a public bias.

Let P[G = g] = (1 - p) p^g with p = exp(-1 / scale). With g = sum_i g_i 2^i the weight p^g is the product of the
p^(2^i g_i), so the digits are independent, and

    P[digit i = 1] = q_i = p^(2^i) / (1 + p^(2^i)).

Digits from L on are left out, which changes G with probability p^(2^L). Digit i is [U < theta_i] for B uniform bits U
and theta_i = round(2^B q_i). Both errors are bounded here, in decimal arithmetic of 100 digits: a double would be off
by 2^-54 in q_i already. What they mean for a whole vector is proved in docs/proofs/joint-noise.md.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction

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
