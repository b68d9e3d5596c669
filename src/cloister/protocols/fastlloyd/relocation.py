"""Clusters with hardly any records are moved to where many are: post-processing of released counts, free of charge.

Sphere packing spreads the first centres evenly over the domain, and records are not spread evenly: some centres get
none and stay where they are, while others stand for several clusters. A centre whose noisy count is small against the
average is put beside the centre with the largest count; the two then share its records. That count is halved before
the next one is looked for. Chosen on synthetic families (docs/study-fastlloyd.md).
"""

from __future__ import annotations

import numpy as np

from cloister.kmeans.postprocess import fold
from cloister.records import FloatArray

_IDLE = 0.2
"""A cluster is idle below this part of the average count ..."""
_IDLE_NOISES = 2.0
"""... or below so many standard deviations of a count's noise."""
_BUSY = 1.5
"""A cluster is busy above this multiple of the average count ..."""
_BUSY_NOISES = 6.0
"""... if it is above so many standard deviations too."""
_HOP = 0.12
"""How far from the busy centre the idle one is put, as a part of the radius."""


def relocate(
    centres: FloatArray, noisy_counts: FloatArray, *, count_noise: float, distance: float, turn: int
) -> FloatArray:
    """Return the centres with idle ones beside busy ones.

    Parameters
    ----------
    centres, noisy_counts
        After a step, and what it was made of.
    count_noise
        The standard deviation of a count.
    distance
        The radius of the last round: a length as large as a cluster.
    turn
        The round: the direction of a hop is an axis, another one for each cluster and round, so that everyone puts the
        centre in the same place.
    """
    k, d = centres.shape
    counts = noisy_counts.copy()
    average = max(float(np.maximum(counts, 0.0).sum()), 1.0) / k
    idle_below = max(_IDLE_NOISES * count_noise, _IDLE * average)
    busy_above = max(_BUSY_NOISES * count_noise, _BUSY * average)
    moved = centres.copy()
    for idle in np.argsort(counts, kind="stable").tolist():
        busy = int(np.argmax(counts))
        if counts[idle] > idle_below or counts[busy] < busy_above:
            break
        hop = np.zeros(d)
        hop[(idle + turn) % d] = _HOP * distance * (1.0 if (idle // d) % 2 == 0 else -1.0)
        moved[idle] = fold(moved[busy] + hop, -1.0, 1.0)
        counts[busy] /= 2
        counts[idle] = counts[busy]
    return moved
