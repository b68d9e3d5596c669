"""How an exact sample is proposed and thinned: from three words an integer, or nothing.

Both distributions have one form. U is uniform on 0, ..., width - 1, V is geometric with P[V >= j] = exp(-j step), and x
= U + width V is kept with the probability exp(-exponent(U, V)). Its quotient by 2^shift gets a sign. Zero has none: one
of its two is dropped, or it would count double. That is Canonne, Kamath and Steinke, "The Discrete Gaussian for
Differential Privacy" (2020), algorithms 2 and 3, with their two acceptances made one. The law is claims 3 and 4 of
docs/proofs/exact-noise.md.

:meth:`Proposal.decide` is the definition, in integers of any length. Almost every proposal is decided by
``noise_kernel`` from :attr:`Proposal.constants`, which gives the same answers or none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloister.privacy.exponentials import WORD_BITS, ByteSource, Uniform, floor_exponential
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace

WORDS = 3
"""A proposal's words: for U, for V, and for the coin and the sign."""
RUNS = 16
"""A larger V, of probability exp(-16), is left to :meth:`Proposal.decide`."""
EXPONENT_BITS = 48
"""The kernel's exponents are multiples of 2^-48, between the exponent and 4 more of these."""
_CURVE_MOST = 128  # with a sharper curve every x but 0 is kept with a probability below exp(-127) anyway


class Constants(NamedTuple):
    """A proposal in 64-bit integers; see claim 5 for what each means and why nothing overflows."""

    thresholds: NDArray[np.uint64]
    width: np.uint64
    unfair: np.uint64
    is_gaussian: np.uint64
    scaling: np.uint64
    factor: np.uint64
    constant: np.uint64
    shift: np.uint64


@dataclass(frozen=True, kw_only=True, eq=False)
class Proposal:
    """How one distribution is proposed and thinned.

    Attributes
    ----------
    width
        U is below it.
    step
        P[V >= j] = exp(-j step).
    shift
        The sample's magnitude is (U + width V) >> shift.
    variance
        sigma^2 of a discrete Gaussian; none for a discrete Laplace.
    """

    width: int
    step: Fraction
    shift: int
    variance: Fraction | None

    def exponent(self, offset: int, run: int) -> Fraction:
        """Return y >= 0 where U = offset and V = run are kept with the probability exp(-y)."""
        if self.variance is None:
            return Fraction(offset, self.width)
        distance = offset + self.width * run - self.variance / self.width
        return distance * distance / (2 * self.variance) + Fraction(offset, self.width)

    def decide(self, words: Sequence[int], source: ByteSource) -> int | None:
        """Return the sample that three words propose, or none; bits that they leave open come from ``source``."""
        offset, rest = divmod(words[0] * self.width, 1 << WORD_BITS)
        if rest < (1 << WORD_BITS) % self.width:
            return None
        uniform, run = Uniform(words[1], WORD_BITS, source), 0
        while uniform.is_below_exponential((run + 1) * self.step):
            run += 1
        coin, is_negative = divmod(words[2], 2)
        if not Uniform(coin, WORD_BITS - 1, source).is_below_exponential(self.exponent(offset, run)):
            return None
        magnitude = (offset + self.width * run) >> self.shift
        if is_negative and magnitude == 0:
            return None
        return -magnitude if is_negative else magnitude

    @cached_property
    def constants(self) -> Constants:
        """What the kernel needs."""
        if self.variance is None:
            scaling = WORD_BITS - self.width.bit_length()
            factor = Fraction(1 << (WORD_BITS + EXPONENT_BITS - scaling), self.width)
            least = Fraction(0)
        else:
            scaling = WORD_BITS - (RUNS * self.width - 1).bit_length()
            curve = min(1 / (2 * self.variance), Fraction(_CURVE_MOST))
            factor = curve * (1 << (2 * WORD_BITS + EXPONENT_BITS - 2 * scaling))
            least = self.variance / (2 * self.width * self.width) * (1 << EXPONENT_BITS)
        thresholds = [floor_exponential(run * self.step, WORD_BITS) for run in range(1, RUNS + 1)]
        return Constants(
            thresholds=np.array(thresholds, dtype=np.uint64),
            width=np.uint64(self.width),
            unfair=np.uint64((1 << WORD_BITS) % self.width),
            is_gaussian=np.uint64(self.variance is not None),
            scaling=np.uint64(scaling),
            factor=np.uint64(math.floor(factor)),
            constant=np.uint64(math.ceil(least) + 3),
            shift=np.uint64(self.shift),
        )


@lru_cache(maxsize=256)
def propose(mechanism: DiscreteGaussian | DiscreteLaplace) -> Proposal:
    """Return the proposal of one distribution; a scale is the fraction that its double is."""
    if isinstance(mechanism, DiscreteGaussian):
        sigma = Fraction(mechanism.sigma)
        return Proposal(width=math.floor(sigma) + 1, step=Fraction(1), shift=0, variance=sigma * sigma)
    scale = Fraction(mechanism.scale)
    if scale < 1:
        return Proposal(width=1, step=1 / scale, shift=0, variance=None)
    # The denominator is a power of 2.
    shift = scale.denominator.bit_length() - 1
    return Proposal(width=scale.numerator, step=Fraction(1), shift=shift, variance=None)
