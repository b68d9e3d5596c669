"""Canonne, Kamath and Steinke (2020), algorithms 1 to 3, line by line in integers: slow, and by nobody's shortcut.

It shares nothing with ours but the paper. ``draw_below(n)`` gives an integer uniform on 0 .. n - 1.
"""

from fractions import Fraction
from math import floor


def draw_bernoulli_exp(gamma, draw_below):
    """Algorithm 1: 1 with the probability exp(-gamma)."""
    while gamma > 1:
        if not draw_bernoulli_exp(Fraction(1), draw_below):
            return 0
        gamma -= 1
    k = 1
    while draw_below(gamma.denominator * k) < gamma.numerator:
        k += 1
    return k % 2


def draw_laplace(scale, draw_below):
    """Algorithm 2, for scale = t / s."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = draw_below(t)
        if not draw_bernoulli_exp(Fraction(u, t), draw_below):
            continue
        v = 0
        while draw_bernoulli_exp(Fraction(1), draw_below):
            v += 1
        y = (u + t * v) // s
        negative = draw_below(2)
        if not (negative and y == 0):
            return -y if negative else y


def draw_gaussian(sigma, draw_below):
    """Algorithm 3."""
    t = floor(sigma) + 1
    while True:
        y = draw_laplace(Fraction(t), draw_below)
        if draw_bernoulli_exp((abs(y) - sigma**2 / t) ** 2 / (2 * sigma**2), draw_below):
            return y
