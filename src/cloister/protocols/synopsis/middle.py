"""The middle of the records, and how far from it they lie: what second moments are taken around, and clipped to."""

from __future__ import annotations

from math import isqrt, sqrt

import numpy as np

from cloister.numeric import find_reach
from cloister.protocols.guided_sums.exact import UNITS, count_offsets, measure_lengths
from cloister.protocols.guided_sums.query import Asking, Query
from cloister.protocols.guided_sums.shrinkage import shrink_mean
from cloister.protocols.synopsis.settings import NORM_BINS, Settings
from cloister.records import FloatArray, IntArray, Records, iterate_chunks

_COUNT_PART = 4  # in the sum of all records, a count weighs a quarter of the longest record
_CLIPPED = 0.5  # the part of the records that may be further away than the radius: the median


def find_middle(settings: Settings, *, l2_squared: int) -> Asking[FloatArray]:
    """Release the sum of the records and their number; return their mean, shrunk towards 0 by its noise.

    Privacy
    -------
    A record becomes an integer vector z, |z| <= c: a record of length sqrt(d), the longest, becomes one of length c.
    It adds (z, b), b = c / 4: the squared L2 norm is at most c^2 + b^2 <= ``l2_squared``.
    """
    d = settings.dimensions
    longest = isqrt(l2_squared * _COUNT_PART**2 // (_COUNT_PART**2 + 1))
    count_weight = longest // _COUNT_PART
    scale = find_reach(longest, d) / sqrt(d)

    def measure(party: Records) -> IntArray:
        sums = np.zeros(d + 1, dtype=np.int64)
        for points in iterate_chunks(party):
            sums[:d] += np.rint(points * scale).astype(np.int64).sum(axis=0)
            sums[d] += count_weight * len(points)
        return sums

    total = yield Query(
        name="sum and number of all records", measure=measure, length=d + 1, l2_squared=longest**2 + count_weight**2
    )
    noise_std = settings.noise_std
    records = max(float(total[d]), noise_std) / count_weight
    return np.clip(shrink_mean(total[:d] / (scale * records), noise_std / (scale * records)), -1.0, 1.0)


def find_radius(settings: Settings, *, l2_squared: int, records: float, middle: FloatArray) -> Asking[float]:
    """Release a histogram of the records' distances from the middle over geometric bins; return about the median.

    Privacy
    -------
    A record adds a to one bin: squared L2 norm a^2 <= ``l2_squared``.
    """
    height = isqrt(l2_squared)
    longest = sqrt(settings.dimensions) + float(np.sqrt(middle @ middle))
    radii = longest * 2.0 ** (-np.arange(NORM_BINS) / 4)  # falling; bin i holds the lengths in (radii[i + 1], radii[i]]

    def measure(party: Records) -> IntArray:
        counts = np.zeros(NORM_BINS, dtype=np.int64)
        for points in iterate_chunks(party):
            lengths = measure_lengths(count_offsets(points, middle)) / UNITS
            # searchsorted wants rising edges; what is shorter than the last edge is in the last bin.
            bins = NORM_BINS - 1 - np.searchsorted(radii[:0:-1], lengths, side="left")
            counts += np.bincount(bins, minlength=NORM_BINS)
        return vote_for_median(counts, height) if settings.client_level else height * counts

    total = yield Query(
        name="histogram of distances from the middle",
        measure=measure,
        length=NORM_BINS,
        l2_squared=height**2,
        state=middle.tobytes(),
    )
    if settings.client_level:  # the border between the two neighbouring bins with most votes
        return float(radii[1 + int((total[:-1] + total[1:]).argmax())])
    noise_std = settings.noise_std / height
    longer = np.cumsum(total / height)  # longer[i]: the records longer than radii[i + 1]
    fits = np.flatnonzero(longer + noise_std * np.sqrt(np.arange(1, NORM_BINS + 1)) > _CLIPPED * records)
    return float(radii[fits[0]]) if fits.size else float(radii[-1])


def vote_for_median(counts: IntArray, height: int) -> IntArray:
    """A party's vote for the bin that its median record is in; a party without records does not vote."""
    votes = np.zeros_like(counts)
    if counts.any():
        votes[int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))] = height
    return votes
