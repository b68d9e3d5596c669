"""How much the noise of differential privacy moves the coordinates of a centre: its standard deviation.

A round measures a cluster's mean as S / C, a noisy sum over a noisy count, and moves the centre towards it by a gain.
So the centre carries some of this round's noise, and the rest of what was in it before. `blur_means` gives the first,
to first order; `blend` puts the two together, round by round.

It is post-processing: released numbers and public scales of noise, never a record. What it covers and what it does not,
and how it was checked: docs/proofs/uncertainty.md.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from cloister.records import FloatArray

UNKNOWN: Final = 1.0 / 3.0
"""The variance of a coordinate of which nothing is known but its range, [-1, 1]; no centre's is stated larger."""


def blur_means(
    means: FloatArray, counts: FloatArray, *, sum_std: float, count_variances: FloatArray | float
) -> FloatArray:
    """Return the variances of noisy sums over noisy counts: d(S / C) = (dS - (S / C) dC) / C.

    Parameters
    ----------
    means
        (k, d): S / C.
    counts
        (k,): C, above 0.
    sum_std
        The standard deviation of the noise in an entry of S.
    count_variances
        Of the noise in C, (k,) or the same for all.
    """
    of_counts = np.broadcast_to(count_variances, counts.shape)
    with np.errstate(over="ignore"):  # a mean of noise over nothing: as large as you like, and then `UNKNOWN`
        variances: FloatArray = (sum_std**2 + means**2 * of_counts[:, None]) / counts[:, None] ** 2
    return variances


def blur_weighted_means(
    points: FloatArray, labels: NDArray[np.int32], weights: FloatArray, centres: FloatArray, variance: float
) -> FloatArray:
    """Return the variances of means of points, (k, d), whose weights carry independent noise of this variance.

    d(sum w x / sum w) = sum (x - mean) dw / sum w. A cluster without points has `UNKNOWN`.
    """
    k = len(centres)
    squares = (points - centres[labels]) ** 2
    spread = np.stack([np.bincount(labels, weights=column, minlength=k) for column in squares.T], axis=1)
    masses = np.bincount(labels, weights=weights, minlength=k)[:, None]
    blurs: FloatArray = np.full(spread.shape, UNKNOWN)
    np.divide(variance * spread, masses**2, out=blurs, where=masses > 0)
    return np.minimum(blurs, UNKNOWN)


def blend(left: FloatArray, fresh: FloatArray, gains: FloatArray | float) -> FloatArray:
    """Return the variances after a step: (1 - gain) of what was there, gain of what is new; at most `UNKNOWN`."""
    with np.errstate(over="ignore"):
        blended: FloatArray = np.square(gains) * np.minimum(fresh, 1e300) + np.square(1.0 - np.asarray(gains)) * left
    return np.minimum(blended, UNKNOWN)
