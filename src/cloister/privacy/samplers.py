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
from functools import lru_cache
from threading import Lock
from typing import Protocol, assert_never

import numpy as np

from cloister.crypto import SystemEntropy
from cloister.errors import ConfigError, PrecisionError
from cloister.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteGaussianSum,
    DiscreteLaplace,
    Noise,
    PolyaDifference,
)
from cloister.records import IntArray

MAX_SCALE = 2.0**40
"""Samples are 64-bit integers. At this scale one leaves them with a probability below exp(-2^22)."""
OnProgress = Callable[[int, int], None]
"""Called with the entries drawn so far and the entries to draw."""
_BATCH_ENTRIES = 1 << 14  # about a fifth of a second between two progress reports
_features_lock = Lock()


class Sampler(Protocol):
    """A source of independent noise."""

    @property
    def is_simulation(self) -> bool:
        """Whether whoever knows the seed knows the noise; what it protects is then not private."""

    def draw(self, mechanism: Noise, entries: int, on_progress: OnProgress | None = None) -> IntArray:
        """Draw ``entries`` independent samples."""


class ExactSampler:
    """OpenDP's exact samplers: no floating-point number is computed between the system's entropy and the sample.

    A scale is read as the rational number that the double is. Discrete Laplace and discrete Gaussian are sampled by the
    algorithms of Canonne, Kamath and Steinke (2020), sections 5.2 and 5.3; Polya shares are thinned from discrete
    Laplace with integers. A sample takes 10 to 30 microseconds. Its running time
    depends on its value, as with every exact rejection sampler: nobody outside the holder may time a single draw.

    Privacy
    -------
    Draws noise and releases nothing. Neighbours, sensitivity and cost belong to the release that adds it; that these
    draws have the stated distribution is in docs/proofs/discrete-gaussian.md, discrete-laplace.md and
    placement-shared.md.
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
                return np.asarray(_build_measurement(mechanism)([0] * count), dtype=np.int64)
            case DiscreteGaussianSum(sigma=sigma, shares=shares):
                one = DiscreteGaussian(sigma=sigma)
                total = np.zeros(count, dtype=np.int64)
                for _ in range(shares):
                    total += self._draw_batch(one, count)
                return total
            case PolyaDifference(scale=scale, shares=shares):
                laplace = self._draw_batch(DiscreteLaplace(scale=scale), 2 * count)
                polya = thin_geometric(fold_to_geometric(laplace), shares, self._entropy)
                return polya[:count] - polya[count:]


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


class ByteSource(Protocol):
    """Uniform bytes: an :class:`~cloister.crypto.Entropy` or a :class:`~cloister.crypto.Stream`."""

    def bytes(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""


def fold_to_geometric(laplace: IntArray) -> IntArray:
    """Turn discrete Laplace variables into geometric ones of the same parameter: y if y >= 0, else -y - 1.

    Given either sign the result g has a probability proportional to exp(-g / scale), and so it has without the sign.
    """
    return np.where(laplace >= 0, laplace, -1 - laplace)


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


@lru_cache(maxsize=64)
def _build_measurement(mechanism: DiscreteGaussian | DiscreteLaplace) -> Callable[[list[int]], list[int]]:
    """Build OpenDP's measurement "add noise to a vector of 64-bit integers"."""
    # Imported here: it loads a library of 275 MB, which simulations do not need.
    from opendp import domains, measurements, metrics, mod  # noqa: PLC0415

    domain = domains.vector_domain(domains.atom_domain(T="i64"))
    # OpenDP calls what is outside its formal review "contrib" and asks for a process-wide switch, read only while a
    # measurement is built. It is put back, so that it means what the embedding program set it to.
    with _features_lock:
        was_enabled = "contrib" in mod.GLOBAL_FEATURES
        mod.enable_features("contrib")
        try:
            measurement: Callable[[list[int]], list[int]]
            if isinstance(mechanism, DiscreteGaussian):
                measurement = measurements.make_gaussian(domain, metrics.l2_distance(T="f64"), scale=mechanism.sigma)
            else:
                measurement = measurements.make_laplace(domain, metrics.l1_distance(T="i64"), scale=mechanism.scale)
        finally:
            if not was_enabled:
                mod.disable_features("contrib")
    return measurement
