"""The box: where on each column the records lie, from one noisy histogram a column; for bounds that are too wide."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np

from cloister.protocols.guided_sums.denoising import estimate_counts
from cloister.protocols.guided_sums.query import IDLE, Asking, Query
from cloister.protocols.synopsis.settings import BOX_BINS, Settings
from cloister.records import FloatArray, IntArray, Records, iterate_chunks

_LEAST_SIGNAL = 15.0  # records over noise in a column's histogram: with less, the cut is a guess
_PRICE = 16.0  # of leaving all records outside, where halving the box is worth log 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Box:
    """Where the records lie, and what it cost to find out."""

    low: FloatArray
    high: FloatArray
    l2_squared: int = 0


def find_box(settings: Settings, *, l2_squared: int, records: float) -> Asking[Box]:
    """Release d marginal histograms and cut their empty ends; nothing is released where the noise would decide.

    Privacy
    -------
    A record adds a to one bin of each of d histograms: squared L2 norm d a^2 <= ``l2_squared``.
    """
    d = settings.dimensions
    height = isqrt(l2_squared // d)
    noise_std = settings.noise_std / max(height, 1)
    if height == 0 or records < _LEAST_SIGNAL * noise_std:
        yield IDLE
        return Box(low=np.full(d, -1.0), high=np.full(d, 1.0))

    def measure(party: Records) -> IntArray:
        counts = np.zeros((d, BOX_BINS), dtype=np.int64)
        for points in iterate_chunks(party):
            bins = np.clip((points + 1.0) * (BOX_BINS / 2), 0, BOX_BINS - 1).astype(np.int64)
            bins += BOX_BINS * np.arange(d)
            counts += np.bincount(bins.ravel(), minlength=counts.size).reshape(counts.shape)
        return height * counts.ravel()

    total = yield Query(name="histogram of each column", measure=measure, length=d * BOX_BINS, l2_squared=d * height**2)
    released = estimate_counts(total / height, noise_std, level=0.0).means.reshape(d, BOX_BINS)
    cuts = np.array([_cut_ends(column) for column in released]) * (2 / BOX_BINS) - 1.0
    return Box(low=cuts[:, 0], high=cuts[:, 1], l2_squared=d * height**2)


def _cut_ends(counts: FloatArray) -> tuple[int, int]:
    """The bins [a, b) that make log(width) + price * (part of the records outside) smallest."""
    cumulated = np.concatenate([[0.0], np.cumsum(counts)])
    total = max(cumulated[-1], 1.0)
    starts, ends = np.triu_indices(BOX_BINS + 1, 1)
    outside = np.maximum(1.0 - (cumulated[ends] - cumulated[starts]) / total, 0.0)
    best = int((np.log(ends - starts) + _PRICE * outside).argmin())
    return int(starts[best]), int(ends[best])
