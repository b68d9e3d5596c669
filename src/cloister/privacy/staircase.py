"""Tables for the simulation sampler: a staircase over exp(-x^2 / 2 sigma^2) or exp(-x / scale), x = 0, 1, 2, ...

The stairs are 2^b integers wide, about 1/16 of the scale; below a scale of 32 they are single integers. A stair is
picked with a 64-bit word from a table of cumulative heights, then an integer on it, which is kept with the ratio of
the curve to the stair. The table is computed with 50 decimal digits, so that it is the same on every machine.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace

_STAIRS_PER_SCALE_BITS = 4
_DIGITS = 50
_NEGLIGIBLE = Decimal(2) ** -75  # the height, beside the first stair's, below which stairs are left out


@dataclass(frozen=True, kw_only=True, eq=False)
class Staircase:
    """The rejection envelope of one distribution.

    Attributes
    ----------
    boundaries
        Stair i is picked by the words from boundaries[i - 1] up to, not including, boundaries[i].
    width_bits
        A stair covers 2^width_bits integers.
    """

    boundaries: NDArray[np.uint64]
    width_bits: int


@lru_cache(maxsize=256)
def build_staircase(mechanism: DiscreteGaussian | DiscreteLaplace) -> Staircase:
    """Tabulate the stairs down to a height of 2^-75 of the first."""
    scale = mechanism.sigma if isinstance(mechanism, DiscreteGaussian) else mechanism.scale
    width_bits = max(0, math.frexp(scale)[1] - 1 - _STAIRS_PER_SCALE_BITS)
    # Nothing is trapped: at tiny scales the second stair underflows to 0, as it should.
    with decimal.localcontext(decimal.Context(prec=_DIGITS, rounding=decimal.ROUND_HALF_EVEN, traps=[])):
        step = (1 << width_bits) / Decimal(scale)
        if isinstance(mechanism, DiscreteGaussian):
            # Stair j has height exp(-j^2 step^2 / 2); two neighbours differ by exp(-(2 j + 1) step^2 / 2).
            ratio = (-step * step / 2).exp()
            ratio_growth = ratio * ratio
        else:
            ratio = (-step).exp()
            ratio_growth = Decimal(1)
        heights = [Decimal(1)]
        while heights[-1] > _NEGLIGIBLE:
            heights.append(heights[-1] * ratio)
            ratio *= ratio_growth
        total = sum(heights)
        cumulated = Decimal(0)
        boundaries = []
        for height in heights[:-1]:
            cumulated += height
            boundaries.append(int((cumulated / total * 2**64).to_integral_value()))
    # A boundary of 2^64 has no word above it: the stairs behind it are never picked.
    inner = [boundary for boundary in boundaries if boundary < 1 << 64]
    return Staircase(boundaries=np.array(inner, dtype=np.uint64), width_bits=width_bits)
