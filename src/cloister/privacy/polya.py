"""Polya noise: the shares whose sum is exactly discrete Laplace, sampled with integer arithmetic only.

Let p = exp(-1 / scale), and let NB(r, p) have the generating function ((1 - p) / (1 - p z))^r. NB(1, p) is geometric,
NB(1/m, p) added m times is NB(1, p), and the difference of two geometrics is discrete Laplace. So a holder adds the
difference of two NB(1/m, p), and any m holders together add exactly discrete Laplace.

An NB(1/m, p) variable is cut out of a geometric one. Take a uniformly random permutation of g things, g geometric,
and keep each of its cycles with probability 1/m: the number of things kept is NB(1/m, p). The lengths of the cycles
are drawn one after the other, each uniform on what is left, so that this takes about ln g steps. The proof is in
docs/proofs/placement-shared.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cloister.errors import ConfigError
from cloister.records import IntArray


class ByteSource(Protocol):
    """Uniform bytes: an :class:`~cloister.crypto.Entropy` or a :class:`~cloister.crypto.Stream`."""

    def bytes(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""


@dataclass(frozen=True, kw_only=True)
class PolyaDifference:
    """One holder's share of discrete Laplace noise: the difference of two NB(1 / shares, exp(-1 / scale)).

    For sampling only. One share alone is not a mechanism that an accountant knows, and must never be one: the sum of
    ``shares`` of them is :class:`~cloister.privacy.mechanisms.DiscreteLaplace` of the same scale.
    """

    scale: float
    shares: int

    def __post_init__(self) -> None:
        if not 0 < self.scale < math.inf:
            raise ConfigError(f"scale must be finite and greater than 0; got {self.scale}.")
        if self.shares < 1:
            raise ConfigError(f"shares must be at least 1; got {self.shares}.")


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
