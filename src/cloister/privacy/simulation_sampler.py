"""Seeded noise for tests, studies and audits: fast, reproducible, and therefore not private.

It samples below a staircase over the curve exp(-x^2 / 2 sigma^2) or exp(-x / scale), x = 0, 1, 2, ... The stairs are
2^b integers wide, about 1/16 of the scale; below a scale of 32 they are single integers. A stair is picked with a
64-bit word from a table of cumulative heights, then an integer on it, which is kept with the ratio of the curve to the
stair. The table is computed with 50 decimal digits, so that it is the same on every machine.

Each sample has the distribution of the exact sampler's up to a total variation of 2^-50, for scales up to 2^40. With q
the staircase's probabilities, a the ratio of the curve to the stair, and q', a' what is computed:

- q: stairs left out hold less than 2^-69; the rounding of the table to 64-bit words moves each of fewer than 2^11
  stairs by at most 2^-64. Together 2^-53 at most.
- a: an exponent between -0.65 and 0 with four roundings, an exponential with an error of one unit in the last place,
  and a comparison with a multiple of 2^-53: at most 2^-50.7, and 2^-51.9 on average over q. Stairs one integer
  wide have a = 1 exactly.
- Total variation is at most (|q - q'| + E_q |a - a'|) / E_q a, where E_q a is at least 0.95 for wide stairs, and at
  least 1/2 for narrow ones, of which zero is kept with one of its two signs only.

A Polya share takes two such samples, a sum of Gaussians one for each. Whatever a study of 2^25 samples computes, it
differs from what exact noise gives with a probability below 2^-24.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Stream
from cloister.privacy.exponentials import ByteSource
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, Noise, PolyaDifference
from cloister.privacy.samplers import OnProgress, check_draw, draw_in_batches, fold_to_geometric
from cloister.records import IntArray

_STAIRS_PER_SCALE_BITS = 4
_DIGITS = 50
_NEGLIGIBLE = Decimal(2) ** -75  # the height, beside the first stair's, below which stairs are left out
_BATCH_ENTRIES = 1 << 16  # temporaries stay in the second-level cache


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


class SimulationSampler:
    """Noise from a seeded stream: the same stream and the same calls give the same numbers.

    Parameters
    ----------
    stream
        Advanced by every draw. Give each role its own child.

    Privacy
    -------
    None: whoever knows the seed can subtract the noise. A result made with it says so (``is_simulation``).
    """

    is_simulation = True

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def draw(self, mechanism: Noise, entries: int, on_progress: OnProgress | None = None) -> IntArray:
        """Draw ``entries`` independent samples; the parameters are those of the exact sampler."""
        check_draw(mechanism, entries)
        return draw_in_batches(lambda count: self._draw_batch(mechanism, count), entries, _BATCH_ENTRIES, on_progress)

    def _draw_batch(self, mechanism: Noise, count: int) -> IntArray:
        match mechanism:
            case DiscreteGaussian() | DiscreteLaplace():
                return self._draw_symmetric(mechanism, count)
            case DiscreteGaussianSum(sigma=sigma, shares=shares):
                one = DiscreteGaussian(sigma=sigma)
                total = np.zeros(count, dtype=np.int64)
                for _ in range(shares):
                    total += self._draw_symmetric(one, count)
                return total
            case PolyaDifference(scale=scale, shares=shares):
                laplace = self._draw_symmetric(DiscreteLaplace(scale=scale), 2 * count)
                polya = thin_geometric(fold_to_geometric(laplace), shares, self._stream)
                return polya[:count] - polya[count:]

    def _draw_symmetric(self, mechanism: DiscreteGaussian | DiscreteLaplace, count: int) -> IntArray:
        """Propose until ``count`` samples are kept."""
        samples = np.empty(count, dtype=np.int64)
        filled = 0
        while filled < count:
            kept = self._propose(mechanism, count - filled)
            samples[filled : filled + kept.size] = kept
            filled += kept.size
        return samples

    def _propose(self, mechanism: DiscreteGaussian | DiscreteLaplace, count: int) -> IntArray:
        """Propose ``count`` integers under the staircase and return those under the curve."""
        staircase = build_staircase(mechanism)
        words = self._stream.words(2 * count, np.uint64)
        stair = np.searchsorted(staircase.boundaries, words[:count], side="right")
        # Of the second word the lowest bits place the integer on its stair and the highest bit is the sign.
        offset = (words[count:] & np.uint64((1 << staircase.width_bits) - 1)).astype(np.int64)
        is_negative = words[count:] >= np.uint64(1 << 63)
        start = stair.astype(np.int64) << staircase.width_bits
        magnitude: IntArray = start + offset
        # Zero has no sign: one of its two would count it double.
        is_kept = ~(is_negative & (magnitude == 0))
        if staircase.width_bits:
            if isinstance(mechanism, DiscreteGaussian):
                # exp(-x^2 / 2 sigma^2) over its value at the start: (x - start) (x + start) / 2 sigma^2.
                exponent = offset.astype(np.float64) * (magnitude + start) / (-2.0 * mechanism.sigma**2)
            else:
                exponent = offset / -mechanism.scale
            is_kept &= self._stream.uniform(count) < np.exp(exponent)
        samples: IntArray = np.where(is_negative, -magnitude, magnitude)[is_kept]
        return samples


def thin_geometric(geometric: IntArray, shares: int, source: ByteSource) -> IntArray:
    """Turn geometric variables into NB(1 / shares, p): keep each cycle of a random permutation with 1 / shares."""
    kept = np.zeros_like(geometric)
    active = np.flatnonzero(geometric)
    left = geometric[active]
    while active.size:
        cycle = draw_uniform(left, source) + 1
        is_kept = draw_uniform(np.full(active.size, shares, dtype=np.int64), source) == 0
        kept[active] += np.where(is_kept, cycle, 0)
        left = left - cycle
        active, left = active[left > 0], left[left > 0]
    return kept


def draw_uniform(high: IntArray, source: ByteSource) -> IntArray:
    """Draw one integer uniform on [0, high) for each entry of ``high``, exactly: words are rejected, not scaled."""
    bound = high.astype(np.uint64)
    drawn = np.empty(high.size, dtype=np.uint64)
    open_entries = np.arange(high.size)
    while open_entries.size:
        words = np.frombuffer(source.bytes(8 * open_entries.size), dtype="<u8").astype(np.uint64)
        divisor = bound[open_entries]
        remainder = words % divisor
        # The last 2^64 mod high words would favour small remainders. A word is one of them exactly if the run of
        # ``high`` words that it lies in, from words - remainder on, passes 2^64; -divisor is 2^64 - high.
        is_fair = words - remainder <= np.negative(divisor)
        drawn[open_entries[is_fair]] = remainder[is_fair]
        open_entries = open_entries[~is_fair]
    return drawn.astype(np.int64)
