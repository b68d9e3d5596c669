"""Who draws the noise: the exact sampler for private results, or a seeded one for studies (``simulation_sampler``).

A sampler is told a distribution (``mechanisms``) and a length and gives integers. It knows nothing of data, budgets or
accountants; ``release`` charges first and draws then.

*Polya shares*, whose sum is exactly discrete Laplace, are sampled with integer arithmetic only. Let p = exp(-1 /
scale), and let NB(r, p) have the generating function ((1 - p) / (1 - p z))^r. NB(1, p) is geometric, NB(1/m, p) added m
times is NB(1, p), and the difference of two geometrics is discrete Laplace. So a holder adds the difference of two
NB(1/m, p), and any m holders together add exactly discrete Laplace.

An NB(1/m, p) variable is cut out of a geometric one. Take a uniformly random permutation of g things, g geometric,
and keep each of its cycles with probability 1/m: the number of things kept is NB(1/m, p). The lengths of the cycles
are drawn one after the other, each uniform on what is left, so that this takes about ln g steps. The proof is in
docs/proofs/placement-shared.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, assert_never

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import SystemEntropy
from cloister.errors import ConfigError, PrecisionError
from cloister.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteGaussianSum,
    DiscreteLaplace,
    Noise,
    PolyaDifference,
)
from cloister.privacy.proposals import WORDS, propose
from cloister.records import IntArray

MAX_SCALE = 2.0**40
"""Samples are 64-bit integers. At this scale one leaves them with a probability below exp(-2^22)."""
OnProgress = Callable[[int, int], None]
"""Called with the entries drawn so far and the entries to draw."""
_BATCH_ENTRIES = 1 << 14
_BLOCK_WORDS = 3 << 12  # a block larger than 128 kB costs fresh pages each time, twice the price of its bytes


class Sampler(Protocol):
    """A source of independent noise."""

    @property
    def is_simulation(self) -> bool:
        """Whether whoever knows the seed knows the noise; what it protects is then not private."""

    def draw(self, mechanism: Noise, entries: int, on_progress: OnProgress | None = None) -> IntArray:
        """Draw ``entries`` independent samples."""


class ExactSampler:
    """Samples that have the stated distribution exactly, from the operating system's bits.

    A scale is read as the rational number that the double is. Discrete Laplace and discrete Gaussian follow Canonne,
    Kamath and Steinke (2020), sections 5.2 and 5.3 (``proposals``); Polya shares are thinned from discrete Laplace.
    Integers decide everything: 64-bit ones where they suffice for certain (``noise_kernel``), longer ones and more
    bits where they do not. A sample takes a tenth to a fifth of a microsecond, a Polya share up to one. Its
    running time depends on its value, as with every exact rejection sampler: nobody outside the holder may time a
    single draw.

    Privacy
    -------
    Draws noise and releases nothing. Neighbours, sensitivity and cost belong to the release that adds it; that these
    draws have the stated distribution is in docs/proofs/exact-noise.md and placement-shared.md.
    """

    is_simulation = False

    def __init__(self) -> None:
        self._entropy = SystemEntropy()

    def draw(self, mechanism: Noise, entries: int, on_progress: OnProgress | None = None) -> IntArray:
        """Draw ``entries`` independent samples, in batches.

        Parameters
        ----------
        mechanism
            Its scale is at most 2^40.
        entries
            At least 0.
        on_progress
            Called after every batch of 2^14 entries.
        """
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
                polya = self._thin(fold_to_geometric(laplace), shares)
                return polya[:count] - polya[count:]

    def _draw_symmetric(self, mechanism: DiscreteGaussian | DiscreteLaplace, count: int) -> IntArray:
        """Decide proposals, each of three fresh words, until ``count`` are kept."""
        # Imported here: it loads the compiler, which commands that draw nothing do without.
        from cloister.privacy.noise_kernel import fill  # noqa: PLC0415

        proposal, samples, filled = propose(mechanism), np.empty(count, dtype=np.int64), 0
        while filled < count:
            words, at = self._take_words(WORDS * (5 * (count - filled) // 2 + 16)), 0
            while filled < count and at < words.size:
                at, filled = fill(words, at, proposal.constants, samples, filled)
                if filled < count and at < words.size:
                    sample = proposal.decide(words[at : at + WORDS].tolist(), self._entropy)
                    at += WORDS
                    if sample is not None:
                        samples[filled] = sample
                        filled += 1
        return samples

    def _thin(self, geometric: IntArray, shares: int) -> IntArray:
        """Turn geometric variables into NB(1 / shares, p)."""
        from cloister.privacy.noise_kernel import thin_left  # noqa: PLC0415

        kept, done = np.zeros_like(geometric), 0
        while done < geometric.size:
            done = thin_left(self._take_words(16 * (geometric.size - done)), geometric, kept, np.uint64(shares), done)
        return kept

    def _take_words(self, count: int) -> NDArray[np.uint64]:
        """Return ``count`` fresh 64-bit words, or a block of them if that is less."""
        return np.frombuffer(self._entropy.bytes(8 * min(count, _BLOCK_WORDS)), dtype=np.uint64)


def draw_in_batches(
    draw_batch: Callable[[int], IntArray], entries: int, batch: int, on_progress: OnProgress | None
) -> IntArray:
    """Fill an array batch by batch and report after each."""
    samples = np.empty(entries, dtype=np.int64)
    for start in range(0, entries, batch):
        stop = min(start + batch, entries)
        samples[start:stop] = draw_batch(stop - start)
        if on_progress is not None:
            on_progress(stop, entries)
    return samples


def check_draw(mechanism: Noise, entries: int) -> None:
    """Refuse a scale at which 64-bit integers could saturate, and a negative length."""
    match mechanism:
        case DiscreteGaussian(sigma=scale) | DiscreteLaplace(scale=scale) | PolyaDifference(scale=scale):
            pass
        case DiscreteGaussianSum(sigma=sigma, shares=shares):
            scale = sigma * math.sqrt(shares)
        case _:
            assert_never(mechanism)
    if scale > MAX_SCALE:
        raise PrecisionError(
            f"the scale of noise must be at most 2^40, or samples could leave 64-bit integers; got {scale:.6g}. "
            "Use fewer fractional bits, a tighter bound on a record, or a larger epsilon."
        )
    if entries < 0:
        raise ConfigError(f"the number of samples must be at least 0; got {entries}.")


def fold_to_geometric(laplace: IntArray) -> IntArray:
    """Turn discrete Laplace variables into geometric ones of the same parameter: y if y >= 0, else -y - 1.

    Given either sign the result g has a probability proportional to exp(-g / scale), and so it has without the sign.
    """
    return np.where(laplace >= 0, laplace, -1 - laplace)
