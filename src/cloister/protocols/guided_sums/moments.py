"""Second moments: sums of the records' offsets from a middle, shortened to a radius, and of their products.

Each product z_i z_j is released once. Off the diagonal it stands for two entries of the matrix; with a weight of sqrt 2
there the vector is as long as |z|^2, the least that a matrix of products can be, and every entry of the matrix that is
read from it off the diagonal has 1 / sqrt 2 of the noise on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.numeric import find_reach
from cloister.protocols.guided_sums.exact import UNITS, count_offsets, measure_lengths
from cloister.protocols.guided_sums.query import Asking, Query
from cloister.protocols.guided_sums.settings import GuidedSettings
from cloister.records import FloatArray, IntArray, Records, iterate_chunks

# Weights of z_i z_i and z_i z_j (i < j) in the released vector. With 1 and sqrt 2 its norm would be |z|^2 and all its
# entries equally noisy; 5 and 7 are integers with 7^2 = 2 * 5^2 - 1, so the squared norm is at most 25 |z|^4.
DIAGONAL, OFF = 5, 7
_SUM_WEIGHT = 0.5  # of the sums of z beside the second moments


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """What was released, in the scale of the columns, not yet divided by the number of records."""

    sums: FloatArray
    """Of the shortened offsets, (d,)."""
    second: FloatArray
    """Of their products, (d, d), symmetric."""
    sum_noise: float
    """The standard deviation of the noise in one of the sums."""
    noise: float
    """That on the diagonal of the products; off it a factor 5/7 less."""


def moments_length(dimensions: int) -> int:
    """How many numbers they are."""
    return dimensions + dimensions * (dimensions + 1) // 2


def release_moments(settings: GuidedSettings, *, l2_squared: int, middle: FloatArray, radius: float) -> Asking[Moments]:
    """Release sums and second moments of the records' offsets from the middle, shortened to the radius.

    Privacy
    -------
    A record becomes an integer vector z, |z| <= c: its direction is kept, its length at most c. It adds (b z, 5 z_i^2,
    7 z_i z_j for i < j). With 49 = 2 * 25 - 1 the squared norm is b^2 |z|^2 + 25 |z|^4 - sum_{i<j} z_i^2 z_j^2, at
    most b^2 c^2 + 25 c^4 <= ``l2_squared``.
    """
    d = settings.dimensions
    longest, sum_weight = scale_moments(l2_squared)
    reach = find_reach(longest, d)

    def measure(party: Records) -> IntArray:
        sums = np.zeros(d, dtype=np.int64)
        moments = np.zeros((d, d), dtype=np.int64)
        for points in iterate_chunks(party):
            z = _shorten(count_offsets(points, middle), radius * UNITS, reach)
            sums += z.sum(axis=0).astype(np.int64)
            moments += (z.T @ z).astype(np.int64)  # integers below 2^53: exact
        return np.concatenate([sum_weight * sums, (moments * _weights(d))[np.triu_indices(d)]])

    total = yield Query(
        name="sums and second moments",
        measure=measure,
        length=moments_length(d),
        l2_squared=sum_weight**2 * longest**2 + DIAGONAL**2 * longest**4,
        state=middle.tobytes() + np.float64(radius).tobytes(),
    )
    unit = radius / reach  # what 1 of z is worth
    second = np.zeros((d, d))
    second[np.triu_indices(d)] = total[d:]
    return Moments(
        sums=np.asarray(total[:d] * (unit / sum_weight), dtype=np.float64),
        second=(second + np.triu(second, 1).T) / _weights(d) * unit**2,
        sum_noise=settings.noise_std * unit / sum_weight,
        noise=settings.noise_std / DIAGONAL * unit**2,
    )


def _shorten(offsets: FloatArray, radius: float, reach: float) -> FloatArray:
    """Scale the offsets so that the radius becomes ``reach``, shorten what is longer, and round to integers."""
    shortened: FloatArray = np.rint(offsets * (reach / np.maximum(measure_lengths(offsets), radius))[:, None])
    return shortened


def scale_moments(l2_squared: int) -> tuple[int, int]:
    """Return c and b: the longest z, and the weight of its sums, for a squared norm of at most ``l2_squared``."""
    longest = int((l2_squared / (DIAGONAL**2 * (1 + _SUM_WEIGHT**2))) ** 0.25)
    while True:
        weight = int(_SUM_WEIGHT * DIAGONAL * longest)
        if weight**2 * longest**2 + DIAGONAL**2 * longest**4 <= l2_squared:
            return longest, weight
        longest -= 1


def _weights(d: int) -> IntArray:
    return np.where(np.eye(d, dtype=bool), DIAGONAL, OFF).astype(np.int64)
